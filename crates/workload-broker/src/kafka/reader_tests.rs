//! Readers against the toy broker.

use proptest::prelude::*;

use super::toy::{Toy, fetched, framed, reader, setup, shared, writer};
use super::{Reader, Reading};
use crate::dialect::{Dialect, Fault};
use crate::rig::{Event, Peer, Server, bodies, handles};

const FETCH: i16 = 1;
const COMMIT: i16 = 8;

/// The requests of a connection since.
fn requests(toy: &mut Toy, line: usize) -> Vec<i16> {
    let requests = std::mem::take(&mut toy.requests);
    let of_line = requests.into_iter().filter(|(of, _)| *of == line);
    of_line.map(|(_, key)| key).collect()
}

/// Publishes to a partition by one write.
fn publish(toy: &mut Toy, partition: u32, bodies: &[&str]) {
    writer(toy, partition, false).publish_all(toy, bodies, 0);
}

#[test]
fn readers_share_the_partitions_and_commit_what_is_settled() {
    let mut toy = Toy::default();
    let mut a = reader(&mut toy, shared(0, 2), 8);
    let mut b = reader(&mut toy, shared(1, 2), 8);
    for (partition, bodies) in [(0, ["a", "b"]), (1, ["c", "d"]), (2, ["e", "f"])] {
        publish(&mut toy, partition, &bodies);
    }
    let from_a = a.talk(&mut toy).unwrap();
    let from_b = b.talk(&mut toy).unwrap();
    assert_eq!(bodies(&from_a), [b"a", b"b", b"e", b"f"]);
    assert_eq!(bodies(&from_b), [b"c", b"d"]);
    assert_eq!(handles(&from_a), [0, 1, 2 << 48, 2 << 48 | 1]);
    assert!(toy.committed.is_empty());
    a.settle(&mut toy, &handles(&from_a)[..3]);
    b.settle(&mut toy, &handles(&from_b));
    // A Fetch waits, and nothing behind it is looked at.
    assert!(toy.committed.is_empty());
    toy.expire(a.line);
    toy.expire(b.line);
    assert_eq!(
        (a.talk(&mut toy).unwrap(), b.talk(&mut toy).unwrap()),
        (vec![], vec![])
    );
    assert_eq!(Vec::from_iter(toy.committed), [(0, 2), (1, 2), (2, 1)]);
}

#[test]
fn a_commit_goes_out_before_the_next_fetch() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, shared(0, 1), 2);
    publish(&mut toy, 0, &["one", "two", "three"]);
    requests(&mut toy, peer.line);
    let events = peer.talk(&mut toy).unwrap();
    // It holds more than its prefetch: it asks for nothing.
    publish(&mut toy, 0, &["four"]);
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert!(requests(&mut toy, peer.line).is_empty());
    peer.settle(&mut toy, &handles(&events)[..1]);
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert_eq!(
        requests(&mut toy, peer.line),
        [COMMIT],
        "two are still unsettled"
    );
    peer.settle(&mut toy, &handles(&events)[1..]);
    assert_eq!(bodies(&peer.talk(&mut toy).unwrap()), [b"four"]);
    assert_eq!(requests(&mut toy, peer.line), [COMMIT, FETCH]);
    assert_eq!(toy.committed[&0], 3);
}

#[test]
fn one_commit_is_open_at_a_time() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, shared(0, 1), 100);
    publish(&mut toy, 0, &["one", "two", "three"]);
    let events = peer.talk(&mut toy).unwrap();
    requests(&mut toy, peer.line);
    for handle in handles(&events) {
        peer.settle(&mut toy, &[handle]);
    }
    toy.expire(peer.line);
    peer.talk(&mut toy).unwrap();
    // The first one waited behind a Fetch; the second one has the rest.
    let after = requests(&mut toy, peer.line);
    assert_eq!(
        after.iter().filter(|key| **key == COMMIT).count(),
        2,
        "{after:?}"
    );
    assert_eq!(toy.committed[&0], 3);
}

