//! A writer against the toy broker.

use proptest::prelude::*;

use super::Writer;
use super::toy::{Toy, framed, records, setup, writer};
use crate::dialect::{Dialect, Fault};
use crate::rig::{Event, Peer, Server};

fn confirmed(tags: std::ops::Range<u64>) -> Vec<Event> {
    tags.map(Event::Confirmed).collect()
}

#[test]
fn the_messages_of_a_write_are_one_batch() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, 2, true);
    peer.publish_all(&mut toy, &["one", "two", "three"], 7);
    peer.publish(&mut toy, b"", 10);
    assert_eq!(peer.talk(&mut toy).unwrap(), confirmed(7..11));
    assert_eq!(toy.values(2), [&b"one"[..], b"two", b"three", b""]);
    let counts: Vec<i64> = toy.logs[2].iter().map(|batch| batch.count).collect();
    assert_eq!(counts, [3, 1]);
    assert!(
        toy.logs
            .iter()
            .enumerate()
            .all(|(at, log)| log.is_empty() == (at != 2))
    );
    let first = &records(&toy.logs[2][0].bytes)[0];
    assert_eq!(first.timestamp, 1_700_000_000_000);
}

#[test]
fn an_unconfirmed_writer_hears_nothing() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, 0, false);
    peer.publish_all(&mut toy, &["one", "two"], 1);
    peer.publish(&mut toy, b"three", 3);
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert_eq!(toy.values(0), [&b"one"[..], b"two", b"three"]);
    toy.say(peer.line, &framed(-1, b""));
    assert!(peer.talk(&mut toy).is_err(), "nobody asked for it");
}

#[test]
fn a_batch_is_refused_whole() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, 0, true);
    toy.produce_error = 10;
    peer.publish_all(&mut toy, &["one", "two"], 7);
    toy.produce_error = 1234;
    peer.publish(&mut toy, b"three", 9);
    toy.produce_error = 0;
    peer.publish(&mut toy, b"four", u64::MAX);
    let refused = |tag, why: &str| Event::Refused(Some(tag), why.to_owned());
    assert_eq!(
        peer.talk(&mut toy).unwrap(),
        [
            refused(7, "MESSAGE_TOO_LARGE (10)"),
            refused(8, "MESSAGE_TOO_LARGE (10)"),
            refused(9, "error 1234"),
            Event::Confirmed(u64::MAX),
        ]
    );
    assert_eq!(toy.values(0), [b"four"]);
}

#[test]
fn nothing_is_written_for_no_message() {
    let mut machine = Writer::new(setup(4), 0, true).unwrap();
    let mut out = b"before".to_vec();
    machine.flush(&mut out);
    assert_eq!(out, b"before");
}

#[test]
fn what_is_no_answer_to_a_batch_is_a_fault() {
    let mut right = Vec::new();
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, 0, true);
    peer.publish(&mut toy, b"one", 0);
    right.extend(toy.written(peer.line));
    let with = |at: usize, byte: u8| {
        let mut bytes = right.clone();
        bytes[at] = byte;
        bytes
    };
    // Length, number, one topic, its name in three bytes, one partition, its index.
    let bad = [
        (with(7, 99), "another request"),
        (with(11, 2), "two topics"),
        (with(14, b'x'), "another topic"),
        (with(18, 2), "two partitions"),
        (with(22, 1), "another partition"),
        (with(3, right[3] - 1), "a byte too few"),
        ([&right[..], &right[..]].concat(), "answered twice"),
    ];
    for (bytes, why) in bad {
        let mut toy = Toy::default();
        let mut peer = writer(&mut toy, 0, true);
        peer.publish(&mut toy, b"one", 0);
        toy.written(peer.line);
        toy.say(peer.line, &bytes);
        let Err(Fault(fault)) = peer.talk(&mut toy) else {
            panic!("{why}");
        };
        assert!(fault.starts_with("Kafka: "), "{why}: {fault}");
    }
}

proptest! {
    #[test]
    fn every_message_is_confirmed_once_in_any_pieces(
        writes in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20), 1..10),
        piece in 1_usize..120,
    ) {
        let mut toy = Toy::default();
        let mut peer = writer(&mut toy, 3, true);
        peer.piece = piece;
        let mut next = 0;
        for bodies in &writes {
            peer.publish_all(&mut toy, bodies, next);
            next += bodies.len() as u64;
        }
        prop_assert_eq!(peer.talk(&mut toy).unwrap(), confirmed(0..next));
        prop_assert_eq!(toy.values(3), writes.concat());
    }

    #[test]
    fn no_bytes_make_a_writer_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), number in 0_i32..5) {
        let mut toy = Toy::default();
        let mut peer = writer(&mut toy, 0, true);
        peer.publish(&mut toy, b"one", 0);
        let mut fresh = Writer::new(setup(4), 0, true).unwrap();
        fresh.open(&mut Vec::new());
        for bytes in [framed(number, &bytes), bytes] {
            let _ = fresh.received(&bytes, &mut Vec::new(), &mut |_| {});
            let _ = peer.machine.received(&bytes, &mut Vec::new(), &mut |_| {});
        }
    }

    #[test]
    fn a_greeting_comes_in_any_pieces(piece in 1_usize..60, times in 0_u32..4) {
        let mut toy = Toy { coming: [(2, times), (3, times)].into(), ..Toy::default() };
        let mut peer = Peer::new(&mut toy, Writer::new(setup(4), 1, true).unwrap());
        peer.piece = piece;
        prop_assert_eq!(peer.talk(&mut toy).unwrap(), [Event::Ready]);
    }
}
