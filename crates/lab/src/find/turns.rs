//! Searches of several targets, which take turns.

use plimsoll_core::ranking::turns;
use plimsoll_core::record::Trial;
use plimsoll_core::schedule::mix;
use plimsoll_host::signals::Stop;

use super::hunt::Hunt;
use super::kept::Kept;
use super::{FindPlan, Found, Wanted};
use crate::campaign::{self, Campaign, Contender, KeptTrial, Observer};
use crate::error::Result;
use crate::trial::{Conditions, Subject};

/// A search that may begin, or go on.
#[derive(Debug)]
pub struct Begun<'a> {
    /// The target.
    pub subject: &'a Subject,
    /// The conditions of its trials.
    pub conditions: &'a Conditions,
    /// Its settings.
    pub plan: &'a FindPlan,
    /// Its trials from before, in the order in which they ran, if it is resumed.
    pub earlier: Vec<KeptTrial>,
}

/// Searches that take turns: the next trial is always one of the search whose trials have taken the least time so far.
///
/// So all of them go on through the same hours. A machine that becomes slower or faster meanwhile changes all of them, and
/// does not favour whoever was measured in its better hour.
pub struct Turns<'a> {
    contenders: Vec<Contender<'a>>,
    /// Those that go on, with the places of their targets, in an order that the seed decides.
    open: Vec<(usize, Hunt<'a>)>,
    /// How many trials there are, including those from before.
    trials: u32,
}

impl<'a> Turns<'a> {
    /// Searches of these targets. `seed` decides who begins.
    ///
    /// # Errors
    /// The settings of a search make no sense, or its earlier trials are of other conditions.
    pub fn new(searches: Vec<Begun<'a>>, seed: u64) -> Result<Self> {
        let contenders = searches.iter().map(|begun| Contender {
            subject: begun.subject,
            conditions: begun.conditions,
        });
        let contenders: Vec<_> = contenders.collect();
        let hunts = searches
            .into_iter()
            .map(|begun| Hunt::new(begun.conditions, begun.plan, begun.earlier));
        let hunts: Vec<_> = hunts.collect::<Result<_>>()?;
        let trials = hunts.iter().map(|hunt| hunt.kept().count()).sum();
        let mut open: Vec<_> = hunts.into_iter().enumerate().collect();
        let order = turns(open.len(), 0, seed);
        open.sort_by_key(|(which, _)| order[*which]);
        Ok(Self {
            contenders,
            open,
            trials,
        })
    }

    /// Runs trials until a search ends, and returns the place of its target with what it found; `None` if all have ended.
    ///
    /// An error is that of the very first trial of a search, which has found nothing then; or its trial could not be kept or
    /// is of other conditions. After a signal, all searches end with what they know.
    pub fn until_one_ends(
        &mut self,
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Option<(usize, Result<Found>)> {
        loop {
            let next = (0..self.open.len()).min_by_key(|place| self.open[*place].1.spent())?;
            let goes_on = if stop.requested() {
                self.open[next].1.stopped()
            } else {
                self.step(next, stop, observer)
            };
            match goes_on {
                Ok(true) => {}
                Ok(false) => {
                    let (which, hunt) = self.open.remove(next);
                    return Some((which, Ok(hunt.found())));
                }
                Err(error) => {
                    let (which, _) = self.open.remove(next);
                    return Some((which, Err(error)));
                }
            }
        }
    }

    /// Runs a trial of the search at this place, and returns whether it goes on.
    fn step(&mut self, place: usize, stop: &Stop, observer: &mut dyn Observer) -> Result<bool> {
        let searches = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        let (which, hunt) = &mut self.open[place];
        let conditions = self.contenders[*which].conditions;
        let baseline = conditions.baseline.as_ref();
        let baseline: Option<&Trial> = baseline.map(|baseline| &*baseline.trial);
        let mut campaign = Campaign::new(&self.contenders, stop, observer).after(self.trials);
        let mut run = |wanted: &Wanted, kept: &Kept| {
            campaign.run_if(
                &campaign::Wanted {
                    which: *which,
                    sessions: wanted.load,
                    length: wanted.length,
                    seed: drawn_anew(conditions.seed, kept.count()),
                    why: wanted.why,
                    trials_left: wanted.trials_left.saturating_mul(searches),
                },
                |trial| kept.must_be_the_same_target(trial, baseline),
            )
        };
        let goes_on = hunt.step(&mut run);
        self.trials = campaign.trials();
        goes_on
    }
}

/// A seed for this trial alone, so that repeats at one load are independent draws. It fits the integers of every JSON
/// reader.
fn drawn_anew(seed: u64, trials_before: u32) -> u64 {
    mix(seed ^ u64::from(trials_before)) >> 32
}
