//! The files of trials, written while they run.

use plimsoll_lab::trial::{FinishedTrial, TrialSecond};
use plimsoll_report::{ReportError, ResultFolder, TrialLog};

/// Writes the files of trials, one trial after the other. The histograms go to disk second by second, because those of
/// a soak do not fit into memory.
pub(crate) struct TrialFiles<'a> {
    folder: &'a ResultFolder,
    /// The log of the running trial. Its first error is reported when the trial is kept.
    log: Option<Result<TrialLog, ReportError>>,
}

impl<'a> TrialFiles<'a> {
    pub(crate) fn new(folder: &'a ResultFolder) -> Self {
        Self { folder, log: None }
    }

    /// A trial begins. Removes what is left of one that never ended.
    pub(crate) fn trial_begins(&mut self) {
        self.log = None;
    }

    /// A second of the trial is over.
    #[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
    pub(crate) fn second(&mut self, second: &TrialSecond<'_>) {
        let begin = || self.folder.begin_log(second.started_at);
        let log = self.log.get_or_insert_with(begin);
        let start_s = second.at_s.saturating_sub(1) as f64;
        let pushed = match log {
            Ok(log) => log.push(start_s, 1.0, second.latency),
            Err(_) => Ok(()),
        };
        if let Err(error) = pushed {
            self.log = Some(Err(error));
        }
    }

    /// The trial is over: names its files, and returns their stem.
    pub(crate) fn trial_ends(&mut self, outcome: &FinishedTrial) -> Result<String, ReportError> {
        let begin = || self.folder.begin_log(&outcome.trial.started_at);
        let log = self.log.take().unwrap_or_else(begin)?;
        self.folder
            .write_trial_with_log(&outcome.trial, &outcome.seconds, log)
    }
}
