//! What is checked, and what the checker needs around it.
//!
//! The checker knows gateways and simulators by these traits alone. [`super::Laboratory`] implements them with real
//! processes; the checker's own tests do with threads.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::manifest::InferenceTransport;
use crate::simulator::{SeenRequest, Stats};

/// Environment variables.
pub type Environment = BTreeMap<String, String>;

/// A gateway to check.
pub enum Subject<'a> {
    /// A gateway that runs somewhere. It cannot be started with special variables, nor its simulator be asked, so that many
    /// cases are not run.
    Url {
        /// `http://HOST:PORT`.
        url: String,
        /// Sent as `Authorization: Bearer`, where the gateway demands it.
        token: Option<String>,
    },
    /// A gateway that the checker starts, with the environment that each case needs.
    Target {
        /// The target's name.
        name: String,
        /// How the manifest says that it speaks to its inference server; `None` leaves that unchecked.
        transport: Option<InferenceTransport>,
        /// Starts it.
        bench: &'a dyn Bench,
    },
}

/// Starts gateways and simulators.
///
/// Errors are texts for the user.
pub trait Bench: Sync {
    /// Starts a simulator with these variables, on a port of its choice.
    ///
    /// # Errors
    /// It did not become ready.
    fn start_simulator(&self, environment: &Environment) -> Result<Box<dyn Simulator>, String>;

    /// Starts a gateway with these variables, on a port of its choice; returns when its `/health` answers 200.
    ///
    /// # Errors
    /// It did not become ready.
    fn start_gateway(&self, environment: &Environment) -> Result<Box<dyn Gateway>, String>;

    /// Starts a gateway with variables that it must refuse and waits until it ends.
    ///
    /// # Errors
    /// It could not be started, or it did not end within `limit`.
    fn start_refused(&self, environment: &Environment, limit: Duration) -> Result<Ended, String>;
}

/// A process that ended by itself.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The exit code; `None` after a signal.
    pub exit_code: Option<i32>,
    /// Everything that it printed, on both streams.
    pub output: String,
}

/// A gateway that runs. Dropped, it ends.
pub trait Gateway: Send + Sync {
    /// Where it listens.
    fn address(&self) -> SocketAddr;

    /// Its process, when it has one here: the checker then sees whether it was kept from its core.
    fn process(&self) -> Option<i32> {
        None
    }

    /// What it has printed so far.
    fn output(&self) -> String;

    /// Sends SIGTERM.
    ///
    /// # Errors
    /// The process is gone, or may not be signalled.
    fn terminate(&self) -> Result<(), String>;

    /// Waits for its end: `Ok(None)` when it has not ended within `limit`, else the exit code, -1 standing for a signal.
    ///
    /// # Errors
    /// It cannot be waited for.
    fn wait(&self, limit: Duration) -> Result<Option<i32>, String>;
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
