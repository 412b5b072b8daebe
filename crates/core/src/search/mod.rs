//! The search for the load line: which load to try next, and what the trials so far say.
//!
//! [`Search`] is pure and keeps nothing but a tally of verdicts per load: [`Search::next`] is a function of the settings and
//! that tally. So a search can be resumed by recording its trials again (in any order, but for invalid trials among others at
//! the same load), and every decision can be explained from the trials.
//!
//! # The rules
//!
//! 1. **Probe.** From `start`, loads double (to two significant digits) until one fails; they halve while none passes.
//! 2. **Narrow.** The gap between the highest pass and the lowest fail is halved (geometrically, on a round step that shrinks
//!    with the gap) until `first_fail / confirmed - 1 <= relative_width`, or the two are neighbours.
//! 3. **Confirm.** Far from the edge one trial decides. The two loads that bound the answer each need a majority of `repeats`
//!    (2 of up to 3). So a false fail never bounds the search for ever: it is tried again before the search ends, and when it
//!    turns out to pass, the search goes on upwards from it. The last trials of a budget go to confirming, not narrowing.
//!    A confirmed fail with no other fail within a quarter above it gets a witness: a load a fifth above it is tried, and if
//!    that passes, rule 5 applies. For a disturbance that meets the same load twice would otherwise end the search far below
//!    the edge.
//! 4. **Class.** A load passes when at least two thirds of its valid trials pass, fails when at least two thirds fail, and is
//!    borderline otherwise. A load whose trials disagree is tried again at once, up to `repeats` valid trials.
//! 5. **Contradiction.** A pass above a fail opens the lower load again: both are confirmed, and if they still contradict each
//!    other the fail gets two trials more. What still fails then is `first_fail`, and the passes above it do not count.
//! 6. **Invalid.** An invalid trial is run again, at most twice in a row. If the client ran out in most of the three, this load
//!    and those above it are out of reach, unless a valid trial at or above it shows otherwise; the search then narrows towards
//!    that limit, and if the highest load within reach still passes, the answer is "at least". A load that is invalid for
//!    another reason is left unclassified, and the search goes around it.
//! 7. **Budget.** `max_trials`, or [`Search::expire`] when the caller's time is up, ends the search with what is known.
//!
//! With an exact server the edge always lies in `confirmed..first_fail`. With a noisy one this rule is a plain vote on few
//! trials: it bounds the harm that single wrong verdicts do, but gives no level of confidence.
//! `cargo run -p plimsoll-core --example search-table` prints its errors on synthetic servers. There, three repeats bear edges
//! as soft as 2 % with 2 % false fails (nine answers in ten within 6 % of the edge). Where one trial in ten fails without
//! cause, one answer in ten is too low, half of them by far; with five repeats, one in fifty.

mod bracket;
mod conclusion;
mod grid;
mod settings;
mod tally;

use std::collections::BTreeMap;

use crate::record::Verdict;
use crate::schedule::mix;
use bracket::Bracket;
pub use settings::{Settings, SettingsError};
use tally::{Class, Tally};

/// Valid trials beyond `repeats` that a fail gets when a load above it passes.
const TRIALS_ON_CONTRADICTION: u32 = 2;
/// Loads tried in vain, for reasons other than the client, before a search without any valid trial gives up.
const LOADS_TRIED_IN_VAIN: usize = 3;

/// Where a gap is split: in the middle, or around loads that cannot be measured.
const SPLITS: [f64; 5] = [0.5, 0.375, 0.625, 0.25, 0.75];

/// Where, on the way from a lonely fail to its double, a witness is sought: a fifth above it. Nearer, a soft edge might pass;
/// farther, a true edge between the two would make the false fail look true.
const WITNESS: f64 = 0.25;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run a trial and [`Search::record`] it.
    Trial {
        /// The load to try.
        load: u32,
        /// What it is good for.
        why: Why,
    },
    /// The search is over.
    Done(Outcome),
}

/// What a trial is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Looking for a load that fails, or for one that passes.
    Probe,
    /// Halving the gap between a pass and a fail.
    Narrow,
    /// Trying again a load that bounds the answer, or that disagrees with itself or with a higher one.
    Confirm,
}

impl Why {
    /// Its word on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Narrow => "narrow",
            Self::Confirm => "confirm",
        }
    }
}

