//! The decoder of WebSocket frames: rules by example, cuts and strange bytes by the thousand.

use super::*;
use proptest::prelude::*;

/// What the decoder has said.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Announced(bool, u64, bool),
    Message(bool, Vec<u8>),
    Ping(Vec<u8>),
}

/// Writes down what it is told, and may refuse a length.
#[derive(Default)]
struct Notes {
    said: Vec<Said>,
    message: Vec<u8>,
    refused: Option<u64>,
}

impl Sink for Notes {
    fn announced(&mut self, is_text: bool, message_bytes: u64, is_last: bool) -> Result<(), CloseReason> {
        self.said.push(Said::Announced(is_text, message_bytes, is_last));
        if self.refused == Some(message_bytes) { Err(CloseReason::FrameSize) } else { Ok(()) }
    }

    fn payload(&mut self, _: bool, masked: &[u8], mask: Mask) {
        let at = self.message.len();
        self.message.resize(at + masked.len(), 0);
        mask.apply(masked, &mut self.message[at..]);
    }

    fn complete(&mut self, is_text: bool) -> Result<(), CloseReason> {
        self.said.push(Said::Message(is_text, std::mem::take(&mut self.message)));
        Ok(())
    }

    fn ping(&mut self, payload: &[u8]) {
        self.said.push(Said::Ping(payload.to_vec()));
    }
}

const KEY: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

fn header(first: u8, length: u64) -> Vec<u8> {
    let mut bytes = vec![first];
    match length {
        0..126 => bytes.push(MASKED | length.to_le_bytes()[0]),
        126..65_536 => {
            bytes.push(MASKED | 126);
            bytes.extend_from_slice(&length.to_be_bytes()[6..]);
        }
        _ => {
            bytes.push(MASKED | 127);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
    }
    bytes
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(first, payload.len() as u64);
    bytes.extend_from_slice(&KEY);
    bytes.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
    bytes
}

fn decode(bytes: &[u8]) -> (Result<(), Stop>, Vec<Said>) {
    let mut notes = Notes::default();
    let result = Decoder::default().decode(bytes, &mut notes);
    (result, notes.said)
}

fn violation(bytes: &[u8]) -> Option<CloseReason> {
    match decode(bytes).0 {
        Err(Stop::Violation(reason)) => Some(reason),
        _ => None,
    }
}

#[test]
fn messages_and_what_comes_between_their_fragments() {
    let stream = [
        frame(0x81, b"hello"),
        frame(0x02, &[1; 300]),
        frame(0x89, b"ping"),
        frame(0x00, &[]),
        frame(0x8A, b"pong"),
        frame(0x80, &[2; 340]),
    ]
    .concat();
    let (result, said) = decode(&stream);
    assert_eq!(result, Ok(()));
    let expected = [
        Said::Announced(true, 5, true),
        Said::Message(true, b"hello".to_vec()),
        Said::Announced(false, 300, false),
        Said::Ping(b"ping".to_vec()),
        Said::Announced(false, 300, false),
        Said::Announced(false, 640, true),
        Said::Message(false, [vec![1; 300], vec![2; 340]].concat()),
    ];
    assert_eq!(said, expected);
}

#[test]
fn what_may_not_be_sent() {
    let protocol = Some(CloseReason::Protocol);
    for bits in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        assert_eq!(violation(&frame(0x80 | bits, b"")), protocol, "opcode {bits}");
    }
    for reserved in [0x40, 0x20, 0x10] {
        assert_eq!(violation(&frame(0x82 | reserved, b"")), protocol, "bit {reserved:#x}");
    }
    assert_eq!(violation(&[0x82, 5]), protocol, "no mask, known from two bytes");
    assert_eq!(violation(&frame(0x09, b"")), protocol, "a fragment of a ping");
    assert_eq!(violation(&frame(0x89, &[0; 126])), protocol, "a long ping");
    assert_eq!(violation(&frame(0x80, b"x")), protocol, "a continuation of nothing");
    assert_eq!(violation(&[frame(0x02, b"x"), frame(0x82, b"y")].concat()), protocol, "a message in a message");
}

