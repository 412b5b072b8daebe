//! Decoder and intake together: rules by example, cuts and strange bytes by the thousand.

use super::*;
use crate::frame::Opcode::{Binary, Pong, Text};
use crate::frame::{CloseReason, SERVER_HEADER_BYTES_MAX, write_server_header};
use proptest::prelude::*;

const LIMIT: usize = 3_000;
const MASK: [u8; 4] = [0x12, 0x34, 0x56, 0x78];

/// Writes down what it is given.
#[derive(Default)]
struct Notes {
    sent: Vec<u8>,
    counts: Counts,
    emissions: usize,
    pongs: Option<Vec<u8>>,
}

impl Sink for Notes {
    fn emit(&mut self, pieces: [&[u8]; 3], counts: Counts) -> Result<(), End> {
        pieces.iter().for_each(|piece| self.sent.extend_from_slice(piece));
        self.counts.messages += counts.messages;
        self.counts.payload_bytes += counts.payload_bytes;
        self.emissions += 1;
        Ok(())
    }

    fn pongs(&mut self) -> Option<&mut Vec<u8>> {
        self.pongs.as_mut()
    }
}

/// A connection whose reads are of given lengths.
struct Wire {
    intake: Intake,
    pool: Pool,
    buffer: Vec<u8>,
    notes: Notes,
}

impl Wire {
    fn new(buffer_bytes: usize) -> Self {
        let notes = Notes::default();
        Self { intake: Intake::default(), pool: Pool::default(), buffer: vec![0xEE; buffer_bytes], notes }
    }

    /// One read, of at most what there is room for; how many bytes it took.
    fn read(&mut self, stream: &[u8], most: usize) -> Result<usize, End> {
        let mut rest = &stream[..most.min(stream.len())];
        let mut read_bytes = 0;
        for mut slot in self.intake.slots(&mut self.buffer) {
            let (now, later) = rest.split_at(slot.len().min(rest.len()));
            slot[..now.len()].copy_from_slice(now);
            read_bytes += now.len();
            rest = later;
        }
        let Self { intake, pool, buffer, notes } = self;
        intake.take_in(buffer, read_bytes, LIMIT, pool, notes)?;
        Ok(read_bytes)
    }

    fn read_all(&mut self, mut stream: &[u8], cuts: &[usize]) -> Result<(), End> {
        for cut in cuts.iter().cycle() {
            if stream.is_empty() {
                break;
            }
            let read_bytes = self.read(stream, *cut)?;
            stream = &stream[read_bytes..];
        }
        Ok(())
    }
}

/// A client's frame with any first byte.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = server_frame_of(first, payload);
    bytes[1] |= 0x80;
    let at = bytes.len() - payload.len();
    bytes.truncate(at);
    bytes.extend(MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

fn server_frame_of(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; SERVER_HEADER_BYTES_MAX];
    let header_bytes = write_server_header(&mut bytes, Binary, payload.len());
    bytes.truncate(header_bytes);
    bytes[0] = first;
    bytes.extend_from_slice(payload);
    bytes
}

fn server_frame(opcode: crate::frame::Opcode, payload: &[u8]) -> Vec<u8> {
    server_frame_of(0x80 | opcode as u8, payload)
}

fn read_at_once(stream: &[u8]) -> (Result<(), End>, Notes) {
    let mut wire = Wire::new(64 * 1024);
    let result = wire.read_all(stream, &[usize::MAX]);
    (result, wire.notes)
}

fn stop(stream: &[u8]) -> Stop {
    match read_at_once(stream).0 {
        Err(End::Stop(stop)) => stop,
        other => panic!("not stopped: {other:?}"),
    }
}

#[test]
fn a_read_of_whole_messages_is_answered_in_one_piece() {
    let stream = [frame(0x81, b"hello"), frame(0x82, &[1; 300]), frame(0x89, b"there?"), frame(0x82, b"")].concat();
    let (result, notes) = read_at_once(&stream);
    assert_eq!(result, Ok(()));
    let expected =
        [server_frame(Text, b"hello"), server_frame(Binary, &[1; 300]), server_frame(Pong, b"there?"), vec![0x82, 0]];
    assert_eq!(notes.sent, expected.concat());
    assert_eq!((notes.emissions, notes.counts), (1, Counts { messages: 3, payload_bytes: 305 }));
}

