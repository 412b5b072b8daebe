//! The search for the load line: trials at the loads that [`plimsoll_core::search`] asks for, until the edge is known.
//!
//! - `searches`: one search for each SLO, all fed from the same trials;
//! - `beyond`: the search beyond the load line, for a load that asks for it;
//! - `kept`: the trials so far, and the brackets made from them;
//! - `least`: the lowest load at which a trial can give a verdict.

mod beyond;
mod kept;
mod least;
mod searches;
#[cfg(test)]
pub(crate) mod tests;

use std::time::{Duration, Instant};

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Bracket, Escalation, Trial};
use plimsoll_core::schedule::mix;
use plimsoll_core::search::{Settings, trials_in};
use plimsoll_host::signals::Stop;
use plimsoll_host::timestamp;

use crate::campaign::{self, Campaign, Contender, KeptTrial, Observer};
use crate::error::{Error, Result};
use crate::trial::{Conditions, Subject};
use beyond::Beyond;
use kept::Kept;
use searches::Searches;

/// The plan of a search.
#[derive(Debug, Clone)]
pub struct FindPlan {
    /// The settings of the search itself.
    pub settings: Settings,
    /// After this time, no further trial begins. If the search goes on beyond the load line, the load line gets
    /// [`FindPlan::LOAD_LINE_SHARE`] of it at most.
    pub time_budget: Option<Duration>,
}

impl FindPlan {
    /// The share of the time budget for the load line, if the search then goes on beyond it.
    pub const LOAD_LINE_SHARE: f64 = 0.4;
}

/// The trial to run next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    load: u32,
    length: Length,
    /// Why it runs, in a few words.
    why: &'static str,
    /// About how many are left, this one included.
    trials_left: u32,
}

/// Asks for trials until it knows enough.
trait Asks {
    /// The next trial; `None` if it knows enough.
    fn next(&self) -> Option<Wanted>;

    /// Learns what a trial showed. An interrupted trial shows nothing.
    ///
    /// # Errors
    /// The trial belongs to another search.
    fn record(&mut self, trial: &Trial) -> Result<()>;

    /// Learns that the time is enough for this many more trials, if none is invalid.
    fn expect_time_for(&mut self, trials_left: u32);

    /// Learns that a signal or an error ended the measurement.
    fn interrupt(&mut self);
}

/// The outcome of a search.
#[derive(Debug)]
pub struct Found {
    /// What is known for each SLO: that of the conditions first, then the further ones.
    pub brackets: Vec<Bracket>,
    /// The error that ended the search early, unless that was a signal. The brackets are then marked `interrupted`.
    pub cut_short: Option<Error>,
}

/// Searches for the load line, and beyond it if the plan of the load says so. Resumes from `earlier` trials of the same
/// search, in the order in which they ran, if there are any.
///
/// # Errors
/// The errors of [`trial::run`] in the very first trial; or a trial could not be kept; or `earlier` trials are of other
/// conditions. A later error or signal ends the search with what it knows, in brackets that are marked `interrupted`.
pub fn find(
    conditions: &Conditions,
    subject: &Subject,
    plan: &FindPlan,
    earlier: Vec<KeptTrial>,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Found> {
    let contender = [Contender {
        subject,
        conditions,
    }];
    let baseline = conditions.baseline.as_ref();
    let baseline = baseline.map(|baseline| &*baseline.trial);
    let before = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
    let mut campaign = Campaign::new(&contender, stop, observer).after(before);
    let mut run = |wanted: &Wanted, kept: &Kept| {
        campaign.run_if(
            &campaign::Wanted {
                which: 0,
                sessions: wanted.load,
                length: wanted.length,
                seed: drawn_anew(conditions.seed, kept.count()),
                why: wanted.why,
                trials_left: wanted.trials_left,
            },
            |trial| kept.must_be_the_same_target(trial, baseline),
        )
    };
    Hunt::new(conditions, plan, &mut run).found(earlier)
}

/// Runs a trial after those that were kept, on the machine, or from a table in tests.
type RunTrial<'a> = dyn FnMut(&Wanted, &Kept) -> Result<KeptTrial> + 'a;

/// A search that is running.
struct Hunt<'a> {
    conditions: &'a Conditions,
    plan: &'a FindPlan,
    run: &'a mut RunTrial<'a>,
    kept: Kept,
    began: Instant,
    /// The number of trials before it was resumed.
    resumed: u32,
    /// Whether a signal or an error ended it.
    interrupted: bool,
    /// That error.
    cut_short: Option<Error>,
}

