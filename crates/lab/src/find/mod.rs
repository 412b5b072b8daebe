//! The search for the load line: trials at the loads that [`plimsoll_core::search`] asks for, until the edge is known.
//!
//! - `turns`: searches of several targets, which take turns;
//! - `hunt`: one of them, trial by trial;
//! - `searches`: one search for each SLO, all fed from the same trials;
//! - `beyond`: the search beyond the load line, for a load that asks for it;
//! - `kept`: the trials so far, and the brackets made from them;
//! - `least`: the lowest load at which a trial can give a verdict.

mod beyond;
mod hunt;
mod kept;
mod least;
mod searches;
#[cfg(test)]
pub(crate) mod tests;
mod turns;

use std::time::Duration;

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Bracket, Trial};
use plimsoll_core::search::Settings;

use crate::error::{Error, Result};
pub use turns::{Begun, Turns};

/// The plan of a search.
#[derive(Debug, Clone)]
pub struct FindPlan {
    /// The settings of the search itself.
    pub settings: Settings,
    /// After this time, no further trial begins. If the search goes on beyond the load line, the load line gets
    /// [`FindPlan::LOAD_LINE_SHARE`] of it at most.
    pub time_budget: Option<Duration>,
}

impl FindPlan {
    /// The share of the time budget for the load line, if the search then goes on beyond it.
    pub const LOAD_LINE_SHARE: f64 = 0.4;
}

/// The trial to run next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    load: u32,
    length: Length,
    /// Why it runs, in a few words.
    why: &'static str,
    /// About how many are left, this one included.
    trials_left: u32,
}

/// Asks for trials until it knows enough.
trait Asks {
    /// The next trial; `None` if it knows enough.
    fn next(&self) -> Option<Wanted>;

    /// Learns what a trial showed. An interrupted trial shows nothing.
    ///
    /// # Errors
    /// The trial belongs to another search.
    fn record(&mut self, trial: &Trial) -> Result<()>;

    /// Learns that the time is enough for this many more trials, if none is invalid.
    fn expect_time_for(&mut self, trials_left: u32);

    /// Learns that a signal or an error ended the measurement.
    fn interrupt(&mut self);
}

/// The outcome of a search.
#[derive(Debug)]
pub struct Found {
    /// What is known for each SLO: that of the conditions first, then the further ones.
    pub brackets: Vec<Bracket>,
    /// The error that ended the search early, unless that was a signal. The brackets are then marked `interrupted`.
    pub cut_short: Option<Error>,
}
