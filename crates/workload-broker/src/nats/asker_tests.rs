//! The asker against the toy server.

use super::toy::{Toy, reader, shared, writer};
use super::{Asker, ConsumerDepth, Question, StreamDepth, Told};
use crate::dialect::Shape;
use crate::rig::Server;

/// Asks, and carries bytes until nobody says anything more.
fn hear(toy: &mut Toy, line: usize, asker: &mut Asker, question: Option<Question>) -> Vec<Told> {
    let (mut out, mut told) = (Vec::new(), Vec::new());
    if let Some(question) = question {
        asker.ask(&mut out, question).unwrap();
    }
    loop {
        toy.received(line, &out);
        let bytes = toy.written(line);
        if bytes.is_empty() {
            return told;
        }
        out.clear();
        asker
            .received(&bytes, &mut out, &mut |one| told.push(one))
            .unwrap();
    }
}

fn stream(name: &str) -> Question {
    Question::Stream {
        stream: name.to_owned(),
    }
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
    let mut hear = |question| hear(&mut toy, line, &mut asker, question);
    assert_eq!(hear(None), [Told::Ready]);
    assert_eq!(hear(Some(Question::Account)), [Told::Done]);
    let depth = StreamDepth {
        messages: 3,
        bytes: 99,
        last_seq: 3,
    };
    assert_eq!(hear(Some(stream("S"))), [Told::Stream(depth)]);
    let consumer = Question::Consumer {
        stream: "S".to_owned(),
        consumer: "readers".to_owned(),
    };
    let depth = ConsumerDepth {
        num_pending: 1,
        num_ack_pending: 2,
        num_redelivered: 0,
        num_waiting: 0,
    };
    assert_eq!(hear(Some(consumer)), [Told::Consumer(depth)]);
    let missing = "JetStream answers with error 404 (10059): stream not found";
    assert_eq!(hear(Some(stream("T"))), [Told::Failed(missing.to_owned())]);
    let delete = Question::Delete {
        stream: "S".to_owned(),
    };
    assert_eq!(hear(Some(delete)), [Told::Done]);
}

#[test]
fn names_that_cannot_be_part_of_a_subject_are_refused() {
    assert!(Asker::new("a.b", None).is_err());
    let mut asker = Asker::new("asker", None).unwrap();
    let mut out = Vec::new();
    assert!(asker.ask(&mut out, stream("S 1")).is_err());
    assert!(out.is_empty());
}
