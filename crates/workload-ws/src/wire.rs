//! Messages as they go on the wire, made once and masked once, so that a message of the load costs no allocation and next to no work.
//!
//! All have the same mask. RFC 6455 asks for masks that nobody can foresee, to protect proxies from what a malicious page sends; a load client sends only its
//! own bytes. A server unmasks them all the same, for the mask is not zero.

use super::payload::Content;
use plimsoll_protocol::websocket::frame::CLIENT_HEADER_MAX_BYTES;
use plimsoll_protocol::websocket::{Opcode, append_client_frame, client_header, mask_in_place};

/// The mask of every message.
const MASK: [u8; 4] = [0x57, 0x53, 0x4D, 0x4B];

/// The most bytes of due messages that go out with one write, unless a single one is longer.
const BURST_MAX_BYTES: usize = 16 * 1024;

/// The number of the connection (8 digits) and of the message (16), in hexadecimal, at the start of a message that must be told from others.
///
/// Digits, so that they may stand in a text. A multiple of 4 of them, so that what follows has the same mask wherever it is kept.
pub(super) const NUMBER_BYTES: usize = 24;

/// How many messages of so many bytes go out with one write at most.
pub(super) fn burst_of(frame_bytes: usize) -> u64 {
    (BURST_MAX_BYTES / frame_bytes.max(1)).max(1) as u64
}

/// Appends one masked message.
pub(super) fn append_message(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    append_client_frame(out, true, opcode, payload, MASK);
}

/// One message, many times in a row: so many of them as are due are a slice of it.
#[derive(Debug)]
pub(super) struct Repeated {
    bytes: Box<[u8]>,
    frame_bytes: usize,
}

impl Repeated {
    pub(super) fn new(content: &Content) -> Self {
        let mut frame = Vec::new();
        append_message(&mut frame, content.opcode, &content.bytes);
        let most = BURST_MAX_BYTES / frame.len();
        Self {
            bytes: frame.repeat(most.max(1)).into_boxed_slice(),
            frame_bytes: frame.len(),
        }
    }

    /// The most that one slice has.
    pub(super) fn most(&self) -> u64 {
        (self.bytes.len() / self.frame_bytes) as u64
    }

    /// So many messages, at most [`Repeated::most`].
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no more than the slice holds"
    )]
    pub(super) fn messages(&self, count: u64) -> &[u8] {
        &self.bytes[..count as usize * self.frame_bytes]
    }
}

/// Messages that are alike but for the number that each begins with.
#[derive(Debug)]
pub(super) struct Numbered {
    /// What follows the number, as the application sees it.
    pub(super) content: Content,
    header: [u8; CLIENT_HEADER_MAX_BYTES],
    header_bytes: usize,
    masked_content: Box<[u8]>,
}

/// The part of a message that is a connection's own: the header and the masked number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    bytes: [u8; CLIENT_HEADER_MAX_BYTES + NUMBER_BYTES],
    len: usize,
}

impl Numbered {
    pub(super) fn new(content: Content) -> Self {
        let payload_bytes = (NUMBER_BYTES + content.bytes.len()) as u64;
        let (header, header_bytes) = client_header(true, content.opcode, payload_bytes, MASK);
        let mut masked_content = content.bytes.clone().into_boxed_slice();
        mask_in_place(&mut masked_content, MASK, NUMBER_BYTES);
        Self {
            content,
            header,
            header_bytes,
            masked_content,
        }
    }

    /// Bytes of a message on the wire.
    pub(super) fn frame_bytes(&self) -> usize {
        self.header_bytes + NUMBER_BYTES + self.masked_content.len()
    }

    /// The first part of message `seq` of a connection.
    pub(super) fn head(&self, connection: u32, seq: u64) -> Head {
        let mut head = Head {
            bytes: [0; CLIENT_HEADER_MAX_BYTES + NUMBER_BYTES],
            len: self.header_bytes + NUMBER_BYTES,
        };
        head.bytes[..self.header_bytes].copy_from_slice(&self.header[..self.header_bytes]);
        let number = &mut head.bytes[self.header_bytes..head.len];
        number.copy_from_slice(&digits(connection, seq));
        mask_in_place(number, MASK, 0);
        head
    }

    /// The second part, which all messages share.
    pub(super) fn body(&self) -> &[u8] {
        &self.masked_content
    }
}

impl Head {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The number as it stands in a message.
fn digits(connection: u32, seq: u64) -> [u8; NUMBER_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut number = [0; NUMBER_BYTES];
    let bytes = connection
        .to_be_bytes()
        .into_iter()
        .chain(seq.to_be_bytes());
    for (two, byte) in number.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *two = [byte >> 4, byte & 0x0F].map(|digit| DIGITS[usize::from(digit)]);
    }
    number
}

/// The connection and the number that a message begins with, if it does.
pub(super) fn number_of(payload: &[u8]) -> Option<(u32, u64)> {
    let (number, _) = payload.split_first_chunk::<NUMBER_BYTES>()?;
    let mut value = 0_u128;
    for digit in number {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        value = value << 4 | u128::from(digit);
    }
    let connection = u32::try_from(value >> 64).ok()?;
    let seq = u64::try_from(value & u128::from(u64::MAX)).ok()?;
    Some((connection, seq))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::websocket::frame::RawFrame;
    use proptest::prelude::*;

    fn whole(numbered: &Numbered, connection: u32, seq: u64) -> Vec<u8> {
        let head = numbered.head(connection, seq);
        [head.as_slice(), numbered.body()].concat()
    }

    fn plain(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
        RawFrame {
            mask: Some(MASK),
            ..RawFrame::new(opcode, payload)
        }
        .to_vec()
    }

    #[test]
    fn a_burst_is_the_same_message_again_and_again() {
        let content = Content::trade_update();
        let repeated = Repeated::new(&content);
        let one = plain(Opcode::Text, &content.bytes);
        assert_eq!(repeated.messages(1), one);
        assert_eq!(repeated.messages(3), one.repeat(3));
        assert_eq!(repeated.most(), burst_of(one.len()));
        assert!(repeated.messages(repeated.most()).len() <= BURST_MAX_BYTES);
        let long = Repeated::new(&Content::filler(65_536));
        assert_eq!((long.most(), long.messages(1).len()), (1, 65_536 + 14));
    }

    proptest! {
        #[test]
        fn numbered_messages_are_what_the_plain_writer_writes(
            connection: u32,
            seq: u64,
            bytes in prop_oneof![Just(0_usize), 0_usize..300, Just(65_536)],
        ) {
            let content = Content::filler(bytes);
            let number = format!("{connection:08x}{seq:016x}");
            let payload = [number.as_bytes(), &content.bytes].concat();
            let numbered = Numbered::new(content);
            let wire = whole(&numbered, connection, seq);
            prop_assert_eq!(wire.len(), numbered.frame_bytes());
            prop_assert_eq!(wire, plain(Opcode::Text, &payload));
            prop_assert_eq!(number_of(&payload), Some((connection, seq)));
        }

        #[test]
        fn what_is_no_number_is_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let digits = bytes.len() >= NUMBER_BYTES
                && bytes[..NUMBER_BYTES].iter().all(|b| b"0123456789abcdef".contains(b));
            prop_assert_eq!(number_of(&bytes).is_some(), digits);
        }
    }
}
