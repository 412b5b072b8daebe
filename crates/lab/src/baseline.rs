//! The baseline of a search: a trial that runs before it, and that its trials are compared with. It shows, for example,
//! what a server answers while nobody else asks.

use std::sync::Arc;

use plimsoll_core::caveat::Caveat;
use plimsoll_core::profile::Length;
use plimsoll_core::record::{Trial, Verdict};
use plimsoll_host::signals::Stop;
use plimsoll_workload::{Refusal, plan};

use crate::campaign::{Campaign, Contender, KeptTrial, Observer, Wanted};
use crate::error::{Error, Result};
use crate::trial::Conditions;

/// A trial that others are compared with.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Its record.
    pub trial: Arc<Trial>,
    /// The file of the record, for the records of the others.
    pub file: String,
}

impl Conditions {
    /// The same for trials that are compared with this one. Their SLOs are the plan's, unless `slos_are_given` by the user:
    /// the plan may have further gates now.
    ///
    /// # Errors
    /// One line: nothing can be compared with this trial.
    pub fn compared_with(
        &self,
        baseline: Baseline,
        slos_are_given: bool,
    ) -> std::result::Result<Self, Refusal> {
        must_be_sound(&baseline.trial, self.plan.workload().about().name)?;
        let plan = self.plan.with_baseline(&baseline.trial)?;
        let mut conditions = Self {
            baseline: Some(baseline),
            ..self.clone()
        };
        if !slos_are_given {
            conditions.slo = plan.slo();
            conditions.further_slos = plan.further_slos();
        }
        conditions.plan = plan;
        Ok(conditions)
    }

    /// The conditions of the baseline itself, which has phases of its own.
    #[must_use]
    pub fn of_baseline(&self, wanted: &plan::Baseline) -> Self {
        let mut profile = self.profile.with_phases(wanted.phases);
        self.plan.unit().shape(&mut profile);
        Self {
            profile,
            ..self.clone()
        }
    }
}

/// Refuses a trial that shows nothing about the target, or something else than these trials do. A failed one shows enough.
fn must_be_sound(trial: &Trial, workload: &str) -> std::result::Result<(), Refusal> {
    if trial.workload != workload {
        return Err(Refusal(format!(
            "the baseline is a trial of workload {}, this is {workload}",
            trial.workload
        )));
    }
    if trial.interrupted {
        return Err(Refusal::new("the baseline was interrupted"));
    }
    if trial.verdict == Verdict::Invalid {
        return Err(Refusal(format!(
            "the baseline is invalid ({})",
            trial.blocking_names()
        )));
    }
    Ok(())
}

/// Runs the baselines of these contenders, one after the other, and has each kept. The conditions are those of
/// [`Conditions::of_baseline`]. A baseline that is in doubt runs once more: the whole search would go without it.
///
/// # Errors
/// The errors of [`trial::run`](crate::trial::run); a trial could not be kept; or a signal cut one short.
pub fn run(
    contenders: &[Contender<'_>],
    wanted: &plan::Baseline,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Vec<Baseline>> {
    let mut campaign = Campaign::new(contenders, stop, observer);
    let mut run = |which: usize| {
        let kept = of_two(|| {
            campaign.run(&Wanted {
                which,
                sessions: wanted.load,
                length: Length::Full,
                seed: contenders[which].conditions.seed,
                why: wanted.what,
                trials_left: u32::try_from(contenders.len() - which).unwrap_or(u32::MAX),
            })
        })?;
        if kept.trial.interrupted {
            return Err(Error::Interrupted("measuring the baseline".to_owned()));
        }
        Ok(Baseline {
            trial: Arc::new(kept.trial),
            file: kept.file,
        })
    };
    (0..contenders.len()).map(&mut run).collect()
}

/// The trial, or the next one if that may be valid where this one is not.
fn of_two(mut run: impl FnMut() -> Result<KeptTrial>) -> Result<KeptTrial> {
    let kept = run()?;
    let hopeless = kept.trial.caveats.iter().any(Caveat::hopeless);
    let in_doubt = kept.trial.verdict == Verdict::Invalid && !kept.trial.interrupted && !hopeless;
    if in_doubt { run() } else { Ok(kept) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::tests::trial;

    /// Which trial [`of_two`] takes of those with these blocking caveats.
    fn taken(trials: &[&[&str]]) -> usize {
        let mut run = 0;
        let kept = of_two(|| {
            let mut trial = trial(1, Length::Full);
            trial.caveats.extend(trials[run].iter().map(|id| Caveat {
                id: (*id).to_owned(),
                blocking: true,
                text: String::new(),
            }));
            if !trial.caveats.is_empty() {
                trial.verdict = Verdict::Invalid;
            }
            run += 1;
            let file = run.to_string();
            Ok(KeptTrial { trial, file })
        });
        kept.expect("kept").file.parse().expect("a number")
    }

    #[test]
    fn a_baseline_in_doubt_runs_once_more_if_that_may_help() {
        assert_eq!(taken(&[&[]]), 1);
        assert_eq!(taken(&[&["steal"], &[]]), 2);
        assert_eq!(taken(&[&["steal"], &["steal"]]), 2);
        assert_eq!(taken(&[&["steal", "shared-cores"]]), 1);
    }
}
