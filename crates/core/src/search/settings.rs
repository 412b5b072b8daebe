//! The settings of a search, and whether they make sense.

use crate::profile::Length;

/// The settings of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The first load tried, clamped to `min..=max`.
    pub start: u32,
    /// The lowest load tried, at least 1: the least load at which a full trial can pass ([`crate::least_load`]).
    pub min: u32,
    /// The lowest load of short trials; below it, trials are full.
    pub short_min: u32,
    /// The highest load tried.
    pub max: u32,
    /// How narrow the bracket must be, as `first_fail / confirmed - 1`: 0.05 for the profile `quick`, 0.02 for
    /// `standard`.
    pub relative_width: f64,
    /// Confidence of the interval for the edge, between 0 and 1; 0.95 is usual.
    pub confidence: f64,
    /// The most valid trials that confirm a load at the edge; more than half must agree. 3 is usual, 1 believes every
    /// trial.
    pub repeats: u32,
    /// The most trials, invalid ones included.
    pub max_trials: u32,
    /// Decides which side of the edge is confirmed first, so that a drift of the machine does not always affect the
    /// same side.
    pub seed: u64,
    /// Time of a short trial as a share of a full one's, between 0 and 1; with 1, all trials are full.
    pub short_share: f64,
}

/// A setting that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The lowest load is 0, which shows nothing.
    #[error("the lowest load of a search is 0; it must be at least 1")]
    ZeroMin,
    /// No load lies between the lowest and the highest one.
    #[error(
        "the highest load of a search is {max}, but the lowest load at which a trial can give a verdict is {min}; raise the highest load (--max), or measure longer (--measured)"
    )]
    EmptyRange {
        /// The lowest load.
        min: u32,
        /// The highest load.
        max: u32,
    },
    /// The relative width is not positive and finite.
    #[error("the relative width of a search is {0}; it must be above 0, for example 0.05")]
    Width(f64),
    /// The confidence is out of range.
    #[error(
        "the confidence of a search is {0}; it must lie between 0.5 and 0.999, for example 0.95"
    )]
    Confidence(f64),
    /// The share of a short trial is out of range.
    #[error(
        "a short trial takes {0} of a full one's time; that share must be above 0 and at most 1"
    )]
    ShortShare(f64),
    /// No trial could be run.
    #[error("a search needs at least one repeat and one trial; both must be 1 or more")]
    NoTrials,
}

impl Settings {
    /// The lowest load of trials of that length.
    pub(super) fn least(&self, length: Length) -> u32 {
        match length {
            Length::Full => self.min,
            Length::Short => self.short_min.max(self.min),
        }
    }

    /// The same settings with `start` moved into range, if they make sense.
    pub(super) fn checked(self) -> Result<Self, SettingsError> {
        let Self { min, max, .. } = self;
        if min == 0 {
            return Err(SettingsError::ZeroMin);
        }
        if min > max {
            return Err(SettingsError::EmptyRange { min, max });
        }
        if !self.relative_width.is_finite() || self.relative_width <= 0.0 {
            return Err(SettingsError::Width(self.relative_width));
        }
        if !(0.5..=0.999).contains(&self.confidence) {
            return Err(SettingsError::Confidence(self.confidence));
        }
        if !(self.short_share > 0.0 && self.short_share <= 1.0) {
            return Err(SettingsError::ShortShare(self.short_share));
        }
        if self.repeats == 0 || self.max_trials == 0 {
            return Err(SettingsError::NoTrials);
        }
        let start = self.start.clamp(min, max);
        Ok(Self { start, ..self })
    }
}
