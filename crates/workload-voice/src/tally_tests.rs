use super::*;

fn leg(end_to_end_ms: u64, provider_ms: u64) -> Leg {
    Leg {
        due_ns: 0,
        read_ns: None,
        end_to_end_ns: end_to_end_ms * NS_PER_MS,
        provider_ns: Some(provider_ms * NS_PER_MS),
    }
}

fn turn(result: Option<Leg>, first_audio: Option<Leg>) -> Claim {
    let complete = result.is_some() && first_audio.is_some();
    Claim::Turn(turns::Claim {
        result,
        first_audio,
        complete,
        ..turns::Claim::never_written(1, 1, 0, 9_000 * NS_PER_MS)
    })
}

/// Overhead is a difference in each turn. A difference of percentiles would be 0 here.
#[test]
fn overhead_is_per_turn() {
    let claims: Vec<Claim> = (0..100)
        .map(|number| {
            let slow = number % 2 == 0;
            let (whole_ms, provider_ms) = if slow { (200, 100) } else { (200, 200) };
            turn(Some(leg(whole_ms, provider_ms)), Some(leg(100, 90)))
        })
        .collect();
    let tally = Tally::of(&claims, None);
    assert_eq!(tally.result.overhead.p50_ms, Some(0.0));
    assert_eq!(tally.result.overhead.p95_ms, Some(100.0));
    assert_eq!(tally.result.provider.p95_ms, Some(200.0));
    assert_eq!(tally.first_audio.overhead.max_ms, Some(10.0));
    assert_eq!((tally.turns, tally.complete, tally.good), (100, 100, 100));
}

/// A turn's overhead is the sum of its legs'. The sum of their medians would be 100 here.
#[test]
fn the_overhead_of_a_turn_is_that_of_both_legs() {
    let marked = |slow_ms: u64, other_ms: u64| {
        let legs = (leg(slow_ms + 50, 50), leg(other_ms + 80, 80));
        turn(Some(legs.0), Some(legs.1))
    };
    let mut claims: Vec<Claim> = (0..90).map(|_| marked(90, 10)).collect();
    claims.extend((0..90).map(|_| marked(10, 90)));
    claims.extend((0..20).map(|_| turn(Some(leg(60, 50)), None)));
    let tally = Tally::of(&claims, None);
    assert_eq!(tally.overhead.p50_ms, Some(100.0));
    assert_eq!(tally.overhead.p90_ms, Some(100.0));
    assert_eq!(tally.overhead.p95_ms, Some(9_000.0));
    assert_eq!(
        (tally.overhead.samples, tally.overhead.unanswered),
        (200, 20)
    );
}

#[test]
fn the_last_stale_byte_may_come_when_the_turn_is_over() {
    let interrupted = |number: u32| {
        Claim::Turn(turns::Claim {
            barge_in_ns: Some(30 * NS_PER_MS),
            ..turns::Claim::never_written(1, number, 0, 0)
        })
    };
    let late = |turn, after_ms: u64| {
        Claim::LateAudio(turns::LateAudio {
            vu: 1,
            turn,
            after_ns: after_ms * NS_PER_MS,
        })
    };
    // The third turn was not measured.
    let claims = [
        late(1, 1_200),
        interrupted(0),
        interrupted(1),
        late(1, 1_400),
        late(2, 5_000),
    ];
    let barge_in = Tally::of(&claims, None).barge_in;
    assert_eq!((barge_in.samples, barge_in.p50_ms), (2, Some(30.0)));
    assert_eq!(barge_in.max_ms, Some(1_400.0));
}

/// Fault of other reports: percentiles of what came.
#[test]
fn what_never_came_is_in_the_percentiles() {
    let mut claims: Vec<Claim> = (0..90)
        .map(|_| turn(Some(leg(60, 50)), Some(leg(90, 80))))
        .collect();
    claims.extend((0..10).map(|_| turn(None, None)));
    let tally = Tally::of(&claims, None);
    assert_eq!(tally.result.overhead.p50_ms, Some(10.0));
    assert_eq!(tally.result.overhead.p95_ms, Some(9_000.0));
    assert_eq!(tally.result.overhead.unanswered, 10);
    assert_eq!(tally.complete, 90);
}

#[test]
fn a_slow_turn_is_complete_and_not_good() {
    let tally = Tally::of(&[turn(Some(leg(301, 50)), Some(leg(90, 80)))], None);
    assert_eq!((tally.complete, tally.good), (1, 0));
}

/// Nine callers are let in, and a tenth is not: of its turns nobody hears.
#[test]
fn turns_of_callers_who_were_shut_out_were_due() {
    let claims: Vec<Claim> = (0..27)
        .map(|_| turn(Some(leg(60, 50)), Some(leg(90, 80))))
        .collect();
    let window = Window {
        start_ns: 0,
        end_ns: 24_000 * NS_PER_MS,
        grace_end_ns: 30_000 * NS_PER_MS,
    };
    let goodput = Tally::of(&claims, None).goodput(Test::Talk, &window, 3);
    assert_eq!(goodput.due_per_s, 30.0 / 24.0);
    assert_eq!(goodput.good_per_s, 27.0 / 24.0);
    assert_eq!(goodput.failed_share, 0.1);
}

#[test]
fn without_marks_nobody_knows_the_overhead() {
    let unmarked = Leg {
        provider_ns: None,
        ..leg(60, 0)
    };
    let tally = Tally::of(&[turn(Some(unmarked), None)], None);
    assert_eq!(tally.result.overhead, Durations::default());
    assert_eq!(tally.overhead, Durations::default());
    let metrics = tally.metrics();
    assert_eq!(metrics.get("result_p95_ms"), Some(&60.0));
    assert_eq!(metrics.get("result_overhead_p95_ms"), None);
    assert_eq!(metrics.get("barge_in_p95_ms"), Some(&0.0));
}

#[test]
fn a_recovery_is_the_time_until_turns_are_good_again() {
    let at = |due_s: u64, good: bool| {
        let leg = good.then(|| leg(60, 50));
        let Claim::Turn(turn) = turn(leg, leg) else {
            unreachable!()
        };
        Claim::Turn(turns::Claim {
            due_ns: due_s * 1_000_000_000,
            ..turn
        })
    };
    let bad_until = |until_s| -> Vec<Claim> {
        (0..60)
            .map(|s| at(s, !(10..until_s).contains(&s)))
            .collect()
    };
    let recovery = |claims: &[Claim]| Tally::of(claims, Some(20_000_000_000)).recovery_s;
    assert_eq!(recovery(&bad_until(20)), Some(0.0));
    assert_eq!(recovery(&bad_until(24)), Some(4.0));
    assert_eq!(recovery(&bad_until(60)), None);
    assert_eq!(Tally::of(&bad_until(24), None).recovery_s, None);
    // The session's own account is a sum.
    let heard = Heard {
        finals: 2,
        ..Heard::default()
    };
    let tally = Tally::of(&[Claim::Session(heard), Claim::Session(heard)], None);
    assert_eq!(tally.heard.finals, 4);
}
