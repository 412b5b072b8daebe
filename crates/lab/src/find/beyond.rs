//! The search beyond the load line, fed from trials.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Escalation, Trial};
use plimsoll_core::search;
use plimsoll_core::search::escalation::{Escalator, Settings, Shown, Step};

use super::{Asks, Wanted};
use crate::error::Result;
use crate::trial::Conditions;

/// The most trials beyond a load line before the search reports what it knows.
const TRIALS_MAX: u32 = 40;

/// The search beyond a load line.
pub(super) struct Beyond {
    escalator: Escalator,
}

impl Beyond {
    /// About so many trials there will be: a few loads of the ladder, a few halvings, and repeats.
    pub(super) const USUAL_TRIALS: u32 = 12;

    /// Goes on from the load line `limit`.
    pub(super) fn new(conditions: &Conditions, settings: &search::Settings, limit: u32) -> Self {
        let least = conditions.least_loads(&conditions.slo).full;
        Self {
            escalator: Escalator::new(Settings {
                limit,
                min: least.unwrap_or(limit),
                max: settings.max,
                max_trials: TRIALS_MAX,
            }),
        }
    }

    /// Why a target without a load line is not tried beyond it.
    pub(super) fn without_limit() -> Escalation {
        Escalation {
            conclusion: "No load surely passes, so there is no load line to go beyond.".to_owned(),
            ..Escalation::default()
        }
    }

    /// Learns what a trial of the search for the load line showed. A short one shows too little.
    pub(super) fn know(&mut self, trial: &Trial) {
        if trial.length == Length::Full && !trial.interrupted {
            self.escalator.know(trial.sessions, &Shown::of(trial));
        }
    }

    /// What is known. It must have ended.
    pub(super) fn outcome(&self) -> Escalation {
        match self.escalator.next() {
            Step::Done(escalation) => escalation,
            Step::Trial { .. } => unreachable!("the caller goes on until no trial is wanted"),
        }
    }
}

impl Asks for Beyond {
    fn next(&self) -> Option<Wanted> {
        match self.escalator.next() {
            Step::Done(_) => None,
            Step::Trial { load, why } => Some(Wanted {
                load,
                length: Length::Full,
                why: why.word(),
                trials_left: self.escalator.remaining_trials_estimate(),
            }),
        }
    }

    fn record(&mut self, trial: &Trial) -> Result<()> {
        if !trial.interrupted {
            self.escalator.record(trial.sessions, &Shown::of(trial));
        }
        Ok(())
    }

    fn expect_time_for(&mut self, trials_left: u32) {
        self.escalator.expect_time_for(trials_left);
    }

    fn interrupt(&mut self) {
        self.escalator.interrupt();
    }
}
