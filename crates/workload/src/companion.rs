//! A program that runs beside the target in every trial, such as the back end that it asks. It shares the client's CPUs,
//! so its cost and its lateness help decide whether a measurement can be trusted.

pub mod program;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plimsoll_core::caveat::CompanionTerms;
use plimsoll_core::record::CompanionWindow;
use plimsoll_host::Result;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_targets::manifest::Manifest;

use crate::drive::Findings;

/// How the companion of a workload is found and started.
pub trait Companions: Sync {
    /// What it is called in messages, and what to do if it is the limit.
    fn terms(&self) -> &'static CompanionTerms;

    /// The program. `root` is the folder that contains `targets/`, if there is one.
    ///
    /// # Errors
    /// It is nowhere; the error says how to get it.
    fn find(&self, root: Option<&Path>) -> Result<PathBuf>;

    /// The command that makes the program.
    fn remedy(&self) -> &'static str;

    /// Starts the program for a trial and waits until it is ready.
    ///
    /// # Errors
    /// It does not start. The error shows the end of its log.
    fn start(&self, program: &Path, how: &Start<'_>) -> Result<Box<dyn Companion>>;

    /// Those that run already at this URL, where targets ask them; `None` if nothing there is such a program, or if it
    /// cannot be asked.
    fn at(&self, url: &str) -> Option<Box<dyn Companion>>;

    /// What a target is told, so that it asks at this URL.
    fn told(&self, url: &str) -> Vec<(String, String)>;

    /// The program where it runs for many trials, such as in a container: with the settings of a trial.
    fn deployed(&self) -> Deployed;

    /// Whether the target with this manifest gets its answers from the companion. Each trial then compares what the
    /// companion received with what the target answered; otherwise the result says that this was not checked.
    fn is_asked_by(&self, _target: &Manifest) -> bool {
        true
    }

    /// About what it adds to the cost of a session-second, in µs of CPU. Used only to warn early, never for a verdict.
    fn cpu_us_per_session_second(&self) -> f64;
}

/// A companion where Plimsoll does not start it itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// The name of its program. It listens at `BIND` and `PORT`, and answers `GET /health`.
    pub program: &'static str,
    /// Its other settings: environment variables.
    pub settings: Vec<(String, String)>,
}

/// How a companion is started.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The seed of the trial.
    pub seed: u64,
    /// What the plan tells it ([`Plan::tells_companion`](crate::Plan::tells_companion)); null if nothing.
    pub told: &'a Findings,
    /// The address that it listens on; the loopback if there is none.
    pub bind: Option<IpAddr>,
    /// Its CPUs.
    pub cpus: Option<&'a CpuList>,
    /// The folder of its log.
    pub log_folder: &'a Path,
    /// Ends the wait.
    pub stop: &'a Stop,
}

/// A companion that runs. Dropping it kills what was started for the trial.
pub trait Companion: Send + Sync {
    /// Its process, if it was started for the trial.
    fn pid(&self) -> Option<i32>;

    /// Where targets reach it.
    fn url(&self) -> &str;

    /// Begins the measured window.
    ///
    /// # Errors
    /// It does not answer.
    fn begin_window(&self) -> Result<()>;

    /// What it did in the measured window so far.
    ///
    /// # Errors
    /// It does not answer.
    fn seen(&self) -> Result<CompanionSeen>;

    /// What it counted since it started, for its workload alone; null if nothing. Asked after the last session.
    ///
    /// # Errors
    /// It does not answer.
    fn account(&self) -> Result<Findings> {
        Ok(Findings::Null)
    }

    /// Stops it.
    ///
    /// # Errors
    /// The system does not report how it ended.
    fn stop(self: Box<Self>) -> Result<()>;
}

/// What a companion did.
#[derive(Debug, Clone, PartialEq)]
pub struct CompanionSeen {
    /// Its own statistics of the window. The resources of its process are sampled elsewhere.
    pub window: CompanionWindow,
    /// Bytes that targets sent to it in the whole trial, regardless of the window.
    pub request_bytes_in_all: u64,
}
