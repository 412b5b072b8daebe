//! Readers against the toy server.

use proptest::prelude::*;

use super::toy::{Toy, VERSIONS, group, reader, setup, writer};
use super::{Confirm, EntryId, Reader, Reading, Version};
use crate::dialect::{Dialect, Fault, Heard};
use crate::rig::{Event, Peer, Server, bodies, handles};

#[test]
fn readers_of_a_group_share_and_settle() {
    for version in VERSIONS {
        let mut toy = Toy::default();
        let mut w = writer(&mut toy, Confirm::Reply);
        for body in [b"1", b"2", b"3", b"4", b"5"] {
            w.publish(&mut toy, body, 0);
        }
        let mut a = Peer::new(
            &mut toy,
            Reader::new(setup(version), group("g", "a", true), 2).unwrap(),
        );
        let from_a = a.talk(&mut toy).unwrap();
        let mut b = Peer::new(
            &mut toy,
            Reader::new(setup(version), group("g", "b", true), 2).unwrap(),
        );
        let from_b = b.talk(&mut toy).unwrap();
        // The prefetch holds back the last.
        assert_eq!(from_a[0], Event::Ready);
        assert_eq!(bodies(&from_a), [b"1", b"2"]);
        assert_eq!(bodies(&from_b), [b"3", b"4"]);
        a.settle(&mut toy, &handles(&from_a));
        assert_eq!(bodies(&a.talk(&mut toy).unwrap()), [b"5"]);
        assert_eq!(toy.entries.len(), 3, "settled messages are deleted");
        assert_eq!(toy.groups["g"].pending.len(), 3);
    }
}

#[test]
fn a_reader_holds_what_has_not_come_whole() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, VERSIONS[0], group("g", "a", true), 8);
    writer(&mut toy, Confirm::Reply).publish(&mut toy, &[b'x'; 5_000], 0);
    let bytes = toy.written(peer.line);
    let begin = &bytes[..3_000];
    let heard = &mut |_: Heard<'_>| {};
    assert!(peer.machine.held_bytes() < 1_000);
    peer.machine
        .received(begin, &mut Vec::new(), heard)
        .unwrap();
    assert!(peer.machine.held_bytes() > 2_500);
}

#[test]
fn a_reader_asks_again_when_nothing_came_and_settles_behind_a_read() {
    for version in VERSIONS {
        let mut toy = Toy::default();
        let mut peer = reader(&mut toy, version, group("g", "a", true), 8);
        toy.time_out();
        assert_eq!(peer.talk(&mut toy).unwrap(), []);
        let mut w = writer(&mut toy, Confirm::Reply);
        w.publish(&mut toy, b"1", 0);
        let events = peer.talk(&mut toy).unwrap();
        peer.settle(&mut toy, &handles(&events));
        // The next read waits already; the acknowledgement waits with it, no longer than the read.
        assert_eq!(toy.groups["g"].pending.len(), 1);
        toy.time_out();
        assert_eq!(peer.talk(&mut toy).unwrap(), []);
        assert_eq!(toy.groups["g"].pending.len(), 0);
        assert!(toy.entries.is_empty());
    }
}

#[test]
fn a_reader_gets_back_what_its_name_had_open() {
    for version in VERSIONS {
        let mut toy = Toy::default();
        let mut w = writer(&mut toy, Confirm::Reply);
        for body in [b"1", b"2", b"3", b"4"] {
            w.publish(&mut toy, body, 0);
        }
        let mut first = Peer::new(
            &mut toy,
            Reader::new(setup(version), group("g", "a", true), 3).unwrap(),
        );
        assert_eq!(bodies(&first.talk(&mut toy).unwrap()), [b"1", b"2", b"3"]);
        // Somebody deletes one of them. The connection is lost; the same name comes again.
        let deleted = *toy.entries.keys().nth(1).unwrap();
        toy.entries.remove(&deleted);
        let mut again = Peer::new(
            &mut toy,
            Reader::new(setup(version), group("g", "a", true), 8).unwrap(),
        );
        let events = again.talk(&mut toy).unwrap();
        let came: Vec<(&[u8], bool)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Delivered {
                    payload,
                    redelivered,
                    ..
                } => Some((&payload[..], *redelivered)),
                _ => None,
            })
            .collect();
        assert_eq!(
            came,
            [(&b"1"[..], true), (&b"3"[..], true), (&b"4"[..], false)]
        );
        assert!(!toy.groups["g"].pending.contains_key(&deleted));
        again.settle(&mut toy, &handles(&events));
        toy.time_out();
        assert_eq!(toy.groups["g"].pending.len(), 0);
    }
}

#[test]
fn readers_on_their_own_get_everything_from_their_beginning_on() {
    for version in VERSIONS {
        let mut toy = Toy::default();
        let mut early = reader(&mut toy, version, Reading::Own, 2);
        let mut w = writer(&mut toy, Confirm::Reply);
        w.publish(&mut toy, b"before", 0);
        let mut late = reader(&mut toy, version, Reading::Own, 2);
        for body in [b"1", b"2", b"3"] {
            w.publish(&mut toy, body, 0);
        }
        let events = early.talk(&mut toy).unwrap();
        assert_eq!(bodies(&events), [&b"before"[..], b"1", b"2", b"3"]);
        let later = late.talk(&mut toy).unwrap();
        assert_eq!(bodies(&later), [b"1", b"2", b"3"]);
        late.settle(&mut toy, &handles(&later));
        assert!(!toy.commands.iter().any(|name| name == "XACK"));
        assert_eq!(toy.entries.len(), 4);
    }
}

