//! What the tallies show together: the posterior of the edge, the class of each load, and the loads that bound the
//! answer.

use std::collections::BTreeMap;

use super::edge::EdgePosterior;
use super::tally::{Tally, ran_out_surplus};
use crate::record::{Edge, LoadClass, LoadEvidence};

/// The client reaches a load if at least this many more trials were valid there than trials in which it ran out.
const REACH_SURPLUS: u32 = 2;
/// It also does if there and above at most so many trials ran out for each valid one: a target that is overloaded makes a
/// client beside it late, too.
const RAN_OUT_PER_VALID: u32 = 3;
/// The most trials at a load above one that is out of reach, to see whether its valid trials are survivors.
const REACH_TRIALS: u32 = 4;

/// What is known after some trials.
#[derive(Debug, Clone)]
pub(super) struct Knowledge {
    /// The evidence per load, ascending.
    pub(super) evidence: Vec<LoadEvidence>,
    /// The posterior of the edge; `None` while no trial has passed.
    pub(super) posterior: Option<EdgePosterior>,
    /// The interval of the posterior.
    pub(super) edge: Option<Edge>,
    /// The highest load below `first_fail` that is classified as passing and has passed most of its own full trials.
    pub(super) confirmed: Option<u32>,
    /// Every borderline load, ascending.
    pub(super) borderline: Vec<u32>,
    /// The lowest load classified as failing.
    pub(super) first_fail: Option<u32>,
    /// The lowest load above `first_fail` that passed most of its full trials.
    pub(super) pass_above_fail: Option<u32>,
    /// The highest load at which a trial of any length passed.
    pub(super) highest_pass: Option<u32>,
    /// Whether a full trial passed, at any load.
    pub(super) any_full_pass: bool,
    /// Whether there is a fail that counts.
    pub(super) any_fail: bool,
    /// The lowest and the highest load with a valid trial.
    pub(super) valid_loads: Option<(u32, u32)>,
    /// So many trials in which the client ran out, more than valid ones, put a load out of reach.
    pub(super) ran_out_surplus: u32,
    /// The lowest load at which the client ran out, unless a load at or above it was reached.
    pub(super) out_of_reach: Option<u32>,
    /// A load above one that is out of reach, whose valid trials may be survivors.
    pub(super) doubtful_reach: Option<u32>,
}

impl Knowledge {
    pub(super) fn of(tallies: &BTreeMap<u32, Tally>, confidence: f64) -> Self {
        let surplus = ran_out_surplus(tallies);
        let out_of_reach = out_of_reach(tallies, surplus);
        let counted = counted(tallies, out_of_reach);
        let find = |holds: fn(&Tally) -> bool| {
            let loads = counted.iter().filter(move |(_, tally)| holds(tally));
            loads.map(|(load, _)| *load)
        };
        let evidence = |class: &dyn Fn(u32, &Tally) -> LoadClass, of: &BTreeMap<u32, Tally>| {
            of.iter()
                .map(|(load, tally)| tally.evidence(*load, class(*load, &counted[load])))
                .collect::<Vec<_>>()
        };
        let posterior = EdgePosterior::of(&evidence(&|_, _| LoadClass::Undecided, &counted));
        let tail = (1.0 - confidence) / 2.0;
        let class = |load: u32, tally: &Tally| classify(load, tally, posterior.as_ref(), tail);
        let loads_of = |wanted: LoadClass| {
            let of_class = counted
                .iter()
                .filter(move |(load, t)| class(**load, t) == wanted);
            of_class.map(|(load, tally)| (*load, *tally))
        };
        let first_fail = loads_of(LoadClass::Failing).next().map(|(load, _)| load);
        let below_fail = |load: u32| first_fail.is_none_or(|fail| load < fail);
        Self {
            confirmed: loads_of(LoadClass::Passing)
                .rfind(|(load, tally)| below_fail(*load) && tally.mostly_passed())
                .map(|(load, _)| load),
            borderline: loads_of(LoadClass::Borderline)
                .map(|(load, _)| load)
                .collect(),
            first_fail,
            pass_above_fail: find(Tally::mostly_passed).find(|load| !below_fail(*load)),
            highest_pass: find(Tally::any_pass).next_back(),
            any_full_pass: tallies.values().any(|tally| tally.passed > 0),
            any_fail: find(Tally::any_fail_that_counts).next().is_some(),
            valid_loads: find(|tally| tally.valid() > 0)
                .next()
                .zip(find(|tally| tally.valid() > 0).next_back()),
            ran_out_surplus: surplus,
            out_of_reach,
            doubtful_reach: doubtful_reach(tallies, out_of_reach, surplus),
            evidence: evidence(&class, tallies),
            edge: posterior.as_ref().map(|p| p.interval(confidence)),
            posterior,
        }
    }
}

