//! Frames as bytes (RFC 9113, sections 4 and 6).

use super::violation::ErrorCode;

/// What a client sends first.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of each frame's header.
pub const FRAME_HEADER_BYTES: usize = 9;

/// The longest payload that we send or accept: what every peer accepts without a setting.
pub const FRAME_MAX_BYTES: usize = 16_384;

/// The window of each stream, and of the connection, before settings change it.
pub const DEFAULT_WINDOW: u32 = 65_535;

/// The largest window.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;

/// The kinds of frames.
pub mod kind {
    /// DATA.
    pub const DATA: u8 = 0;
    /// HEADERS.
    pub const HEADERS: u8 = 1;
    /// PRIORITY, which is ignored.
    pub const PRIORITY: u8 = 2;
    /// RST_STREAM.
    pub const RST_STREAM: u8 = 3;
    /// SETTINGS.
    pub const SETTINGS: u8 = 4;
    /// PUSH_PROMISE.
    pub const PUSH_PROMISE: u8 = 5;
    /// PING.
    pub const PING: u8 = 6;
    /// GOAWAY.
    pub const GOAWAY: u8 = 7;
    /// WINDOW_UPDATE.
    pub const WINDOW_UPDATE: u8 = 8;
    /// CONTINUATION.
    pub const CONTINUATION: u8 = 9;
}

/// The flags of frames.
pub mod flag {
    /// The last frame of a message: DATA, HEADERS.
    pub const END_STREAM: u8 = 0x1;
    /// An answer: SETTINGS, PING.
    pub const ACK: u8 = 0x1;
    /// The last frame of a header block: HEADERS, CONTINUATION.
    pub const END_HEADERS: u8 = 0x4;
    /// Padding follows: DATA, HEADERS.
    pub const PADDED: u8 = 0x8;
    /// A priority stands before the block: HEADERS.
    pub const PRIORITY: u8 = 0x20;
}

/// The settings.
pub mod setting {
    /// The size of the table of the peer's encoder.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether a server may push.
    pub const ENABLE_PUSH: u16 = 2;
    /// How many streams the peer may have open.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// The window of each stream.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The longest frame.
    pub const MAX_FRAME_SIZE: u16 = 5;
}

/// Appends a frame's header.
#[inline]
pub fn append_header(out: &mut Vec<u8>, len: usize, kind: u8, flags: u8, stream: u32) {
    let [_, a, b, c] = (len as u32).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags, s0, s1, s2, s3]);
}

/// Appends a SETTINGS frame.
pub fn append_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    append_header(out, settings.len() * 6, kind::SETTINGS, 0, 0);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the answer to a SETTINGS frame.
pub fn append_settings_ack(out: &mut Vec<u8>) {
    append_header(out, 0, kind::SETTINGS, flag::ACK, 0);
}

/// Appends a PING frame or the answer to one.
pub fn append_ping(out: &mut Vec<u8>, payload: [u8; 8], is_ack: bool) {
    append_header(out, 8, kind::PING, if is_ack { flag::ACK } else { 0 }, 0);
    out.extend_from_slice(&payload);
}

/// Appends a WINDOW_UPDATE frame.
pub fn append_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    append_header(out, 4, kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// Appends a RST_STREAM frame.
pub fn append_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    append_header(out, 4, kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends a GOAWAY frame.
pub fn append_goaway(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode) {
    append_header(out, 8, kind::GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends a message's header block that `append_block` writes: a HEADERS frame, and CONTINUATION frames if it is long.
#[inline]
pub fn append_headers(
    out: &mut Vec<u8>,
    stream: u32,
    ends: bool,
    append_block: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
    append_header(out, 0, kind::HEADERS, flags, stream);
    append_block(out);
    let len = out.len() - start - FRAME_HEADER_BYTES;
    if len > FRAME_MAX_BYTES {
        return split_block(out, start, stream, flags);
    }
    let [_, a, b, c] = (len as u32).to_be_bytes();
    out[start..start + 3].copy_from_slice(&[a, b, c]);
}

/// Cuts a block that is too long for one frame.
#[cold]
fn split_block(out: &mut Vec<u8>, start: usize, stream: u32, flags: u8) {
    let block = out.split_off(start + FRAME_HEADER_BYTES);
    out.truncate(start);
    let last = block.len().div_ceil(FRAME_MAX_BYTES) - 1;
    for (i, part) in block.chunks(FRAME_MAX_BYTES).enumerate() {
        let kind = if i == 0 {
            kind::HEADERS
        } else {
            kind::CONTINUATION
        };
        let mut part_flags = if i == 0 {
            flags & !flag::END_HEADERS
        } else {
            0
        };
        if i == last {
            part_flags |= flag::END_HEADERS;
        }
        append_header(out, part.len(), kind, part_flags, stream);
        out.extend_from_slice(part);
    }
}
