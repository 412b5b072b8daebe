//! Readers against the toy server.

use proptest::prelude::*;

use super::Reading;
use super::toy::{Toy, reader, shared, writer};
use crate::dialect::{Dialect, Fault, Heard, Shape};
use crate::rig::{Event, Server, bodies, handles};

#[test]
fn readers_of_a_queue_share_and_settle() {
    let mut toy = Toy::default();
    let mut a = reader(&mut toy, Shape::Queue, "a", shared(8), 2);
    let mut b = reader(&mut toy, Shape::Queue, "b", shared(8), 2);
    let mut w = writer(&mut toy, Shape::Queue, true);
    for body in [b"1", b"2", b"3", b"4", b"5", b"6"] {
        w.publish(&mut toy, body, 0);
    }
    let from_a = a.talk(&mut toy).unwrap();
    let from_b = b.talk(&mut toy).unwrap();
    // The prefetch holds back the last two.
    assert_eq!(bodies(&from_a), [b"1", b"2"]);
    assert_eq!(bodies(&from_b), [b"3", b"4"]);
    b.settle(&mut toy, &handles(&from_b));
    assert_eq!(bodies(&b.talk(&mut toy).unwrap()), [b"5", b"6"]);
    a.settle(&mut toy, &handles(&from_a));
    a.settle(&mut toy, &handles(&from_a));
    assert_eq!(a.talk(&mut toy).unwrap(), []);
    assert_eq!(toy.acked, [3, 4, 1, 2]);
}

#[test]
fn a_reader_holds_what_has_not_come_whole_and_what_it_must_settle() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, Shape::Queue, "a", shared(8), 2);
    assert!(peer.machine.held_bytes() < 1_000);
    writer(&mut toy, Shape::Queue, false).publish(&mut toy, &[b'x'; 5_000], 0);
    let bytes = toy.written(peer.line);
    let mut hear = |bytes: &[u8]| {
        let heard = peer
            .machine
            .received(bytes, &mut Vec::new(), &mut |_: Heard<'_>| {});
        heard.unwrap();
        peer.machine.held_bytes()
    };
    let (begin, rest) = bytes.split_at(3_000);
    assert!(hear(begin) >= 3_000);
    assert!(
        hear(rest) > 5_000,
        "with the subject of its acknowledgement"
    );
}

#[test]
fn a_second_delivery_says_so() {
    for long_replies in [false, true] {
        let mut toy = Toy {
            long_replies,
            ..Toy::default()
        };
        let mut peer = reader(&mut toy, Shape::Queue, "a", shared(8), 8);
        writer(&mut toy, Shape::Queue, false).publish(&mut toy, b"one", 0);
        let first = peer.talk(&mut toy).unwrap();
        toy.redeliver("readers", 1);
        let second = peer.talk(&mut toy).unwrap();
        let redelivered = |events: &[Event]| {
            matches!(
                events,
                [Event::Delivered {
                    redelivered: true,
                    ..
                }]
            )
        };
        assert!(!redelivered(&first) && redelivered(&second));
        assert_ne!(handles(&first), handles(&second));
        peer.settle(&mut toy, &handles(&second));
        assert_eq!(toy.acked, [1]);
    }
}

#[test]
fn requests_go_out_when_half_of_the_prefetch_is_free() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, Shape::Queue, "a", shared(100), 8);
    let mut w = writer(&mut toy, Shape::Queue, false);
    let mut pulls = Vec::new();
    for _ in 0..12 {
        w.publish(&mut toy, b"x", 0);
        let events = peer.talk(&mut toy).unwrap();
        peer.settle(&mut toy, &handles(&events));
        pulls.push(toy.consumers["readers"].pulls);
    }
    assert_eq!(pulls, [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4]);
}

#[test]
fn a_request_that_ends_is_made_again() {
    let ends = [
        ("408 Request Timeout", true),
        ("408 Request Timeout", false),
        ("404 No Messages", false),
        ("409 Message Size Exceeds MaxBytes", true),
    ];
    for (status, says_unused) in ends {
        let mut toy = Toy::default();
        let mut peer = reader(&mut toy, Shape::Queue, "a", shared(100), 8);
        let mut w = writer(&mut toy, Shape::Queue, false);
        toy.expire(status, says_unused);
        assert_eq!(peer.talk(&mut toy).unwrap(), []);
        assert_eq!(toy.consumers["readers"].pulls, 2, "{status}");
        for _ in 0..8 {
            w.publish(&mut toy, b"x", 0);
        }
        assert_eq!(handles(&peer.talk(&mut toy).unwrap()).len(), 8, "{status}");
    }
}

