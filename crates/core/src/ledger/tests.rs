use super::*;
use proptest::prelude::*;

fn sent(frames: u64, measured: Range<u64>) -> (FrameLedger, Ledger) {
    let mut totals = Ledger::default();
    let mut ledger = FrameLedger::new(measured);
    for _ in 0..frames {
        ledger.send(&mut totals);
    }
    (ledger, totals)
}

#[test]
fn all_answered_in_order() {
    let (mut ledger, mut totals) = sent(100, 11..91);
    assert!(!ledger.settled());
    let first = ledger.name(1, 50, Naming::Answered, &mut totals);
    assert!(first.newest_measured && !first.oldest_measured && first.measured);
    ledger.name(51, 90, Naming::Answered, &mut totals);
    assert!(ledger.settled());
    ledger.finish(100, &mut totals, |seq| panic!("{seq} was answered"));
    assert_eq!(totals.frames_due, 80);
    assert_eq!(totals.frames_answered, 80);
    assert_eq!(totals.frames_sent, 80);
    assert_eq!(totals.frames_sent_in_all, 100);
    assert_eq!(totals.frames_lost, 0);
}

#[test]
fn a_skipped_flush_is_lost_and_named() {
    let (mut ledger, mut totals) = sent(150, 1..151);
    ledger.name(1, 50, Naming::Answered, &mut totals);
    ledger.name(101, 150, Naming::Answered, &mut totals);
    assert!(!ledger.settled());
    let mut lost = Vec::new();
    ledger.finish(150, &mut totals, |seq| lost.push(seq));
    assert_eq!(lost, (51..=100).collect::<Vec<_>>());
    assert_eq!((totals.frames_lost, totals.frames_answered), (50, 100));
}

#[test]
fn answers_twice_and_out_of_order_are_told_apart() {
    let (mut ledger, mut totals) = sent(150, 1..151);
    ledger.name(1, 50, Naming::Answered, &mut totals);
    ledger.name(101, 150, Naming::Answered, &mut totals);
    ledger.name(51, 100, Naming::Answered, &mut totals);
    assert_eq!(
        (totals.frames_out_of_order, totals.frames_duplicated),
        (50, 0)
    );
    ledger.name(1, 50, Naming::Answered, &mut totals);
    assert_eq!(
        (totals.frames_out_of_order, totals.frames_duplicated),
        (50, 50)
    );
    assert!(ledger.settled());
}

#[test]
fn frames_never_sent_are_no_answers() {
    let (mut ledger, mut totals) = sent(10, 1..100);
    assert!(ledger.name(5, 20, Naming::Answered, &mut totals).never_sent);
    assert!(ledger.name(0, 2, Naming::Answered, &mut totals).never_sent);
    assert!(
        ledger
            .name(90, 95, Naming::Answered, &mut totals)
            .never_sent
    );
    assert_eq!(totals.frames_answered, 8);
}

#[test]
fn frames_due_but_never_written_are_lost() {
    let (mut ledger, mut totals) = sent(10, 1..101);
    ledger.name(1, 10, Naming::Answered, &mut totals);
    ledger.finish(60, &mut totals, |_| {});
    assert_eq!(
        (totals.frames_due, totals.frames_sent, totals.frames_lost),
        (60, 10, 50)
    );
}

#[test]
fn a_target_that_skips_for_ever_cannot_fill_the_memory() {
    let (mut ledger, mut totals) = sent(10_000, 1..10_001);
    for seq in (2..=10_000).step_by(2) {
        ledger.name(seq, seq, Naming::Answered, &mut totals);
    }
    assert!(ledger.gaps.len() <= OPEN_GAPS_MAX);
    ledger.finish(10_000, &mut totals, |_| {});
    assert_eq!((totals.frames_answered, totals.frames_lost), (5000, 5000));
}

#[test]
fn write_lags_forget_the_oldest() {
    let mut lags = WriteLags::with_room_for(5);
    for seq in 1..=20 {
        lags.push(seq, seq * 1000);
    }
    assert_eq!(lags.lag_ns(20), 20_000);
    assert_eq!(lags.lag_ns(13), 13_000);
    assert_eq!(lags.lag_ns(12), 0);
    assert_eq!(lags.lag_ns(21), 0);
}

#[test]
fn a_slope_survives_a_merge_and_is_not_written_where_it_is_unknown() {
    let of = |backlog_slope| Ledger {
        backlog_slope,
        ..Ledger::default()
    };
    for (ours, theirs, merged) in [
        (None, None, None),
        (Some(-0.5), None, Some(-0.5)),
        (None, Some(0.0), Some(0.0)),
        (Some(0.25), Some(-1.0), Some(0.25)),
        (Some(-1.0), Some(0.25), Some(0.25)),
    ] {
        let mut ledger = of(ours);
        ledger.merge(&of(theirs));
        assert_eq!(ledger.backlog_slope, merged, "{ours:?} {theirs:?}");
        let record = serde_json::to_value(&ledger).unwrap();
        assert_eq!(record.get("backlog_slope").is_some(), merged.is_some());
        assert_eq!(serde_json::from_value::<Ledger>(record).unwrap(), ledger);
    }
}

#[test]
fn confirmed_frames_that_were_lost_are_added() {
    let of = |confirmed_lost| Ledger {
        confirmed_lost,
        ..Ledger::default()
    };
    for (ours, theirs, merged) in [
        (None, None, None),
        (Some(3), None, Some(3)),
        (Some(3), Some(4), Some(7)),
    ] {
        let mut ledger = of(ours);
        ledger.merge(&of(theirs));
        assert_eq!(ledger.confirmed_lost, merged, "{ours:?} {theirs:?}");
    }
}

proptest! {
    /// Whatever a target sends, every measured frame due is answered, errored or lost, exactly once.
    #[test]
    fn every_frame_due_is_accounted_for(
        frames in 0_u64..200,
        due_more in 0_u64..50,
        measured_from in 1_u64..100,
        measured_len in 0_u64..150,
        messages in prop::collection::vec((0_u64..220, 0_u64..60, any::<bool>()), 0..40),
    ) {
        let measured = measured_from..measured_from + measured_len;
        let (mut ledger, mut totals) = sent(frames, measured.clone());
        let mut named = std::collections::BTreeSet::new();
        let mut repeats = 0;
        for (oldest, extra, good) in messages {
            let newest = oldest + extra;
            let how = if good { Naming::Answered } else { Naming::Errored };
            ledger.name(oldest, newest, how, &mut totals);
            for seq in oldest.max(1)..=newest.min(frames) {
                if measured.contains(&seq) && !named.insert(seq) {
                    repeats += 1;
                }
            }
        }
        let mut lost = Vec::new();
        let settled = ledger.settled();
        ledger.finish(frames + due_more, &mut totals, |seq| lost.push(seq));
        prop_assert_eq!(totals.frames_due, totals.frames_answered + totals.frames_errored + totals.frames_lost);
        prop_assert_eq!(totals.frames_answered + totals.frames_errored, named.len() as u64);
        prop_assert_eq!(totals.frames_duplicated, repeats);
        prop_assert_eq!(totals.frames_lost, lost.len() as u64);
        prop_assert!(lost.iter().all(|seq| !named.contains(seq)));
        prop_assert_eq!(settled, named.len() as u64 == measured_len);
    }
}
