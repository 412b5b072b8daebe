//! Runs trials of both sides at one load, one right after the other.

use plimsoll_core::comparison::b_goes_first;
use plimsoll_core::profile::Length;
use plimsoll_core::record::{Pair, TrialSummary, Verdict};
use plimsoll_core::schedule::mix;

use super::{Bench, ComparePlan, Known, Which, does_not_count};
use crate::campaign::Wanted;
use crate::error::Result;

/// How often a pair may be tried. A pair that an invalid trial spoilt is repeated once.
const ATTEMPTS: u32 = 2;

/// Runs the pairs. `known` has what is known, even if this ends with an error.
pub(super) fn run(
    bench: &mut dyn Bench,
    load: u32,
    plan: &ComparePlan,
    known: &mut Known,
) -> Result<()> {
    for number in 0..plan.pairs {
        for attempt in 0..ATTEMPTS {
            let pair = Numbers {
                pair: number,
                attempt,
                load,
            };
            match one(bench, pair, plan, known)? {
                Counts::Yes | Counts::NoByTheTarget => break,
                Counts::NoByTheMachine => {}
                Counts::NoneWill => {
                    known.notes.push(
                        "No further pair was tried, because the problem in the last trial would affect every trial.".to_owned(),
                    );
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Numbers {
    pair: u32,
    attempt: u32,
    load: u32,
}

/// Whether a pair counts.
enum Counts {
    Yes,
    /// Both trials are valid, and a target did not carry the load. That counts for who carries it, and a repetition
    /// would be no better.
    NoByTheTarget,
    /// A trial was invalid, or its cost is unknown.
    NoByTheMachine,
    /// No other pair will count either.
    NoneWill,
}

/// Runs one pair, and keeps it however it ends.
fn one(
    bench: &mut dyn Bench,
    numbers: Numbers,
    plan: &ComparePlan,
    known: &mut Known,
) -> Result<Counts> {
    let mut pair = Pair {
        sessions: numbers.load,
        b_first: b_goes_first(numbers.pair, plan.seed),
        a_file: String::new(),
        b_file: String::new(),
        a_cpu_us_per_session_second: None,
        b_cpu_us_per_session_second: None,
        a_core_us_per_session_second: None,
        b_core_us_per_session_second: None,
        a_verdict: None,
        b_verdict: None,
        left_out: Some("it was not finished".to_owned()),
    };
    let ended = fill(bench, &mut pair, numbers, plan, known);
    known.pairs.push(pair);
    ended
}

fn fill(
    bench: &mut dyn Bench,
    pair: &mut Pair,
    numbers: Numbers,
    plan: &ComparePlan,
    known: &mut Known,
) -> Result<Counts> {
    let order = if pair.b_first {
        [Which::B, Which::A]
    } else {
        Which::BOTH
    };
    // The trials of a pair share a seed, and no other trial has it.
    let drawn = u64::from(numbers.pair) << 8 | u64::from(numbers.attempt) | 1 << 40;
    let seed = mix(plan.seed ^ drawn) >> 32;
    let (mut reasons, mut failed) = (Vec::new(), false);
    for (place, side) in (0..).zip(order) {
        let ran = bench.run(&Wanted {
            which: side.index(),
            sessions: numbers.load,
            length: Length::Full,
            seed,
            why: if numbers.attempt == 0 {
                "pair"
            } else {
                "pair, repeated"
            },
            trials_left: (plan.pairs - numbers.pair) * 2 - place,
        })?;
        enter(pair, side, &ran.summary);
        reasons.extend(does_not_count(side, &ran.summary));
        let verdict = ran.summary.verdict;
        known.sides[side.index()].trials.push(ran.summary);
        failed |= verdict == Verdict::Fail;
        // Without a valid trial on this side, there is nothing to compare the other side with. A fail is an answer, so
        // the other side still has its trial.
        if verdict == Verdict::Invalid {
            pair.left_out = Some(reasons.join("; "));
            return Ok(if ran.hopeless {
                Counts::NoneWill
            } else {
                Counts::NoByTheMachine
            });
        }
    }
    pair.left_out = (!reasons.is_empty()).then(|| reasons.join("; "));
    Ok(match reasons.is_empty() {
        true => Counts::Yes,
        false if failed => Counts::NoByTheTarget,
        false => Counts::NoByTheMachine,
    })
}

fn enter(pair: &mut Pair, side: Which, summary: &TrialSummary) {
    let (file, charged, core, verdict) = match side {
        Which::A => (
            &mut pair.a_file,
            &mut pair.a_cpu_us_per_session_second,
            &mut pair.a_core_us_per_session_second,
            &mut pair.a_verdict,
        ),
        Which::B => (
            &mut pair.b_file,
            &mut pair.b_cpu_us_per_session_second,
            &mut pair.b_core_us_per_session_second,
            &mut pair.b_verdict,
        ),
    };
    *verdict = Some(summary.verdict);
    file.clone_from(&summary.file);
    *charged = summary.cpu_us_per_session_second;
    *core = summary.core_us_per_session_second;
}
