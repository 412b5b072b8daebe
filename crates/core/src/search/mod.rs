//! The search for the load line: which load to try next, and what the trials so far show.
//!
//! [`Search`] is pure and keeps only counts of verdicts per load: [`Search::next`] is a function of the settings and
//! those counts. So you resume a search by recording its trials again, in any order, and every decision can be
//! explained from them.
//!
//! The ideas are those of MLRsearch (IETF draft-ietf-bmwg-mlrsearch): short trials far from the edge, full and repeated
//! ones near it; a load is classified only when an optimistic and a pessimistic estimate agree; a passing short trial
//! counts only against failing short trials. The estimates differ: instead of sums of durations per load, we use the
//! ends of an interval for the edge with a stated confidence ([`edge`]), to which the trials at all loads contribute.
//!
//! # The rules
//!
//! 1. **Probe.** From `start`, the search runs short trials at doubling loads (to two significant digits) until one
//!    fails, or at halving loads until one passes.
//! 2. **Narrow.** Then it runs the trial, of either length and at a round load, that is expected to say the most about
//!    the edge for its time, in bits (the mutual information of verdict and edge). It stops when the interval is as
//!    narrow as `relative_width`, or within one session.
//! 3. **Confirm.** Then a load within half a width below the interval must have a majority of `repeats` full trials
//!    that pass, and one above it a majority that fail. The seed decides which side comes first.
//!
//!    The last trials of a budget, a quarter of all, ensure that some load surely below the edge has passed a full trial:
//!    if none has by the very last ones, each goes to three quarters of the lowest load tried in vain. The very last ones
//!    of a time budget raise the load line. Just before, if nothing bounds the interval above, the highest load is tried
//!    again.
//! 4. **Class.** A load is passing if it lies below the interval and most of its own trials passed. It is failing if it
//!    lies above and most of its own trials failed. Otherwise it is borderline if its trials disagree, or else
//!    undecided. `confirmed` is the highest passing load below `first_fail` that passed most of its own *full* trials:
//!    a load that was never tried is never confirmed.
//! 5. **Contradiction.** A pass above a fail, or a fail far below passes, only shifts the odds between a disturbance
//!    and an edge. The next trials decide. So a false fail never bounds the search forever.
//! 6. **Invalid.** An invalid trial is repeated, until one passes or one has failed for each two that were invalid.
//!    If the client ran out in three trials at a load, this load and those above are out of reach, unless two valid
//!    trials at or above it, or a quarter of the trials there, show otherwise. Fails out of reach do not count, and
//!    neither do fails where more than two thirds of the trials were invalid. The search narrows towards what is
//!    out of reach, tries it once more, and the answer is "at least". If no load is sure by then, it first confirms
//!    the highest load with a pass that can still be tried. If a load has three invalid trials for other reasons,
//!    the search leaves it and goes around it.
//! 7. **Least load.** No trial runs below `min`, and no short trial below `short_min`: there the measured window holds
//!    too few answers for a verdict. A target that fails at `min` ends the search.
//! 8. **Budget.** `max_trials`, or [`Search::expect_time_for`] when the caller's time runs out, ends the search with
//!    what is known.
//!
//! `cargo run --release -p plimsoll-core --example search-table` prints how exact the search is on synthetic servers.

mod choice;
mod conclusion;
pub mod edge;
pub mod escalation;
mod grid;
mod knowledge;
mod settings;
mod tally;

use std::collections::BTreeMap;

use crate::caveat::Caveat;
use crate::profile::Length;
use crate::record::{self, Verdict};
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
        /// Why to run it.
        why: Why,
    },
    /// The search is over.
    Done(SearchResult),
}

/// Why the search runs a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// To find a load that fails, or one that passes.
    Probe,
    /// To halve the gap between a pass and a fail.
    Narrow,
    /// To repeat a load that bounds the answer, or whose trials disagree with each other or with a higher load.
    Confirm,
}

impl Why {
    /// Its name on terminals.
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
        /// Whether the client or its machine ran out ([`crate::caveat::Caveat::client_ran_out`]), so that higher loads
        /// are pointless.
        client_ran_out: bool,
    },
}

