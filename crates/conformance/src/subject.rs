//! What is checked, and what the checker needs around it.
//!
//! The checker knows servers by these traits alone. [`super::Laboratory`] implements them with real processes; the tests
//! of the cases do with threads.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Environment variables.
pub type Environment = BTreeMap<String, String>;

/// A server to check.
pub enum Subject<'a> {
    /// A server that runs somewhere. It cannot be started with special variables, nor its companion be asked, so that
    /// many cases are not run.
    Url {
        /// `http://HOST:PORT`, or `ws://HOST:PORT/PATH`.
        url: String,
        /// Sent as `Authorization: Bearer`, where the server demands it.
        token: Option<String>,
    },
    /// A server that the checker starts, with the environment that each case needs.
    Target {
        /// The target's name.
        name: String,
        /// Starts it.
        bench: &'a dyn Bench,
    },
}

/// Starts servers.
///
/// Errors are texts for the user.
pub trait Bench: Sync {
    /// Starts a server with these variables, on a port of its choice; returns when it says that it is ready.
    ///
    /// # Errors
    /// It did not become ready.
    fn start(&self, environment: &Environment) -> Result<Box<dyn Server>, String>;

    /// Starts a server with variables that it must refuse and waits until it ends.
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

/// A server that runs. Dropped, it ends.
pub trait Server: Send + Sync {
    /// Where it listens.
    fn address(&self) -> SocketAddr;

    /// Where it answers HTTP about itself.
    fn http(&self) -> SocketAddr {
        self.address()
    }

    /// Where it listens on the port of this variable, if it has one of that name.
    fn at(&self, _variable: &str) -> Option<SocketAddr> {
        None
    }

    /// Its process, when it has one here: the checker then sees whether it was kept from its core.
    fn process(&self) -> Option<i32> {
        None
    }

    /// What it has printed so far.
    fn output(&self) -> String;

    /// Sends the signal that asks it to stop: SIGTERM, unless its manifest names another.
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
