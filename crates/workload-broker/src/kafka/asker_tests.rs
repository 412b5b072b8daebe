//! The asker against the toy broker.

use super::Asker;
use super::toy::{Toy, reader, shared, writer};
use crate::dialect::Fault;
use crate::rig::{Server, handles};

/// Carries bytes until the asker knows.
fn ask(toy: &mut Toy, piece: usize) -> Result<u64, Fault> {
    let line = toy.connect();
    let mut asker = Asker::new("t", "g").unwrap();
    let mut out = Vec::new();
    asker.open(&mut out);
    loop {
        toy.received(line, &std::mem::take(&mut out));
        let bytes = toy.written(line);
        assert!(!bytes.is_empty(), "the asker waits for nothing");
        for piece in bytes.chunks(piece) {
            if let Some(messages) = asker.received(piece, &mut out)? {
                return Ok(messages);
            }
        }
    }
}

#[test]
fn what_the_group_has_not_settled_is_what_there_is() {
    let mut toy = Toy::default();
    let mut peer = reader(&mut toy, shared(0, 1), 2);
    assert_eq!(ask(&mut toy, 9), Ok(0));
    for (partition, bodies) in [(0, &["1", "2", "3"][..]), (3, &["4"])] {
        writer(&mut toy, partition, false).publish_all(&mut toy, bodies, 0);
    }
    assert_eq!(ask(&mut toy, 1), Ok(4));
    let events = peer.talk(&mut toy).unwrap();
    peer.settle(&mut toy, &handles(&events)[..2]);
    peer.talk(&mut toy).unwrap();
    assert_eq!(ask(&mut toy, 100), Ok(2));
    for request in [2, 3, 9] {
        toy.coming.insert(request, 3);
        assert_eq!(ask(&mut toy, 100), Ok(2), "{request}");
        assert_eq!(toy.coming[&request], 0);
    }
}

#[test]
fn a_topic_that_is_not_there_is_named() {
    let why = "Kafka: there is no topic `t`".to_owned();
    assert_eq!(ask(&mut Toy::default(), 100), Err(Fault(why)));
}

#[test]
fn names_that_kafka_does_not_take_are_refused() {
    assert!(Asker::new("a b", "g").is_err());
    assert!(Asker::new("t", "").is_err());
}
