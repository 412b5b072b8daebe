//! The search beyond the load line: where a target does most, and where it collapses.
//!
//! [`Escalator`] is pure, and its trials may be recorded again in the same order, like those of the search for the load
//! line. The SLO limit (the load line), the knee and the collapse are three different loads:
//!
//! - the **knee** is the load with the greatest goodput;
//! - the **collapse** is the lowest load with a sign of it: beyond the knee, half the knee's goodput or less; or 5 % of
//!   what was due failed; or the target was gone.
//!
//! # The rules
//!
//! 1. **Ladder.** From the SLO limit upwards, each load is 1.4 times the one before, to two significant digits, until
//!    one shows a collapse.
//! 2. **Knee.** The knee must have a neighbour on each side within a factor of 1.4, so that it is known as finely as the
//!    ladder. Full trials of the first search count.
//! 3. **Bisect.** The gap between the collapse and the highest load below it is halved to 5 %.
//! 4. **Edges.** These two loads are tried three times. The median of a load's trials decides; where a trial found the
//!    target gone, nothing was done and everything failed. If the median shows that an edge is none, the search goes on
//!    with the next gap.
//! 5. **Invalid.** An invalid trial says nothing, and is repeated. Two in a row at one load end the search: what lies
//!    there is unknown.
//! 6. **Budget.** `max_trials`, `max`, or [`Escalator::expect_time_for`] ends the search with what is known.

mod words;

use std::collections::BTreeMap;

use super::grid;
use crate::outright::Outright;
use crate::record::{Collapse, CollapseSign, Escalation, Goodput, Knee, Trial, Verdict};
use crate::stats::median;

/// Each load of the ladder is so many times the one before.
const STEP: f64 = 1.4;
/// How narrow the gap below the collapse must be, as a share of its lower end.
const WIDTH: f64 = 0.05;
/// So often is each of the loads at the collapse tried.
const REPEATS: usize = 3;
/// At most this share of the knee's goodput is a collapse.
const HALF: f64 = 0.5;
/// At least this share of failures is a collapse.
const FAILED: f64 = 0.05;
/// So many invalid trials in a row at one load end the search.
const INVALID_IN_A_ROW: u32 = 2;

/// What bounds the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The SLO limit: the highest load at which every gate holds.
    pub limit: u32,
    /// The lowest load at which a full trial can give a verdict.
    pub min: u32,
    /// The highest load tried.
    pub max: u32,
    /// The most trials, invalid ones included. Those of the first search do not count.
    pub max_trials: u32,
}

/// What a trial showed.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// How much the target did.
    Goodput(Goodput),
    /// The target crashed, or answered nothing.
    Gone,
    /// Nothing about the target, for this reason.
    Invalid(String),
}

impl Shown {
    /// What the record of a trial shows.
    #[must_use]
    pub fn of(trial: &Trial) -> Self {
        if trial.verdict == Verdict::Invalid {
            let blocking = trial.caveats.iter().filter(|caveat| caveat.blocking);
            let ids: Vec<&str> = blocking.map(|caveat| caveat.id.as_str()).collect();
            return Self::Invalid(ids.join(", "));
        }
        match (Outright::among(&trial.gates), trial.goodput) {
            (Some(_), _) => Self::Gone,
            (None, Some(goodput)) => Self::Goodput(goodput),
            (None, None) => Self::Invalid("nothing says how much was done".to_owned()),
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run a full trial and [`Escalator::record`] it.
    Trial {
        /// The load to try.
        load: u32,
        /// Why to run it.
        why: Why,
    },
    /// The search is over.
    Done(Escalation),
}

/// Why the search runs a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// To find a load that shows a collapse.
    Beyond,
    /// To know what lies beside the knee.
    Knee,
    /// To halve the gap below the collapse.
    Collapse,
    /// To repeat a load at the edge of the collapse.
    Repeat,
}

impl Why {
    /// Its name on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Beyond => "beyond the load line",
            Self::Knee => "knee",
            Self::Collapse => "collapse",
            Self::Repeat => "collapse, again",
        }
    }
}

/// Why the search ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    /// The collapse is known as finely as requested.
    Narrow,
    /// `max` was tried, and nothing collapsed.
    AtMaximum,
    /// The last trials at this load were invalid, for this reason.
    Invalid(u32, String),
    /// It ran `max_trials` trials.
    TrialBudget,
    /// The caller's time was up.
    TimeBudget,
    /// A signal or an error ended it.
    Interrupted,
}

