//! Frames of HTTP/2 (RFC 9113, sections 4 and 6): the nine bytes before each, and the numbers in them.

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 9;

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub mod kind {
    #![allow(missing_docs, reason = "the names of RFC 9113")]
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PUSH_PROMISE: u8 = 0x5;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
}

/// Flags of frames.
pub mod flag {
    #![allow(missing_docs, reason = "the names of RFC 9113")]
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Names of settings.
pub mod setting {
    #![allow(missing_docs, reason = "the names of RFC 9113")]
    pub const HEADER_TABLE_SIZE: u16 = 0x1;
    pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub const MAX_FRAME_SIZE: u16 = 0x5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
}

/// Why a stream or a connection ends (section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of RFC 9113")]
#[repr(u32)]
pub enum Code {
    No = 0x0,
    Protocol = 0x1,
    FlowControl = 0x3,
    StreamClosed = 0x5,
    FrameSize = 0x6,
    RefusedStream = 0x7,
    Compression = 0x9,
    EnhanceYourCalm = 0xb,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes behind the header.
    pub length: usize,
    /// One of [`kind`], or unknown.
    pub kind: u8,
    /// Bits of [`flag`].
    pub flags: u8,
    /// 0 for the connection.
    pub stream: u32,
}

impl Header {
    /// Reads a header.
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Self {
            length: (usize::from(l0) << 16) | (usize::from(l1) << 8) | usize::from(l2),
            kind,
            flags,
            stream: u32::from_be_bytes([s0 & 0x7F, s1, s2, s3]),
        }
    }

    /// Appends the header. Its length must have been kept within what the peer allows, so within 24 bits.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let [.., l0, l1, l2] = self.length.to_be_bytes();
        bytes.extend_from_slice(&[l0, l1, l2, self.kind, self.flags]);
        bytes.extend_from_slice(&self.stream.to_be_bytes());
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload of DATA or HEADERS without padding (section 6.1). `None` if there is more padding than payload.
    pub fn unpadded<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        if !self.has(flag::PADDED) {
            return Some(payload);
        }
        let (padding, rest) = payload.split_first()?;
        rest.len().checked_sub(usize::from(*padding)).map(|length| &rest[..length])
    }
}

/// The number in the first four bytes, without its reserved bit.
pub fn u31(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_be_bytes(*four) & 0x7FFF_FFFF)
}

/// Appends a frame of one number, as RST_STREAM and WINDOW_UPDATE are.
pub fn write_number(bytes: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    Header { length: 4, kind, flags: 0, stream }.write(bytes);
    bytes.extend_from_slice(&number.to_be_bytes());
}

/// Appends a SETTINGS frame.
pub fn write_settings(bytes: &mut Vec<u8>, settings: &[(u16, u32)]) {
    Header { length: settings.len() * 6, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(bytes);
    for (name, value) in settings {
        bytes.extend_from_slice(&name.to_be_bytes());
        bytes.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_written() {
        let header = Header { length: 0x01_02_03, kind: kind::DATA, flags: flag::END_STREAM, stream: 0x7FFF_FFFF };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 0, 1, 0x7F, 0xFF, 0xFF, 0xFF]);
        assert_eq!(Header::read(bytes.first_chunk().expect("nine bytes")), header);
    }

    #[test]
    fn padding() {
        let padded = Header { length: 4, kind: kind::DATA, flags: flag::PADDED, stream: 1 };
        assert_eq!(padded.unpadded(&[2, b'a', 0, 0]), Some(&b"a"[..]));
        assert_eq!(padded.unpadded(&[3, 0, 0, 0]), Some(&b""[..]));
        assert_eq!(padded.unpadded(&[4, 0, 0, 0]), None);
        assert_eq!(padded.unpadded(&[]), None);
        assert_eq!(Header { flags: 0, ..padded }.unpadded(b"abcd"), Some(&b"abcd"[..]));
    }
}
