//! The beginning of connections against the toy broker.

use super::toy::{Toy, setup, writer};
use super::{Setup, Writer};
use crate::dialect::{Dialect, Fault};
use crate::rig::{Event, Peer};

/// What a writer's greeting with this broker comes to.
fn greet(toy: &mut Toy, setup: Setup) -> Result<Vec<Event>, Fault> {
    let mut peer = Peer::new(toy, Writer::new(setup, 0, true).unwrap());
    peer.talk(toy)
}

/// The requests of a connection.
fn requests(toy: &Toy, line: usize) -> Vec<i16> {
    let requests = toy.requests.iter();
    let of_line = requests.filter(|(of, _)| *of == line);
    of_line.map(|(_, key)| *key).collect()
}

#[test]
fn the_first_connection_creates_the_topic_and_others_find_it() {
    let mut toy = Toy {
        coming: [(2, 1), (3, 3)].into(),
        ..Toy::default()
    };
    assert_eq!(greet(&mut toy, setup(4)), Ok(vec![Event::Ready]));
    assert_eq!(toy.logs.len(), 4);
    assert_eq!(requests(&toy, 0), [18, 19, 3, 3, 3, 3, 2, 2]);
    assert_eq!(greet(&mut toy, setup(4)), Ok(vec![Event::Ready]));
    assert_eq!(requests(&toy, 1), [18, 19, 3, 2]);
    assert_eq!(
        greet(&mut toy, setup(2)),
        Ok(vec![Event::Ready]),
        "more partitions are no harm"
    );
}

#[test]
fn a_durable_topic_is_synced_for_each_batch() {
    for syncs_each in [false, true] {
        let mut toy = Toy::default();
        let setup = Setup {
            syncs_each,
            ..setup(1)
        };
        greet(&mut toy, setup).unwrap();
        let mut expected = vec![("max.message.bytes".to_owned(), "8388608".to_owned())];
        if syncs_each {
            expected.push(("flush.messages".to_owned(), "1".to_owned()));
        }
        assert_eq!(toy.settings, expected);
    }
}

#[test]
fn a_broker_that_cannot_serve_us_is_named() {
    let why = |mut toy: Toy, setup: Setup| greet(&mut toy, setup).unwrap_err().0;
    let lacking = |key| Toy {
        lacks: Some(key),
        ..Toy::default()
    };
    assert_eq!(
        why(lacking(0), setup(4)),
        "Kafka: the broker does not take Produce in version 7"
    );
    assert!(why(lacking(3), setup(4)).contains("Metadata"));
    let unwilling = Toy {
        create_error: 38,
        ..Toy::default()
    };
    assert_eq!(
        why(unwilling, setup(4)),
        "Kafka: the topic is not made, INVALID_REPLICATION_FACTOR (38): the broker's words"
    );
    let cluster = Toy {
        nodes: 3,
        ..Toy::default()
    };
    assert!(why(cluster, setup(4)).contains("3 nodes"));
    let mut narrow = Toy::default();
    greet(&mut narrow, setup(2)).unwrap();
    assert!(why(narrow, setup(4)).contains("2 partitions, and 4 are needed"));
}

#[test]
fn another_protocol_is_named() {
    let mut machine = Writer::new(setup(4), 0, true).unwrap();
    machine.open(&mut Vec::new());
    let heard = machine.received(
        b"HTTP/1.1 400 Bad Request\r\n",
        &mut Vec::new(),
        &mut |_| {},
    );
    let Err(Fault(why)) = heard else {
        panic!("it went on");
    };
    assert!(why.contains("is this a Kafka listener"), "{why}");
}

#[test]
fn setups_that_cannot_work_are_refused() {
    let bad = Setup {
        topic: "a b".to_owned(),
        ..setup(4)
    };
    assert!(Writer::new(bad, 0, true).is_err());
    let text = Writer::new(setup(4), 4, true).unwrap_err().to_string();
    assert_eq!(text, "partition 4 of 4: partitions count from 0");
    writer(&mut Toy::default(), 3, true);
}
