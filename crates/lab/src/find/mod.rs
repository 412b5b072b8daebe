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
use plimsoll_core::search::{Settings, trials_in};
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;

use crate::campaign::{self, Campaign, Contender, KeptTrial, Observer};
use crate::error::{Error, Result};
use crate::trial::{Conditions, Subject};
use kept::Kept;
use searches::Searches;

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
    let contender = [Contender {
        subject,
        conditions,
    }];
    let mut campaign = Campaign::new(&contender, stop, observer).after(resumed);
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
        let ran = campaign.run_if(
            &campaign::Wanted {
                which: 0,
                sessions: wanted.load,
                length: wanted.length,
                seed: drawn_anew(conditions.seed, kept.count()),
                why: wanted.why.word(),
                trials_left: wanted.trials_left,
            },
            |trial| kept.must_be_the_same_target(trial),
        );
        match ran {
            Ok(KeptTrial { trial, file }) => {
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

/// A seed for this trial alone, so that repeats at one load are independent draws. It fits the integers of every JSON
/// reader.
fn drawn_anew(seed: u64, trials_before: u32) -> u64 {
    mix(seed ^ u64::from(trials_before)) >> 32
}