#[test]
fn a_consumer_that_is_gone_is_a_fault_and_a_heartbeat_is_nothing() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, Shape::Queue, "a", shared(100), 8);
    toy.say(
        peer.line,
        "HMSG _INBOX.a.2.8 2 31 31\r\nNATS/1.0 100 Idle Heartbeat\r\n\r\n\r\n",
    );
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    toy.expire("409 Consumer Deleted", false);
    assert_eq!(
        peer.talk(&mut toy),
        Err(Fault(
            "NATS: the consumer gives up, status 409 Consumer Deleted".to_owned()
        ))
    );
}

#[test]
fn each_ordered_reader_gets_everything_from_its_beginning_on() {
    let mut toy = Toy::default();
    let mut w = writer(&mut toy, Shape::Stream, false);
    w.publish(&mut toy, b"before", 0);
    let mut a = reader(&mut toy, Shape::Stream, "a", Reading::Ordered, 4);
    let mut b = reader(&mut toy, Shape::Stream, "b", Reading::Ordered, 4);
    for body in [b"1", b"2", b"3", b"4", b"5", b"6"] {
        w.publish(&mut toy, body, 0);
    }
    for peer in [&mut a, &mut b] {
        let events = peer.talk(&mut toy).unwrap();
        assert_eq!(bodies(&events), [b"1", b"2", b"3", b"4", b"5", b"6"]);
        assert_eq!(handles(&events), [2, 3, 4, 5, 6, 7]);
        peer.settle(&mut toy, &handles(&events));
        assert_eq!(peer.machine.restarts(), 0);
    }
    assert!(toy.acked.is_empty());
}

#[test]
fn an_ordered_reader_that_lost_its_place_begins_behind_the_last_message() {
    for lost in 1..=6 {
        let mut toy = Toy {
            lose_delivery: Some(lost),
            ..Toy::default()
        };
        let mut w = writer(&mut toy, Shape::Stream, false);
        w.publish(&mut toy, b"before", 0);
        let mut peer = reader(&mut toy, Shape::Stream, "a", Reading::Ordered, 16);
        for body in [b"1", b"2", b"3", b"4", b"5", b"6"] {
            w.publish(&mut toy, body, 0);
        }
        let events = peer.talk(&mut toy).unwrap();
        // The loss of the last delivery shows with the next one.
        w.publish(&mut toy, b"7", 0);
        let later = peer.talk(&mut toy).unwrap();
        let all: Vec<Event> = events.into_iter().chain(later).collect();
        assert_eq!(
            bodies(&all),
            [b"1", b"2", b"3", b"4", b"5", b"6", b"7"],
            "lost {lost}"
        );
        assert_eq!(peer.machine.restarts(), 1);
        assert_eq!(toy.consumers.len(), 1, "the old consumer is deleted");
    }
}

proptest! {
    #[test]
    fn what_is_written_arrives_in_any_pieces(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..40),
        piece in 1usize..200,
        prefetch in 1u32..20,
        is_queue in any::<bool>(),
    ) {
        let mut toy = Toy::default();
        let (shape, reading) =
            if is_queue { (Shape::Queue, shared(64)) } else { (Shape::Stream, Reading::Ordered) };
        let mut r = reader(&mut toy, shape, "a", reading, prefetch);
        let mut w = writer(&mut toy, shape, true);
        (r.piece, w.piece) = (piece, piece);
        for (tag, body) in messages.iter().enumerate() {
            w.publish(&mut toy, body, tag as u64);
        }
        let confirmed = w.talk(&mut toy).unwrap();
        let expected: Vec<Event> = (0..messages.len()).map(|tag| Event::Confirmed(tag as u64)).collect();
        prop_assert_eq!(confirmed, expected);
        let mut arrived = Vec::new();
        loop {
            let events = r.talk(&mut toy).unwrap();
            if events.is_empty() {
                break;
            }
            arrived.extend(bodies(&events).iter().map(|body| body.to_vec()));
            r.settle(&mut toy, &handles(&events));
        }
        prop_assert_eq!(arrived, messages);
        prop_assert_eq!(toy.acked.len(), if is_queue { toy.stored.len() } else { 0 });
    }

    #[test]
    fn no_bytes_make_a_machine_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0usize..600) {
        let mut toy = Toy::default();
        let mut peer = reader(&mut toy, Shape::Stream, "a", Reading::Ordered, 4);
        let mut w = writer(&mut toy, Shape::Stream, false);
        w.publish(&mut toy, b"hello", 0);
        let mut wire = toy.written(peer.line);
        wire.splice(at.min(wire.len()).., bytes);
        let _ = peer.machine.received(&wire, &mut Vec::new(), &mut |_| {});
    }
}
