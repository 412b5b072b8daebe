//! A writer against the toy server.

use proptest::prelude::*;

use super::toy::{Toy, VERSIONS, group, setup, writer};
use super::{Confirm, Reader, Reading, Setup, Version, Writer};
use crate::Login;
use crate::dialect::Fault;
use crate::rig::{Event, Peer};

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

proptest! {
    #[test]
    fn a_body_is_written_as_it_is(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut toy = Toy::default();
        let mut w = writer(&mut toy, Confirm::Reply);
        w.publish(&mut toy, &body, 0);
        prop_assert_eq!(toy.entries.values().next(), Some(&body));
    }
}
