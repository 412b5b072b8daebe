//! Frames of RFC 6455 from the server's end: headers read and written, closes read.

/// Longest payload of a control frame.
pub const CONTROL_BYTES_MAX: usize = 125;

/// Longest header that a client sends: two bytes, a long length, a mask.
pub const CLIENT_HEADER_BYTES_MAX: usize = 14;

/// Longest header that a server sends: the same without the mask.
pub const SERVER_HEADER_BYTES_MAX: usize = 10;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of RFC 6455")]
#[repr(u8)]
pub enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xA,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }

    fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }
}

/// Why the server closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The program ends.
    GoingAway,
    /// RFC 6455 does not allow it.
    Protocol,
    /// A text that is none.
    NotUtf8,
    /// A message over `MAX_MESSAGE_BYTES`.
    TooLarge,
}

impl CloseReason {
    /// The code of RFC 6455, section 7.4.1.
    pub fn code(self) -> u16 {
        match self {
            Self::GoingAway => 1001,
            Self::Protocol => 1002,
            Self::NotUtf8 => 1007,
            Self::TooLarge => 1009,
        }
    }
}

/// Why there is nothing more to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The client did what it must not.
    Violation(CloseReason),
    /// The client has closed, with this code.
    Closed(Option<u16>),
}

impl Stop {
    /// What the server's close says: the reason, or what the client said.
    pub fn code(self) -> Option<u16> {
        match self {
            Self::Violation(reason) => Some(reason.code()),
            Self::Closed(code) => code,
        }
    }
}

/// The header of a client's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the frame is.
    pub opcode: Opcode,
    /// Whether its message ends with it.
    pub is_final: bool,
    /// Length of the header itself.
    pub header_bytes: usize,
    /// Length of what follows it.
    pub payload_bytes: usize,
    /// What the payload is masked with.
    pub mask: [u8; 4],
}

/// A header at the front of `bytes`, if it is there as a whole.
///
/// # Errors
/// With what can be refused by then, from the first two bytes if need be: what is declared too long is not waited for.
pub fn parse_header(bytes: &[u8], message_bytes_max: usize) -> Result<Option<Header>, CloseReason> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let opcode = Opcode::from_bits(first & 0x0F).ok_or(CloseReason::Protocol)?;
    let is_final = first & FINAL != 0;
    let short = second & !MASKED;
    if first & RESERVED != 0 || second & MASKED == 0 {
        return Err(CloseReason::Protocol);
    }
    if opcode.is_control() && (!is_final || usize::from(short) > CONTROL_BYTES_MAX) {
        return Err(CloseReason::Protocol);
    }
    let (length, length_bytes, is_shortest) = match short {
        126 => match rest.first_chunk() {
            Some(length) => {
                let length = u64::from(u16::from_be_bytes(*length));
                (length, 2, length > 125)
            }
            None => return Ok(None),
        },
        127 => match rest.first_chunk() {
            Some(length) => {
                let length = u64::from_be_bytes(*length);
                (length, 8, length > 0xFFFF)
            }
            None => return Ok(None),
        },
        short => (u64::from(short), 0, true),
    };
    let payload_bytes = usize::try_from(length).map_err(|_| CloseReason::TooLarge)?;
    if payload_bytes > message_bytes_max && !opcode.is_control() {
        return Err(CloseReason::TooLarge);
    }
    // "The minimal number of bytes MUST be used" (section 5.2).
    if !is_shortest {
        return Err(CloseReason::Protocol);
    }
    let Some(mask) = rest[length_bytes..].first_chunk() else { return Ok(None) };
    let header_bytes = 2 + length_bytes + mask.len();
    Ok(Some(Header { opcode, is_final, header_bytes, payload_bytes, mask: *mask }))
}

/// Length of the header of a server's frame.
pub fn server_header_bytes(payload_bytes: usize) -> usize {
    match payload_bytes {
        0..126 => 2,
        126..65_536 => 4,
        _ => 10,
    }
}

/// Writes the header of a server's whole message to the front of `bytes`, and returns its length.
///
/// # Panics
/// When there is no room for it.
pub fn write_server_header(bytes: &mut [u8], opcode: Opcode, payload_bytes: usize) -> usize {
    let length = (payload_bytes as u64).to_be_bytes();
    let header_bytes = server_header_bytes(payload_bytes);
    bytes[0] = FINAL | opcode as u8;
    match header_bytes {
        2 => bytes[1] = length[7],
        4 => {
            bytes[1] = 126;
            bytes[2..4].copy_from_slice(&length[6..]);
        }
        _ => {
            bytes[1] = 127;
            bytes[2..10].copy_from_slice(&length);
        }
    }
    header_bytes
}

