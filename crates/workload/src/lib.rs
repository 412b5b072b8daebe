//! What a workload is to the rest of Plimsoll.
//!
//! A workload is one crate with one [`Workload`]: a constant that the command has in its registry. It says which
//! [`Parameter`]s it takes, and makes a [`Plan`] of their [`Values`]. The plan says all that a trial has to know: what a
//! load counts, which SLO applies, what the target is told, how many sessions a load has, and which session machines
//! drive it.
//!
//! | module | what it is |
//! |---|---|
//! | [`parameter`] | what a user can choose: one row for each choice |
//! | [`values`] | what a user chose, checked against the rows |
//! | [`plan`] | a workload with its values settled |
//! | [`drive`] | session machines of a type that only their workload knows |
//! | [`counters`] | what a target counts itself, and what that may show |
//! | [`calibrate`] | what a calibration of the client measures |
//!
//! These are called a few times in a trial. The engine is generic over the session machines behind them, so no frame
//! pays for this.

pub mod calibrate;
pub mod counters;
pub mod drive;
pub mod parameter;
pub mod plan;
pub mod values;

use std::fmt;
use std::sync::Arc;

pub use calibrate::Work;
pub use counters::Counters;
pub use drive::{Drive, DriveError, Findings, machines, machines_with_findings};
pub use parameter::{Choice, Fit, Kind, Parameter, Usual};
pub use plan::{Afterwards, Demand, Job, Outcome, Plan, Row, Seen, Series, Told};
pub use values::{OfTarget, Value, Values};

/// A kind of load.
pub trait Workload: Sync {
    /// What it is called, and what it is.
    fn about(&self) -> &'static About;

    /// What a user can choose.
    fn parameters(&self) -> &'static [Parameter];

    /// The plan for these values. They are of this workload's parameters and fit together as [`Parameter::fits`] says.
    /// A value that is missing has its usual value. Given the values of a plan, the plan is the same.
    ///
    /// # Errors
    /// One line with the remedy: the values cannot be used.
    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal>;

    /// What `plimsoll calibrate` measures, in the order of the report.
    fn works(&self) -> &'static [&'static dyn Work] {
        &[]
    }
}

/// What a workload is called, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name: on the command line, in records, and of the folder of its targets.
    pub name: &'static str,
    /// One line for the help.
    pub line: &'static str,
    /// Whether its targets ask an inference server, so that a trial needs one.
    pub asks_inference: bool,
}

impl fmt::Debug for dyn Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload {}", self.about().name)
    }
}

/// Why something cannot be used: one line with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Refusal {
    /// A refusal with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
