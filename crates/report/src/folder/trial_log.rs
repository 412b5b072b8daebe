//! The interval log of a trial that is still running.

use std::path::PathBuf;

use plimsoll_core::latency::LatencySet;

use super::ResultFolder;
use super::atomic::Unfinished;
use crate::error::ReportError;
use crate::hlog::IntervalLog;

/// An interval log that is written to disk second by second, under a temporary name until its trial is over. The
/// histograms of one second take about 1 MB in memory, and a soak has 1,800 seconds. A log dropped earlier leaves no
/// file.
#[derive(Debug)]
pub struct TrialLog {
    log: IntervalLog,
    file: Unfinished,
    /// Its final folder, for messages.
    folder: PathBuf,
}

impl ResultFolder {
    /// Begins the interval log of a trial that began at this time (RFC 3339 in UTC).
    /// [`ResultFolder::write_trial_with_log`] finishes it.
    ///
    /// # Errors
    /// When the system refuses, or the time is not RFC 3339.
    pub fn begin_log(&self, started_at: &str) -> Result<TrialLog, ReportError> {
        let mut log = IntervalLog::begin(started_at)?;
        let begun = Unfinished::begin(self.path(), HINT).and_then(|mut file| {
            file.append(&log.take_bytes())?;
            Ok(file)
        });
        Ok(TrialLog {
            log,
            file: begun.map_err(|error| ReportError::write(&self.path().join(HINT), error))?,
            folder: self.path().to_owned(),
        })
    }
}

impl TrialLog {
    /// Adds an interval that began `start_s` after the trial began and lasted `duration_s`.
    ///
    /// # Errors
    /// When the system refuses, or the times are negative or not finite.
    pub fn push(
        &mut self,
        start_s: f64,
        duration_s: f64,
        set: &LatencySet,
    ) -> Result<(), ReportError> {
        self.log.push(start_s, duration_s, set)?;
        self.file
            .append(&self.log.take_bytes())
            .map_err(|error| ReportError::write(&self.folder.join(HINT), error))
    }

    /// Gives the log its final name.
    pub(super) fn finish(self, name: &str) -> Result<(), ReportError> {
        self.file.finish(name)
    }
}

/// The name of the file while its trial has no number.
const HINT: &str = "trial.hlog";