#[test]
fn a_reader_begins_where_its_group_is() {
    let mut toy = Toy::default();
    publish(&mut toy, 0, &["one", "two", "three"]);
    publish(&mut toy, 1, &["four"]);
    toy.coming = [(2, 2), (3, 2), (9, 2), (10, 2)].into();
    // In the middle of a batch, which comes whole.
    toy.committed.insert(0, 2);
    let mut peer = Peer::new(&mut toy, Reader::new(setup(4), shared(0, 1), 8).unwrap());
    let events = peer.talk(&mut toy).unwrap();
    assert_eq!(events[0], Event::Ready);
    assert_eq!(bodies(&events), [&b"three"[..], b"four"]);
    assert!(toy.coming.values().all(|times| *times == 0));
    assert_eq!(handles(&events), [2, 1 << 48]);
}

#[test]
fn a_group_beyond_the_end_of_a_partition_goes_on_with_what_comes_next() {
    let mut toy = Toy::default();
    publish(&mut toy, 0, &["one", "two"]);
    // A power cut took what the group had read.
    toy.committed.insert(0, 5);
    let mut peer = reader(&mut toy, shared(0, 1), 8);
    publish(&mut toy, 0, &["three"]);
    let events = peer.talk(&mut toy).unwrap();
    assert_eq!(bodies(&events), [b"three"]);
    assert_eq!(handles(&events), [2]);
}

#[test]
fn each_reader_of_a_stream_gets_everything_from_its_beginning_on() {
    let mut toy = Toy::default();
    writer(&mut toy, 0, false);
    publish(&mut toy, 0, &["before"]);
    let mut a = reader(&mut toy, Reading::Every, 2);
    let mut b = reader(&mut toy, Reading::Every, 2);
    for round in 0..3 {
        publish(&mut toy, 0, &["one", "two"]);
        publish(&mut toy, 3, &["three"]);
        for peer in [&mut a, &mut b] {
            let mut all = Vec::new();
            loop {
                let events = peer.talk(&mut toy).unwrap();
                if events.is_empty() {
                    break;
                }
                peer.settle(&mut toy, &handles(&events));
                all.extend(bodies(&events).iter().map(|body| body.to_vec()));
            }
            all.sort();
            assert_eq!(all, [&b"one"[..], b"three", b"two"], "round {round}");
        }
    }
    assert!(toy.committed.is_empty());
}

#[test]
fn a_commit_that_fails_is_an_error_and_is_made_up_for() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, shared(0, 1), 1);
    publish(&mut toy, 0, &["one"]);
    let events = peer.talk(&mut toy).unwrap();
    toy.commit_error = 16;
    peer.settle(&mut toy, &handles(&events));
    let why = "commit: NOT_COORDINATOR (16)".to_owned();
    assert_eq!(peer.talk(&mut toy).unwrap(), [Event::Refused(None, why)]);
    assert!(toy.committed.is_empty());
    toy.commit_error = 0;
    publish(&mut toy, 0, &["two"]);
    let events = peer.talk(&mut toy).unwrap();
    peer.settle(&mut toy, &handles(&events));
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert_eq!(toy.committed[&0], 2);
}

/// What a reader, whose Fetch is open, says to this answer.
fn answer(body: &[u8]) -> Result<Vec<Event>, Fault> {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, shared(0, 1), 8);
    // The Fetch is the request behind the greeting, the ends, the coordinator, the offsets and the ends again.
    toy.say(peer.line, &framed(7, body));
    peer.talk(&mut toy)
}

#[test]
fn what_a_fetch_cannot_bring_is_a_fault() {
    let mut toy = Toy::default();
    publish(&mut toy, 0, &["one"]);
    let good = toy.logs[0][0].bytes.clone();
    assert_eq!(bodies(&answer(&fetched(0, 0, &good)).unwrap()), [b"one"]);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (body, expected) in [
        (fetched(0, 1, b""), "Fetch: OFFSET_OUT_OF_RANGE (1)"),
        (fetched(9, 0, &good), "the answer to Fetch cannot be read"),
        (
            fetched(0, 0, &with(16, 1)),
            "the topic has record batches of version 1, not 2",
        ),
        (
            fetched(0, 0, &with(22, 1)),
            "the topic compresses; set compression.type=producer",
        ),
        (
            fetched(0, 0, &with(1, 1)),
            "the answer to Fetch cannot be read",
        ),
        (
            fetched(0, 0, &good[..70]),
            "the answer to Fetch cannot be read",
        ),
    ] {
        assert_eq!(answer(&body), Err(Fault(format!("Kafka: {expected}"))));
    }
}