/// The search beyond one target's load line; see the [module](self) for its rules.
#[derive(Debug, Clone)]
pub struct Escalator {
    settings: Settings,
    /// The valid trials at each load.
    loads: BTreeMap<u32, Vec<Done>>,
    trials: u32,
    /// The load of the last trial if it was invalid, how many were so in a row there, and why.
    invalid: Option<(u32, u32, String)>,
    interrupted: bool,
    /// The number of trials for which the caller's time lasts, including those recorded.
    time_for: u32,
}

/// What a valid trial found.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Done {
    good_per_s: f64,
    failed_share: f64,
    gone: bool,
}

impl Escalator {
    /// A search that knows no trial yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            loads: BTreeMap::new(),
            trials: 0,
            invalid: None,
            interrupted: false,
            time_for: u32::MAX,
        }
    }

    /// Adds what a full trial of the search for the load line showed. It is no trial of this search.
    pub fn know(&mut self, load: u32, shown: &Shown) {
        let done = match shown {
            Shown::Invalid(_) => return,
            Shown::Gone => Done {
                good_per_s: 0.0,
                failed_share: 1.0,
                gone: true,
            },
            Shown::Goodput(goodput) => Done {
                good_per_s: goodput.good_per_s,
                failed_share: goodput.failed_share,
                gone: false,
            },
        };
        self.loads.entry(load).or_default().push(done);
    }

    /// Records a trial of this search.
    pub fn record(&mut self, load: u32, shown: &Shown) {
        self.trials = self.trials.saturating_add(1);
        let before = self.invalid.take().filter(|(at, ..)| *at == load);
        if let Shown::Invalid(why) = shown {
            let in_a_row = before.map_or(0, |(_, count, _)| count) + 1;
            self.invalid = Some((load, in_a_row, why.clone()));
        }
        self.know(load, shown);
    }

    /// Says that the caller's time lasts for about this many more trials. With 0 the time is up.
    pub fn expect_time_for(&mut self, trials_left: u32) {
        self.time_for = self.trials.saturating_add(trials_left);
    }

    /// Says that a signal or an error ended the measurement: [`Escalator::next`] then returns what is known.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// What to do next. Calling this changes nothing: the answer is the same until a trial is recorded.
    #[must_use]
    pub fn next(&self) -> Step {
        let known = self.known();
        let wanted = self.wanted(&known);
        match (wanted, self.cut()) {
            (Ok((load, why)), None) => Step::Trial { load, why },
            // A budget that ran out with nothing left to do cut nothing short.
            (Err(ended), _) | (Ok(_), Some(ended)) => Step::Done(self.outcome(&known, &ended)),
        }
    }

    /// About how many trials are left, for progress displays, if no further trial is invalid or surprising.
    #[must_use]
    pub fn remaining_trials_estimate(&self) -> u32 {
        let known = self.known();
        if self.cut().is_some() || self.wanted(&known).is_err() {
            return 0;
        }
        let tried = |load: u32| self.loads.get(&load).map_or(0, Vec::len).min(REPEATS);
        let (width, repeats) = match known.gap() {
            Some((low, high)) => (
                grid::width(low, high),
                2 * REPEATS - tried(low) - tried(high),
            ),
            // As if the next load of the ladder collapsed.
            None => (STEP - 1.0, 2 * REPEATS - 1),
        };
        let repeats = u32::try_from(repeats).unwrap_or(0);
        let beside = u32::from(self.beside(&known).is_some());
        let left = grid::halvings(width, WIDTH) + repeats + beside;
        let budget = self.settings.max_trials.min(self.time_for);
        left.clamp(1, budget.saturating_sub(self.trials).max(1))
    }

    /// What ended the search from outside, or before it knew enough.
    fn cut(&self) -> Option<Ended> {
        match &self.invalid {
            _ if self.interrupted => Some(Ended::Interrupted),
            Some((load, count, why)) if *count >= INVALID_IN_A_ROW => {
                Some(Ended::Invalid(*load, why.clone()))
            }
            _ if self.trials >= self.settings.max_trials => Some(Ended::TrialBudget),
            _ if self.trials >= self.time_for => Some(Ended::TimeBudget),
            _ => None,
        }
    }

    fn known(&self) -> Known {
        Known::of(&self.loads)
    }

    /// The next load. It follows from the valid trials alone, so an invalid one is repeated.
    fn wanted(&self, known: &Known) -> Result<(u32, Why), Ended> {
        if known.collapse.is_none()
            && let Some(load) = self.rung_above(known.highest)
        {
            return Ok((load, Why::Beyond));
        }
        if let Some(load) = self.beside(known) {
            return Ok((load, Why::Knee));
        }
        let Some((collapse, _)) = known.collapse else {
            return Err(Ended::AtMaximum);
        };
        if let Some((low, high)) = known.gap()
            && grid::too_wide(low, high, WIDTH)
            && let Some(load) = grid::split(low, high, 0.5)
        {
            return Ok((load, Why::Collapse));
        }
        let edges = std::iter::once(collapse).chain(known.highest_without);
        let mut open = edges.filter(|load| self.loads[load].len() < REPEATS);
        open.next()
            .map(|load| (load, Why::Repeat))
            .ok_or(Ended::Narrow)
    }

    /// The lowest load of the ladder above this one; `None` if that is the highest that may be tried.
    fn rung_above(&self, load: Option<u32>) -> Option<u32> {
        let Settings { limit, max, .. } = self.settings;
        let above = |rung: &u32| grid::times(*rung, STEP, max);
        let mut ladder = std::iter::successors(Some(limit.min(max)), above);
        ladder.find(|rung| load.is_none_or(|load| *rung > load))
    }

    /// A load beside the knee, if no trial is as close to it on that side as the loads of the ladder are.
    fn beside(&self, known: &Known) -> Option<u32> {
        let (knee, _) = known.knee?;
        let (below, above) = grid::within(knee, STEP);
        let (below, above) = (below.max(self.settings.min), above.min(self.settings.max));
        let is_tried = |low: u32, high: u32| self.loads.range(low..high).next().is_some();
        if below < knee && !is_tried(below, knee) {
            Some(below)
        } else if above > knee && !is_tried(knee + 1, above.saturating_add(1)) {
            Some(above)
        } else {
            None
        }
    }

    fn outcome(&self, known: &Known, ended: &Ended) -> Escalation {
        Escalation {
            knee: known.knee.map(|(load, goodput_per_s)| Knee {
                load,
                goodput_per_s,
                is_passed: known.highest > Some(load),
            }),
            collapse: known.collapse.map(|(load, sign)| Collapse {
                load,
                highest_without: known.highest_without,
                sign,
            }),
            no_collapse_up_to: known.highest.filter(|_| known.collapse.is_none()),
            conclusion: words::conclusion(self, known, ended),
        }
    }
}