impl<'a> Hunt<'a> {
    fn new(conditions: &'a Conditions, plan: &'a FindPlan, run: &'a mut RunTrial<'a>) -> Self {
        Self {
            conditions,
            plan,
            run,
            kept: Kept::default(),
            began: Instant::now(),
            resumed: 0,
            interrupted: false,
            cut_short: None,
        }
    }

    fn found(mut self, earlier: Vec<KeptTrial>) -> Result<Found> {
        let started_at = timestamp::now();
        let mut searches = Searches::new(self.conditions, self.plan.settings)?;
        let goes_beyond = self.conditions.plan.goes_beyond();
        let mut beyond = Vec::new();
        for KeptTrial { file, trial } in earlier {
            self.kept.add(&trial, file);
            // What ran after the searches had ended ran beyond the load line.
            if goes_beyond && searches.next().is_none() {
                beyond.push(trial);
            } else {
                searches.record(&trial)?;
            }
        }
        self.resumed = self.kept.count();
        let whole = self.plan.time_budget;
        let (budget, trials_after) = if goes_beyond {
            let share = whole.map(|whole| whole.mul_f64(FindPlan::LOAD_LINE_SHARE));
            (share, Beyond::USUAL_TRIALS)
        } else {
            (whole, 0)
        };
        self.until_known(&mut searches, budget, trials_after)?;
        let mut escalation = None;
        if goes_beyond && !self.interrupted {
            escalation = Some(self.beyond(&searches, &beyond)?);
        }
        Ok(self.brackets(&searches, escalation, &started_at))
    }

    /// Goes beyond the load line, from the `earlier` trials there.
    fn beyond(&mut self, searches: &Searches, earlier: &[Trial]) -> Result<Escalation> {
        let Some(limit) = searches.load_line() else {
            return Ok(Beyond::without_limit());
        };
        let mut beyond = Beyond::new(self.conditions, &self.plan.settings, limit);
        let of_searches = self.kept.count() as usize - earlier.len();
        self.kept
            .trials()
            .take(of_searches)
            .for_each(|trial| beyond.know(trial));
        earlier.iter().try_for_each(|trial| beyond.record(trial))?;
        self.until_known(&mut beyond, self.plan.time_budget, 0)?;
        Ok(beyond.outcome())
    }

    /// Runs the trials that `asks` wants until it knows enough, or until this time since the beginning is up. About
    /// `trials_after` follow them.
    fn until_known(
        &mut self,
        asks: &mut dyn Asks,
        budget: Option<Duration>,
        trials_after: u32,
    ) -> Result<()> {
        loop {
            if let Some(budget) = budget {
                asks.expect_time_for(trials_in(
                    budget.as_secs_f64(),
                    self.began.elapsed().as_secs_f64(),
                    self.kept.count() - self.resumed,
                    self.conditions.profile.lasts_s(),
                ));
            }
            let Some(mut wanted) = asks.next() else {
                return Ok(());
            };
            wanted.trials_left = wanted.trials_left.saturating_add(trials_after);
            match (self.run)(&wanted, &self.kept) {
                Ok(KeptTrial { trial, file }) => {
                    asks.record(&trial)?;
                    self.kept.add(&trial, file);
                    self.interrupted = trial.interrupted;
                }
                // Nothing is known yet, so there is nothing to keep.
                Err(error) if self.kept.count() == 0 => return Err(error),
                Err(error) => {
                    self.cut_short =
                        Some(error).filter(|error| !matches!(error, Error::Interrupted(_)));
                    self.interrupted = true;
                }
            }
            if self.interrupted {
                asks.interrupt();
                return Ok(());
            }
        }
    }

    /// The bracket of each search. What lies beyond the load line is in the first: no SLO judges it.
    fn brackets(
        self,
        searches: &Searches,
        mut escalation: Option<Escalation>,
        started_at: &str,
    ) -> Found {
        let bracket = |(slo, outcome): (&str, _)| {
            let found = self.kept.bracket(
                self.conditions,
                slo,
                &outcome,
                self.interrupted,
                started_at,
                self.plan,
            );
            Bracket {
                escalation: escalation.take(),
                goals: self.kept.goals(self.conditions, &found),
                ..found
            }
        };
        Found {
            brackets: searches.outcomes().into_iter().map(bracket).collect(),
            cut_short: self.cut_short,
        }
    }
}

/// A seed for this trial alone, so that repeats at one load are independent draws. It fits the integers of every JSON
/// reader.
fn drawn_anew(seed: u64, trials_before: u32) -> u64 {
    mix(seed ^ u64::from(trials_before)) >> 32
}
