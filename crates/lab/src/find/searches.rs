//! One search for each SLO, all fed from the same trials.

use plimsoll_core::caveat::Caveat;
use plimsoll_core::record::Trial;
use plimsoll_core::search::{Search, SearchResult, Settings, Step, TrialVerdict};
use plimsoll_core::slo::Slo;

use super::{Asks, Wanted};
use crate::error::{Error, Result};
use crate::trial::Conditions;

/// A search for each SLO.
pub(super) struct Searches {
    /// Each search with its SLO's name, that of the conditions first.
    all: Vec<(String, Search)>,
}

impl Searches {
    pub(super) fn new(conditions: &Conditions, settings: Settings) -> Result<Self> {
        let count = u32::try_from(conditions.slos().count()).unwrap_or(u32::MAX);
        let search = |slo: &Slo| {
            let least = conditions.least_loads(slo);
            let settings = Settings {
                min: least.full.unwrap_or(u32::MAX),
                short_min: least.short.unwrap_or(u32::MAX),
                // Every search also counts the trials that the others asked for.
                max_trials: settings.max_trials.saturating_mul(count),
                ..settings
            };
            let search = Search::new(settings).map_err(|error| Error::Usage(error.to_string()))?;
            Ok((slo.name.clone(), search))
        };
        let all = conditions.slos().map(search).collect::<Result<_>>()?;
        Ok(Self { all })
    }

    /// The load line by the SLO of the conditions. All searches must have ended.
    pub(super) fn load_line(&self) -> Option<u32> {
        self.outcomes().first()?.1.confirmed
    }

    /// What is known, by SLO. All searches must have ended.
    pub(super) fn outcomes(&self) -> Vec<(&str, SearchResult)> {
        let done = |(slo, search)| match Search::next(search) {
            Step::Done(outcome) => (String::as_str(slo), outcome),
            Step::Trial { .. } => unreachable!("the caller goes on until no search wants a trial"),
        };
        self.all
            .iter()
            .map(|(slo, search)| done((slo, search)))
            .collect()
    }
}

impl Asks for Searches {
    /// The next trial of the first search that wants one. The other searches also use what it shows.
    fn next(&self) -> Option<Wanted> {
        let trials_left = self
            .all
            .iter()
            .map(|(_, search)| search.remaining_trials_estimate())
            .fold(0, u32::saturating_add);
        self.all.iter().find_map(|(_, search)| match search.next() {
            Step::Done(_) => None,
            Step::Trial { load, length, why } => Some(Wanted {
                load,
                length,
                why: why.word(),
                trials_left,
            }),
        })
    }

    /// Tells every search what a trial showed by that search's SLO. An interrupted trial shows nothing.
    ///
    /// # Errors
    /// The trial was not judged by one of the SLOs, so it belongs to another search.
    fn record(&mut self, trial: &Trial) -> Result<()> {
        if trial.interrupted {
            return Ok(());
        }
        for (slo, search) in &mut self.all {
            let judged = trial.judged_by(slo).ok_or_else(|| {
                Error::Usage(format!(
                    "a trial at {} {} was not judged by the SLO `{slo}`, so the search cannot resume from it; start a new one",
                    trial.sessions,
                    trial.load_unit.name()
                ))
            })?;
            search.record(trial.sessions, trial.length, TrialVerdict::of(&judged));
            if judged.caveats.iter().any(Caveat::hopeless) {
                search.interrupt();
            }
        }
        Ok(())
    }

    /// Tells every search that the time is enough for this many more trials, if none is invalid.
    fn expect_time_for(&mut self, trials_left: u32) {
        for (_, search) in &mut self.all {
            search.expect_time_for(trials_left);
        }
    }

    /// Tells every search that a signal or an error ended the measurement.
    fn interrupt(&mut self) {
        for (_, search) in &mut self.all {
            search.interrupt();
        }
    }
}