/// What the valid trials show together.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    /// The load with the greatest goodput, and that goodput.
    knee: Option<(u32, f64)>,
    /// The lowest load with a sign of collapse.
    collapse: Option<(u32, CollapseSign)>,
    /// The highest load below the collapse.
    highest_without: Option<u32>,
    /// The highest load with a valid trial.
    highest: Option<u32>,
}

impl Known {
    fn of(loads: &BTreeMap<u32, Vec<Done>>) -> Self {
        let knee = knee(loads);
        let collapse = loads
            .iter()
            .find_map(|(load, done)| Some((*load, sign(*load, done, knee)?)));
        let below = collapse.and_then(|(load, _)| loads.range(..load).next_back());
        Self {
            knee,
            collapse,
            highest_without: below.map(|(load, _)| *load),
            highest: loads.keys().next_back().copied(),
        }
    }

    /// The loads between which the collapse lies.
    fn gap(&self) -> Option<(u32, u32)> {
        Some((self.highest_without?, self.collapse?.0))
    }
}

/// The load with the greatest median of goodput, the lowest of several.
fn knee(loads: &BTreeMap<u32, Vec<Done>>) -> Option<(u32, f64)> {
    let goodput = |(load, done): (&u32, &Vec<Done>)| {
        let goodput = middle(done, |done| done.good_per_s)?;
        (goodput > 0.0).then_some((*load, goodput))
    };
    let all = loads.iter().filter_map(goodput);
    all.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

fn middle(done: &[Done], value: impl Fn(&Done) -> f64) -> Option<f64> {
    median(&done.iter().map(value).collect::<Vec<_>>())
}

/// The sign of collapse that the trials at a load show, the plainest of several. Below the knee a target does less only
/// because less is asked of it.
fn sign(load: u32, done: &[Done], knee: Option<(u32, f64)>) -> Option<CollapseSign> {
    // Of an even number of trials the last waits for the next. So two that disagree change nothing before the third.
    let odd = done.len() - usize::from(done.len().is_multiple_of(2));
    let done = &done[..odd];
    if middle(done, |done| f64::from(u8::from(done.gone)))? > 0.5 {
        return Some(CollapseSign::TargetGone);
    }
    if middle(done, |done| done.failed_share)? >= FAILED {
        return Some(CollapseSign::TooManyFailed);
    }
    let halved = knee.is_some_and(|(at, most)| {
        load > at && middle(done, |done| done.good_per_s).is_some_and(|it| it <= HALF * most)
    });
    halved.then_some(CollapseSign::GoodputHalved)
}

#[cfg(test)]
mod tests;
