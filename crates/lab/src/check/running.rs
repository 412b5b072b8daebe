//! A gateway that runs in a setup, with its simulator and the watch on both.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use super::registry::{Site, Started};
use super::setup::Setup;
use super::subject::{Bench, Gateway, Simulator};
use super::watch::{Watch, Witnesses};
use crate::manifest::InferenceTransport;

/// What all setups of a target start with.
pub(super) struct Target<'a> {
    pub(super) bench: &'a dyn Bench,
    pub(super) transport: Option<InferenceTransport>,
    pub(super) session_numbers: &'a AtomicU64,
    pub(super) witnesses: Witnesses,
    /// One start at a time: to start is all that a gateway of these checks has to compute, and several at once would only keep each other from the core.
    pub(super) starting: Mutex<()>,
}

/// Dropped, its processes end.
pub(super) struct Running {
    pub(super) watch: Watch,
    setup: &'static Setup,
    gateway: Box<dyn Gateway>,
    simulator: Box<dyn Simulator>,
}

impl Running {
    /// Starts the simulator and the gateway of a setup; the error says which of them did not start.
    pub(super) fn start(setup: &'static Setup, target: &Target<'_>) -> Result<Self, String> {
        let _one = target
            .starting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let simulator = target
            .bench
            .start_simulator(&setup.simulator_environment())
            .map_err(|error| format!("the simulator did not start: {error}"))?;
        let gateway = target
            .bench
            .start_gateway(&setup.gateway_environment(&simulator.url()))
            .map_err(|error| format!("it did not start with {}: {error}", setup.variables()))?;
        Ok(Self {
            watch: Watch::new(gateway.process(), simulator.process(), target.witnesses),
            setup,
            gateway,
            simulator,
        })
    }

    /// As cases see it.
    pub(super) fn site<'a>(&'a self, target: &'a Target<'_>) -> Site<'a> {
        Site {
            address: self.gateway.address(),
            setup: self.setup,
            token: None,
            transport: target.transport,
            started: Some(Started {
                gateway: &*self.gateway,
                simulator: &*self.simulator,
            }),
            session_numbers: target.session_numbers,
        }
    }
}
