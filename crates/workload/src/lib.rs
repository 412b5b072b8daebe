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
//! | [`fields`] | fields of the protocol that the user names |
//! | [`plan`] | a workload with its values settled |
//! | [`drive`] | session machines of a type that only their workload knows |
//! | [`companion`] | a program that runs beside the target |
//! | [`speaker`] | who asks a target that has no HTTP port |
//! | [`counters`] | what a target counts itself, and what that may show |
//! | [`calibrate`] | what a calibration of the client measures |
//!
//! These are called a few times in a trial. The engine is generic over the session machines behind them, so no frame
//! pays for this.

pub mod calibrate;
pub mod companion;
pub mod counters;
pub mod drive;
pub mod fields;
pub mod parameter;
pub mod plan;
pub mod speaker;
pub mod values;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use plimsoll_conformance::Check;
use plimsoll_core::slo::OwnMetric;
use plimsoll_document::Tell;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;

pub use calibrate::{BackEndLoad, Work};
pub use companion::{Companion, CompanionSeen, Companions};
pub use counters::Counters;
pub use drive::{Drive, DriveError, Findings, machines, machines_with_findings};
pub use fields::Fields;
pub use parameter::{Choice, Fit, Kind, Parameter, Usual};
pub use plan::{
    Afterwards, Baseline, Conversation, Crash, CrashKind, Crashed, Demand, Job, Outcome, Plan, Row,
    Seen, Series, Told,
};
pub use plimsoll_host::data_folder::Data;
pub use plimsoll_targets::manifest::{Key, Keys, Manifest, Rule, SETTINGS, Takes, Tier, VARIANT};
pub use speaker::Speaker;
pub use values::{Value, Values};

/// A kind of load.
pub trait Workload: Sync {
    /// What it is called, and what it is.
    fn about(&self) -> &'static About;

    /// What a user can choose.
    fn parameters(&self) -> &'static [Parameter];

    /// The keys that only the manifests of its targets have.
    fn manifest_keys(&self) -> &'static [Key] {
        &[]
    }

    /// What else must hold of these manifests: a rule that one key alone cannot break.
    fn manifest_rule(&self) -> Rule {
        Keys::default().rule
    }

    /// The environment variables of its contract, besides those of every contract. Plimsoll removes them from the
    /// environment of a target that it starts, because the user's shell must not change what a target does.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// What runs beside its targets in a trial, if anything does.
    fn companions(&self) -> Option<&'static dyn Companions> {
        None
    }

    /// What it says about its trials besides what every trial has; `None` if that is nothing.
    fn teller(&self) -> Option<&'static dyn Tell> {
        None
    }

    /// The cases of its contract, for this target or for a server that runs already; `None` if there are none. The
    /// values say which properties the target or the server has.
    fn suite(&self, _values: &Values, _target: Option<&Checked<'_>>) -> Option<Box<dyn Check>> {
        None
    }

    /// What a target with this manifest can be measured with, and what it does not have and why: a line each, for the list
    /// of this workload's targets.
    fn offers(&self, _manifest: &Manifest) -> Vec<String> {
        Vec::new()
    }

    /// The ids of all cases that a target with this manifest has, and so may deviate from.
    fn case_ids(&self, values: &Values, _manifest: &Manifest) -> Vec<String> {
        let suite = self.suite(values, None);
        suite.map_or_else(Vec::new, |suite| suite.case_ids())
    }

    /// The plan for these values: of this workload's parameters, fitting together as [`Parameter::fits`] says, and with
    /// the usual values where none was given. Given the values of a plan, the plan is the same.
    ///
    /// # Errors
    /// One line with the remedy: the values cannot be used.
    fn plan(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal>;

    /// The metrics that only this workload computes, so that an SLO can have gates on them. Its sessions leave the values in
    /// [`Ledger::own`](plimsoll_core::ledger::Ledger::own) when they are settled.
    fn metrics(&self) -> &'static [OwnMetric] {
        &[]
    }

    /// What `plimsoll calibrate` measures, in the order of the report.
    fn works(&self) -> &'static [&'static dyn Work] {
        &[]
    }

    /// What its targets ask of their inference server, for `plimsoll calibrate --inference`; `None` if they have none.
    fn back_end_load(&self) -> Option<&'static dyn BackEndLoad> {
        None
    }
}

impl dyn Workload {
    /// The plan for these values, and for the usual values of all other parameters.
    ///
    /// # Errors
    /// One line with the remedy: the values cannot be used.
    pub fn planned(&self, values: Values) -> Result<Arc<dyn Plan>, Refusal> {
        self.plan(values.or_usual(self.parameters()))
    }

    /// The plan for these values and a target with this manifest. It also has the values that the manifest settles
    /// ([`Plan::must_fit`]), so that records and client processes have them.
    ///
    /// # Errors
    /// One line with the remedy: the values cannot be used, or the target does not have what the load asks for.
    pub fn plan_for(&self, values: Values, manifest: &Manifest) -> Result<Arc<dyn Plan>, Refusal> {
        let plan = self.plan(values)?;
        let settled = plan.must_fit(manifest)?;
        if settled.is_empty() {
            return Ok(plan);
        }
        self.plan(plan.values().clone().and(settled))
    }
}

/// A target that is checked.
#[derive(Debug, Clone, Copy)]
pub struct Checked<'a> {
    /// The target.
    pub manifest: &'a Manifest,
    /// The program of its companion, if the workload has one.
    pub companion: Option<&'a Path>,
    /// The CPUs of that program.
    pub cpus: &'a CpuList,
    /// The folder for its logs.
    pub logs: &'a Path,
    /// Ends the check.
    pub stop: &'a Stop,
}

/// What a workload is called, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name: on the command line, in records, and of the folder of its targets.
    pub name: &'static str,
    /// One line for the help.
    pub line: &'static str,
    /// The target that does the least for an answer, if there is one: most of what it takes, client and network take.
    pub floor: Option<&'static str>,
    /// The version of the contract that its targets follow; `None` if it has none.
    pub contract: Option<u32>,
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
