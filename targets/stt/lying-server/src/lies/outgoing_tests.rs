//! Each lie about what is said, on a simulated clock: ten honest answers go in, one a second, of one frame each.

use serde_json::Value;

use super::*;
use crate::honest::messages::Partial;
use crate::honest::reference::{Answer, compute};

fn partial(seq: u64) -> Partial {
    let answer = compute(&[u8::try_from(seq).unwrap(); 640], 4);
    Partial {
        kind: "partial",
        oldest_frame_seq: seq,
        newest_frame_seq: seq,
        frames: 1,
        rms: answer.rms,
        zero_crossings: answer.zero_crossings,
        checksum: answer.checksum,
        samples: answer.samples,
        transcript: answer.transcript,
        audio_bytes: answer.audio_bytes,
        cpu_passes: 4,
        flush_lateness_ms: 0.0,
    }
}

/// What came out, with the second in which it did; the clock is looked at every millisecond.
fn said(plan: Plan, others: Option<Answer>, seconds: u64) -> Vec<(u64, Utterance)> {
    let mut outgoing = Outgoing::new(plan, 0);
    let mut said = Vec::new();
    for now_ms in 1..=seconds * 1000 {
        let (now_us, second) = (now_ms * 1000, now_ms / 1000);
        if now_ms % 1000 == 0 && second <= 10 {
            outgoing.answer(now_us, partial(second), others);
        }
        while let Some(utterance) = outgoing.next(now_us) {
            said.push((second, utterance));
        }
        assert!(outgoing.due_us().is_none_or(|due_us| due_us > now_us));
    }
    said
}

fn every_fifth(lie: Lie) -> Plan {
    let mut plan = Plan::of(lie);
    assert_eq!(plan.parameters.every, Some(10));
    plan.parameters.every = Some(5);
    plan
}

/// The frames named by the partials, in order.
fn frames(said: &[(u64, Utterance)]) -> Vec<u64> {
    let partials = said.iter().filter_map(|(_, utterance)| match utterance {
        Utterance::Partial(text) => Some(serde_json::from_str::<Value>(text).unwrap()),
        _ => None,
    });
    partials
        .map(|value| value["newest_frame_seq"].as_u64().unwrap())
        .collect()
}

fn text(utterance: &Utterance) -> &str {
    match utterance {
        Utterance::Partial(text) | Utterance::Noise(text) | Utterance::ResetMidFrame(text) => text,
        Utterance::HalfClose => panic!("no text"),
    }
}

fn honest(seq: u64) -> Utterance {
    Utterance::Partial(partial(seq).to_json())
}

#[test]
fn without_a_lie_answers_go_out_as_they_are() {
    let said = said(Plan::of(Lie::None), None, 10);
    let expected: Vec<_> = (1..=10).map(|seq| (seq, honest(seq))).collect();
    assert_eq!(said, expected);
}

#[test]
fn skip_flush_swallows_every_nth() {
    let said = said(every_fifth(Lie::SkipFlush), None, 12);
    assert_eq!(frames(&said), [1, 2, 3, 4, 6, 7, 8, 9]);
}

#[test]
fn answer_twice_repeats_every_nth() {
    let said = said(every_fifth(Lie::AnswerTwice), None, 10);
    assert_eq!(frames(&said), [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10]);
}

#[test]
fn out_of_order_swaps_two() {
    let mut plan = every_fifth(Lie::OutOfOrder);
    plan.parameters.every = Some(4);
    let said = said(plan, None, 10);
    assert_eq!(frames(&said), [1, 2, 3, 5, 4, 6, 7, 9, 8, 10]);
    assert_eq!(said[4], (5, honest(4)));
}

#[test]
fn wrong_content_is_a_checksum_off_by_one() {
    let said = said(every_fifth(Lie::WrongContent), None, 10);
    assert_eq!(said[3], (4, honest(4)));
    let mut wrong = partial(5);
    wrong.checksum += 1;
    assert_eq!(said[4], (5, Utterance::Partial(wrong.to_json())));
}

