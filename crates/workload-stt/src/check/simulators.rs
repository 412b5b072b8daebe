//! The simulators beside the gateways: real processes here, threads in the tests of the cases.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_conformance::subject::Environment;
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;

use crate::simulator::{self, SeenRequest, Stats};

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
        let folder = self.logs.join(format!("{number:03}-inference"));
        let cpus = self.cpus.clone();
        match simulator::Simulator::start(&self.binary, &settings, cpus, &folder, &self.stop) {
            Ok(simulator) => Ok(Box::new(simulator)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Simulator for simulator::Simulator {
    fn url(&self) -> String {
        self.url().to_owned()
    }

    fn process(&self) -> Option<i32> {
        Some(self.pid())
    }

    fn set_faults(&self, faults: &serde_json::Value) -> Result<(), String> {
        self.set_faults(faults).map_err(|error| error.to_string())
    }

    fn stats(&self) -> Result<Stats, String> {
        self.stats().map_err(|error| error.to_string())
    }

    fn reset_stats(&self) -> Result<(), String> {
        self.reset_stats().map_err(|error| error.to_string())
    }

    fn requests(&self) -> Result<Vec<SeenRequest>, String> {
        self.requests(REMEMBERED_REQUESTS)
            .map_err(|error| error.to_string())
    }
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
