use super::*;
use crate::script::BLOCK_NS;
use crate::script::Script;

const BASE_NS: u64 = 1_000 * NS_PER_MS;
const VU: u32 = 3;

/// A turn that the caller does not interrupt, or one that it does.
fn turn_of(interrupts: bool) -> Turn {
    let script = Script::new(7, VU, 5);
    (0..)
        .map(|number| script.turn(number))
        .find(|turn| turn.barge_in_ns.is_some() == interrupts)
        .expect("a turn")
}

fn spoken(turn: Turn) -> Turns {
    let mut turns = Turns::new(VU);
    let heard_ns = BASE_NS + turn.heard_ns;
    assert_eq!(turns.heard(turn, BASE_NS, true, heard_ns + 5), None);
    turns.spoken(turn.number, BASE_NS + turn.speak_ns + 7);
    turns
}

fn transcript(turn: &Turn) -> TranscriptMark {
    TranscriptMark {
        vu: VU,
        from: turn.from,
        to: turn.to,
        read_ns: 1_000,
        handed_ns: 1_000 + 50 * NS_PER_MS,
    }
}

fn block(turn: &Turn, block: u32) -> ReplyMark {
    ReplyMark {
        vu: VU,
        turn: turn.number,
        request: 1,
        block,
        blocks: turn.reply_blocks(),
        read_ns: 2_000,
        handed_ns: 2_000 + 80 * NS_PER_MS + u64::from(block - 1) * BLOCK_NS,
    }
}

/// When a block arrives that took `late_ns` longer than it plays.
fn arrival_ns(turn: &Turn, block: u32, late_ns: u64) -> u64 {
    BASE_NS + turn.speak_ns + 90 * NS_PER_MS + u64::from(block - 1) * BLOCK_NS + late_ns
}

fn whole_reply(turns: &mut Turns, turn: &Turn) -> Option<Ended> {
    let mut ended = None;
    for number in 1..=turn.reply_blocks() {
        let now_ns = arrival_ns(turn, number, 0);
        turns
            .block_begins(&block(turn, number), now_ns)
            .expect("the next block");
        ended = turns.block_complete(&block(turn, number), now_ns).or(ended);
    }
    ended
}

#[test]
fn a_turn_is_complete_when_both_legs_and_all_audio_came() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    let now_ns = BASE_NS + turn.heard_ns + 60 * NS_PER_MS;
    assert_eq!(turns.result(&transcript(&turn), now_ns), Ok(None));
    assert!(!turns.settled());
    let ended = whole_reply(&mut turns, &turn).expect("the end");
    assert_eq!(ended.latency_ns, Some(150 * NS_PER_MS));
    assert_eq!(ended.latency_from_write_ns, Some(150 * NS_PER_MS - 12));
    let claim = ended.claim.expect("measured");
    assert!(claim.complete && !claim.gap);
    assert_eq!(
        claim.result.and_then(|leg| leg.overhead_ns()),
        Some(10 * NS_PER_MS)
    );
    assert_eq!(
        claim.first_audio.and_then(|leg| leg.overhead_ns()),
        Some(10 * NS_PER_MS)
    );
    assert_eq!(claim.barge_in_ns, None);
    assert!(turns.settled());
}

#[test]
fn a_result_may_come_after_the_reply() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    assert_eq!(whole_reply(&mut turns, &turn), None);
    let now_ns = BASE_NS + turn.heard_ns + 6_000 * NS_PER_MS;
    let ended = turns.result(&transcript(&turn), now_ns).expect("right");
    let latency_ns = ended.and_then(|ended| ended.latency_ns);
    assert_eq!(latency_ns, Some(6_090 * NS_PER_MS));
}

#[test]
fn a_player_that_runs_dry_is_a_gap() {
    let turn = turn_of(false);
    for (late_ms, gap) in [(60, false), (61, true)] {
        let mut turns = spoken(turn);
        turns
            .block_begins(&block(&turn, 1), arrival_ns(&turn, 1, 0))
            .expect("the first");
        let at_ns = arrival_ns(&turn, 2, late_ms * NS_PER_MS);
        turns
            .block_begins(&block(&turn, 2), at_ns)
            .expect("the next");
        let ended = turns.give_up(at_ns).expect("a turn");
        assert_eq!(ended.claim.expect("measured").gap, gap, "{late_ms}");
    }
}

#[test]
fn stale_audio_is_the_latency_of_an_interruption() {
    let turn = turn_of(true);
    let clear_ns = BASE_NS + turn.barge_in_ns.expect("it interrupts");
    for stale_ms in [None, Some(0), Some(40)] {
        let mut turns = spoken(turn);
        let now_ns = BASE_NS + turn.heard_ns + 60 * NS_PER_MS;
        turns.result(&transcript(&turn), now_ns).expect("right");
        turns
            .block_begins(&block(&turn, 1), arrival_ns(&turn, 1, 0))
            .expect("the first");
        turns.cleared(turn.number);
        if let Some(ms) = stale_ms {
            turns
                .block_begins(&block(&turn, 2), clear_ns + ms * NS_PER_MS)
                .expect("the next");
        }
        assert_eq!(turns.watched(clear_ns + WATCH_NS - 1), None);
        assert_eq!(turns.watched_until_ns(), Some(clear_ns + WATCH_NS));
        let ended = turns.watched(clear_ns + WATCH_NS).expect("the end");
        assert!(ended.latency_ns.is_some());
        let claim = ended.claim.expect("measured");
        assert_eq!(claim.barge_in_ns, Some(stale_ms.unwrap_or(0) * NS_PER_MS));
        assert!(claim.complete);
    }
}

