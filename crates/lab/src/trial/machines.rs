//! A workload of any kind, ready for the engine. Its type is erased once per trial; the engine itself stays generic, so
//! no frame pays for it.

use std::sync::atomic::AtomicBool;

use plimsoll_core::session::Workload;
use plimsoll_engine::{Company, EngineSecond, Options, Report, Unsettled, run, run_in};
use plimsoll_workload_ws::DecodeProof;
use plimsoll_workload_ws::record::ClosedLoopRecord;
use serde_json::{Value, from_value, to_value};

use crate::error::{Error, Result};

/// Where the engine's seconds go.
pub(super) type Seconds<'a> = &'a mut dyn FnMut(EngineSecond);

/// What a workload found out in addition to its report.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Whether the server decodes what it was sent, if it was asked.
    pub(super) decode: Option<DecodeProof>,
    /// What a closed loop shows, if that is the workload.
    pub(super) closed_loop: Option<ClosedLoopRecord>,
}

/// The session machines of a trial.
pub(super) trait Machines {
    /// Drives all sessions in this process.
    fn run(&self, options: &Options, stop: &AtomicBool, on_second: Seconds<'_>) -> Result<Report>;

    /// Drives one part of the sessions, while other processes drive the others.
    fn run_part(
        &self,
        company: &dyn Company,
        options: &Options,
        stop: &AtomicBool,
        on_second: Seconds<'_>,
    ) -> Result<Unsettled<Value>>;

    /// Settles what all parts of a trial claim.
    fn settle(&self, parts: Unsettled<Value>) -> Result<Report>;

    /// What else the sessions found out; ask after the trial is settled.
    fn findings(&self) -> Findings;
}

/// A workload whose type is known.
pub(super) struct Known<W> {
    pub(super) workload: W,
    pub(super) findings: fn(&W) -> Findings,
}

impl<W: Workload> Machines for Known<W> {
    fn run(&self, options: &Options, stop: &AtomicBool, on_second: Seconds<'_>) -> Result<Report> {
        run(&self.workload, options, stop, on_second).map_err(|error| Error::of_engine(&error))
    }

    fn run_part(
        &self,
        company: &dyn Company,
        options: &Options,
        stop: &AtomicBool,
        on_second: Seconds<'_>,
    ) -> Result<Unsettled<Value>> {
        let Unsettled { report, claims } =
            run_in(company, &self.workload, options, stop, on_second)
                .map_err(|error| Error::of_engine(&error))?;
        let claims = claims
            .iter()
            .map(|claim| to_value(claim).map_err(|error| unreadable(&error)));
        let claims = claims.collect::<Result<_>>()?;
        Ok(Unsettled { report, claims })
    }

    fn settle(&self, parts: Unsettled<Value>) -> Result<Report> {
        let Unsettled { report, claims } = parts;
        let claims = claims
            .into_iter()
            .map(|claim| from_value(claim).map_err(|error| unreadable(&error)));
        let claims = claims.collect::<Result<_>>()?;
        Ok(Unsettled { report, claims }.settle(&self.workload))
    }

    fn findings(&self) -> Findings {
        (self.findings)(&self.workload)
    }
}

/// Both sides are the same program, so this is its own fault.
fn unreadable(error: &serde_json::Error) -> Error {
    Error::Fault(format!("a client process claims what is not JSON: {error}"))
}
