//! The search for the load line: which load to try next, and what the trials so far say.
//!
//! [`Search`] is pure and keeps nothing but counts of verdicts per load: [`Search::next`] is a function of the settings and those
//! counts. So a search is resumed by recording its trials again, in any order, and every decision can be explained from them.
//!
//! The ideas are those of MLRsearch (IETF draft-ietf-bmwg-mlrsearch): short trials far from the edge, full and repeated ones near
//! it; a load is classified only when an optimistic and a pessimistic estimate agree; a short good trial only weighs against short
//! bad ones. The estimates are others: instead of sums of durations per load, the ends of an interval for the edge with a stated
//! confidence ([`edge`]), in which the trials at all loads speak.
//!
//! # The rules
//!
//! 1. **Probe.** From `start`, short trials at doubling loads (to two significant digits) until one fails, or halving ones until
//!    one passes.
//! 2. **Narrow.** Then the trial, of either length and at a round load, that is expected to take away most of the variance of the
//!    edge for its time; until the interval is as narrow as `relative_width`, or within one session.
//! 3. **Confirm.** A load within half a width below the interval must then have a majority of `repeats` full trials that pass, and
//!    one above it of such that fail. Which side comes first is drawn from the seed. The last trials of a budget see to it that
//!    some load surely below the edge has passed a full trial, and the very last ones of a time budget raise the load line.
//! 4. **Class.** A load is passing when it lies below the interval and most of its own trials passed; failing when it lies above
//!    and most of its own failed; else borderline if its trials disagree, or undecided. `confirmed` is the highest passing load
//!    below `first_fail` that passed most of its own *full* trials: a load that was never tried is never confirmed.
//! 5. **Contradiction.** A pass above a fail, or a fail far below passes, only shifts the odds: between a disturbance and an edge.
//!    What is tried next decides. So no false fail bounds the search for ever.
//! 6. **Invalid.** An invalid trial is run again. Two at a load in which the client ran out put it and those above out of reach,
//!    unless two valid trials at or above it show otherwise; fails out of reach, and fails among more invalid trials, count for
//!    nothing. The search narrows towards what is out of reach, has one more look at it, and the answer is "at least"; where no load
//!    is sure by then, it first confirms the highest one with a pass that can still be tried. A load with three invalid trials for
//!    other reasons is left, and the search goes around it.
//! 7. **Least load.** No trial runs below `min`, and no short one below `short_min`: there the measured window holds too few answers
//!    for a verdict. A target that fails at `min` ends the search.
//! 8. **Budget.** `max_trials`, or [`Search::expect_time_for`] when the caller's time runs out, ends the search with what is known.
//!
//! `cargo run --release -p plimsoll-core --example search-table` prints how exact that is on synthetic servers.

mod choice;
mod conclusion;
pub mod edge;
mod grid;
mod knowledge;
mod settings;
mod tally;

use std::collections::BTreeMap;

use crate::profile::Length;
use crate::record::Verdict;
pub use crate::record::{Edge, LoadClass, LoadEvidence};
use choice::{Choice, Trial};
use knowledge::Knowledge;
pub use settings::{Settings, SettingsError};
use tally::Tally;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run a trial and [`Search::record`] it.
    Trial {
        /// The load to try.
        load: u32,
        /// How long to run it.
        length: Length,
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
    /// Where the edge lies; `None` when the trials cannot tell.
    pub edge: Option<Edge>,
    /// What the trials say, load by load, ascending.
    pub evidence: Vec<LoadEvidence>,
}

