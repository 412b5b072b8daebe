//! The broker with clients and a disk in memory.

use proptest::prelude::*;

use super::rig::{Got, Rig, SETTINGS};
use super::*;
use crate::conduct::{About, Act, Honest};
use crate::frame::{code, op};
use crate::memory_disk::MemoryDisk;

fn confirmed(request: u64, offset: u64) -> Got {
    Got::Confirmed { request, offset }
}

#[test]
fn each_tier_confirms_and_delivers_when_it_says() {
    for (tier, confirms_early, delivers_early) in [
        (Tier::Memory, true, true),
        (Tier::Cache, true, true),
        (Tier::Speculative, false, true),
        (Tier::Durable, false, false),
    ] {
        let mut rig = Rig::tier(tier);
        rig.client(0);
        rig.client(1);
        rig.declare_queue(0);
        rig.subscribe(1, 10, false);
        rig.publish(0, "q", 9, b"one");
        rig.turn();
        assert_eq!(rig.got(0), [confirmed(9, 0)][..usize::from(confirms_early)], "{tier:?}");
        assert_eq!(rig.delivered(1), ["one"][..usize::from(delivers_early)], "{tier:?}");
        rig.flush();
        assert_eq!(rig.got(0), [confirmed(9, 0)][usize::from(confirms_early)..], "{tier:?}");
        assert_eq!(rig.delivered(1), ["one"][usize::from(delivers_early)..], "{tier:?}");
        let written: usize = rig.disk.lengths().into_iter().map(|(_, length)| length).sum();
        assert_eq!(written > 80, tier != Tier::Memory, "{tier:?}: {written}");
    }
}

#[test]
fn one_flush_serves_all_that_came_before_it() {
    let mut rig = Rig::new();
    rig.client(0);
    rig.declare_queue(0);
    for request in 0..5 {
        rig.publish(0, "q", request, b"early");
    }
    rig.turn();
    let flush = rig.broker.flush().expect("something");
    rig.publish(0, "q", 5, b"late");
    rig.turn();
    let position = flush.run().expect("a disk");
    rig.broker.flushed_until(position, rig.now);
    let expected: Vec<Got> = (0..5).map(|number| confirmed(number, number)).collect();
    assert_eq!(rig.got(0), expected);
    rig.flush();
    assert_eq!(rig.got(0), [confirmed(5, 5)]);
    assert!(rig.broker.flush().is_none(), "nothing is left");
}

