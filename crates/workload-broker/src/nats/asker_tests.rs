//! The asker against the toy server.

use super::toy::{Toy, reader, shared, writer};
use super::{Asker, ConsumerDepth, Question, StreamDepth, Told};
use crate::dialect::Shape;
use crate::rig::Server;

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
