//! Writers, readers and the asker against the toy server.

use proptest::prelude::*;

use super::toy::Toy;
use super::{
    Asker, Confirm, EntryId, GroupDepth, Question, Reader, Reading, Setup, Told, Version, Writer,
};
use crate::Login;
use crate::dialect::{Dialect, Fault, Heard};

/// Something heard that outlives the bytes.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    Ready,
    Confirmed(u64),
    Refused(Option<u64>, String),
    Delivered {
        payload: Vec<u8>,
        handle: u64,
        redelivered: bool,
    },
}

fn event(heard: Heard<'_>) -> Event {
    match heard {
        Heard::Ready => Event::Ready,
        Heard::Confirmed { tag, up_to: false } => Event::Confirmed(tag),
        Heard::Refused { tag, why } => Event::Refused(tag, why.to_owned()),
        Heard::Delivered {
            payload,
            handle,
            redelivered,
        } => Event::Delivered {
            payload: payload.to_vec(),
            handle,
            redelivered,
        },
        other => panic!("{other:?}"),
    }
}

const VERSIONS: [Version; 2] = [Version::Resp2, Version::Resp3];

fn setup(version: Version) -> Setup {
    Setup {
        key: "s".to_owned(),
        version,
        login: None,
    }
}

fn group(name: &str, consumer: &str, deletes: bool) -> Reading {
    Reading::Group {
        group: name.to_owned(),
        consumer: consumer.to_owned(),
        deletes,
    }
}

/// A machine and its connection.
struct Peer<D> {
    line: usize,
    machine: D,
    /// Bytes reach the machine in pieces of this size.
    piece: usize,
}

impl<D: Dialect> Peer<D> {
    fn new(toy: &mut Toy, machine: D) -> Self {
        let mut peer = Self {
            line: toy.connect(),
            machine,
            piece: usize::MAX,
        };
        let mut out = Vec::new();
        peer.machine.open(&mut out);
        toy.received(peer.line, &out);
        peer
    }

    fn ready(toy: &mut Toy, machine: D) -> Self {
        let mut peer = Self::new(toy, machine);
        assert_eq!(peer.talk(toy).unwrap(), [Event::Ready]);
        peer
    }

    /// Carries bytes in both directions until nobody says anything more.
    fn talk(&mut self, toy: &mut Toy) -> Result<Vec<Event>, Fault> {
        let mut events = Vec::new();
        loop {
            let bytes = toy.written(self.line);
            if bytes.is_empty() {
                return Ok(events);
            }
            let mut out = Vec::new();
            for piece in bytes.chunks(self.piece) {
                self.machine
                    .received(piece, &mut out, &mut |heard| events.push(event(heard)))?;
            }
            toy.received(self.line, &out);
        }
    }

    fn publish(&mut self, toy: &mut Toy, body: &[u8], tag: u64) {
        let mut out = Vec::new();
        self.machine.publish(&mut out, body, tag);
        toy.received(self.line, &out);
    }

    fn settle(&mut self, toy: &mut Toy, handles: &[u64]) {
        let mut out = Vec::new();
        self.machine.settle(&mut out, handles);
        toy.received(self.line, &out);
    }
}

fn writer(toy: &mut Toy, confirm: Confirm) -> Peer<Writer> {
    Peer::ready(toy, Writer::new(setup(Version::Resp2), confirm).unwrap())
}

fn reader(toy: &mut Toy, version: Version, reading: Reading, prefetch: u32) -> Peer<Reader> {
    Peer::ready(toy, Reader::new(setup(version), reading, prefetch).unwrap())
}

fn bodies(events: &[Event]) -> Vec<&[u8]> {
    let bodies = events.iter().filter_map(|event| match event {
        Event::Delivered { payload, .. } => Some(&payload[..]),
        _ => None,
    });
    bodies.collect()
}

fn handles(events: &[Event]) -> Vec<u64> {
    let handles = events.iter().filter_map(|event| match event {
        Event::Delivered { handle, .. } => Some(*handle),
        _ => None,
    });
    handles.collect()
}

