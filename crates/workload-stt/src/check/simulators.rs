//! The simulators beside the gateways: real processes here, threads in the tests of the cases.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_conformance::subject::Environment;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_workload::Findings;
use plimsoll_workload::companion::Start;
use plimsoll_workload::companion::program::Program;

use crate::simulator::{ABOUT, SeenRequest, Stats};

/// Requests that are asked of the simulator: all that it remembers.
const REMEMBERED_REQUESTS: usize = 1024;

/// Starts inference simulators.
///
/// Errors are texts for the user.
pub trait Simulators: Send + Sync {
    /// Starts a simulator with these variables, on a port of its choice.
    ///
    /// # Errors
    /// It did not become ready.
    fn start(&self, environment: &Environment) -> Result<Box<dyn Simulator>, String>;
}

/// An inference simulator that runs. Dropped, it ends.
pub trait Simulator: Send + Sync {
    /// Its base URL, for `INFERENCE_URL`.
    fn url(&self) -> String;

    /// Its process, when it has one here.
    fn process(&self) -> Option<i32> {
        None
    }

    /// Switches faults on: the body of `PUT /faults`. `{}` switches all off.
    ///
    /// # Errors
    /// It refused or did not answer.
    fn set_faults(&self, faults: &serde_json::Value) -> Result<(), String>;

    /// The counters since the last reset.
    ///
    /// # Errors
    /// It did not answer.
    fn stats(&self) -> Result<Stats, String>;

    /// Begins a new window of counters.
    ///
    /// # Errors
    /// It did not answer.
    fn reset_stats(&self) -> Result<(), String>;

    /// The requests seen last, oldest first.
    ///
    /// # Errors
    /// It did not answer.
    fn requests(&self) -> Result<Vec<SeenRequest>, String>;
}

/// Starts the simulator's program.
#[derive(Debug)]
pub struct SimulatorProgram {
    binary: PathBuf,
    logs: PathBuf,
    cpus: Option<CpuList>,
    stop: Stop,
    starts: AtomicU32,
}

impl SimulatorProgram {
    /// The program, with a folder for logs: one folder in it for each start; and the CPUs that it is bound to.
    #[must_use]
    pub fn new(binary: &Path, logs: &Path, cpus: Option<CpuList>, stop: &Stop) -> Self {
        Self {
            binary: binary.into(),
            logs: logs.into(),
            cpus,
            stop: stop.clone(),
            starts: AtomicU32::new(0),
        }
    }
}

impl Simulators for SimulatorProgram {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Simulator>, String> {
        let settings: Vec<(String, String)> = environment.clone().into_iter().collect();
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        let how = Start {
            seed: 0,
            told: &Findings::Null,
            bind: None,
            cpus: self.cpus.as_ref(),
            log_folder: &self.logs.join(format!("{number:03}-inference")),
            stop: &self.stop,
        };
        match Program::start(&ABOUT, &self.binary, settings, &how) {
            Ok(program) => Ok(Box::new(program)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Simulator for Program {
    fn url(&self) -> String {
        self.control().url().to_owned()
    }

    fn process(&self) -> Option<i32> {
        Some(self.pid())
    }

    fn set_faults(&self, faults: &serde_json::Value) -> Result<(), String> {
        told(self.control().set_faults(faults))
    }

    fn stats(&self) -> Result<Stats, String> {
        told(self.control().stats())
    }

    fn reset_stats(&self) -> Result<(), String> {
        told(self.control().reset_stats())
    }

    fn requests(&self) -> Result<Vec<SeenRequest>, String> {
        let path = format!("/requests?last={REMEMBERED_REQUESTS}");
        told(self.control().get(&path))
    }
}

fn told<T>(answer: plimsoll_host::Result<T>) -> Result<T, String> {
    answer.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulator_that_does_not_start_is_an_error() {
        let folder = tempfile::tempdir().expect("temp");
        let nowhere = Path::new("/nowhere");
        let program = SimulatorProgram::new(nowhere, folder.path(), None, &Stop::new());
        assert!(program.start(&Environment::new()).is_err());
    }
}
