use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::websocket::RawFrame;
use crate::websocket::close;
use crate::websocket::frame::LengthForm;

/// An event that owns its bytes, so that tests can collect and compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owned {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

impl From<Event<'_>> for Owned {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Text(text) => Self::Text(text.to_owned()),
            Event::Binary(bytes) => Self::Binary(bytes.to_vec()),
            Event::Ping(bytes) => Self::Ping(bytes.to_vec()),
            Event::Pong(bytes) => Self::Pong(bytes.to_vec()),
            Event::Close(close) => Self::Close(close.code, close.reason.to_owned()),
        }
    }
}

const LIMIT_BYTES: u32 = 70_000;

/// What a stream gives when it is fed in the given pieces: the events, and the violation that ended it.
fn decode_pieces<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Owned>, Option<Violation>) {
    let mut decoder = Decoder::new(LIMIT_BYTES);
    let mut events = Vec::new();
    for piece in pieces {
        let result = decoder.decode(piece, |event| {
            events.push(event.into());
            ControlFlow::Continue(())
        });
        match result {
            Ok(used) => assert_eq!(used, piece.len()),
            Err(violation) => return (events, Some(violation)),
        }
    }
    (events, None)
}

fn decode(bytes: &[u8]) -> (Vec<Owned>, Option<Violation>) {
    decode_pieces([bytes])
}

fn fragment(fin: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    RawFrame {
        fin,
        ..RawFrame::server(opcode, payload)
    }
    .to_vec()
}

fn whole(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    fragment(true, opcode, payload)
}

#[track_caller]
fn assert_violates(bytes: &[u8], expected: Violation) {
    assert_eq!(decode(bytes), (vec![], Some(expected)));
    assert_eq!(
        decode_pieces(bytes.chunks(1)),
        (vec![], Some(expected)),
        "byte by byte"
    );
}

