//! A writer against the toy server.

use serde_json::json;

use super::toy::{Toy, setup, shared, writer};
use super::{Reader, Reading, Setup, Writer};
use crate::dialect::{Dialect, Fault, Shape};
use crate::rig::{Event, Peer};

#[test]
fn confirms_name_their_tags_and_refusals_say_why() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Shape::Queue, true);
    peer.publish(&mut toy, b"one", 7);
    toy.refuse =
        Some(json!({"code": 503, "err_code": 10077, "description": "maximum messages exceeded"}));
    peer.publish(&mut toy, b"two", 8);
    peer.publish(&mut toy, b"", u64::MAX);
    assert_eq!(
        peer.talk(&mut toy).unwrap(),
        [
            Event::Confirmed(7),
            Event::Refused(Some(8), "maximum messages exceeded".to_owned()),
            Event::Confirmed(u64::MAX),
        ]
    );
    assert_eq!(toy.stored, [&b"one"[..], b""]);
}

#[test]
fn an_unconfirmed_writer_hears_nothing() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Shape::Queue, false);
    peer.publish(&mut toy, b"one", 1);
    assert_eq!(peer.talk(&mut toy).unwrap(), []);
    assert_eq!(toy.stored, [b"one"]);
}

#[test]
fn nobody_keeps_the_subject() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Shape::Queue, true);
    toy.say(
        peer.line,
        "HMSG _INBOX.w.9 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
    );
    assert_eq!(
        peer.talk(&mut toy).unwrap(),
        [Event::Refused(
            Some(9),
            "no stream keeps this subject (503)".to_owned()
        )]
    );
}

#[test]
fn pings_are_answered_and_news_of_the_server_ignored() {
    let mut peer = writer(&mut Toy::default(), Shape::Queue, true);
    let mut out = Vec::new();
    peer.machine
        .received(
            b"PING\r\nINFO {\"ldm\":true}\r\n+OK\r\n",
            &mut out,
            &mut |heard| panic!("{heard:?}"),
        )
        .unwrap();
    assert_eq!(out, b"PONG\r\n");
}

#[test]
fn complaints_are_refusals_and_other_errors_the_end() {
    let mut toy = Toy::default();
    let mut peer = writer(&mut toy, Shape::Queue, true);
    let complaint = "Permissions Violation for Publish to \"orders\"";
    toy.say(peer.line, &format!("-ERR '{complaint}'\r\n"));
    assert_eq!(
        peer.talk(&mut toy).unwrap(),
        [Event::Refused(None, complaint.to_owned())]
    );
    toy.say(peer.line, "-ERR 'Slow Consumer'\r\n");
    assert_eq!(
        peer.talk(&mut toy),
        Err(Fault("NATS: the server says `Slow Consumer`".to_owned()))
    );
}

/// What a new writer says to these first bytes of a server.
fn first(text: &str) -> String {
    let mut machine = Writer::new(setup(Shape::Queue, "w"), true).unwrap();
    let end = machine.received(text.as_bytes(), &mut Vec::new(), &mut |_| {});
    end.unwrap_err().0
}

#[test]
fn a_server_that_cannot_serve_us_is_named() {
    assert!(first("INFO {\"headers\":true}\r\n").contains("no JetStream"));
    assert!(
        first("INFO {\"headers\":true,\"jetstream\":true,\"tls_required\":true}\r\n")
            .contains("TLS")
    );
    assert!(first("INFO nonsense\r\n").contains("INFO is not"));
    assert!(first("-ERR 'Authorization Violation'\r\n").contains("Authorization Violation"));
    assert!(first("MSG a 1 1\r\nx\r\n").contains("before the greeting"));
    assert!(first("HTTP/1.1 400 Bad Request\r\n").contains("none of the server's commands"));
}

#[test]
fn another_stream_of_that_name_is_a_fault() {
    let mut toy = Toy {
        stream: Some(json!({"name": "S"})),
        ..Toy::default()
    };
    let mut peer = Peer::new(
        &mut toy,
        Writer::new(setup(Shape::Queue, "w"), true).unwrap(),
    );
    let Err(Fault(why)) = peer.talk(&mut toy) else {
        panic!("it went on");
    };
    assert!(
        why.ends_with("stream name already in use with a different configuration"),
        "{why}"
    );
}

#[test]
fn setups_that_cannot_work_are_refused_in_words() {
    let wrong = |change: fn(&mut Setup)| {
        let mut setup = setup(Shape::Queue, "w");
        change(&mut setup);
        Writer::new(setup, true).unwrap_err().to_string()
    };
    assert!(wrong(|s| s.stream = "a.b".to_owned()).starts_with("the stream `a.b` must have"));
    assert!(wrong(|s| s.connection = String::new()).starts_with("the connection `` must have"));
    assert!(wrong(|s| s.connection = "x".repeat(65)).starts_with("the connection"));
    for subject in ["", "a b", "a..b", "a.*", ">", ".a", "a\r\nPUB b 0"] {
        let mut setup = setup(Shape::Queue, "w");
        setup.subject = subject.to_owned();
        assert!(Writer::new(setup, true).is_err(), "{subject}");
    }
    let read = |reading, prefetch| {
        Reader::new(setup(Shape::Queue, "a"), reading, prefetch)
            .unwrap_err()
            .to_string()
    };
    assert!(read(Reading::Ordered, 1).contains("no ordered consumers"));
    assert!(read(shared(1), 0).contains("the prefetch is 0"));
    assert!(read(shared(65_537), 1).contains("65537"));
}
