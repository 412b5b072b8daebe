//! The search for the load line: trials at the loads that [`plimsoll_core::search`] asks for, until the edge is known.
//!
//! - `searches`: one search for each SLO, all fed from the same trials;
//! - `kept`: the trials so far, and the brackets made from them;
//! - `least`: the lowest load at which a trial can give a verdict.

mod kept;
mod least;
mod searches;
#[cfg(test)]
pub(crate) mod tests;

use std::time::{Duration, Instant};

use plimsoll_core::record::{Bracket, Trial};
use plimsoll_core::schedule::mix;
use plimsoll_core::search::{Settings, Why, trials_in};
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;

use crate::error::{Error, Result};
use crate::trial::{self, Conditions, FinishedTrial, Subject, TrialSecond};
use kept::Kept;
use searches::{Searches, Wanted};

/// The plan of a search.
#[derive(Debug, Clone)]
pub struct FindPlan {
    /// The settings of the search itself.
    pub settings: Settings,
    /// After this time, no further trial begins.
    pub time_budget: Option<Duration>,
}

/// A trial of the same search that was kept before the search was interrupted.
#[derive(Debug, Clone)]
pub struct Earlier {
    /// The name under which it was kept.
    pub file: String,
    /// Its record.
    pub trial: Trial,
}

/// Receives the progress of a search. The caller may show it, and must keep each trial.
pub trait Observer {
    /// A trial begins.
    fn trial_begins(&mut self, number: u32, sessions: u32, why: Why, trials_left: u32);
    /// A second of the trial is over. Its latencies are available only during this call.
    fn second(&mut self, second: &TrialSecond<'_>);
    /// The trial is over. Returns the name under which it was kept.
    ///
    /// # Errors
    /// The trial could not be kept.
    fn trial_ends(&mut self, outcome: FinishedTrial) -> std::result::Result<String, String>;
}

/// The outcome of a search.
#[derive(Debug)]
pub struct Found {
    /// What is known for each SLO: that of the conditions first, then the further ones.
    pub brackets: Vec<Bracket>,
    /// The error that ended the search early, unless that was a signal. The brackets are then marked `interrupted`.
    pub cut_short: Option<Error>,
}

/// Searches for the load line. Resumes from `earlier` trials of the same search, if there are any.
///
/// # Errors
/// The errors of [`trial::run`] in the very first trial; or a trial could not be kept; or `earlier` trials are of other
/// conditions. A later error or signal ends the search with what it knows, in brackets that are marked `interrupted`.
pub fn find(
    conditions: &Conditions,
    subject: &Subject,
    plan: &FindPlan,
    earlier: Vec<Earlier>,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Found> {
    let began = Instant::now();
    let started_at = timestamp::now();
    let mut searches = Searches::new(conditions, plan.settings)?;
    let mut kept = Kept::default();
    for earlier in earlier {
        searches.record(&earlier.trial)?;
        kept.add(&earlier.trial, earlier.file);
    }
    let resumed = kept.count();
    let mut cut_short = None;
    let interrupted = loop {
        if let Some(budget) = plan.time_budget {
            searches.expect_time_for(trials_in(
                budget.as_secs_f64(),
                began.elapsed().as_secs_f64(),
                kept.count() - resumed,
                conditions.profile.lasts_s(),
            ));
        }
        let Some(wanted) = searches.next() else {
            break false;
        };
        observer.trial_begins(
            kept.count() + 1,
            wanted.load,
            wanted.why,
            wanted.trials_left,
        );
        match one_trial(conditions, subject, &wanted, &kept, stop, observer) {
            Ok(outcome) => {
                let trial = outcome.trial.clone();
                kept.must_be_the_same_target(&trial)?;
                let file = observer.trial_ends(outcome).map_err(Error::Usage)?;
                searches.record(&trial)?;
                kept.add(&trial, file);
                if trial.interrupted {
                    searches.interrupt();
                    break true;
                }
            }
            // Nothing is known yet, so there is nothing to keep.
            Err(error) if kept.count() == 0 => return Err(error),
            Err(error) => {
                searches.interrupt();
                cut_short = Some(error).filter(|error| !matches!(error, Error::Interrupted(_)));
                break true;
            }
        }
    };
    let brackets = searches
        .outcomes()
        .into_iter()
        .map(|(slo, outcome)| {
            kept.bracket(conditions, slo, &outcome, interrupted, &started_at, plan)
        })
        .collect();
    Ok(Found {
        brackets,
        cut_short,
    })
}

fn one_trial(
    conditions: &Conditions,
    subject: &Subject,
    wanted: &Wanted,
    kept: &Kept,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<FinishedTrial> {
    let length = conditions.length_for(wanted.load, wanted.length);
    trial::run(
        &drawn_anew(conditions, kept.count()),
        subject,
        wanted.load,
        length,
        stop,
        &mut |second| observer.second(second),
    )
}

/// The same conditions with a seed for this trial alone, so that repeats at one load are independent draws. The seed
/// fits the integers of every JSON reader.
fn drawn_anew(conditions: &Conditions, trials_before: u32) -> Conditions {
    let mut conditions = conditions.clone();
    conditions.seed = mix(conditions.seed ^ u64::from(trials_before)) >> 32;
    conditions
}