/// The class of a load from its own trials and its place in the posterior.
///
/// The ends of the interval are the pessimistic and the optimistic estimate of the edge. A load is classified if both
/// agree. Each side gets half a session of slack, because an edge between two whole numbers is at neither.
fn classify(load: u32, tally: &Tally, posterior: Option<&EdgePosterior>, tail: f64) -> LoadClass {
    if tally.valid() == 0 {
        return LoadClass::Undecided;
    }
    let Some(posterior) = posterior else {
        // Nothing passed, so a failing load needs no other witness.
        return if tally.mostly_failed() {
            LoadClass::Failing
        } else {
            LoadClass::Undecided
        };
    };
    let surely_below = posterior.below(f64::from(load) - 0.5) <= tail;
    let surely_above = posterior.below(f64::from(load) + 0.5) >= 1.0 - tail;
    let more_passes = tally.passed + tally.short_passed > tally.failed + tally.short_failed
        || tally.mostly_passed();
    if surely_below && more_passes {
        LoadClass::Passing
    } else if surely_above && tally.mostly_failed() {
        LoadClass::Failing
    } else if tally.disagrees() {
        LoadClass::Borderline
    } else {
        LoadClass::Undecided
    }
}

/// The lowest load at which the client ran out, unless a load at or above it was reached.
fn out_of_reach(tallies: &BTreeMap<u32, Tally>, surplus: u32) -> Option<u32> {
    let reached = |tally: &Tally| tally.valid() >= tally.ran_out + REACH_SURPLUS;
    let highest_reached = tallies.iter().rfind(|(_, tally)| reached(tally));
    let highest_reached = highest_reached.map(|(load, _)| *load);
    let often_valid_from = |load: u32| {
        let above = tallies.range(load..).map(|(_, tally)| tally);
        let (valid, ran_out) = above.fold((0, 0), |(valid, ran_out), tally| {
            (valid + tally.valid(), ran_out + tally.ran_out)
        });
        valid >= REACH_SURPLUS && ran_out <= RAN_OUT_PER_VALID * valid
    };
    tallies
        .iter()
        .filter(|(load, _)| Some(**load) > highest_reached && !often_valid_from(**load))
        .find(|(_, tally)| tally.client_ran_out(surplus))
        .map(|(load, _)| *load)
}

/// The evidence that counts. Beyond the client's reach, no fail counts, because it may be the client's. Passes there
/// count only if they outweigh the fails; otherwise, leaving out the fails would make a load pass that mostly failed. A
/// weak client does not make a target look better.
fn counted(tallies: &BTreeMap<u32, Tally>, out_of_reach: Option<u32>) -> BTreeMap<u32, Tally> {
    let beyond = |load: u32| out_of_reach.is_some_and(|limit| load >= limit);
    let count = |(load, tally): (&u32, &Tally)| {
        let counts = if beyond(*load) {
            tally.passes_that_outweigh()
        } else {
            *tally
        };
        (*load, counts)
    };
    tallies.iter().map(count).collect()
}

fn doubtful_reach(
    tallies: &BTreeMap<u32, Tally>,
    out_of_reach: Option<u32>,
    surplus: u32,
) -> Option<u32> {
    let limit = out_of_reach?;
    let doubtful = |tally: &Tally| {
        tally.valid() > 0 && !tally.spent(surplus) && tally.valid() + tally.invalid < REACH_TRIALS
    };
    let mut above = tallies.range(limit..);
    above
        .find(|(_, tally)| doubtful(tally))
        .map(|(load, _)| *load)
}
