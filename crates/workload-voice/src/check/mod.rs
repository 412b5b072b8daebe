//! The cases of the contract of a voice gateway (`docs/voice/contract.md`), for `plimsoll check`.
//!
//! A case is one function in the file of its group, and one line in that file's list.
//!
//! - Groups: `http_surface`, `speak`, `config`, `stt`, `tts`, `barge_in`, `bad`, `failure`, `admission`, `limits`.
//! - `registry`: the list of all cases, and the gateway that they are tried on. `setup`: the environments that cases need.
//! - `session`, `messages`: a caller, and what a gateway says to it. `exchange`: a request over HTTP. `wire`: how messages of
//!   HTTP are read. `audio`: audio that shows where it belongs. `vectors`: the golden messages.
//! - `mock`: the providers behind the gateway, which each case controls exactly. They run in this process.

mod admission;
mod audio;
mod bad;
mod barge_in;
mod config;
mod exchange;
mod failure;
mod http_surface;
mod limits;
mod messages;
mod mock;
mod registry;
mod session;
mod setup;
mod slow_reader;
mod speak;
mod stt;
mod tts;
mod tts_requests;
mod vectors;
mod wire;

use messages::Fields;
use mock::Mock;
use plimsoll_conformance::subject::Environment;
use plimsoll_conformance::{Case, Setup, Suite};

/// Two workers in every setup: a limit or a counter that each worker keeps for itself is a fault that one would hide.
const WORKERS: (&str, &str) = ("WORKER_THREADS", "2");

/// The cases of the contract of a voice gateway.
#[derive(Debug)]
pub struct VoiceSuite {
    fields: Fields,
}

impl VoiceSuite {
    /// The cases for a gateway of ours, which sends every field of the contract.
    #[must_use]
    pub fn of_ours() -> Self {
        Self {
            fields: Fields::All,
        }
    }

    /// The cases for a gateway that may be foreign, so that it may leave out what the contract marks with `?`.
    #[must_use]
    pub fn of_any() -> Self {
        Self {
            fields: Fields::Required,
        }
    }
}

/// The mock providers behind a gateway.
pub struct Providers(Mock);

impl Suite for VoiceSuite {
    type Companion = Providers;

    const COMPANION: Option<&'static str> = Some("mock providers");

    fn cases(&self) -> Vec<Case<Self>> {
        registry::all()
    }

    fn defaults(&self) -> &'static Setup {
        &setup::DEFAULTS
    }

    fn start_companion(&self, _setup: &'static Setup) -> Result<Providers, String> {
        Mock::start().map(Providers)
    }

    fn environment(&self, setup: &'static Setup, providers: &Providers) -> Environment {
        let mut environment = setup.server_environment();
        let (name, value) = WORKERS;
        environment.insert(name.to_owned(), value.to_owned());
        environment.insert("PROVIDER_URLS".to_owned(), providers.0.urls());
        environment
    }
}

#[cfg(test)]
mod tests;