#[test]
fn too_long_is_known_from_the_length() {
    assert_eq!(violation(&header(0x82, 65_537)), Some(CloseReason::TooLarge));
    assert_eq!(violation(&header(0x81, u64::MAX)), Some(CloseReason::TooLarge));
    assert_eq!(decode(&header(0x82, 65_536)), (Ok(()), vec![]));
    let fragments = [frame(0x01, &[b' '; 40_000]), frame(0x00, &[b' '; 30_000])].concat();
    assert_eq!(violation(&fragments), Some(CloseReason::TooLarge));
}

#[test]
fn a_refusal_needs_no_payload() {
    let mut notes = Notes { refused: Some(639), ..Notes::default() };
    let bytes = [header(0x82, 639), KEY.to_vec()].concat();
    let stop = Decoder::default().decode(&bytes, &mut notes);
    assert_eq!(stop, Err(Stop::Violation(CloseReason::FrameSize)));
}

#[test]
fn closes() {
    let close = |payload: &[u8]| decode(&frame(0x88, payload)).0.expect_err("an end");
    assert_eq!(close(&[]), Stop::Closed(None));
    assert_eq!(close(&1000_u16.to_be_bytes()), Stop::Closed(Some(1000)));
    assert_eq!(close(&[0x10, 0xE1, b'b', b'y', b'e']), Stop::Closed(Some(4321)));
    for bad in [999, 1004, 1005, 1006, 1015, 2999, 5000_u16] {
        assert_eq!(close(&bad.to_be_bytes()), PROTOCOL, "{bad}");
    }
    assert_eq!(close(&[3]), PROTOCOL, "half a code");
    assert_eq!(close(&[0x03, 0xE8, 0xFF]), PROTOCOL, "a reason that is no text");
}

#[test]
fn what_is_sent() {
    for length in [0, 1, 125, 126, 65_535, 65_536, 100_000] {
        let mut bytes = b"before".to_vec();
        append_text(&mut bytes, |text| text.resize(text.len() + length, b'x'));
        let expected: &[u8] = match length {
            0..126 => &[0x81, u8::try_from(length).expect("short")],
            126..65_536 => &[&[0x81, 126], &length.to_be_bytes()[6..]].concat(),
            _ => &[&[0x81, 127], &length.to_be_bytes()[..]].concat(),
        };
        assert!(bytes.starts_with(&[b"before", expected].concat()), "{length}");
        assert_eq!(bytes.len(), 6 + expected.len() + length);
    }
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let payload = || prop::collection::vec(any::<u8>(), 0..700);
    prop_oneof![
        3 => Just(frame(0x82, &[7; 640])),
        1 => payload().prop_map(|payload| frame(0x82, &payload)),
        1 => (payload(), payload()).prop_map(|(one, two)| [frame(0x02, &one), frame(0x89, b"!"), frame(0x80, &two)].concat()),
        1 => prop::collection::vec(any::<u8>(), 0..126).prop_map(|payload| frame(0x89, &payload)),
        1 => Just(frame(0x81, b"text")),
    ]
}

proptest! {
    #[test]
    fn cuts_make_no_difference(
        messages in prop::collection::vec(message(), 1..10),
        cuts in prop::collection::vec(1..800_usize, 1..30),
    ) {
        let stream = messages.concat();
        let (result, expected) = decode(&stream);
        prop_assert_eq!(result, Ok(()));
        let (mut decoder, mut notes, mut rest) = (Decoder::default(), Notes::default(), stream.as_slice());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            prop_assert_eq!(decoder.decode(now, &mut notes), Ok(()));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(notes.said, expected);
    }

    #[test]
    fn no_bytes_are_too_strange(reads: Vec<Vec<u8>>) {
        let (mut decoder, mut notes) = (Decoder::default(), Notes::default());
        for read in reads {
            if decoder.decode(&read, &mut notes).is_err() {
                break;
            }
        }
    }

    #[test]
    fn masks_can_be_applied_in_parts(key: [u8; 4], bytes: Vec<u8>, cut: prop::sample::Index) {
        let masked: Vec<u8> = bytes.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
        let (one, two) = masked.split_at(cut.index(masked.len() + 1));
        let mut plain = vec![0; bytes.len()];
        Mask(key).apply(one, &mut plain[..one.len()]);
        Mask(key).after(one.len()).apply(two, &mut plain[one.len()..]);
        prop_assert_eq!(plain, bytes);
    }
}