/// The search for one target's load line; see the [module](self) for its rules.
#[derive(Debug, Clone)]
pub struct Search {
    settings: Settings,
    tallies: BTreeMap<u32, Tally>,
    trials: u32,
    /// What ended it from outside, before it knew enough.
    cut: Option<Ended>,
    /// The trials, those recorded included, for which the caller's time lasts.
    time_for: u32,
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
            time_for: u32::MAX,
        })
    }

    /// What to do next. Asking changes nothing: the answer is the same until a trial is recorded.
    #[must_use]
    pub fn next(&self) -> Step {
        let known = self.known();
        let budget = match self.cut {
            None if self.trials >= self.settings.max_trials => Some(Ended::TrialBudget),
            None if self.trials >= self.time_for => Some(Ended::TimeBudget),
            cut => cut,
        };
        match (self.next_trial(&known), budget) {
            (Ok((load, length, why)), None) => Step::Trial { load, length, why },
            // A budget that ran out with nothing left to do did not cut anything short.
            (Err(ended), _) | (Ok(_), Some(ended)) => Step::Done(self.outcome(known, ended)),
        }
    }

    /// Takes the verdict of a trial of that length at `load`. Trials that the search did not ask for count as well; load 0 is ignored.
    ///
    /// An invalid trial at a load too low for a verdict shows nothing that was not known, so it only counts as a trial: another SLO's search asked for it.
    pub fn record(&mut self, load: u32, length: Length, verdict: TrialVerdict) {
        if load == 0 {
            return;
        }
        self.trials = self.trials.saturating_add(1);
        let invalid = matches!(verdict, TrialVerdict::Invalid { .. });
        if invalid && load < self.settings.least(length) {
            return;
        }
        let tally = self.tallies.entry(load).or_default();
        tally.record(length, verdict);
    }

    /// The caller's time lasts for about so many trials more: the last of them go to confirming what is known. With 0 the time is up, and [`Search::next`] is `Done`.
    pub fn expect_time_for(&mut self, trials_left: u32) {
        self.time_for = self.trials.saturating_add(trials_left);
    }

    /// Trials that the budgets still allow.
    fn trials_left(&self) -> u32 {
        self.settings
            .max_trials
            .min(self.time_for)
            .saturating_sub(self.trials)
    }

    /// A signal or an error ended the measuring: [`Search::next`] then gives what is known.
    pub fn interrupt(&mut self) {
        self.cut = Some(Ended::Interrupted);
    }

    /// About how many trials are left, for progress displays: as if no further trial were invalid or surprising.
    #[must_use]
    pub fn remaining_trials_estimate(&self) -> u32 {
        let known = self.known();
        let budget = self.trials_left();
        if self.cut.is_some() || budget == 0 || self.next_trial(&known).is_err() {
            return 0;
        }
        let width = match known.edge {
            Some(Edge {
                low,
                high: Some(high),
                ..
            }) => high / low - 1.0,
            // A doubling that is still to be found.
            _ => 1.0,
        };
        // At a sharp edge each trial halves the interval; the last halvings take two, for they need agreement.
        let narrowing = grid::halvings(width, self.settings.relative_width);
        let settling = self.settings.repeats / 2 + 1;
        (narrowing + settling).clamp(1, budget)
    }

    fn known(&self) -> Knowledge {
        Knowledge::of(&self.tallies, self.settings.confidence)
    }

    fn next_trial(&self, known: &Knowledge) -> Result<Trial, Ended> {
        let choice = Choice {
            settings: &self.settings,
            tallies: &self.tallies,
            known,
            trials_left: self.trials_left(),
            time_left: self.time_for.saturating_sub(self.trials),
        };
        choice.next()
    }

    fn outcome(&self, known: Knowledge, ended: Ended) -> Outcome {
        let conclusion = conclusion::sentence(&self.settings, &self.tallies, &known, ended);
        Outcome {
            confirmed: known.confirmed,
            borderline: known.borderline,
            first_fail: known.first_fail,
            lower_bound_only: known.confirmed.is_some() && known.first_fail.is_none(),
            ended,
            conclusion,
            edge: known.edge,
            evidence: known.evidence,
        }
    }
}

/// How many trials the rest of a time budget lasts for, after `ran` of them: as long ones as those so far on average, but the last ones are full, and those take
/// at least `full_s`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of trials, not negative; a fraction of one is none"
)]
pub fn trials_in(budget_s: f64, elapsed_s: f64, ran: u32, full_s: f64) -> u32 {
    let mean_s = match ran {
        0 => full_s,
        ran => elapsed_s / f64::from(ran),
    };
    ((budget_s - elapsed_s).max(0.0) / mean_s.max(full_s)).ceil() as u32
}

#[cfg(test)]
mod tests;