#[test]
fn setups_that_cannot_work_are_refused() {
    let text = |reading, prefetch| {
        Reader::new(setup(2), reading, prefetch)
            .unwrap_err()
            .to_string()
    };
    assert!(text(shared(0, 3), 1).contains("3 readers share 2 partitions"));
    assert!(text(shared(0, 1), 0).contains("the prefetch is 0"));
    assert!(text(Reading::Every, 65_537).contains("65537"));
}

#[test]
fn a_reader_holds_what_has_not_come_whole() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, shared(0, 1), 8);
    publish(&mut toy, 0, &[&"x".repeat(5_000)]);
    let bytes = toy.written(peer.line);
    let (begin, rest) = bytes.split_at(3_000);
    let mut hear = |bytes: &[u8]| {
        let mut count = 0;
        let heard = &mut |_: crate::dialect::Heard<'_>| count += 1;
        peer.machine
            .received(bytes, &mut Vec::new(), heard)
            .unwrap();
        (count, peer.machine.held_bytes())
    };
    assert_eq!(hear(begin), (0, 3_000));
    assert_eq!(hear(rest).0, 1);
}

proptest! {
    #[test]
    fn what_is_written_arrives_in_any_pieces(
        writes in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..10), 1..12),
        piece in 1_usize..200,
        prefetch in 1_u32..20,
        is_queue in any::<bool>(),
        fetch_bytes in prop::option::of(0_usize..600),
    ) {
        let mut toy = Toy { fetch_bytes, ..Toy::default() };
        let reading = if is_queue { shared(0, 1) } else { Reading::Every };
        let mut r = reader(&mut toy, reading, prefetch);
        let mut w = writer(&mut toy, 1, true);
        (r.piece, w.piece) = (piece, piece);
        let mut next = 0;
        for bodies in &writes {
            w.publish_all(&mut toy, bodies, next);
            next += bodies.len() as u64;
        }
        let confirmed: Vec<Event> = (0..next).map(Event::Confirmed).collect();
        prop_assert_eq!(w.talk(&mut toy).unwrap(), confirmed);
        let (mut arrived, mut handed) = (Vec::new(), Vec::new());
        loop {
            let events = r.talk(&mut toy).unwrap();
            if events.is_empty() {
                break;
            }
            arrived.extend(bodies(&events).iter().map(|body| body.to_vec()));
            handed.extend(handles(&events));
            r.settle(&mut toy, &handles(&events));
        }
        prop_assert_eq!(arrived, writes.concat());
        prop_assert_eq!(handed, (0..next).map(|offset| 1 << 48 | offset).collect::<Vec<u64>>());
        toy.expire(r.line);
        r.talk(&mut toy).unwrap();
        let committed = is_queue.then_some(i64::try_from(next).unwrap());
        prop_assert_eq!(toy.committed.get(&1).copied(), committed);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        number in 0_i32..2,
        at in 0_usize..300,
    ) {
        let mut toy = Toy::default();
        // In its greeting.
        let mut machine = Reader::new(setup(4), shared(0, 1), 4).unwrap();
        machine.open(&mut Vec::new());
        let _ = machine.received(&framed(number, &bytes), &mut Vec::new(), &mut |_| {});
        // In the answer to a Fetch.
        let mut peer = reader(&mut toy, shared(0, 1), 4);
        publish(&mut toy, 0, &["hello", "world"]);
        let mut wire = toy.written(peer.line);
        wire.splice(at.min(wire.len()).., bytes);
        let _ = peer.machine.received(&wire, &mut Vec::new(), &mut |_| {});
    }
}
