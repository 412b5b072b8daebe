//! Searches both load lines, one step at a time, in turns.

use std::time::{Duration, Instant};

use plimsoll_core::schedule::mix;
use plimsoll_core::search::{Search, SearchResult, Settings, Step, trials_in};

use super::{Bench, ComparePlan, Known, Which};
use crate::campaign::Wanted;
use crate::error::{Error, Result};

/// Searches both load lines. The sides take turns, one trial each, as long as both searches go on. `known` has what is
/// known, even if this ends with an error.
pub(super) fn search(
    bench: &mut dyn Bench,
    settings: Settings,
    time_budget: Option<Duration>,
    plan: &ComparePlan,
    known: &mut Known,
) -> Result<()> {
    let new = || Search::new(settings).map_err(|error| Error::Usage(error.to_string()));
    let mut searches = [new()?, new()?];
    let ended = take_turns(bench, &mut searches, time_budget, plan, known);
    for which in Which::BOTH {
        let search = &mut searches[which.index()];
        if ended.is_err() {
            search.interrupt();
        }
        if let Step::Done(outcome) = search.next() {
            keep(known, which, outcome);
        }
    }
    ended
}

fn take_turns(
    bench: &mut dyn Bench,
    searches: &mut [Search; 2],
    time_budget: Option<Duration>,
    plan: &ComparePlan,
    known: &mut Known,
) -> Result<()> {
    let began = Instant::now();
    let mut turn = if mix(plan.seed) & 1 == 1 {
        Which::B
    } else {
        Which::A
    };
    for ran in 0_u32.. {
        if let Some(budget) = time_budget {
            // The budget is for both together. Each trial is expected to take as long as those so far; before the
            // first, nobody knows.
            let trials = trials_in(
                budget.as_secs_f64(),
                began.elapsed().as_secs_f64(),
                ran,
                0.0,
            );
            let trials = trials.div_ceil(2);
            for search in searches.iter_mut() {
                search.expect_time_for(trials);
            }
        }
        let trials_left = searches
            .iter()
            .map(Search::remaining_trials_estimate)
            .fold(plan.pairs.saturating_mul(2), u32::saturating_add);
        let wanted = |side: Which| match searches[side.index()].next() {
            Step::Done(_) => None,
            Step::Trial { load, length, why } => {
                let wanted = Wanted {
                    which: side.index(),
                    sessions: load,
                    length,
                    seed: mix(plan.seed ^ u64::from(ran)) >> 32,
                    why: why.word(),
                    trials_left,
                };
                Some((side, wanted))
            }
        };
        let Some((side, wanted)) = wanted(turn).or_else(|| wanted(turn.other())) else {
            break;
        };
        let ran = bench.run(&wanted)?;
        let search = &mut searches[side.index()];
        search.record(wanted.sessions, ran.summary.length, ran.verdict);
        if ran.hopeless {
            search.interrupt();
        }
        known.sides[side.index()].trials.push(ran.summary);
        turn = side.other();
    }
    Ok(())
}

fn keep(known: &mut Known, which: Which, outcome: SearchResult) {
    known.lower_bound_only[which.index()] = outcome.lower_bound_only;
    let side = &mut known.sides[which.index()];
    side.confirmed = outcome.confirmed;
    side.first_fail = outcome.first_fail;
    side.edge = outcome.edge;
    side.search = Some(outcome.conclusion);
    side.evidence = outcome.evidence;
}
