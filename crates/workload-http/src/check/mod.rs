//! The cases of the contract of an HTTP server, for `plimsoll check`.
//!
//! A case is one function in the file of its group, and one line in that file's list. A list has only what the target
//! [`Offer`]s.
//!
//! - Groups: `routes`, with `sum`; `keep_alive`, `pipelining`, `chunked`, `fragments`, `framing`, `metrics`, `limits`,
//!   `h2c`, `life`.
//! - [`Offer`]: what a target has. `setup`: the environments that cases need.
//! - `talk`: a connection, as cases use it. `refusal`: what a broken rule gets. `exchange`: a request and the answer that is wanted. `answer`: how answers are
//!   read. `h2_line`: a connection of HTTP/2.

mod answer;
mod chunked;
mod exchange;
mod fragments;
mod framing;
mod h2_line;
mod h2c;
mod keep_alive;
mod life;
mod limits;
mod metrics;
mod offer;
mod pipelining;
mod refusal;
mod routes;
mod setup;
mod sum;
mod talk;

use std::time::Duration;

use plimsoll_conformance::subject::Environment;
use plimsoll_conformance::{self as conformance, Setup, Suite, Verdict};

pub use offer::{FILES, LARGEST, Offer, Protocol, Route, Sizes};

/// A case of this contract.
type Case = conformance::Case<HttpSuite>;

/// A server that runs, as cases see it.
type Site<'a> = conformance::Site<'a, HttpSuite>;

/// A case of the usual setup that needs nothing but the server's address.
fn case(
    id: &'static str,
    title: &'static str,
    expected: &'static str,
    run: impl Fn(&Site<'_>) -> Verdict + Send + Sync + 'static,
) -> Case {
    Case::new(id, title, expected, &setup::BASE, run)
}

/// Two workers in nearly every setup: what each worker keeps for itself is a fault that one would hide.
const WORKERS: (&str, &str) = ("WORKER_THREADS", "2");

/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(10);

/// How long a request may stay unfinished.
const UNFINISHED: Duration = Duration::from_secs(60);

/// The cases for one target.
#[derive(Debug, Clone)]
pub struct HttpSuite {
    offer: Offer,
    /// How long the case of an idle connection waits. Tests have no 10 s.
    idle: Duration,
    /// How long a request may stay unfinished. Tests have no 60 s.
    unfinished: Duration,
}

impl HttpSuite {
    /// The cases for a target that has this.
    #[must_use]
    pub fn new(offer: Offer) -> Self {
        Self {
            offer,
            idle: IDLE,
            unfinished: UNFINISHED,
        }
    }
}

impl Suite for HttpSuite {
    type Companion = ();

    const COMPANION: Option<&'static str> = None;

    fn cases(&self) -> Vec<Case> {
        let offer = &self.offer;
        [
            routes::cases(offer),
            sum::cases(offer),
            keep_alive::cases(offer),
            pipelining::cases(offer),
            chunked::cases(offer),
            fragments::cases(offer),
            framing::cases(offer),
            metrics::cases(offer),
            limits::cases(offer),
            h2c::cases(offer),
            life::cases(offer),
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
