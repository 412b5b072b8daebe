//! Writer and reader against the small server side, with their bytes in any pieces.

use proptest::prelude::*;

use super::toy::{Toy, delivery, error, frame, text};
use super::*;
use crate::Login;
use crate::dialect::{Dialect, Fault, Heard, Shape};

fn setup(shape: Shape) -> Setup {
    Setup {
        topic: "t".to_owned(),
        group: None,
        partition: 0,
        partitions: 4,
        shape,
        tier: Tier::Durable,
        login: Login {
            user: "fibril".to_owned(),
            password: "fibril".to_owned(),
        },
    }
}

/// [`Heard`] with its own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Ready,
    Confirmed(u64),
    Refused(Option<u64>, String),
    Delivered(Vec<u8>, u64, bool),
}

/// Gives bytes to a machine in pieces of this length; what it heard.
fn hear(
    machine: &mut dyn Dialect,
    bytes: &[u8],
    piece: usize,
    out: &mut Vec<u8>,
) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        machine.received(piece, out, &mut |heard| {
            events.push(match heard {
                Heard::Ready => Event::Ready,
                Heard::Confirmed { tag, up_to } => {
                    assert!(!up_to);
                    Event::Confirmed(tag)
                }
                Heard::Refused { tag, why } => Event::Refused(tag, why.to_owned()),
                Heard::Delivered {
                    payload,
                    handle,
                    redelivered,
                } => Event::Delivered(payload.to_vec(), handle, redelivered),
                Heard::Blocked(_) => panic!("Fibril blocks nobody"),
            });
        })?;
    }
    Ok(events)
}

/// Carries bytes between both until neither has anything to say.
fn talk(machine: &mut dyn Dialect, toy: &mut Toy, out: &mut Vec<u8>, piece: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while !out.is_empty() || !toy.out.is_empty() {
        toy.receive(&std::mem::take(out));
        let bytes = std::mem::take(&mut toy.out);
        events.extend(hear(machine, &bytes, piece, out).expect("no fault"));
    }
    events
}

/// A machine behind its greeting.
fn ready(machine: &mut dyn Dialect) -> Toy {
    let mut toy = Toy::default();
    let mut out = Vec::new();
    machine.open(&mut out);
    assert_eq!(talk(machine, &mut toy, &mut out, 7), [Event::Ready]);
    toy
}

fn writer(confirms: bool) -> Writer {
    Writer::new(setup(Shape::Queue), confirms).expect("good")
}

fn reader(shape: Shape, settling: Settling) -> Reader {
    Reader::new(setup(shape), settling, 512).expect("good")
}

#[test]
fn each_kind_of_connection_becomes_ready() {
    for shape in [Shape::Queue, Shape::Stream] {
        ready(&mut Writer::new(setup(shape), true).expect("good"));
        ready(&mut reader(shape, Settling::None));
        ready(&mut reader(shape, Settling::Each));
    }
    ready(&mut reader(Shape::Stream, Settling::Cursor("c".to_owned())));
}

#[test]
fn a_refusal_names_its_message() {
    let mut writer = writer(true);
    let mut toy = ready(&mut writer);
    toy.is_full = true;
    let mut out = Vec::new();
    writer.publish(&mut out, b"one", 0);
    writer.publish(&mut out, b"two", 41);
    let expected = [0, 41].map(|tag| Event::Refused(Some(tag), "full".to_owned()));
    assert_eq!(talk(&mut writer, &mut toy, &mut out, 5), expected);
}

#[test]
fn both_hold_what_has_not_come_whole() {
    let machines: [&mut dyn Dialect; 2] =
        [&mut writer(true), &mut reader(Shape::Queue, Settling::Each)];
    for machine in machines {
        assert_eq!(machine.held_bytes(), 0);
        let long = frame(255, 0, 7, &[0; 5_000]);
        let begin = &long[..3_000];
        assert_eq!(hear(machine, begin, 1_000, &mut Vec::new()), Ok(vec![]));
        assert!(machine.held_bytes() >= 3_000);
    }
}

#[test]
fn unconfirmed_messages_are_not_answered() {
    let mut writer = writer(false);
    let mut toy = ready(&mut writer);
    let mut out = Vec::new();
    writer.publish(&mut out, b"one", 7);
    assert_eq!(talk(&mut writer, &mut toy, &mut out, 1), []);
    assert_eq!(toy.messages, [b"one"]);
    let answer = frame(25, 0, 8, b"FPO1\0\0\0\0\0\0\0\0");
    assert!(
        hear(&mut writer, &answer, 100, &mut out).is_err(),
        "nobody asked for it"
    );
}

#[test]
fn a_ping_is_answered_at_any_time() {
    let mut writer = writer(true);
    let mut out = Vec::new();
    let ping = frame(50, 0, 77, b"");
    assert_eq!(hear(&mut writer, &ping, 3, &mut out), Ok(Vec::new()));
    assert_eq!(out, frame(51, 0, 77, b""));
    ready(&mut writer);
    out.clear();
    assert_eq!(hear(&mut writer, &ping, 3, &mut out), Ok(Vec::new()));
    assert_eq!(out, frame(51, 0, 77, b""));
    let news = frame(101, 0, 0, b"FTU1 of other nodes");
    assert_eq!(hear(&mut writer, &news, 3, &mut out), Ok(Vec::new()));
}