#[test]
fn replies_confirm_in_the_order_of_the_commands() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Confirm::Reply);
    peer.publish(&mut toy, b"one", 7);
    toy.refuse = Some("OOM command not allowed when used memory > 'maxmemory'.");
    peer.publish(&mut toy, b"two", 9);
    peer.publish(&mut toy, b"", 8);
    assert_eq!(
        peer.talk(&mut toy).unwrap(),
        [
            Event::Confirmed(7),
            Event::Refused(
                Some(9),
                "OOM command not allowed when used memory > 'maxmemory'.".to_owned()
            ),
            Event::Confirmed(8),
        ]
    );
    let kept: Vec<&[u8]> = toy.entries.values().map(|body| &body[..]).collect();
    assert_eq!(kept, [&b"one"[..], b""]);
}

#[test]
fn an_unconfirmed_writer_is_ready_before_the_replies_stop() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Confirm::Never);
    toy.refuse = Some("OOM unseen");
    peer.publish(&mut toy, b"one", 1);
    peer.publish(&mut toy, b"two", 2);
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert_eq!(toy.entries.len(), 1);
    assert_eq!(toy.commands, ["PING", "CLIENT", "XADD", "XADD"]);
}

#[test]
fn a_sync_confirms_what_was_added_before_it() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Confirm::Fsync);
    for tag in 1..=3 {
        peer.publish(&mut toy, b"x", tag);
    }
    // The first has its sync; the others wait behind it.
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert_eq!(toy.entries.len(), 1);
    toy.fsync();
    assert_eq!(peer.talk(&mut toy).unwrap(), [Event::Confirmed(1)]);
    assert_eq!(toy.entries.len(), 3);
    peer.publish(&mut toy, b"x", 4);
    toy.fsync();
    assert_eq!(
        peer.talk(&mut toy).unwrap(),
        [Event::Confirmed(2), Event::Confirmed(3)]
    );
    toy.fsync();
    assert_eq!(peer.talk(&mut toy).unwrap(), [Event::Confirmed(4)]);
    toy.fsync();
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert_eq!(
        toy.commands
            .iter()
            .filter(|name| *name == "WAITAOF")
            .count(),
        3
    );
}

/// A writer with one message that waits for its sync, after these bytes in place of the answer.
fn after_waitaof(reply: &str) -> Result<Vec<Event>, Fault> {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Confirm::Fsync);
    peer.publish(&mut toy, b"x", 5);
    peer.talk(&mut toy).unwrap();
    toy.say(peer.line, reply);
    peer.talk(&mut toy)
}

#[test]
fn a_sync_that_did_not_happen_refuses_its_messages() {
    let off = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    assert_eq!(
        after_waitaof(&format!("-{off}\r\n")).unwrap(),
        [Event::Refused(Some(5), off.to_owned())]
    );
    assert_eq!(
        after_waitaof("*2\r\n:0\r\n:0\r\n").unwrap(),
        [Event::Refused(
            Some(5),
            "WAITAOF ended before the sync".to_owned()
        )]
    );
    assert_eq!(
        after_waitaof("*2\r\n:1\r\n:0\r\n").unwrap(),
        [Event::Confirmed(5)]
    );
    for reply in [
        "+OK\r\n",
        "*1\r\n:1\r\n",
        "*3\r\n",
        "*2\r\n+a\r\n",
        ":1\r\n",
        "*0\r\n",
    ] {
        let end = after_waitaof(reply);
        assert!(
            end.is_err() || end.unwrap() != [Event::Confirmed(5)],
            "{reply}"
        );
    }
}

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
        assert_eq!(came, [(&b"1"[..], true), (b"3", true), (b"4", false)]);
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

#[test]
fn a_login_comes_first_and_a_wrong_one_is_the_end() {
    for version in VERSIONS {
        let login = |password: &str| {
            Some(Login {
                user: "anna".to_owned(),
                password: password.to_owned(),
            })
        };
        let mut toy = Toy::default();
        let mut known = setup(version);
        known.login = login("secret");
        Peer::ready(&mut toy, Writer::new(known, Confirm::Reply).unwrap());
        assert!(toy.commands[0] == "AUTH" || toy.commands[0] == "HELLO");
    }
    let mut unknown = setup(Version::Resp2);
    unknown.login = Some(Login {
        user: "eve".to_owned(),
        password: "x".to_owned(),
    });
    let mut toy = Toy::default();
    let mut peer = Peer::new(&mut toy, Writer::new(unknown, Confirm::Reply).unwrap());
    assert!(peer.talk(&mut toy).unwrap_err().0.contains("WRONGPASS"));
}

