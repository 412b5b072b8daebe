//! Shows and keeps trials as they run.

use plimsoll_lab::trial::{FinishedTrial, TrialSecond};
use plimsoll_report::{ReportError, ResultFolder};

use super::state::Begins;
use crate::progress::Progress;
use crate::trial_files::TrialFiles;

/// Shows the trials of a command, and keeps each in a result folder: in the only one, or in that of its target.
pub(crate) struct Keeper<'a> {
    progress: &'a mut Progress,
    files: Vec<TrialFiles<'a>>,
    /// Index of the folder of the running trial.
    now: usize,
}

impl<'a> Keeper<'a> {
    /// Takes at least one folder.
    pub(crate) fn new(progress: &'a mut Progress, folders: &'a [ResultFolder]) -> Self {
        Self {
            progress,
            files: folders.iter().map(TrialFiles::new).collect(),
            now: 0,
        }
    }

    /// A trial begins; it is kept in the folder with this index, from 0.
    pub(crate) fn begins(&mut self, folder: usize, begins: &Begins<'_>) {
        self.now = folder;
        self.files[folder].trial_begins();
        self.progress.trial_begins(begins);
    }

    /// A second of the trial is over.
    pub(crate) fn second_over(&mut self, second: &TrialSecond<'_>) {
        self.progress.second(second);
        self.files[self.now].second(second);
    }

    /// The trial is over: shows and keeps it, and returns the name of its record.
    pub(crate) fn trial_over(&mut self, outcome: &FinishedTrial) -> Result<String, String> {
        self.progress.trial_ends(&outcome.trial);
        let stem = self.keep(outcome);
        stem.map(|stem| format!("{stem}.json"))
            .map_err(|error| error.to_string())
    }

    /// Keeps the trial without showing how it ended, if the result is shown next anyway. Returns the stem of its files.
    pub(crate) fn keep(&mut self, outcome: &FinishedTrial) -> Result<String, ReportError> {
        self.files[self.now].trial_ends(outcome)
    }
}