/// The outcome of one trial, as far as the search needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialVerdict {
    /// Every gate held.
    Pass,
    /// At least one gate did not hold.
    Fail,
    /// The measurement itself was the limit.
    Invalid {
        /// Whether the client or its machine ran out ([`crate::caveat::Doubt::client_ran_out`]), so that more load is
        /// pointless.
        client_ran_out: bool,
    },
}

impl TrialVerdict {
    /// From the verdict in a trial's record, and whether any of its blocking doubts says that the client ran out.
    #[must_use]
    pub fn of(verdict: Verdict, client_ran_out: bool) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Fail => Self::Fail,
            Verdict::Invalid => Self::Invalid { client_ran_out },
        }
    }
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The bracket is as narrow as was asked, and both its sides are confirmed.
    Narrow,
    /// `max` still passes, or at least does not fail.
    AtMaximum,
    /// The client ran out before the target did.
    OutOfReach,
    /// `min` does not pass.
    AtMinimum,
    /// What was left to try gave no valid trial.
    Unmeasurable,
    /// `max_trials` were run.
    TrialBudget,
    /// The caller's time was up.
    TimeBudget,
    /// A signal or an error ended it.
    Interrupted,
}

/// What the search knows at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The load line: the highest load below `first_fail` that is classified as passing. `None` when there is none.
    /// It has a majority of `repeats` behind it, unless a budget ended the search or the repeats were invalid: see `ended`
    /// and `trials_at`.
    pub confirmed: Option<u32>,
    /// Loads that disagree with themselves, ascending. They need not lie between `confirmed` and `first_fail`.
    pub borderline: Vec<u32>,
    /// The lowest load classified as failing. `None` when none is.
    pub first_fail: Option<u32>,
    /// Some load passes and none fails: the answer is "at least `confirmed`".
    pub lower_bound_only: bool,
    /// Why the search ended.
    pub ended: Ended,
    /// What is known and why the search ended, in one sentence.
    pub conclusion: String,
    /// Per load, how many trials passed, failed, and were invalid.
    pub trials_at: BTreeMap<u32, (u32, u32, u32)>,
}

/// The search for one target's load line; see the [module](self) for its rules.
#[derive(Debug, Clone)]
pub struct Search {
    settings: Settings,
    tallies: BTreeMap<u32, Tally>,
    trials: u32,
    /// What ended it from outside, before it knew enough.
    cut: Option<Ended>,
}