#[test]
fn settling_names_each_message() {
    let mut queue = reader(Shape::Queue, Settling::Each);
    let mut toy = ready(&mut queue);
    let handles: Vec<u64> = (0..9000).collect();
    let mut out = Vec::new();
    queue.settle(&mut out, &handles);
    queue.settle(&mut out, &[]);
    toy.receive(&out);
    assert_eq!(toy.acked, handles);
    let mut stream = reader(Shape::Stream, Settling::None);
    out.clear();
    stream.settle(&mut out, &handles);
    assert!(out.is_empty());
}

#[test]
fn what_breaks_the_protocol_is_a_fault() {
    let hello_ok = [&b"FHO1\0\x02"[..], &[0; 49], &text("toy"), &text("")].concat();
    let created = [&b"FDK1"[..], &text("created"), &[0, 0, 0, 4]].concat();
    for (bytes, why) in [
        (frame(2, 0, 1, &hello_ok), "version 2"),
        (frame(2, 0, 2, b"FHO1\0\x01"), "another request"),
        (frame(11, 0, 1, b""), "out of order"),
        (frame(61, 0, 1, &created), "out of order"),
        (error(1, 401, "no"), "an error"),
        (frame(12, 0, 2, b"FER1"), "an error that cannot be read"),
        (frame(103, 0, 0, b""), "it goes away"),
        (frame(92, 0, 0, b""), "another node"),
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), "another protocol"),
    ] {
        let mut out = Vec::new();
        let result = hear(&mut writer(true), &bytes, 1000, &mut out);
        let fault = result.expect_err(why);
        assert!(fault.0.starts_with("Fibril: "), "{why}: {fault:?}");
    }
}

#[test]
fn what_is_no_delivery_of_ours_is_a_fault() {
    let mut foreign = delivery(0, b"x");
    foreign[20 + 4 + 7] = 8;
    let ack = frame(41, 0, 0, b"");
    for bytes in [foreign, ack, error(0, 404, "no subscription")] {
        let mut reader = reader(Shape::Queue, Settling::Each);
        ready(&mut reader);
        assert!(hear(&mut reader, &bytes, 1000, &mut Vec::new()).is_err());
    }
}

#[test]
fn setups_that_cannot_work_are_refused() {
    let queue = || setup(Shape::Queue);
    let long = "x".repeat(256);
    for bad in [
        Setup {
            topic: String::new(),
            ..queue()
        },
        Setup {
            topic: long.clone(),
            ..queue()
        },
        Setup {
            group: Some(long),
            ..queue()
        },
        Setup {
            partition: 4,
            ..queue()
        },
        Setup {
            group: Some("g".to_owned()),
            ..setup(Shape::Stream)
        },
    ] {
        let text = Writer::new(bad, true).expect_err("bad").to_string();
        assert_eq!(text.lines().count(), 1);
    }
    let cursor = Settling::Cursor("c".to_owned());
    assert_eq!(
        Reader::new(queue(), cursor, 1).err(),
        Some(InvalidSetup::QueueCursor)
    );
    assert_eq!(
        Reader::new(queue(), Settling::Each, 0).err(),
        Some(InvalidSetup::Prefetch(0))
    );
}

proptest! {
    /// What a writer publishes, a reader gets, byte for byte and in order, wherever the bytes are cut.
    #[test]
    fn messages_go_round(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..12),
        piece in 1..100_usize,
        first_tag in 0..u64::MAX - 100,
    ) {
        let mut writer = writer(true);
        let mut toy = ready(&mut writer);
        let mut out = Vec::new();
        for (tag, body) in (first_tag..).zip(&bodies) {
            writer.publish(&mut out, body, tag);
        }
        let events = talk(&mut writer, &mut toy, &mut out, piece);
        let confirmed: Vec<Event> =
            (first_tag..).take(bodies.len()).map(Event::Confirmed).collect();
        prop_assert_eq!(events, confirmed);
        let mut reader = reader(Shape::Queue, Settling::Each);
        let mut other = ready(&mut reader);
        other.messages = std::mem::take(&mut toy.messages);
        other.receive(&[]);
        let events = talk(&mut reader, &mut other, &mut out, piece);
        let delivered: Vec<Event> = (0..)
            .zip(bodies)
            .map(|(tag, body)| Event::Delivered(body, tag, tag % 3 == 2))
            .collect();
        prop_assert_eq!(events, delivered);
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), op in 0..256_u16) {
        let mut reader = reader(Shape::Queue, Settling::Each);
        ready(&mut reader);
        let mut out = Vec::new();
        let _ = hear(&mut reader, &frame(op, 0, 1, &bytes), 1000, &mut out);
        let mut writer = writer(true);
        ready(&mut writer);
        let _ = hear(&mut writer, &frame(op, 0, 1, &bytes), 1000, &mut out);
        let _ = hear(&mut writer, &bytes, 9, &mut out);
    }
}
