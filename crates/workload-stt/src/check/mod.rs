//! The cases of the speech-to-text contract (`docs/stt/contract.md`), for `plimsoll check`.
//!
//! - `registry`: the list of all cases. A case is one function in a file of its area, and one line in that file's list:
//!   `http_surface`, `start`, `frames`, `rejected_frames`, `flush`, `in_flight`, `inference_request`, `inference_errors`,
//!   `overflow`, `limits`, `drain`, `metrics`, `environment`.
//! - `setup`: the environments that cases need. Cases with the same one share a gateway and its simulator.
//! - `client`, `messages`: what cases are written with.
//! - [`Simulators`]: what a gateway asks.

mod client;
mod drain;
mod environment;
mod flush;
mod frames;
mod http_surface;
mod in_flight;
mod inference_errors;
mod inference_request;
mod limits;
mod messages;
mod metrics;
mod overflow;
mod registry;
mod rejected_frames;
mod setup;
mod simulators;
mod start;

use plimsoll_conformance::subject::Environment;
use plimsoll_conformance::{Case, Setup, Suite};

pub use simulators::{Simulator, SimulatorProgram, Simulators};

use crate::InferenceTransport;

/// Two workers in every setup: a limit or a counter that each worker keeps for itself is a fault that one would hide.
const ALWAYS: (&str, &str) = ("WORKER_THREADS", "2");

/// A model that takes exactly as long as a setup says.
const STEADY_MODEL: [(&str, &str); 3] = [
    ("MODEL_BATCH_WAIT_MAX_MS", "0"),
    ("MODEL_JITTER_SIGMA", "0"),
    ("MODEL_LONGTAIL_PROB", "0"),
];

/// The cases of the speech-to-text contract.
pub struct SpeechSuite {
    transport: Option<InferenceTransport>,
    /// What starts simulators; a gateway that is known by its URL only is checked without.
    simulators: Option<Box<dyn Simulators>>,
}

impl SpeechSuite {
    /// The cases, for a gateway whose manifest says that it speaks to its inference server like this (`None` leaves that
    /// unchecked), with what starts simulators.
    pub fn new(
        transport: Option<InferenceTransport>,
        simulators: impl Simulators + 'static,
    ) -> Self {
        Self {
            transport,
            simulators: Some(Box::new(simulators)),
        }
    }

    /// The cases, for a gateway that is known by its URL only.
    #[must_use]
    pub fn on_url() -> Self {
        Self {
            transport: None,
            simulators: None,
        }
    }
}

impl Suite for SpeechSuite {
    type Companion = Box<dyn Simulator>;

    const COMPANION: Option<&'static str> = Some("simulator");

    fn cases(&self) -> Vec<Case<Self>> {
        registry::all()
    }

    fn defaults(&self) -> &'static Setup {
        &setup::DEFAULTS
    }

    fn start_companion(&self, setup: &'static Setup) -> Result<Self::Companion, String> {
        let mut environment = setup.companion_environment();
        environment.extend(STEADY_MODEL.map(owned));
        match &self.simulators {
            Some(simulators) => simulators.start(&environment),
            None => Err("it is not known which program it is".to_owned()),
        }
    }

    fn companion_process(&self, simulator: &Self::Companion) -> Option<i32> {
        simulator.process()
    }

    fn environment(&self, setup: &'static Setup, simulator: &Self::Companion) -> Environment {
        let mut environment = setup.server_environment();
        environment.extend([owned(ALWAYS), ("INFERENCE_URL".to_owned(), simulator.url())]);
        environment
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[cfg(test)]
mod tests;
