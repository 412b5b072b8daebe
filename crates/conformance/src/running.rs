//! A server that runs in a setup, with its companion and the watch on both.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use super::case::{Site, Started};
use super::setup::Setup;
use super::subject::{Bench, Server};
use super::suite::{Suite, companion_name};
use super::watch::{Watch, Witnesses};

/// What all setups of a target start with.
pub(super) struct Target<'a, S: Suite> {
    pub(super) suite: &'a S,
    pub(super) bench: &'a dyn Bench,
    pub(super) numbers: &'a AtomicU64,
    pub(super) witnesses: Witnesses,
    /// One start at a time: to start is all that a server of these checks has to compute, and several at once would only keep each other from the core.
    pub(super) starting: Mutex<()>,
}

/// Dropped, its processes end.
pub(super) struct Running<S: Suite> {
    pub(super) watch: Watch,
    setup: &'static Setup,
    server: Box<dyn Server>,
    companion: S::Companion,
}

impl<S: Suite> Running<S> {
    /// Starts the companion and the server of a setup; the error says which of them did not start.
    pub(super) fn start(setup: &'static Setup, target: &Target<'_, S>) -> Result<Self, String> {
        let _one = target
            .starting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let suite = target.suite;
        let companion = suite
            .start_companion(setup)
            .map_err(|error| format!("the {} did not start: {error}", companion_name::<S>()))?;
        let server = target
            .bench
            .start(&suite.environment(setup, &companion))
            .map_err(|error| format!("it did not start with {}: {error}", setup.variables()))?;
        let beside = (companion_name::<S>(), suite.companion_process(&companion));
        Ok(Self {
            watch: Watch::new(server.process(), beside, target.witnesses),
            setup,
            server,
            companion,
        })
    }

    /// As cases see it.
    pub(super) fn site<'a>(&'a self, target: &'a Target<'_, S>) -> Site<'a, S> {
        Site {
            suite: target.suite,
            address: self.server.address(),
            http: self.server.http(),
            path: None,
            setup: self.setup,
            token: None,
            started: Some(Started {
                server: &*self.server,
                companion: &self.companion,
            }),
            numbers: target.numbers,
        }
    }
}
