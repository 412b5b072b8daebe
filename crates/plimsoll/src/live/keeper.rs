//! Shows and keeps trials as they run.

use plimsoll_lab::campaign::{Observer, TrialBegins};
use plimsoll_lab::trial::{Conditions, FinishedTrial, Subject, TrialSecond};
use plimsoll_report::{ReportError, ResultFolder};

use crate::progress::Progress;
use crate::trial_files::TrialFiles;

/// Shows the trials of a command, and keeps each in a result folder: in the only one, or in that of its target.
pub(crate) struct Keeper<'a> {
    progress: &'a mut Progress,
    files: Vec<TrialFiles<'a>>,
    /// Index of the folder of the running trial.
    now: usize,
    /// Whether its trials are baselines, which tell nothing about the load line.
    of_baselines: bool,
}

impl<'a> Keeper<'a> {
    /// Takes at least one folder.
    pub(crate) fn new(progress: &'a mut Progress, folders: &'a [ResultFolder]) -> Self {
        Self {
            progress,
            files: folders.iter().map(TrialFiles::new).collect(),
            now: 0,
            of_baselines: false,
        }
    }

    /// The same for baselines.
    pub(crate) fn of_baselines(self) -> Self {
        Self {
            of_baselines: true,
            ..self
        }
    }

    /// Sets what is measured from now on, if that changes between two trials.
    pub(crate) fn measuring(&mut self, subject: &Subject, conditions: &Conditions) {
        self.progress.measuring(subject, conditions);
    }

    /// Prints a line that stays.
    pub(crate) fn say(&self, text: &str) {
        self.progress.say(text);
    }

    /// Keeps the trial without showing how it ended, if the result is shown next anyway. Returns the stem of its files.
    pub(crate) fn keep(&mut self, outcome: &FinishedTrial) -> Result<String, ReportError> {
        self.files[self.now].trial_ends(outcome)
    }
}

impl Observer for Keeper<'_> {
    /// The trial is kept in the folder of its target, if targets have folders of their own.
    fn trial_begins(&mut self, begun: &TrialBegins<'_>) {
        self.now = if self.files.len() == 1 {
            0
        } else {
            begun.which
        };
        self.files[self.now].trial_begins();
        self.progress.trial_begins(begun);
    }

    fn second(&mut self, second: &TrialSecond<'_>) {
        self.progress.second(second);
        self.files[self.now].second(second);
    }

    fn trial_ends(&mut self, finished: FinishedTrial) -> Result<String, String> {
        if self.of_baselines {
            self.progress.baseline_ends(&finished.trial);
        } else {
            self.progress.trial_ends(&finished.trial);
        }
        let stem = self.keep(&finished);
        stem.map(|stem| format!("{stem}.json"))
            .map_err(|error| error.to_string())
    }
}