impl TrialVerdict {
    /// The outcome in a trial's record.
    #[must_use]
    pub fn of(trial: &record::Trial) -> Self {
        match trial.verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Fail => Self::Fail,
            Verdict::Invalid => Self::Invalid {
                client_ran_out: trial.caveats.iter().any(Caveat::client_ran_out),
            },
        }
    }
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The bracket is as narrow as requested, and both its sides are confirmed.
    Narrow,
    /// `max` still passes, or at least does not fail.
    AtMaximum,
    /// The client ran out before the target did.
    OutOfReach,
    /// `min` does not pass.
    AtMinimum,
    /// The loads left to try gave no valid trial.
    Unmeasurable,
    /// The search ran `max_trials` trials.
    TrialBudget,
    /// The caller's time was up.
    TimeBudget,
    /// A signal or an error ended it.
    Interrupted,
}

/// What the search knows at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The load line: the highest load below `first_fail` that is classified as passing. `None` if there is none. It
    /// has a majority of `repeats` behind it, unless a budget ended the search or the repeats were invalid: see `ended`
    /// and `evidence`.
    pub confirmed: Option<u32>,
    /// Loads whose trials disagree, ascending. They need not lie between `confirmed` and `first_fail`.
    pub borderline: Vec<u32>,
    /// The lowest load classified as failing. `None` if there is none.
    pub first_fail: Option<u32>,
    /// Whether some load passes and none fails: the answer is then "at least `confirmed`".
    pub lower_bound_only: bool,
    /// Why the search ended.
    pub ended: Ended,
    /// What is known and why the search ended, in one sentence.
    pub conclusion: String,
    /// Where the edge lies; `None` if the trials cannot show it.
    pub edge: Option<Edge>,
    /// What the trials show, load by load, ascending.
    pub evidence: Vec<LoadEvidence>,
}

/// The search for one target's load line; see the [module](self) for its rules.
#[derive(Debug, Clone)]
pub struct Search {
    settings: Settings,
    tallies: BTreeMap<u32, Tally>,
    trials: u32,
    /// Why it was ended from outside before it knew enough.
    cut: Option<Ended>,
    /// The number of trials for which the caller's time lasts, including those recorded.
    time_for: u32,
}

impl Search {
    /// A search that has not tried anything yet.
    ///
    /// # Errors
    ///
    /// If a setting makes no sense; the error names it.
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

    /// What to do next. Calling this changes nothing: the answer is the same until a trial is recorded.
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
            // A budget that ran out with nothing left to do cut nothing short.
            (Err(ended), _) | (Ok(_), Some(ended)) => Step::Done(self.outcome(known, ended)),
        }
    }

    /// Records the verdict of a trial of that length at `load`. Trials that the search did not ask for also count; load
    /// 0 is ignored.
    ///
    /// An invalid trial at a load too low for a verdict shows nothing new, so it only counts as a trial: another SLO's
    /// search asked for it.
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

    /// Says that the caller's time lasts for about this many more trials. The last of them go to confirming what is
    /// known. With 0 the time is up, and [`Search::next`] returns `Done`.
    pub fn expect_time_for(&mut self, trials_left: u32) {
        self.time_for = self.trials.saturating_add(trials_left);
    }

    /// The number of trials that the budgets allow from beginning to end.
    fn trials_in_all(&self) -> u32 {
        self.settings.max_trials.min(self.time_for)
    }

    /// The number of trials that the budgets still allow.
    fn trials_left(&self) -> u32 {
        self.trials_in_all().saturating_sub(self.trials)
    }

    /// Says that a signal or an error ended the measurement: [`Search::next`] then returns what is known.
    pub fn interrupt(&mut self) {
        self.cut = Some(Ended::Interrupted);
    }

    /// About how many trials are left, for progress displays, if no further trial is invalid or surprising.
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
            // A doubling, if the edge is still to be found.
            _ => 1.0,
        };
        // At a sharp edge each trial halves the interval. The last halvings take two trials, because they need
        // agreement.
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
            trials_in_all: self.trials_in_all(),
            time_left: self.time_for.saturating_sub(self.trials),
        };
        choice.next()
    }

    fn outcome(&self, known: Knowledge, ended: Ended) -> SearchResult {
        let conclusion = conclusion::sentence(&self.settings, &self.tallies, &known, ended);
        SearchResult {
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

/// How many trials the rest of a time budget lasts for, after `ran` of them. Each is assumed to take as long as those
/// so far on average, but at least `full_s`, because the last ones are full.
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
