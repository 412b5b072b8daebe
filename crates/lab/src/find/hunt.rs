//! A search, trial by trial.

use std::time::{Duration, Instant};

use plimsoll_core::record::{Bracket, Trial};
use plimsoll_core::search::trials_in;
use plimsoll_host::timestamp;

use super::beyond::Beyond;
use super::kept::Kept;
use super::searches::Searches;
use super::{Asks, FindPlan, Found, Wanted};
use crate::campaign::KeptTrial;
use crate::error::{Error, Result};
use crate::trial::Conditions;

/// Runs a trial after those that were kept, on the machine, or from a table in tests.
pub(super) type RunTrial<'a> = dyn FnMut(&Wanted, &Kept) -> Result<KeptTrial> + 'a;

/// What a search is looking for.
enum Stage {
    LoadLine,
    Beyond(Box<Beyond>),
    /// It would go beyond a load line, but there is none.
    NoLoadLine,
}

/// A search for the load line of one target, and beyond it if the plan of the load says so.
pub(super) struct Hunt<'a> {
    conditions: &'a Conditions,
    plan: &'a FindPlan,
    kept: Kept,
    searches: Searches,
    stage: Stage,
    /// The next trial; `None` once it has ended.
    next: Option<Wanted>,
    /// Trials beyond the load line, from before it was resumed.
    earlier_beyond: Vec<Trial>,
    started_at: String,
    /// The time that its trials have taken, since it was resumed.
    spent: Duration,
    /// The number of trials before it was resumed.
    resumed: u32,
    /// Whether a signal or an error ended it.
    interrupted: bool,
    /// That error.
    cut_short: Option<Error>,
}

impl<'a> Hunt<'a> {
    /// Resumes from `earlier` trials of the same search, in the order in which they ran, if there are any.
    ///
    /// # Errors
    /// The settings make no sense, or `earlier` trials are of other conditions.
    pub(super) fn new(
        conditions: &'a Conditions,
        plan: &'a FindPlan,
        earlier: Vec<KeptTrial>,
    ) -> Result<Self> {
        let started_at = timestamp::now();
        let mut searches = Searches::new(conditions, plan.settings)?;
        let mut kept = Kept::default();
        let mut earlier_beyond = Vec::new();
        for KeptTrial { file, trial } in earlier {
            kept.add(&trial, file);
            // What ran after the searches had ended ran beyond the load line.
            if conditions.plan.goes_beyond() && searches.next().is_none() {
                earlier_beyond.push(trial);
            } else {
                searches.record(&trial)?;
            }
        }
        let mut hunt = Self {
            conditions,
            plan,
            resumed: kept.count(),
            kept,
            searches,
            stage: Stage::LoadLine,
            next: None,
            earlier_beyond,
            started_at,
            spent: Duration::ZERO,
            interrupted: false,
            cut_short: None,
        };
        hunt.next = hunt.wanted()?;
        Ok(hunt)
    }

    /// The time that its trials have taken, since it was resumed.
    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    pub(super) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Runs the next trial. Returns whether there is a further one.
    ///
    /// # Errors
    /// The very first trial could not be run or kept, or a trial is of other conditions. A later error or a signal ends the
    /// search with what it knows.
    pub(super) fn step(&mut self, run: &mut RunTrial<'_>) -> Result<bool> {
        let Some(wanted) = self.next.take() else {
            return Ok(false);
        };
        let began = Instant::now();
        let ran = run(&wanted, &self.kept);
        self.spent += began.elapsed();
        match ran {
            Ok(KeptTrial { trial, file }) => {
                self.asks().record(&trial)?;
                self.kept.add(&trial, file);
                if trial.interrupted {
                    self.interrupt();
                }
            }
            // Nothing is known yet, so there is nothing to keep.
            Err(error) if self.kept.count() == 0 => return Err(error),
            Err(error) => {
                self.cut_short =
                    Some(error).filter(|error| !matches!(error, Error::Interrupted(_)));
                self.interrupt();
            }
        }
        if !self.interrupted {
            self.next = self.wanted()?;
        }
        Ok(self.next.is_some())
    }