#[test]
fn a_message_in_two_reads_goes_out_with_what_comes_behind_it() {
    let stream = frame(0x82, &[7; 1000]).repeat(20);
    let mut wire = Wire::new(64 * 1024);
    assert_eq!(wire.read_all(&stream, &[5_500, usize::MAX]), Ok(()));
    assert_eq!(wire.notes.sent, server_frame(Binary, &[7; 1000]).repeat(20));
    assert_eq!(wire.notes.emissions, 2);
}

#[test]
fn fragments_come_back_whole_and_in_order() {
    let stream = [
        frame(0x82, b"first"),
        frame(0x01, "h\u{e9}".as_bytes().split_at(2).0),
        frame(0x89, b"!"),
        frame(0x00, b""),
        frame(0x8A, b"ignored"),
        frame(0x80, "h\u{e9}llo".as_bytes().split_at(2).1),
        frame(0x82, b"last"),
    ]
    .concat();
    let expected = [
        server_frame(Binary, b"first"),
        server_frame(Pong, b"!"),
        server_frame(Text, "h\u{e9}llo".as_bytes()),
        server_frame(Binary, b"last"),
    ];
    let (result, notes) = read_at_once(&stream);
    assert_eq!((result, notes.sent), (Ok(()), expected.concat()));
    assert_eq!(notes.counts, Counts { messages: 3, payload_bytes: 5 + 6 + 4 });
}

#[test]
fn pongs_can_be_kept_apart() {
    let mut wire = Wire::new(1024);
    wire.notes.pongs = Some(Vec::new());
    let stream = [frame(0x81, b"one"), frame(0x89, b"there?"), frame(0x81, b"two")].concat();
    assert_eq!(wire.read_all(&stream, &[usize::MAX]), Ok(()));
    assert_eq!(wire.notes.sent, [server_frame(Text, b"one"), server_frame(Text, b"two")].concat());
    assert_eq!(wire.notes.pongs, Some(server_frame(Pong, b"there?")));
}

#[test]
fn what_may_not_follow() {
    let protocol = Stop::Violation(CloseReason::Protocol);
    assert_eq!(stop(&frame(0x80, b"x")), protocol, "a continuation of nothing");
    assert_eq!(stop(&[frame(0x02, b"x"), frame(0x82, b"y")].concat()), protocol, "a message in a message");
    assert_eq!(stop(&[frame(0x02, b"x"), frame(0x80, b"y"), frame(0x80, b"z")].concat()), protocol, "one too many");
    assert_eq!(stop(&[0x82, 5]), protocol, "no mask");
}

#[test]
fn too_long() {
    let too_large = Stop::Violation(CloseReason::TooLarge);
    assert_eq!(stop(&frame(0x82, &[0; LIMIT + 1])[..8]), too_large, "by the header alone");
    let fragments = [frame(0x02, &[0; LIMIT]), frame(0x80, b"x")].concat();
    assert_eq!(stop(&fragments), too_large);
    let (result, notes) = read_at_once(&[frame(0x02, &[0; LIMIT - 1]), frame(0x80, b"x")].concat());
    assert_eq!((result, notes.counts.messages), (Ok(()), 1), "just not too long");
}

#[test]
fn texts_that_are_none() {
    let not_utf8 = Stop::Violation(CloseReason::NotUtf8);
    assert_eq!(stop(&frame(0x81, b"\xFF")), not_utf8);
    assert_eq!(stop(&frame(0x81, b"\xC3")), not_utf8, "half a character");
    assert_eq!(stop(&frame(0x81, b"\xED\xA0\x80")), not_utf8, "half a surrogate pair");
    assert_eq!(stop(&[frame(0x01, b"ok"), frame(0x80, b"\xC3")].concat()), not_utf8);
    assert_eq!(read_at_once(&frame(0x82, b"\xFF")).0, Ok(()));
}

#[test]
fn what_came_before_the_end_is_answered() {
    let stream = [frame(0x81, b"last words"), frame(0x88, &1000_u16.to_be_bytes()), frame(0x81, b"unheard")].concat();
    let (result, notes) = read_at_once(&stream);
    assert_eq!(result, Err(End::Stop(Stop::Closed(Some(1000)))));
    assert_eq!((notes.sent, notes.counts.messages), (server_frame(Text, b"last words"), 1));
    let (result, notes) = read_at_once(&[frame(0x82, b"good"), frame(0x81, b"\xFF")].concat());
    assert_eq!(result, Err(End::Stop(Stop::Violation(CloseReason::NotUtf8))));
    assert_eq!((notes.sent, notes.counts.messages), (server_frame(Binary, b"good"), 1));
}

