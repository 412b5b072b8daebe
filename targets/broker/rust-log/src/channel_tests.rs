//! Queues and streams as lists of messages.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const ANY: Most = Most { bytes: u64::MAX, messages: u64::MAX };
const FIFTY: Most = Most { bytes: 50, messages: 100 };

fn channel(is_stream: bool, tier: Tier) -> Channel {
    let declared = Declared {
        channel: 0,
        is_stream,
        tier: tier as u8,
        next: 5,
        retention: Retention::default(),
        topic: "t",
        group: None,
        partition: 0,
        partitions: 1,
    };
    Channel::new(&declared, tier)
}

fn entry(at: u64, length: u32) -> Entry {
    Entry { at, length, published_ms: 0, received_ms: at, writer: 0, owner: 0, state: State::Ready, again: false }
}

#[test]
fn a_message_is_kept_from_readers_until_its_record_is_safe() {
    let mut queue = channel(false, Tier::Durable);
    assert_eq!(queue.push(entry(100, 10)), 5);
    queue.advance(100 + 8 + 29 + 9);
    assert_eq!(queue.peek(), None);
    queue.advance(100 + 8 + 29 + 10);
    assert_eq!((queue.peek(), queue.visible()), (Some(5), 6));
}

#[test]
fn a_message_that_comes_back_is_first_and_marked() {
    let mut queue = channel(false, Tier::Memory);
    for _ in 0..3 {
        queue.push(entry(0, 1));
    }
    queue.advance(0);
    for _ in 0..3 {
        let offset = queue.peek().expect("one");
        queue.hand(offset, 7);
    }
    assert_eq!((queue.peek(), queue.depth()), (None, (3, 3)));
    assert!(queue.settle(5) && !queue.settle(5) && queue.settle(6));
    assert_eq!(queue.settled, [(5, 6)]);
    queue.give_back(6);
    assert_eq!(queue.peek(), None, "it is settled");
    queue.give_back(7);
    assert_eq!(queue.peek(), Some(7));
    assert!(queue.entry(7).expect("here").again && !queue.is_with(7, 7));
    queue.trim(0, ANY);
    assert_eq!((queue.start(), queue.end(), queue.depth()), (7, 8, (1, 0)));
}

#[test]
fn a_stream_keeps_what_its_retention_says() {
    let mut stream = channel(true, Tier::Cache);
    for at in 0..10 {
        stream.push(entry(at * 100, 10));
    }
    stream.trim(1000, FIFTY);
    assert_eq!(stream.depth().0, 10, "nothing could be delivered yet");
    stream.advance(u64::MAX);
    stream.trim(1000, FIFTY);
    assert_eq!((stream.start(), stream.bytes(), stream.oldest()), (10, 50, Some(500)));
    stream.retention.age_ms = Some(300);
    stream.trim(1000, FIFTY);
    assert_eq!(stream.start(), 12);
    stream.retention.messages = Some(1);
    stream.trim(1000, FIFTY);
    assert_eq!((stream.start(), stream.end()), (14, 15));
    assert_eq!((stream.since(0), stream.since(900), stream.since(901)), (14, 14, 15));
}

proptest! {
    /// Whatever readers do, each message is settled once, and none is with two of them or lost.
    #[test]
    fn each_message_is_ready_or_flying_or_settled(steps in prop::collection::vec((0..4_u8, 0..40_u64), 0..200)) {
        let mut queue = channel(false, Tier::Memory);
        let (mut ready, mut flying, mut settled) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (step, pick) in steps {
            let picked = flying.iter().nth(usize::try_from(pick).expect("small") % flying.len().max(1)).copied();
            match (step, picked) {
                (0, _) => {
                    ready.insert(queue.push(entry(0, 1)));
                    queue.advance(0);
                }
                (1, _) => {
                    let next = queue.peek();
                    prop_assert_eq!(next, ready.first().copied());
                    if let Some(offset) = next {
                        queue.hand(offset, 1);
                        ready.remove(&offset);
                        flying.insert(offset);
                    }
                }
                (2, Some(offset)) => {
                    prop_assert!(queue.settle(offset));
                    flying.remove(&offset);
                    settled.insert(offset);
                }
                (3, Some(offset)) => {
                    queue.give_back(offset);
                    flying.remove(&offset);
                    ready.insert(offset);
                }
                _ => {}
            }
            queue.trim(0, ANY);
            prop_assert_eq!(queue.depth().1, flying.len() as u64);
            let logged: u64 = queue.settled.iter().map(|(first, last)| last - first + 1).sum();
            prop_assert_eq!(logged, settled.len() as u64);
            prop_assert!(ready.iter().chain(&flying).all(|offset| queue.entry(*offset).is_some()));
        }
    }
}