#[test]
fn others_content_keeps_the_shape() {
    let other = compute(&[7; 1280], 4);
    let said = said(every_fifth(Lie::OthersContent), Some(other), 10);
    assert_eq!(said[3], (4, honest(4)));
    let value: Value = serde_json::from_str(text(&said[4].1)).unwrap();
    assert_eq!(value["checksum"], other.checksum);
    assert_eq!(value["transcript"], other.transcript);
    assert_eq!(value["audio_bytes"], 640);
    assert_eq!(value["samples"], 1280);
    assert_eq!(value["newest_frame_seq"], 5);
}

#[test]
fn wrong_seq_names_frames_never_sent() {
    let said = said(every_fifth(Lie::WrongSeq), None, 5);
    assert_eq!(frames(&said), [1, 2, 3, 4, 1_000_005]);
}

#[test]
fn extra_field_is_the_only_difference() {
    let said = said(every_fifth(Lie::ExtraField), None, 5);
    let mut value: Value = serde_json::from_str(text(&said[4].1)).unwrap();
    assert!(
        value
            .as_object_mut()
            .unwrap()
            .remove("confidence")
            .is_some()
    );
    assert_eq!(
        value,
        serde_json::from_str::<Value>(&partial(5).to_json()).unwrap()
    );
}

#[test]
fn garbage_comes_before_the_answer_and_is_no_json() {
    let said = said(every_fifth(Lie::Garbage), None, 5);
    assert!(matches!(said[4].1, Utterance::Noise(_)));
    assert!(serde_json::from_str::<Value>(text(&said[4].1)).is_err());
    assert_eq!(said[5], (5, honest(5)));
}

#[test]
fn oversize_is_two_mebibytes() {
    let said = said(every_fifth(Lie::Oversize), None, 5);
    assert!(text(&said[4].1).len() > 2 << 20);
    assert_eq!(said[5], (5, honest(5)));
}

#[test]
fn never_answer_some_says_nothing() {
    assert_eq!(said(Plan::of(Lie::NeverAnswerSome), None, 30), []);
}

#[test]
fn late_after_window_holds_all_then_is_honest() {
    let mut plan = Plan::of(Lie::LateAfterWindow);
    plan.parameters.ms = Some(8000);
    let said = said(plan, None, 20);
    let expected: Vec<_> = (1..=10).map(|seq| (seq.max(8), honest(seq))).collect();
    assert_eq!(said, expected);
}

#[test]
fn grow_latency_grows_with_every_answer() {
    let mut plan = Plan::of(Lie::GrowLatency);
    plan.parameters.ms = Some(1000);
    let said = said(plan, None, 30);
    let expected: Vec<_> = (1..=10).map(|seq| (2 * seq, honest(seq))).collect();
    assert_eq!(said, expected);
}

#[test]
fn half_close_comes_at_its_time() {
    let said = said(Plan::of(Lie::HalfClose), None, 10);
    assert_eq!(frames(&said[..7]), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(said[7], (8, Utterance::HalfClose));
    let again = said.iter().filter(|(_, u)| *u == Utterance::HalfClose);
    assert_eq!(again.count(), 1);
}

#[test]
fn reset_mid_frame_strikes_the_first_answer_after_its_time() {
    let said = said(Plan::of(Lie::ResetMidFrame), None, 8);
    assert_eq!(said[6], (7, honest(7)));
    assert_eq!(said[7], (8, Utterance::ResetMidFrame(partial(8).to_json())));
}

#[test]
fn flood_repeats_a_thousand_times_a_second() {
    let said = said(Plan::of(Lie::Flood), None, 10);
    assert_eq!(frames(&said[..7]), [1, 2, 3, 4, 5, 6, 7]);
    let eights = said.iter().filter(|(_, u)| *u == honest(8)).count();
    // Its own answer, then one each millisecond of the second until answer 9 takes over.
    assert_eq!(eights, 1001);
}
