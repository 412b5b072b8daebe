//! Session machines of a type that only their workload knows, ready for the engine. The type is erased once per trial.
//! The engine itself stays generic, so no frame pays for it.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use plimsoll_core::session::SessionMachines;
use plimsoll_engine::clock::thread_cpu_ns;
use plimsoll_engine::{
    Company, EngineError, EngineSecond, Options, Report, Unsettled, run, run_in,
};
use plimsoll_tls::{Client, TlsMachines};
use serde_json::{Value, from_value, to_value};

/// Where the engine's seconds go. It says after each whether the run goes on.
pub type Seconds<'a> = &'a mut dyn FnMut(EngineSecond) -> ControlFlow<()>;

/// What session machines found out in addition to their report, as JSON that only their workload reads; null if nothing.
pub type Findings = Value;

/// Why a load was not driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A client process claims what cannot be read. All processes are the same program, so this is its own fault.
    #[error("a client process claims what is not JSON: {0}")]
    Claim(#[from] serde_json::Error),
}

/// The session machines of a trial.
pub trait Drive {
    /// From now on, all sessions use TLS, each over a connection of this client.
    fn use_tls(&mut self, client: Client);

    /// Drives all sessions in this process.
    ///
    /// # Errors
    /// The engine fails.
    fn run(
        &self,
        options: &Options,
        stop: &AtomicBool,
        on_second: Seconds<'_>,
    ) -> Result<Report, DriveError>;

    /// Drives one part of the sessions, while other processes drive the others.
    ///
    /// # Errors
    /// The engine fails, or a claim is not JSON.
    fn run_part(
        &self,
        company: &dyn Company,
        options: &Options,
        stop: &AtomicBool,
        on_second: Seconds<'_>,
    ) -> Result<Unsettled<Value>, DriveError>;

    /// Settles what all parts of a trial claim. `one_clock` says whether all of them read the same clock.
    ///
    /// # Errors
    /// A claim is not one of these machines.
    fn settle(&self, parts: Unsettled<Value>, one_clock: bool) -> Result<Report, DriveError>;

    /// What else the sessions found out; ask after the trial is settled.
    fn findings(&self) -> Findings;
}

/// Machines that find out nothing in addition to their report.
pub fn machines<M: SessionMachines + 'static>(machines: M) -> Box<dyn Drive> {
    machines_with_findings(machines, |_| Findings::Null)
}

/// Machines that find out something in addition.
pub fn machines_with_findings<M: SessionMachines + 'static>(
    machines: M,
    findings: fn(&M) -> Findings,
) -> Box<dyn Drive> {
    Box::new(Typed {
        machines,
        findings,
        tls: None,
    })
}

/// Machines of a known type.
struct Typed<M> {
    machines: M,
    findings: fn(&M) -> Findings,
    tls: Option<Client>,
}

impl<M: SessionMachines> Drive for Typed<M> {
    fn use_tls(&mut self, client: Client) {
        self.tls = Some(client);
    }

    fn run(
        &self,
        options: &Options,
        stop: &AtomicBool,
        on_second: Seconds<'_>,
    ) -> Result<Report, DriveError> {
        let machines = &self.machines;
        Ok(match &self.tls {
            Some(client) => run(
                &TlsMachines::new(machines, client, thread_cpu_ns),
                options,
                stop,
                on_second,
            )?,
            None => run(machines, options, stop, on_second)?,
        })
    }

    fn run_part(
        &self,
        company: &dyn Company,
        options: &Options,
        stop: &AtomicBool,
        on_second: Seconds<'_>,
    ) -> Result<Unsettled<Value>, DriveError> {
        let machines = &self.machines;
        let Unsettled { report, claims } = match &self.tls {
            Some(client) => run_in(
                company,
                &TlsMachines::new(machines, client, thread_cpu_ns),
                options,
                stop,
                on_second,
            )?,
            None => run_in(company, machines, options, stop, on_second)?,
        };
        let claims = claims.iter().map(to_value).collect::<Result<_, _>>()?;
        Ok(Unsettled { report, claims })
    }

    fn settle(&self, parts: Unsettled<Value>, one_clock: bool) -> Result<Report, DriveError> {
        let Unsettled { report, claims } = parts;
        let claims = claims.into_iter().map(from_value);
        let claims = claims.collect::<Result<_, _>>()?;
        Ok(Unsettled { report, claims }.settle(&self.machines, one_clock))
    }

    fn findings(&self) -> Findings {
        (self.findings)(&self.machines)
    }
}