#[test]
fn memory_comes_back() {
    let mut wire = Wire::new(1024);
    let place = {
        assert_eq!(wire.read(&frame(0x82, &[0; 2_000])[..500], 500), Ok(500));
        wire.intake.pending.bytes.as_ptr()
    };
    wire.intake.end(&mut wire.pool);
    let again = wire.pool.take(2_008);
    assert_eq!(again.as_ptr(), place);
}

/// A message as a client sends it, and its echo.
fn message() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..1_000);
    prop_oneof![
        3 => ".{0,60}".prop_map(|text| (frame(0x81, text.as_bytes()), server_frame(Text, text.as_bytes()))),
        3 => bytes().prop_map(|payload| (frame(0x82, &payload), server_frame(Binary, &payload))),
        1 => (bytes(), bytes(), bytes()).prop_map(|(one, two, three)| {
            let sent = [frame(0x02, &one), frame(0x00, &two), frame(0x80, &three)].concat();
            (sent, server_frame(Binary, &[one, two, three].concat()))
        }),
        1 => prop::collection::vec(any::<u8>(), 0..126).prop_map(|payload| {
            (frame(0x89, &payload), server_frame(Pong, &payload))
        }),
        1 => prop::collection::vec(any::<u8>(), 0..126).prop_map(|payload| (frame(0x8A, &payload), vec![])),
    ]
}

proptest! {
    #[test]
    fn cuts_make_no_difference(
        messages in prop::collection::vec(message(), 1..12),
        cuts in prop::collection::vec(prop_oneof![1..20_usize, 1..3_000_usize], 1..30),
        buffer_bytes in 64..5_000_usize,
    ) {
        let (streams, echoes): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
        let mut wire = Wire::new(buffer_bytes);
        prop_assert_eq!(wire.read_all(&streams.concat(), &cuts), Ok(()));
        prop_assert_eq!(wire.notes.sent, echoes.concat());
        prop_assert_eq!((wire.intake.tail_bytes, wire.intake.pending.frame_bytes), (0, 0));
    }

    #[test]
    fn fragments_with_pings_between_them(
        text in "\\PC{1,40}",
        sizes in prop::collection::vec(0..5_usize, 1..10),
        cuts in prop::collection::vec(1..40_usize, 1..10),
    ) {
        // Cut anywhere, within characters as well; a ping behind each fragment.
        let (mut rest, mut stream, mut opcode) = (text.as_bytes(), Vec::new(), 0x01);
        for size in sizes {
            let (now, later) = rest.split_at(size.min(rest.len()));
            stream.extend(frame(opcode, now));
            stream.extend(frame(0x89, b"?"));
            (rest, opcode) = (later, 0x00);
        }
        stream.extend(frame(0x80 | opcode, rest));
        let mut wire = Wire::new(256);
        prop_assert_eq!(wire.read_all(&stream, &cuts), Ok(()));
        let echo = server_frame(Text, text.as_bytes());
        prop_assert!(wire.notes.sent.ends_with(&echo));
        let pongs = &wire.notes.sent[..wire.notes.sent.len() - echo.len()];
        prop_assert!(pongs.chunks(3).all(|pong| pong == server_frame(Pong, b"?")));
    }

    #[test]
    fn a_violation_is_found_wherever_it_is_cut(
        before in prop::collection::vec(message(), 0..4),
        cuts in prop::collection::vec(1..700_usize, 1..10),
    ) {
        let (streams, echoes): (Vec<_>, Vec<_>) = before.into_iter().unzip();
        let mut wire = Wire::new(300);
        let stream = [streams.concat(), frame(0x81, b"\xC3\x28"), vec![0; 50]].concat();
        let expected = Err(End::Stop(Stop::Violation(CloseReason::NotUtf8)));
        prop_assert_eq!(wire.read_all(&stream, &cuts), expected);
        prop_assert_eq!(wire.notes.sent, echoes.concat());
    }

    #[test]
    fn no_bytes_are_too_strange(reads in prop::collection::vec(any::<Vec<u8>>(), 0..20)) {
        let mut wire = Wire::new(200);
        for read in reads {
            if wire.read_all(&read, &[usize::MAX]).is_err() {
                break;
            }
        }
    }
}