impl Search {
    /// A search that has not tried anything.
    ///
    /// # Errors
    ///
    /// A setting that makes no sense, named.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let settings = settings.checked()?;
        Ok(Self {
            settings,
            tallies: BTreeMap::new(),
            trials: 0,
            cut: None,
        })
    }

    /// What to do next. Asking changes nothing: the answer is the same until a trial is recorded.
    #[must_use]
    pub fn next(&self) -> Step {
        let bracket = self.bracket();
        let budget = if self.cut.is_some() {
            self.cut
        } else if self.trials >= self.settings.max_trials {
            Some(Ended::TrialBudget)
        } else {
            None
        };
        let trial = self.next_trial(&bracket);
        match (trial, budget) {
            (Some((load, why)), None) => Step::Trial { load, why },
            // A budget that ran out with nothing left to do did not cut anything short.
            (None, _) => Step::Done(self.outcome(&bracket, self.ended(&bracket))),
            (Some(_), Some(ended)) => Step::Done(self.outcome(&bracket, ended)),
        }
    }

    /// Takes the verdict of a trial at `load`. Trials that the search did not ask for count as well; load 0 is ignored.
    pub fn record(&mut self, load: u32, verdict: TrialVerdict) {
        if load > 0 {
            self.tallies.entry(load).or_default().record(verdict);
            self.trials = self.trials.saturating_add(1);
        }
    }

    /// The caller's time is up: from now on [`Search::next`] is `Done`.
    pub fn expire(&mut self) {
        self.cut = Some(Ended::TimeBudget);
    }

    /// A signal or an error ended the measuring: [`Search::next`] then gives what is known.
    pub fn interrupt(&mut self) {
        self.cut = Some(Ended::Interrupted);
    }

    /// About how many trials are left, for progress displays: as if no further trial were invalid or surprising.
    #[must_use]
    pub fn remaining_trials_estimate(&self) -> u32 {
        let bracket = self.bracket();
        let budget = self.settings.max_trials.saturating_sub(self.trials);
        if self.cut.is_some() || self.next_trial(&bracket).is_none() {
            return 0;
        }
        let halvings =
            |low: u32, high: u32| grid::halvings(low.max(1), high, self.settings.relative_width);
        let (probes, narrowing) = match (bracket.confirmed, bracket.first_fail) {
            (Some(low), Some(high)) => (0, halvings(low, high)),
            (Some(low), None) if low >= self.settings.max => (0, 0),
            (Some(low), None) => match bracket.out_of_reach {
                Some(high) => (0, halvings(low, high)),
                None => (1, halvings(low, low.saturating_mul(2))),
            },
            (None, Some(high)) if high <= self.settings.min => (0, 0),
            (None, Some(high)) => (1, halvings(high / 2, high)),
            (None, None) => (2, halvings(1, 2)),
        };
        // A side that is still to be found will have had one trial by then.
        let side = |load: Option<u32>| match load {
            Some(load) => self.trials_missing(load),
            None => self.needed() - 1,
        };
        (probes + narrowing + side(bracket.confirmed) + side(bracket.first_fail))
            .clamp(1, budget.max(1))
            .min(budget)
    }

    fn bracket(&self) -> Bracket {
        Bracket::of(&self.tallies)
    }

    /// Agreeing trials that confirm a load.
    fn needed(&self) -> u32 {
        self.settings.repeats / 2 + 1
    }

    /// Agreeing trials that `load` still lacks; none when it has had its `repeats` or cannot be measured any more.
    fn trials_missing(&self, load: u32) -> u32 {
        let Some(tally) = self.tallies.get(&load) else {
            return self.needed();
        };
        if tally.spent() {
            return 0;
        }
        let room = self.settings.repeats.saturating_sub(tally.valid());
        match tally.class() {
            Some(Class::Borderline) => room,
            _ => self.needed().saturating_sub(tally.agreeing()).min(room),
        }
    }

    /// Whether a trial at `load` may still give something new.
    fn measurable(&self, load: u32) -> bool {
        self.tallies.get(&load).is_none_or(|tally| !tally.spent())
    }

    fn next_trial(&self, bracket: &Bracket) -> Option<(u32, Why)> {
        let confirm = |load| (load, Why::Confirm);
        let probe = |load| (load, Why::Probe);
        let narrow = |load| (load, Why::Narrow);
        if !bracket.any_valid {
            return self.opening(bracket).map(probe);
        }
        self.disagreement(bracket)
            .or_else(|| self.contradiction(bracket))
            .map(confirm)
            .or_else(|| self.downwards(bracket).map(probe))
            .or_else(|| self.upwards(bracket).map(probe))
            .or_else(|| self.narrowing(bracket).map(narrow))
            .or_else(|| self.unconfirmed(bracket).map(confirm))
            .or_else(|| self.lonely_fail(bracket).map(confirm))
    }

    /// While no trial was valid: `start`; below it when the client ran out; else one step up and one down.
    fn opening(&self, bracket: &Bracket) -> Option<u32> {
        let Settings {
            start, min, max, ..
        } = self.settings;
        if let Some(load) = bracket.out_of_reach {
            return self.below(load);
        }
        let in_vain = self.tallies.values().filter(|t| t.spent()).count();
        if in_vain >= LOADS_TRIED_IN_VAIN {
            return None;
        }
        [
            Some(start),
            grid::grow(start, max),
            grid::shrink(start, min),
        ]
        .into_iter()
        .flatten()
        .find(|load| self.measurable(*load))
    }

    /// The lowest load whose trials disagree and that has not had its `repeats`.
    fn disagreement(&self, bracket: &Bracket) -> Option<u32> {
        bracket
            .borderline
            .iter()
            .copied()
            .find(|load| self.trials_missing(*load) > 0)
    }

    /// The load to try again because a pass lies above the lowest fail.
    fn contradiction(&self, bracket: &Bracket) -> Option<u32> {
        let fail = bracket.first_fail?;
        let pass = bracket.pass_above_fail?;
        if let Some(load) = [fail, pass]
            .into_iter()
            .find(|load| self.trials_missing(*load) > 0)
        {
            return Some(load);
        }
        let tally = self.tallies.get(&fail)?;
        let most = self
            .settings
            .repeats
            .saturating_add(TRIALS_ON_CONTRADICTION);
        (tally.valid() < most && !tally.spent()).then_some(fail)
    }

    /// While nothing passes: below everything that did not.
    fn downwards(&self, bracket: &Bracket) -> Option<u32> {
        if bracket.confirmed.is_some() {
            return None;
        }
        self.below(bracket.lowest_not_passing()?)
    }

    /// The next measurable load on the way down from `load`.
    fn below(&self, load: u32) -> Option<u32> {
        std::iter::successors(grid::shrink(load, self.settings.min), |next| {
            grid::shrink(*next, self.settings.min)
        })
        .find(|next| self.measurable(*next))
    }

    /// While nothing fails and nothing is out of reach: twice the highest load, or around that.
    fn upwards(&self, bracket: &Bracket) -> Option<u32> {
        if bracket.first_fail.is_some() || bracket.out_of_reach.is_some() {
            return None;
        }
        let top = bracket.highest_not_failing()?;
        let double = grid::grow(top, self.settings.max)?;
        let wide = grid::too_wide(top, double, self.settings.relative_width);
        [
            Some(double),
            grid::split(top, double, 0.5).filter(|_| wide),
            grid::grow(double, self.settings.max),
        ]
        .into_iter()
        .flatten()
        .find(|load| self.measurable(*load))
    }

    /// Within the lowest gap that is too wide, unless the budget just suffices to confirm what is known.
    fn narrowing(&self, bracket: &Bracket) -> Option<u32> {
        let budget = self.settings.max_trials.saturating_sub(self.trials);
        let missing: u32 = bracket.sides().map(|load| self.trials_missing(load)).sum();
        if missing > 0 && missing >= budget {
            return None;
        }
        bracket
            .gaps()
            .filter(|(low, high)| grid::too_wide(*low, *high, self.settings.relative_width))
            .find_map(|(low, high)| {
                SPLITS
                    .into_iter()
                    .filter_map(|fraction| grid::split(low, high, fraction))
                    .find(|load| self.measurable(*load))
            })
    }

    /// A side of the bracket that has no majority yet; with two of them, the seed decides.
    fn unconfirmed(&self, bracket: &Bracket) -> Option<u32> {
        let mut sides = bracket
            .sides()
            .filter(|load| self.trials_missing(*load) > 0);
        let (low, high) = (sides.next()?, sides.next());
        let valid: u32 = self.tallies.values().map(Tally::valid).sum();
        // Drawn from the number of valid trials, so that an invalid one is repeated at the same load.
        let draw = mix(self.settings.seed ^ mix(u64::from(valid)));
        Some(high.filter(|_| draw & 1 == 1).unwrap_or(low))
    }

    /// The witness of a first fail that no other fail near it supports: a load somewhat above it.
    fn lonely_fail(&self, bracket: &Bracket) -> Option<u32> {
        let fail = bracket.first_fail.filter(|_| bracket.lonely_fail)?;
        let double = grid::grow(fail, self.settings.max)?;
        let above = grid::split(fail, double, WITNESS).unwrap_or(double);
        let untried = |load: &u32| self.tallies.get(load).is_none_or(|t| t.valid() == 0);
        Some(above).filter(|load| untried(load) && self.measurable(*load))
    }

    /// Why nothing is left to try.
    fn ended(&self, bracket: &Bracket) -> Ended {
        let Settings {
            min,
            max,
            relative_width,
            ..
        } = self.settings;
        let wide = || {
            bracket
                .gaps()
                .any(|(low, high)| grid::too_wide(low, high, relative_width))
        };
        match (bracket.confirmed, bracket.first_fail) {
            (Some(_), Some(_)) if wide() => Ended::Unmeasurable,
            (Some(_), Some(_)) => Ended::Narrow,
            (None, _) if bracket.lowest_not_passing().is_some_and(|load| load <= min) => {
                Ended::AtMinimum
            }
            (_, None) if bracket.out_of_reach.is_some() => Ended::OutOfReach,
            (Some(_), None)
                if bracket
                    .highest_not_failing()
                    .is_some_and(|load| load >= max) =>
            {
                Ended::AtMaximum
            }
            _ => Ended::Unmeasurable,
        }
    }

    fn outcome(&self, bracket: &Bracket, ended: Ended) -> Outcome {
        Outcome {
            confirmed: bracket.confirmed,
            borderline: bracket.borderline.clone(),
            first_fail: bracket.first_fail,
            lower_bound_only: bracket.confirmed.is_some() && bracket.first_fail.is_none(),
            ended,
            conclusion: conclusion::sentence(&self.settings, &self.tallies, bracket, ended),
            trials_at: self
                .tallies
                .iter()
                .map(|(load, tally)| (*load, (tally.pass, tally.fail, tally.invalid)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