/// A gateway that is seconds behind reads the interruption seconds later, and sends until then.
#[test]
fn audio_long_after_an_interruption_is_late_and_of_nobody_else() {
    let turn = turn_of(true);
    let clear_ns = BASE_NS + turn.barge_in_ns.expect("it interrupts");
    let mut turns = spoken(turn);
    turns.cleared(turn.number);
    // Without its result the turn is not over, however long that takes.
    assert_eq!(turns.watched_until_ns(), None);
    let result_ns = clear_ns + WATCH_NS + 500 * NS_PER_MS;
    let ended = turns.result(&transcript(&turn), result_ns).expect("right");
    let claim = ended.expect("the end").claim.expect("measured");
    assert!(claim.result.is_some() && claim.first_audio.is_none() && !claim.complete);
    let late_ns = WATCH_NS + 700 * NS_PER_MS;
    let late = turns.block_begins(&block(&turn, 1), clear_ns + late_ns);
    let expected = LateAudio {
        vu: VU,
        turn: turn.number,
        after_ns: late_ns,
    };
    assert_eq!(late, Ok(Some(expected)));
    // The same result once more is too much.
    let again = turns.result(&transcript(&turn), result_ns);
    assert_eq!(again.map(|_| ()), Err(Wrong::Doubled));
}

#[test]
fn what_comes_of_a_turn_that_was_given_up_is_no_duplicate() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    turns
        .give_up(BASE_NS + turn.heard_ns + 1_000 * NS_PER_MS)
        .expect("a turn");
    assert_eq!(turns.block_begins(&block(&turn, 1), 0), Ok(None));
    let late = turns.result(&transcript(&turn), 0);
    assert!(matches!(late, Ok(None)));
    let again = turns.result(&transcript(&turn), 0);
    assert_eq!(again.map(|_| ()), Err(Wrong::Doubled));
}

#[test]
fn wrong_audio_is_told_apart() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    let mut begins =
        |number: u32| turns.block_begins(&block(&turn, number), arrival_ns(&turn, number, 0));
    assert_eq!(begins(1), Ok(None));
    assert_eq!(begins(1), Err(Wrong::Doubled));
    assert_eq!(begins(3), Err(Wrong::Lost));
    assert_eq!(begins(2), Err(Wrong::OutOfOrder));
    assert_eq!(begins(4), Ok(None));
    let others = ReplyMark {
        vu: VU + 1,
        ..block(&turn, 5)
    };
    assert_eq!(turns.block_begins(&others, 0), Err(Wrong::Crossed));
    let never = ReplyMark {
        turn: turn.number + 1,
        ..block(&turn, 5)
    };
    assert_eq!(turns.block_begins(&never, 0), Err(Wrong::Crossed));
}

#[test]
fn wrong_results_are_told_apart() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    let others = TranscriptMark {
        vu: VU + 1,
        ..transcript(&turn)
    };
    assert_eq!(turns.result(&others, 0), Err(Wrong::Crossed));
    let later = TranscriptMark {
        from: turn.from + 1,
        ..transcript(&turn)
    };
    assert_eq!(
        turns.result(&later, BASE_NS + turn.heard_ns),
        Err(Wrong::Lost)
    );
    assert_eq!(turns.result(&transcript(&turn), 0), Err(Wrong::Doubled));
}

#[test]
fn an_error_ends_its_turn_and_leaves_the_result_to_come() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    assert_eq!(turns.error("tts_failed", 0), None);
    let now_ns = BASE_NS + turn.heard_ns + 60 * NS_PER_MS;
    let ended = turns
        .result(&transcript(&turn), now_ns)
        .expect("right")
        .expect("the end");
    assert_eq!(ended.latency_ns, None);
    let claim = ended.claim.expect("measured");
    assert!(!claim.complete && claim.result.is_some());
    assert_eq!(claim.error.as_deref(), Some("tts_failed"));
}

#[test]
fn a_turn_without_an_answer_is_not_complete() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    let ended = turns
        .give_up(BASE_NS + turn.heard_ns + 5 + 9_000)
        .expect("a turn");
    assert_eq!((ended.due_for_ns, ended.written_for_ns), (9_005, 9_000));
    assert!(!ended.claim.expect("measured").complete);
    assert_eq!(turns.give_up(0), None);
}

#[test]
fn a_gateway_that_never_answers_does_not_fill_the_client() {
    let script = Script::new(7, VU, 5);
    let mut turns = Turns::new(VU);
    let given_up =
        (0..100).filter_map(|number| turns.heard(script.turn(number), BASE_NS, true, BASE_NS));
    assert_eq!(given_up.count(), 100 - OPEN_MAX);
    assert_eq!(turns.open.len(), OPEN_MAX);
}

/// Its result lacks a part, and it came last: the turn is not forgotten.
#[test]
fn a_turn_with_a_lost_part_is_still_accounted_for() {
    let turn = turn_of(false);
    let mut turns = spoken(turn);
    assert_eq!(whole_reply(&mut turns, &turn), None);
    let later = TranscriptMark {
        from: turn.from + 1,
        ..transcript(&turn)
    };
    let now_ns = BASE_NS + turn.heard_ns + 60 * NS_PER_MS;
    assert_eq!(turns.result(&later, now_ns), Err(Wrong::Lost));
    assert!(turns.give_up(now_ns + 9_000 * NS_PER_MS).is_some());
}
