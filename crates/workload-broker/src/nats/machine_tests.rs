//! Writers, readers and the asker against the toy server.

use proptest::prelude::*;
use serde_json::json;

use super::toy::Toy;
use super::{
    Asker, ConsumerDepth, Keeping, Question, Reader, Reading, Setup, StreamDepth, Told, Writer,
};
use crate::dialect::{Dialect, Fault, Heard, Shape};

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

fn setup(shape: Shape, connection: &str) -> Setup {
    Setup {
        stream: "S".to_owned(),
        subject: "orders".to_owned(),
        shape,
        keeping: Keeping::File,
        connection: connection.to_owned(),
        login: None,
    }
}

fn shared(unsettled_max: u32) -> Reading {
    Reading::Shared {
        consumer: "readers".to_owned(),
        unsettled_max,
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
    fn new(toy: &mut Toy, mut machine: D) -> Self {
        let mut out = Vec::new();
        machine.open(&mut out);
        assert!(out.is_empty());
        Self {
            line: toy.connect(),
            machine,
            piece: usize::MAX,
        }
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

fn writer(toy: &mut Toy, shape: Shape, confirms: bool) -> Peer<Writer> {
    let mut peer = Peer::new(toy, Writer::new(setup(shape, "w"), confirms).unwrap());
    assert_eq!(peer.talk(toy).unwrap(), [Event::Ready]);
    peer
}

fn reader(
    toy: &mut Toy,
    shape: Shape,
    name: &str,
    reading: Reading,
    prefetch: u32,
) -> Peer<Reader> {
    let machine = Reader::new(setup(shape, name), reading, prefetch).unwrap();
    let mut peer = Peer::new(toy, machine);
    assert_eq!(peer.talk(toy).unwrap(), [Event::Ready]);
    peer
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

#[test]
fn the_asker_tells_depths_and_errors() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, Shape::Queue, "a", shared(8), 2);
    let mut w = writer(&mut toy, Shape::Queue, false);
    for body in [b"1", b"2", b"3"] {
        w.publish(&mut toy, body, 0);
    }
    peer.talk(&mut toy).unwrap();
    let line = toy.connect();
    let mut asker = Asker::new("asker", None).unwrap();
    let mut hear = |toy: &mut Toy, question: Option<Question>| {
        let mut out = Vec::new();
        if let Some(question) = question {
            asker.ask(&mut out, question).unwrap();
        }
        toy.received(line, &out);
        let mut told = Vec::new();
        loop {
            let bytes = toy.written(line);
            if bytes.is_empty() {
                return told;
            }
            let mut out = Vec::new();
            asker
                .received(&bytes, &mut out, &mut |one| told.push(one))
                .unwrap();
            toy.received(line, &out);
        }
    };
    assert_eq!(hear(&mut toy, None), [Told::Ready]);
    assert_eq!(hear(&mut toy, Some(Question::Account)), [Told::Done]);
    let stream = || "S".to_owned();
    assert_eq!(
        hear(&mut toy, Some(Question::Stream { stream: stream() })),
        [Told::Stream(StreamDepth {
            messages: 3,
            bytes: 99,
            last_seq: 3
        })]
    );
    assert_eq!(
        hear(
            &mut toy,
            Some(Question::Consumer {
                stream: stream(),
                consumer: "readers".to_owned()
            })
        ),
        [Told::Consumer(ConsumerDepth {
            num_pending: 1,
            num_ack_pending: 2,
            num_redelivered: 0,
            num_waiting: 0
        })]
    );
    let missing = hear(
        &mut toy,
        Some(Question::Stream {
            stream: "T".to_owned(),
        }),
    );
    assert_eq!(
        missing,
        [Told::Failed(
            "JetStream answers with error 404 (10059): stream not found".to_owned()
        )]
    );
    assert_eq!(
        hear(&mut toy, Some(Question::Delete { stream: stream() })),
        [Told::Done]
    );
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