/// A server's close frame, as bytes and how many of them count.
pub fn close_frame(code: Option<u16>) -> ([u8; 4], usize) {
    let [high, low] = code.unwrap_or_default().to_be_bytes();
    let payload_bytes: u8 = if code.is_some() { 2 } else { 0 };
    ([FINAL | Opcode::Close as u8, payload_bytes, high, low], 2 + usize::from(payload_bytes))
}

/// What a client's close says. A code that may not be sent is a violation (RFC 6455, section 7.4).
pub fn read_close(payload: &[u8]) -> Stop {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Stop::Closed(None) } else { Stop::Violation(CloseReason::Protocol) };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Stop::Violation(CloseReason::Protocol);
    }
    if std::str::from_utf8(reason).is_err() {
        return Stop::Violation(CloseReason::NotUtf8);
    }
    Stop::Closed(Some(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 100_000;

    fn refusal(bytes: &[u8]) -> Option<CloseReason> {
        parse_header(bytes, LIMIT).err()
    }

    #[test]
    fn what_is_refused_from_the_first_bytes() {
        let protocol = Some(CloseReason::Protocol);
        for bits in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
            assert_eq!(refusal(&[0x80 | bits, 0x80]), protocol, "opcode {bits}");
        }
        for reserved in [0x40, 0x20, 0x10] {
            assert_eq!(refusal(&[0x82 | reserved, 0x80]), protocol, "bit {reserved:#x}");
        }
        assert_eq!(refusal(&[0x82, 5]), protocol, "no mask");
        assert_eq!(refusal(&[0x09, 0x80]), protocol, "a fragment of a ping");
        assert_eq!(refusal(&[0x89, 0x80 | 126]), protocol, "a long ping");
        assert_eq!(refusal(&[0x82, 0xFE, 0, 125]), protocol, "a length in more bytes than it needs");
        assert_eq!(refusal(&[0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]), protocol, "and in many more");
    }

    #[test]
    fn too_long_is_known_from_the_length() {
        let declared = |length: u64| [&[0x82, 0xFF][..], &length.to_be_bytes()].concat();
        assert_eq!(refusal(&declared(100_001)), Some(CloseReason::TooLarge));
        assert_eq!(refusal(&declared(u64::MAX)), Some(CloseReason::TooLarge));
        assert_eq!(parse_header(&declared(100_000), LIMIT), Ok(None));
        // A control frame is bounded by itself.
        assert!(matches!(parse_header(&[0x89, 0x80 | 9, 0, 0, 0, 0], 1), Ok(Some(_))));
    }

    #[test]
    fn closes() {
        let protocol = Stop::Violation(CloseReason::Protocol);
        assert_eq!(read_close(&[]), Stop::Closed(None));
        assert_eq!(read_close(&1000_u16.to_be_bytes()), Stop::Closed(Some(1000)));
        assert_eq!(read_close(&[0x10, 0xE1, b'b', b'y', b'e']), Stop::Closed(Some(4321)));
        for bad in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000_u16] {
            assert_eq!(read_close(&bad.to_be_bytes()), protocol, "{bad}");
        }
        assert_eq!(read_close(&[3]), protocol, "half a code");
        assert_eq!(read_close(&[0x03, 0xE8, 0xFF]), Stop::Violation(CloseReason::NotUtf8));
        assert_eq!(close_frame(Some(1001)), ([0x88, 2, 0x03, 0xE9], 4));
        assert_eq!(close_frame(None).1, 2);
    }

    #[test]
    fn headers_that_are_sent() {
        for (length, expected) in [
            (0, &[0x82, 0][..]),
            (125, &[0x82, 125]),
            (126, &[0x82, 126, 0, 126]),
            (65_535, &[0x82, 126, 0xFF, 0xFF]),
            (65_536, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut bytes = [0xEE; SERVER_HEADER_BYTES_MAX];
            let header_bytes = write_server_header(&mut bytes, Opcode::Binary, length);
            assert_eq!(&bytes[..header_bytes], expected, "{length}");
        }
    }

    proptest! {
        #[test]
        fn a_header_of_any_length(payload_bytes in 0..LIMIT, mask: [u8; 4], more: Vec<u8>) {
            let mut bytes = vec![0; SERVER_HEADER_BYTES_MAX];
            let server_bytes = write_server_header(&mut bytes, Opcode::Text, payload_bytes);
            bytes.truncate(server_bytes);
            bytes[1] |= MASKED;
            bytes.extend(mask);
            for cut in 0..bytes.len() {
                prop_assert_eq!(parse_header(&bytes[..cut], LIMIT), Ok(None));
            }
            // The echo's header is four bytes shorter: there is always room for it.
            let header_bytes = server_bytes + 4;
            let header = Header { opcode: Opcode::Text, is_final: true, header_bytes, payload_bytes, mask };
            prop_assert_eq!(parse_header(&[bytes, more].concat(), LIMIT), Ok(Some(header)));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            let _ = parse_header(&bytes, LIMIT);
            let _ = read_close(&bytes);
        }
    }
}