#[test]
fn whole_frames_are_borrowed_from_the_input() {
    let mut bytes = whole(Opcode::Text, b"one");
    bytes.extend(whole(Opcode::Binary, &[7; 640]));
    bytes.extend(whole(Opcode::Ping, b"?"));
    let range = bytes.as_ptr_range();
    let mut decoder = Decoder::new(LIMIT_BYTES);
    let mut seen = 0;
    let used = decoder.decode(&bytes, |event| {
        let payload = match event {
            Event::Text(text) => text.as_bytes(),
            Event::Binary(bytes) | Event::Ping(bytes) => bytes,
            other => panic!("{other:?}"),
        };
        assert!(range.contains(&payload.as_ptr()), "a copy was made");
        seen += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((used, seen), (Ok(bytes.len()), 3));
    assert_eq!(
        (decoder.message.capacity(), decoder.control.capacity()),
        (0, 0),
        "nothing was allocated"
    );
}

#[test]
fn a_session_is_small() {
    let size = size_of::<Decoder>();
    assert!(size <= 112, "{size} bytes per session");
}

#[test]
fn buffer_of_torn_frames_is_used_again_but_a_huge_one_is_not_kept() {
    let mut decoder = Decoder::new(1 << 20);
    let feed = |decoder: &mut Decoder, payload: &[u8]| {
        let bytes = whole(Opcode::Binary, payload);
        let (a, b) = bytes.split_at(bytes.len() / 2);
        for part in [a, b] {
            let used = decoder.decode(part, |_| ControlFlow::Continue(()));
            assert_eq!(used, Ok(part.len()));
        }
        decoder.message.capacity()
    };
    let small = feed(&mut decoder, &[1; 500]);
    assert!(small > 0);
    assert_eq!(feed(&mut decoder, &[1; 400]), small);
    assert_eq!(feed(&mut decoder, &[1; 300_000]), 0);
    assert!(decoder.is_idle());
}

#[test]
fn fragments_make_one_message_and_controls_may_come_between() {
    let mut bytes = fragment(false, Opcode::Text, "gr".as_bytes());
    bytes.extend(whole(Opcode::Ping, b"alive?"));
    // "ü" is cut between its two bytes.
    bytes.extend(fragment(false, Opcode::Continuation, &[0xC3]));
    bytes.extend(fragment(false, Opcode::Continuation, &[]));
    bytes.extend(fragment(true, Opcode::Continuation, &[0xBC, b'n']));
    bytes.extend(whole(Opcode::Close, &close::payload(1001, "bye")));
    let expected = vec![
        Owned::Ping(b"alive?".to_vec()),
        Owned::Text("grün".to_owned()),
        Owned::Close(Some(1001), "bye".to_owned()),
    ];
    assert_eq!(decode(&bytes), (expected.clone(), None));
    assert_eq!(decode_pieces(bytes.chunks(1)), (expected, None));
}

#[test]
fn illegal_first_bytes() {
    let frame = RawFrame::server(Opcode::Text, b"x");
    let with = |frame: RawFrame<'_>| frame.to_vec();
    assert_violates(
        &with(RawFrame {
            reserved_bits: 0b100,
            ..frame
        }),
        Violation::ReservedBit(0b100),
    );
    for opcode_bits in [3, 7, 11, 15] {
        assert_violates(
            &with(RawFrame {
                opcode_bits,
                ..frame
            }),
            Violation::ReservedOpcode(opcode_bits),
        );
    }
    for opcode in [Opcode::Close, Opcode::Ping, Opcode::Pong] {
        assert_violates(&fragment(false, opcode, b""), Violation::FragmentedControl);
    }
    assert_violates(
        &whole(Opcode::Continuation, b"x"),
        Violation::UnexpectedContinuation,
    );
    let mut interleaved = fragment(false, Opcode::Binary, b"x");
    interleaved.extend(whole(Opcode::Text, b"y"));
    assert_violates(&interleaved, Violation::InterleavedMessage);
}

#[test]
fn illegal_lengths_and_masks() {
    let frame = RawFrame::server(Opcode::Binary, b"x");
    let with = |frame: RawFrame<'_>| frame.to_vec();
    assert_violates(
        &RawFrame::new(Opcode::Text, b"x").to_vec(),
        Violation::Masked,
    );
    assert_violates(&whole(Opcode::Ping, &[0; 126]), Violation::OversizeControl);
    assert_violates(
        &with(RawFrame {
            length_form: LengthForm::Bits16,
            ..frame
        }),
        Violation::LengthNotMinimal(1),
    );
    assert_violates(
        &with(RawFrame {
            length_form: LengthForm::Bits64,
            declared_len: Some(0xFFFF),
            ..frame
        }),
        Violation::LengthNotMinimal(0xFFFF),
    );
    assert_violates(
        &with(RawFrame {
            declared_len: Some(1 << 63),
            ..frame
        }),
        Violation::LengthTopBit,
    );
    let too_large = Violation::MessageTooLarge {
        limit_bytes: LIMIT_BYTES,
    };
    for declared_len in [u64::from(LIMIT_BYTES) + 1, 1 << 40] {
        assert_violates(
            &with(RawFrame {
                declared_len: Some(declared_len),
                ..frame
            }),
            too_large,
        );
    }
    let mut by_fragments = fragment(false, Opcode::Binary, &[0; 60_000]);
    by_fragments.extend(fragment(true, Opcode::Continuation, &[0; 10_001]));
    assert_violates(&by_fragments, too_large);
}

#[test]
fn illegal_text_and_close() {
    assert_violates(&whole(Opcode::Text, &[0xC3]), Violation::TextNotUtf8);
    let mut cut = fragment(false, Opcode::Text, &[0xC3]);
    cut.extend(fragment(true, Opcode::Continuation, b""));
    assert_violates(&cut, Violation::TextNotUtf8);
    // A surrogate, and an overlong form; seen before the message is complete.
    for wrong in [&[0xED, 0xA0, 0x80][..], &[0xC0, 0xAF]] {
        assert_violates(
            &fragment(false, Opcode::Text, wrong),
            Violation::TextNotUtf8,
        );
    }
    assert_violates(
        &whole(Opcode::Close, &[3]),
        Violation::ClosePayloadOfOneByte,
    );
    assert_violates(
        &whole(Opcode::Close, &close::payload(1006, "")),
        Violation::CloseCode(1006),
    );
    assert_violates(
        &whole(Opcode::Close, &[0x03, 0xE8, 0xC3]),
        Violation::CloseReasonNotUtf8,
    );
}

#[test]
fn nothing_may_follow_a_close() {
    let mut bytes = whole(Opcode::Close, &close::payload(1000, ""));
    bytes.extend(whole(Opcode::Pong, b""));
    let (events, violation) = decode(&bytes);
    assert_eq!(events, [Owned::Close(Some(1000), String::new())]);
    assert_eq!(violation, Some(Violation::DataAfterClose));
}

#[test]
fn a_violation_stays() {
    let mut decoder = Decoder::new(LIMIT_BYTES);
    let ignore = |_: Event<'_>| ControlFlow::Continue(());
    let first = decoder.decode(&[0xF0], ignore);
    assert!(first.is_err());
    assert_eq!(decoder.decode(&whole(Opcode::Text, b"fine"), ignore), first);
}

#[test]
fn a_break_leaves_the_rest_to_be_fed_again() {
    let mut bytes = whole(Opcode::Text, b"one");
    let first_len = bytes.len();
    bytes.extend(whole(Opcode::Text, b"two"));
    let mut decoder = Decoder::new(LIMIT_BYTES);
    let mut events: Vec<Owned> = Vec::new();
    let mut stop = |event: Event<'_>| {
        events.push(event.into());
        ControlFlow::Break(())
    };
    assert_eq!(decoder.decode(&bytes, &mut stop), Ok(first_len));
    assert_eq!(decoder.decode(&bytes[first_len..], &mut stop), Ok(5));
    assert_eq!(
        events,
        [Owned::Text("one".to_owned()), Owned::Text("two".to_owned())]
    );
}

/// Server streams, mostly legal, with some rules broken here and there.
pub(in crate::websocket) fn stream() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![
        6 => Just(Opcode::Text as u8),
        6 => Just(Opcode::Binary as u8),
        4 => Just(Opcode::Continuation as u8),
        3 => Just(Opcode::Ping as u8),
        3 => Just(Opcode::Pong as u8),
        1 => Just(Opcode::Close as u8),
        1 => 0..16_u8,
    ];
    let payload = prop_oneof![
        4 => "[a-zü€𝄞]{0,60}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..140),
        1 => (3_u8..5, any::<u8>()).prop_map(|(high, low)| vec![high, low]),
        1 => (120_usize..700).prop_map(|len| vec![b'x'; len]),
    ];
    let frame = (
        opcode,
        payload,
        prop::bool::weighted(0.75),
        prop::option::weighted(0.02, any::<[u8; 4]>()),
        prop::bool::weighted(0.02),
    );
    prop::collection::vec(frame, 0..12).prop_map(|frames| {
        let mut bytes = Vec::new();
        for (opcode_bits, payload, fin, mask, reserved) in frames {
            RawFrame {
                fin: fin || opcode_bits & 0x8 != 0,
                reserved_bits: u8::from(reserved),
                opcode_bits,
                mask,
                ..RawFrame::server(Opcode::Binary, &payload)
            }
            .append_to(&mut bytes);
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        bytes in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.push(0);
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        let at_once = decode(&bytes);
        prop_assert_eq!(decode_pieces(pieces), at_once.clone());
        prop_assert_eq!(decode_pieces(bytes.chunks(1)), at_once);
    }

    #[test]
    fn what_is_encoded_is_decoded(
        len in 0..70_000_usize,
        sizes in prop::collection::vec(0_usize..30_000, 0..5),
    ) {
        let payload: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let mut bytes = Vec::new();
        let mut rest = &payload[..];
        let mut opcode = Opcode::Binary;
        for size in sizes {
            let (part, tail) = rest.split_at(size.min(rest.len()));
            bytes.extend(fragment(false, opcode, part));
            (rest, opcode) = (tail, Opcode::Continuation);
        }
        bytes.extend(fragment(true, opcode, rest));
        prop_assert_eq!(decode(&bytes), (vec![Owned::Binary(payload)], None));
    }

    #[test]
    fn random_bytes_never_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..10)) {
        decode_pieces(pieces.iter().map(Vec::as_slice));
    }
}