#[test]
fn a_group_with_cursors_deletes_nothing() {
    let mut toy = Toy::default();
    let mut a = reader(&mut toy, Version::Resp2, group("a", "a", false), 2);
    let mut b = reader(&mut toy, Version::Resp2, group("b", "b", false), 2);
    writer(&mut toy, Confirm::Reply).publish(&mut toy, b"1", 0);
    for peer in [&mut a, &mut b] {
        let events = peer.talk(&mut toy).unwrap();
        assert_eq!(bodies(&events), [b"1"]);
        peer.settle(&mut toy, &handles(&events));
    }
    toy.time_out();
    assert_eq!(toy.entries.len(), 1);
    assert!(toy.groups.values().all(|group| group.pending.is_empty()));
}

#[test]
fn the_handle_is_the_id() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, Version::Resp2, Reading::Own, 2);
    writer(&mut toy, Confirm::Reply).publish(&mut toy, b"1", 0);
    let handle = handles(&peer.talk(&mut toy).unwrap())[0];
    assert_eq!(
        EntryId::of(handle),
        EntryId {
            ms: 1_526_919_030_474,
            seq: 1
        }
    );
}

/// What a reader makes of these bytes in place of the answer to its read.
fn after_read(reply: &str) -> Result<Vec<Event>, Fault> {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, Version::Resp2, Reading::Own, 8);
    toy.say(peer.line, reply);
    peer.talk(&mut toy)
}

#[test]
fn what_is_not_ours_is_a_fault() {
    let entry = |fields: &str| format!("*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n{fields}");
    assert!(after_read(&entry("*2\r\n$1\r\nb\r\n$2\r\nhi\r\n")).is_ok());
    for fields in [
        "*2\r\n$4\r\nbody\r\n$2\r\nhi\r\n",
        "*4\r\n$1\r\nb\r\n$2\r\nhi\r\n$1\r\nc\r\n$0\r\n\r\n",
        "*2\r\n$1\r\nb\r\n:5\r\n",
        "*0\r\n",
        "$2\r\nhi\r\n",
    ] {
        let end = after_read(&entry(fields));
        assert!(end.is_err(), "{fields}: {end:?}");
    }
    let huge =
        entry("*2\r\n$1\r\nb\r\n$2\r\nhi\r\n").replace("$3\r\n1-1", "$15\r\n4398046511104-1");
    assert!(after_read(&huge).unwrap_err().0.contains("2109"));
    assert_eq!(
        after_read("-NOGROUP No such key 's' or consumer group 'g'\r\n")
            .unwrap_err()
            .0,
        "Redis: NOGROUP No such key 's' or consumer group 'g'"
    );
    assert!(after_read("*-1\r\n+OK\r\n+OK\r\n").is_err());
}

#[test]
fn a_settlement_that_fails_is_told() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, Version::Resp2, group("g", "a", false), 1);
    writer(&mut toy, Confirm::Reply).publish(&mut toy, b"1", 0);
    let events = peer.talk(&mut toy).unwrap();
    toy.refuse = Some("READONLY You can't write against a read only replica.");
    peer.settle(&mut toy, &handles(&events));
    assert_eq!(
        peer.talk(&mut toy).unwrap(),
        [Event::Refused(
            None,
            "READONLY You can't write against a read only replica.".to_owned()
        )]
    );
}

proptest! {
    #[test]
    fn what_is_written_arrives_in_any_pieces(
        messages in prop::collection::vec("[ -~]{0,80}", 1..40),
        piece in 1usize..200,
        prefetch in 1u32..20,
        is_group in any::<bool>(),
        version in prop::sample::select(VERSIONS.to_vec()),
    ) {
        let mut toy = Toy::default();
        let reading = if is_group { group("g", "a", true) } else { Reading::Own };
        let mut r = reader(&mut toy, version, reading, prefetch);
        let mut w = writer(&mut toy, Confirm::Reply);
        (r.piece, w.piece) = (piece, piece);
        for (tag, body) in messages.iter().enumerate() {
            w.publish(&mut toy, body.as_bytes(), tag as u64);
        }
        let confirmed = w.talk(&mut toy).unwrap();
        let expected: Vec<Event> = (0..messages.len()).map(|tag| Event::Confirmed(tag as u64)).collect();
        prop_assert_eq!(confirmed, expected);
        let mut arrived: Vec<Vec<u8>> = Vec::new();
        loop {
            let events = r.talk(&mut toy).unwrap();
            if events.is_empty() {
                break;
            }
            arrived.extend(bodies(&events).iter().map(|body| body.to_vec()));
            r.settle(&mut toy, &handles(&events));
        }
        let sent: Vec<Vec<u8>> = messages.iter().map(|body| body.clone().into_bytes()).collect();
        prop_assert_eq!(arrived, sent);
        toy.time_out();
        prop_assert_eq!(toy.entries.len(), if is_group { 0 } else { messages.len() });
    }

    #[test]
    fn no_bytes_make_a_machine_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0usize..200) {
        let mut toy = Toy::default();
        let mut peer = reader(&mut toy, Version::Resp2, group("g", "a", true), 4);
        writer(&mut toy, Confirm::Reply).publish(&mut toy, b"hello", 0);
        let mut wire = toy.written(peer.line);
        wire.splice(at.min(wire.len()).., bytes);
        let _ = peer.machine.received(&wire, &mut Vec::new(), &mut |_| {});
    }
}