    /// Ends it because of a signal, with what it knows. It does not go on.
    ///
    /// # Errors
    /// It knows nothing.
    pub(super) fn stopped(&mut self) -> Result<bool> {
        if self.kept.count() == 0 {
            return Err(Error::Interrupted("searching".to_owned()));
        }
        self.interrupt();
        Ok(false)
    }

    /// Ends it with what it knows.
    fn interrupt(&mut self) {
        self.interrupted = true;
        self.asks().interrupt();
    }

    fn asks(&mut self) -> &mut dyn Asks {
        match &mut self.stage {
            Stage::Beyond(beyond) => &mut **beyond,
            Stage::LoadLine | Stage::NoLoadLine => &mut self.searches,
        }
    }

    /// The next trial, if the time allows one.
    fn wanted(&mut self) -> Result<Option<Wanted>> {
        let whole = self.plan.time_budget;
        if matches!(self.stage, Stage::LoadLine) {
            let goes_beyond = self.conditions.plan.goes_beyond();
            let (budget, trials_after) = if goes_beyond {
                let share = whole.map(|whole| whole.mul_f64(FindPlan::LOAD_LINE_SHARE));
                (share, Beyond::USUAL_TRIALS)
            } else {
                (whole, 0)
            };
            if let Some(wanted) = self.within(budget) {
                let trials_left = wanted.trials_left.saturating_add(trials_after);
                return Ok(Some(Wanted {
                    trials_left,
                    ..wanted
                }));
            }
            if !goes_beyond {
                return Ok(None);
            }
            self.stage = self.beyond()?;
        }
        Ok(match self.stage {
            Stage::Beyond(_) => self.within(whole),
            Stage::LoadLine | Stage::NoLoadLine => None,
        })
    }

    /// The trial that is wanted next, if the search may take so long in all.
    fn within(&mut self, budget: Option<Duration>) -> Option<Wanted> {
        let Some(budget) = budget else {
            return self.asks().next();
        };
        let time_for = trials_in(
            budget.as_secs_f64(),
            self.spent.as_secs_f64(),
            self.kept.count() - self.resumed,
            self.conditions.profile.lasts_s(),
        );
        self.asks().expect_time_for(time_for);
        let wanted = self.asks().next()?;
        Some(Wanted {
            // Several searches share the time, and each of them expects to have all of it.
            trials_left: wanted.trials_left.min(time_for.max(1)),
            ..wanted
        })
    }

    /// What it looks for once the load line is known.
    fn beyond(&mut self) -> Result<Stage> {
        let Some(limit) = self.searches.load_line() else {
            return Ok(Stage::NoLoadLine);
        };
        let earlier = std::mem::take(&mut self.earlier_beyond);
        let mut beyond = Beyond::new(self.conditions, &self.plan.settings, limit);
        let of_searches = self.kept.count() as usize - earlier.len();
        self.kept
            .trials()
            .take(of_searches)
            .for_each(|trial| beyond.know(trial));
        earlier.iter().try_for_each(|trial| beyond.record(trial))?;
        Ok(Stage::Beyond(Box::new(beyond)))
    }

    /// What is known: a bracket for each SLO. What lies beyond the load line is in the first: no SLO judges it.
    ///
    /// It must have ended.
    pub(super) fn found(self) -> Found {
        let mut escalation = match &self.stage {
            Stage::LoadLine => None,
            Stage::Beyond(beyond) => Some(beyond.outcome()),
            Stage::NoLoadLine => Some(Beyond::without_limit()),
        };
        let bracket = |(slo, outcome): (&str, _)| {
            let found = self.kept.bracket(
                self.conditions,
                slo,
                &outcome,
                self.interrupted,
                &self.started_at,
                self.plan,
            );
            Bracket {
                escalation: escalation.take(),
                goals: self.kept.goals(self.conditions, &found),
                ..found
            }
        };
        Found {
            brackets: self.searches.outcomes().into_iter().map(bracket).collect(),
            cut_short: self.cut_short,
        }
    }
}
