//! A campaign: trials one after the other, each shown while it runs and kept once it is over. A search, a comparison
//! and rounds at one load differ only in the trial that they want next.

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Target, Trial};
use plimsoll_host::signals::Stop;

use crate::error::{Error, Result};
use crate::trial::{self, Conditions, FinishedTrial, Subject, TrialSecond};

/// One of the targets of a campaign.
#[derive(Debug, Clone, Copy)]
pub struct Contender<'a> {
    /// The target.
    pub subject: &'a Subject,
    /// The conditions of its trials, without their seeds.
    pub conditions: &'a Conditions,
}

/// The trial that a campaign wants next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Index of the contender.
    pub(crate) which: usize,
    pub(crate) sessions: u32,
    pub(crate) length: Length,
    pub(crate) seed: u64,
    /// Why it runs, in a few words.
    pub(crate) why: &'static str,
    /// About how many trials are left, this one included.
    pub(crate) trials_left: u32,
}

/// A trial that begins.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrialBegins<'a> {
    /// Its number, from 1.
    pub number: u32,
    /// Index of the contender.
    pub which: usize,
    /// The contender's letter in a comparison; otherwise empty.
    pub letter: &'a str,
    /// The target's name; empty if there is only one.
    pub target: &'a str,
    /// The load.
    pub sessions: u32,
    /// Why it runs, in a few words; empty if there is only one trial.
    pub why: &'a str,
    /// About how many trials are left, this one included.
    pub trials_left: u32,
}

/// Receives the progress of a campaign. The caller may show it, and must keep each trial.
pub trait Observer {
    /// A trial begins.
    fn trial_begins(&mut self, begun: &TrialBegins<'_>);
    /// A second of the trial is over. Its latencies are available only during this call.
    fn second(&mut self, second: &TrialSecond<'_>);
    /// The trial is over. Returns the name under which it was kept.
    ///
    /// # Errors
    /// The trial could not be kept.
    fn trial_ends(&mut self, finished: FinishedTrial) -> std::result::Result<String, String>;
}

/// A trial that was kept.
#[derive(Debug, Clone)]
pub struct KeptTrial {
    /// Its record.
    pub trial: Trial,
    /// The name under which it was kept.
    pub file: String,
}

/// Checks that a trial is of the same target as an earlier one of the same measurement.
///
/// # Errors
/// The target's start line names other versions than before.
pub(crate) fn must_be_the_same_target(first: &Trial, trial: &Trial) -> Result<()> {
    if first.target == trial.target {
        return Ok(());
    }
    let told = |target: &Target| format!("{} {:?}", target.name, target.versions);
    Err(Error::Usage(format!(
        "the target changed: {} before, {} now; start a new search",
        told(&first.target),
        told(&trial.target)
    )))
}

/// Runs trials of its contenders.
pub(crate) struct Campaign<'a> {
    contenders: &'a [Contender<'a>],
    /// The contenders' letters, in a comparison.
    letters: &'a [&'a str],
    stop: &'a Stop,
    observer: &'a mut dyn Observer,
    /// How many trials there are, including those of an interrupted campaign that this one resumes.
    trials: u32,
}

impl<'a> Campaign<'a> {
    pub(crate) fn new(
        contenders: &'a [Contender<'a>],
        stop: &'a Stop,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self {
            contenders,
            letters: &[],
            stop,
            observer,
            trials: 0,
        }
    }

    /// The same for a comparison of sides with these letters.
    pub(crate) fn of_sides(mut self, letters: &'a [&'a str]) -> Self {
        self.letters = letters;
        self
    }

    /// The same after so many trials.
    pub(crate) fn after(mut self, trials: u32) -> Self {
        self.trials = trials;
        self
    }

    pub(crate) fn trials(&self) -> u32 {
        self.trials
    }

    /// Runs a trial and has it kept, also if a signal cut it short.
    ///
    /// # Errors
    /// The errors of [`trial::run`]; or the trial could not be kept.
    pub(crate) fn run(&mut self, wanted: &Wanted) -> Result<KeptTrial> {
        self.run_if(wanted, |_| Ok(()))
    }

    /// The same, but keeps the trial only if `accept` takes it.
    pub(crate) fn run_if(
        &mut self,
        wanted: &Wanted,
        accept: impl FnOnce(&Trial) -> Result<()>,
    ) -> Result<KeptTrial> {
        let Contender {
            subject,
            conditions,
        } = self.contenders[wanted.which];
        let is_alone = self.contenders.len() == 1;
        self.observer.trial_begins(&TrialBegins {
            number: self.trials + 1,
            which: wanted.which,
            letter: self.letters.get(wanted.which).copied().unwrap_or_default(),
            target: if is_alone { "" } else { subject.name() },
            sessions: wanted.sessions,
            why: wanted.why,
            trials_left: wanted.trials_left,
        });
        let mut conditions = conditions.clone();
        conditions.seed = wanted.seed;
        let finished = trial::run(
            &conditions,
            subject,
            wanted.sessions,
            conditions.length_for(wanted.sessions, wanted.length),
            self.stop,
            &mut |second| self.observer.second(second),
        )?;
        let trial = finished.trial.clone();
        accept(&trial)?;
        let file = self.observer.trial_ends(finished).map_err(Error::Usage)?;
        self.trials += 1;
        Ok(KeptTrial { trial, file })
    }
}
