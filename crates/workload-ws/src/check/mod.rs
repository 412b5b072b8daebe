//! The cases of the contract of a WebSocket server (`docs/ws/contract.md`), for `plimsoll check`.
//!
//! Each dialect has its own list; sections 1 and 2 of the contract and the end of section 3 hold for both. A case is one
//! function in the file of its area, and one line in that file's list.
//!
//! - Both dialects: `http`, `environment`, `connections`, `drain`.
//! - Dialect `echo`: `upgrade`, `messages`, `control`, `violations`, `back_pressure`, `counters`, `fanout`.
//! - Dialect `wse`: the files of `wse`.
//! - `setup`: the environments that cases need. `talk`: what cases are written with.

mod back_pressure;
mod connections;
mod control;
mod counters;
mod drain;
mod environment;
mod fanout;
mod http;
mod messages;
mod setup;
mod talk;
mod upgrade;
mod violations;
mod wse;

use plimsoll_conformance::subject::Environment;
use plimsoll_conformance::{self as conformance, Setup, Suite, Verdict};

use crate::Dialect;

/// A case of this contract.
type Case = conformance::Case<WebSocketSuite>;

/// A server that runs, as cases see it.
type Site<'a> = conformance::Site<'a, WebSocketSuite>;

/// A case of the usual setup that needs nothing but the server's address.
fn case(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    Case::new(id, title, expected, &setup::BASE, run)
}

/// Two workers in nearly every setup: a limit or a counter that each worker keeps for itself is a fault that one would
/// hide.
const WORKERS: (&str, &str) = ("WORKER_THREADS", "2");

/// The cases of one dialect.
#[derive(Debug, Clone, Copy)]
pub struct WebSocketSuite {
    dialect: Dialect,
}

impl WebSocketSuite {
    /// The cases of this dialect.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

impl Suite for WebSocketSuite {
    type Companion = ();

    const COMPANION: Option<&'static str> = None;

    fn cases(&self) -> Vec<Case> {
        let of_dialect = match self.dialect {
            Dialect::Echo => [
                upgrade::cases(),
                messages::cases(),
                control::cases(),
                violations::cases(),
                back_pressure::cases(),
                fanout::cases(),
                counters::cases(),
            ]
            .into_iter()
            .flatten()
            .collect(),
            Dialect::Wse => wse::cases(),
        };
        [
            environment::cases(self.dialect),
            http::cases(self.dialect),
            of_dialect,
            connections::cases(),
            drain::cases(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn defaults(&self) -> &'static Setup {
        &setup::BASE
    }

    fn start_companion(&self, _: &'static Setup) -> Result<(), String> {
        Ok(())
    }

    fn environment(&self, setup: &'static Setup, (): &()) -> Environment {
        let (name, value) = WORKERS;
        let mut environment = Environment::from([(name.to_owned(), value.to_owned())]);
        environment.extend(setup.server_environment());
        environment
    }
}

#[cfg(test)]
mod tests;