#[test]
fn a_server_that_loads_is_named() {
    let mut toy = Toy {
        refuse: Some("LOADING Redis is loading the dataset in memory"),
        ..Toy::default()
    };
    let mut peer = Peer::new(
        &mut toy,
        Writer::new(setup(Version::Resp2), Confirm::Reply).unwrap(),
    );
    assert_eq!(
        peer.talk(&mut toy).unwrap_err().0,
        "Redis: LOADING Redis is loading the dataset in memory"
    );
}

#[test]
fn setups_that_cannot_work_are_refused_in_words() {
    let nameless = Setup {
        key: String::new(),
        version: Version::Resp2,
        login: None,
    };
    let refused = Writer::new(nameless, Confirm::Reply).unwrap_err();
    assert_eq!(refused.to_string(), "the key `` must have 1 to 64 bytes");
    let read = |reading, prefetch| {
        Reader::new(setup(Version::Resp2), reading, prefetch)
            .unwrap_err()
            .to_string()
    };
    assert!(read(Reading::Own, 0).starts_with("the prefetch is 0"));
    assert!(read(Reading::Own, 65_537).starts_with("the prefetch is 65537"));
    assert!(read(group(&"g".repeat(65), "a", true), 1).starts_with("the group"));
    assert!(read(group("g", "", true), 1).starts_with("the reader"));
}

#[test]
fn the_asker_tells_depths_and_settings() {
    for version in VERSIONS {
        let mut toy = Toy::default();
        let mut peer = reader(&mut toy, version, group("g", "a", true), 2);
        reader(&mut toy, version, group("idle", "a", true), 2);
        let mut w = writer(&mut toy, Confirm::Reply);
        for body in [b"1", b"2", b"3"] {
            w.publish(&mut toy, body, 0);
        }
        peer.talk(&mut toy).unwrap();
        let line = toy.connect();
        let mut asker = Asker::new(setup(version));
        let mut out = Vec::new();
        asker.open(&mut out);
        let names = vec!["appendfsync".to_owned(), "appendonly".to_owned()];
        for question in [
            Question::Alive,
            Question::Length,
            Question::Groups,
            Question::Config(names),
            Question::Delete,
        ] {
            asker.ask(&mut out, question);
        }
        toy.received(line, &out);
        let mut told = Vec::new();
        for piece in toy.written(line).chunks(3) {
            asker.received(piece, &mut |one| told.push(one)).unwrap();
        }
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let Told::Groups(groups) = told.remove(2) else {
            panic!("{told:?}");
        };
        assert_eq!(
            groups[0],
            GroupDepth {
                name: "g".to_owned(),
                pending: 2,
                lag: Some(1)
            }
        );
        assert_eq!((groups.len(), &*groups[1].name), (2, "idle"));
        assert_eq!(
            told,
            [
                Told::Alive,
                Told::Length(3),
                Told::Config(vec![
                    pair("appendfsync", "always"),
                    pair("appendonly", "yes")
                ]),
                Told::Deleted,
            ]
        );
    }
}

#[test]
fn an_unknown_lag_and_an_error_are_told() {
    let mut asker = Asker::new(setup(Version::Resp2));
    let mut out = Vec::new();
    for _ in 0..2 {
        asker.ask(&mut out, Question::Groups);
    }
    let mut told = Vec::new();
    let replies = b"*1\r\n*6\r\n$4\r\nname\r\n$1\r\ng\r\n$7\r\npending\r\n:0\r\n$3\r\nlag\r\n$-1\r\n-ERR no such key\r\n";
    asker.received(replies, &mut |one| told.push(one)).unwrap();
    assert_eq!(
        told,
        [
            Told::Groups(vec![GroupDepth {
                name: "g".to_owned(),
                pending: 0,
                lag: None
            }]),
            Told::Failed("ERR no such key".to_owned()),
        ]
    );
}

proptest! {
    #[test]
    fn what_is_written_arrives_in_any_pieces(
        messages in prop::collection::vec("[ -~]{0,80}", 1..40),
        piece in 1usize..200,
        prefetch in 1u32..20,
        is_group in any::<bool>(),
        version in prop::sample::select(&VERSIONS[..]),
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
    fn a_body_is_written_as_it_is(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut toy = Toy::default();
        let mut w = writer(&mut toy, Confirm::Reply);
        w.publish(&mut toy, &body, 0);
        prop_assert_eq!(toy.entries.values().next(), Some(&body));
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