#[test]
fn readers_of_a_queue_share_it_and_are_held_to_their_prefetch() {
    let mut rig = Rig::tier(Tier::Cache);
    (0..3).for_each(|key| rig.client(key));
    rig.declare_queue(0);
    rig.subscribe(1, 2, false);
    rig.subscribe(2, 2, false);
    for (request, payload) in (0..).zip(["a", "b", "c", "d", "e", "f"]) {
        rig.publish(0, "q", request, payload.as_bytes());
    }
    rig.turn();
    assert_eq!((rig.delivered(1), rig.delivered(2)), (vec!["a".into(), "c".into()], vec!["b".into(), "d".into()]));
    rig.settle(1, "q", &[0, 1, 77]);
    rig.turn();
    assert_eq!((rig.delivered(1), rig.delivered(2).len()), (vec!["e".into()], 0), "1 was not its own");
    let queues = rig.broker.queues();
    assert!(queues.contains(r#""messages":5,"ready":1,"inflight":4,"#), "{queues}");
}

#[test]
fn what_a_lost_reader_had_goes_to_another_and_says_so() {
    let mut rig = Rig::tier(Tier::Cache);
    (0..3).for_each(|key| rig.client(key));
    rig.declare_queue(0);
    rig.subscribe(1, 10, false);
    for request in 0..3 {
        rig.publish(0, "q", request, b"x");
    }
    rig.turn();
    rig.settle(1, "q", &[1]);
    rig.subscribe(2, 10, false);
    rig.broker.close(1);
    rig.turn();
    let again = |offset| Got::Delivered { offset, payload: b"x".to_vec(), again: true };
    assert_eq!(rig.got(2), [again(0), again(2)]);
    rig.settle(2, "q", &[0, 2]);
    rig.turn();
    assert!(rig.broker.queues().contains(r#""messages":0"#));
}

#[test]
fn a_reader_that_need_not_settle_gets_each_message_once() {
    let mut rig = Rig::new();
    (0..2).for_each(|key| rig.client(key));
    rig.declare_queue(0);
    rig.subscribe(1, 1, true);
    (0..4).for_each(|request| rig.publish(0, "q", request, b"x"));
    rig.turn();
    rig.flush();
    assert_eq!(rig.delivered(1).len(), 4);
    let mut rig = Rig::on(rig.disk.after_kill());
    rig.client(1);
    rig.subscribe(1, 1, true);
    rig.turn();
    assert_eq!(rig.delivered(1).len(), 0, "the log knows that it is done with");
}

#[test]
fn each_reader_of_a_stream_gets_every_message_from_its_place_on() {
    let mut rig = Rig::new();
    (0..4).for_each(|key| rig.client(key));
    rig.declare_stream(0, 0);
    rig.subscribe_stream(1, None, 0, true);
    rig.publish(0, "s", 1, b"a");
    rig.turn();
    rig.subscribe_stream(2, None, 0, true);
    rig.subscribe_stream(3, None, 1, true);
    rig.publish(0, "s", 2, b"b");
    rig.turn();
    assert_eq!((rig.delivered(1), rig.delivered(2)), (vec!["a".into(), "b".into()], vec!["b".to_owned()]));
    assert_eq!(rig.delivered(3), ["a", "b"]);
}

#[test]
fn a_cursor_survives_its_reader_and_the_broker() {
    let mut rig = Rig::new();
    (0..3).for_each(|key| rig.client(key));
    rig.declare_stream(0, 2);
    rig.subscribe_stream(1, Some("c"), 0, false);
    for (request, payload) in (0..).zip(["a", "b", "c"]) {
        rig.publish(0, "s", request, payload.as_bytes());
    }
    rig.turn();
    rig.flush();
    assert_eq!(rig.delivered(1), ["a", "b", "c"]);
    rig.settle(1, "s", &[0, 1]);
    rig.turn();
    rig.broker.close(1);
    rig.subscribe_stream(2, Some("c"), 0, false);
    rig.turn();
    assert_eq!(rig.delivered(2), ["c"]);
    let mut rig = Rig::on(rig.disk.after_kill());
    rig.client(0);
    rig.subscribe_stream(0, Some("c"), 0, false);
    rig.turn();
    assert_eq!(rig.delivered(0), ["c"]);
}

#[test]
fn old_messages_come_from_the_disk_and_old_segments_go() {
    let mut rig = Rig::new();
    (0..2).for_each(|key| rig.client(key));
    rig.declare_queue(0);
    let payload = |number: u64| format!("{number:0>300}");
    for number in 0..60 {
        rig.publish(0, "q", number, payload(number).as_bytes());
        rig.turn();
    }
    rig.flush();
    assert!(rig.disk.lengths().len() > 4, "several segments: {:?}", rig.disk.lengths());
    rig.subscribe(1, 100, false);
    rig.turn();
    assert_eq!(rig.delivered(1), (0..60).map(payload).collect::<Vec<_>>());
    let tags: Vec<u64> = (0..60).collect();
    rig.settle(1, "q", &tags);
    for number in 60..90 {
        rig.publish(0, "q", number, payload(number).as_bytes());
        rig.turn();
        rig.flush();
    }
    rig.flush();
    let lengths = rig.disk.lengths();
    assert!(lengths[0].0 > 0 && lengths.len() < 6, "the first ones are gone: {lengths:?}");
    let mut rig = Rig::on(rig.disk.after_power_cut(0));
    rig.client(1);
    rig.subscribe(1, 100, false);
    rig.turn();
    assert_eq!(rig.delivered(1), (60..90).map(payload).collect::<Vec<_>>());
}

#[test]
fn what_is_refused_is_answered_with_its_number() {
    let mut rig = Rig::tier(Tier::Memory);
    rig.client(0);
    rig.publish(0, "q", 5, b"x");
    assert_eq!(rig.got(0), [Got::Error { request: 5, code: code::NOT_FOUND }]);
    rig.declare_queue(0);
    rig.publish(0, "q", 6, &[0; 10_001]);
    rig.publish(0, "q", 7, &[0; 3000]);
    rig.publish(0, "q", 8, b"x");
    rig.send(0, op::DECLARE_PLEXUS, 9, b"FDP1\0\0\0\x01q\0\x02\0\0\0\0");
    rig.turn();
    let error = |request, code| Got::Error { request, code };
    let expected = [error(6, code::TOO_LARGE), confirmed(7, 0), error(8, code::FULL), error(9, code::CONFLICT)];
    assert_eq!(rig.got(0), expected);
}

#[test]
fn who_breaks_the_protocol_is_told_and_left() {
    for (op, payload) in [
        (op::PUBLISH, &b"FPB1"[..]),
        (op::HELLO, b"FHL1\0\0\0\x01c\0\0\0\x01v\0\x02\0"),
        (op::AUTH, b"FAU1\0\0\0\x01a\0\0\0\x01b"),
    ] {
        let mut rig = Rig::new();
        rig.broker.open(0);
        rig.send(0, op, 3, payload);
        assert!(!rig.broker.takes_input(0) && !rig.broker.is_over(0));
        assert!(matches!(rig.got(0)[..], [Got::Error { .. }]));
        assert!(rig.broker.is_over(0));
    }
    let mut rig = Rig::new();
    rig.client(0);
    let wrong = [0, 0, 0, 0, 0, 9];
    let taken = rig.broker.receive(0, &[&wrong[..], &[0; 14]].concat(), rig.now).expect("readable");
    assert_eq!((taken, rig.broker.takes_input(0)), (20, false));
}

#[test]
fn a_client_that_does_not_read_is_not_read() {
    let mut rig = Rig::with(MemoryDisk::default(), Settings { queue_tier: Tier::Cache, ..SETTINGS }, Honest);
    (0..2).for_each(|key| rig.client(key));
    rig.declare_queue(0);
    rig.subscribe(1, 60_000, false);
    for number in 0..300 {
        rig.publish(0, "q", number, &[7; 10_000]);
        rig.turn();
    }
    let waiting = rig.broker.output(1).len();
    assert!((OUTPUT_BYTES_MAX..OUTPUT_BYTES_MAX + 11_000).contains(&waiting), "{waiting}");
    assert!(!rig.broker.takes_input(1) && rig.broker.takes_input(0));
    let mut count = 0;
    loop {
        let delivered = rig.got(1).len();
        rig.turn();
        count += delivered;
        if delivered == 0 {
            break;
        }
    }
    assert_eq!(count, 300);
}

/// Each fault of `lying-broker` is an answer of the conduct.
#[derive(Debug)]
struct Liar;

impl Conduct for Liar {
    fn act(&mut self, about: &About) -> Act {
        match about.offset {
            1 => Act::Skip,
            3 => Act::Twice,
            5 => Act::Swap,
            _ => Act::Send,
        }
    }

    fn confirm_late_ns(&self) -> u64 {
        1000
    }
}

#[test]
fn a_liar_does_what_its_conduct_says_and_no_more() {
    let mut rig = Rig::with(MemoryDisk::default(), Settings { queue_tier: Tier::Cache, ..SETTINGS }, Liar);
    (0..3).for_each(|key| rig.client(key));
    rig.declare_queue(0);
    rig.declare_stream(0, 0);
    rig.subscribe(1, 100, false);
    rig.subscribe_stream(2, None, 0, true);
    for number in 0..8 {
        rig.publish(0, "q", number, number.to_string().as_bytes());
        rig.publish(0, "s", number, number.to_string().as_bytes());
    }
    rig.turn();
    let expected = ["0", "2", "3", "3", "4", "6", "5", "7"];
    assert_eq!(
        (rig.delivered(1), rig.delivered(2)),
        (expected.map(String::from).into(), expected.map(String::from).into())
    );
    assert_eq!((rig.got(0).len(), rig.broker.due_ns()), (0, Some(1000)));
    rig.now.ns = 1000;
    rig.turn();
    assert_eq!(rig.got(0).len(), 16);
}

/// A broker that says that the disk has its messages, and never asked the disk.
#[derive(Debug)]
struct NeverSyncs;

impl Conduct for NeverSyncs {
    fn syncs(&self) -> bool {
        false
    }
}

#[test]
fn without_a_sync_a_power_cut_loses_what_was_confirmed_and_a_kill_does_not() {
    let mut rig = Rig::with(MemoryDisk::default(), SETTINGS, NeverSyncs);
    rig.client(0);
    rig.declare_queue(0);
    rig.publish(0, "q", 7, b"x");
    rig.turn();
    assert_eq!(rig.got(0), [], "not before the flush that it pretends");
    rig.flush();
    assert!(matches!(rig.got(0)[..], [Got::Confirmed { request: 7, .. }]));
    for (disk, left) in [(rig.disk.after_kill(), 1), (rig.disk.after_power_cut(0), 0)] {
        let mut rig = Rig::on(disk);
        rig.client(0);
        rig.declare_queue(0);
        rig.subscribe(0, 10, false);
        rig.turn();
        assert_eq!(rig.delivered(0).len(), left);
    }
}

proptest! {
    /// After a power cut at any time, each message that was confirmed and not settled is delivered, unharmed.
    #[test]
    fn a_power_cut_loses_nothing_that_was_confirmed(
        steps in prop::collection::vec((0..4_u8, 0..400_usize), 1..60),
        kept in 0..300_usize,
    ) {
        let mut rig = Rig::new();
        (0..2).for_each(|key| rig.client(key));
        rig.declare_queue(0);
        rig.subscribe(1, 1000, false);
        let (mut sent, mut safe, mut settled) = (Vec::new(), Vec::new(), Vec::new());
        for (step, length) in steps {
            match step {
                0 | 1 => {
                    let payload = format!("{:0>length$}", sent.len());
                    rig.publish(0, "q", sent.len() as u64, payload.as_bytes());
                    sent.push(payload);
                    rig.turn();
                }
                2 => rig.flush(),
                _ => {
                    let tags: Vec<u64> = rig.got(1).iter().map(|got| match got {
                        Got::Delivered { offset, .. } => *offset,
                        other => panic!("{other:?}"),
                    }).collect();
                    rig.settle(1, "q", &tags);
                    rig.turn();
                    settled.extend(tags);
                }
            }
            safe.extend(rig.got(0).into_iter().map(|got| match got {
                Got::Confirmed { offset, .. } => offset,
                other => panic!("{other:?}"),
            }));
        }
        let mut rig = Rig::on(rig.disk.after_power_cut(kept));
        rig.client(0);
        if !safe.is_empty() {
            rig.subscribe(0, 1000, false);
        }
        rig.turn();
        let mut back = Vec::new();
        for got in rig.got(0) {
            let Got::Delivered { offset, payload, again: true } = got else { panic!("{got:?}") };
            prop_assert_eq!(&payload, sent[usize::try_from(offset).expect("small")].as_bytes());
            back.push(offset);
        }
        prop_assert!(safe.iter().all(|offset| back.contains(offset) || settled.contains(offset)));
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), op in 0..70_u16) {
        let mut rig = Rig::new();
        rig.client(0);
        rig.declare_queue(0);
        rig.subscribe(0, 5, false);
        rig.send(0, op, 1, &bytes);
        rig.turn();
        let _ = rig.broker.receive(0, &bytes, rig.now);
        rig.turn();
    }
}
