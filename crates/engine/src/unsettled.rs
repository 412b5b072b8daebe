//! What a run measured while the claims of its sessions are still open.

use plimsoll_core::session::{Account, Session, SessionMachines};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::report::Report;

/// A report with what its sessions claim. An account may span sessions: a message that one of them sent may reach any
/// other, in another thread or process. So the parts of a trial are merged first, and settled then.
#[derive(Debug, Serialize, Deserialize)]
pub struct Unsettled<C> {
    /// What was measured, as far as each session alone knows it.
    pub report: Report,
    /// What the sessions kept.
    pub claims: Vec<C>,
}

impl<C> Unsettled<C> {
    /// The result of a run without sessions, into which others are merged.
    #[must_use]
    pub fn empty(clock: Clock) -> Self {
        Self {
            report: Report::empty(clock),
            claims: Vec::new(),
        }
    }

    /// Adds what another thread or process measured in the same trial.
    pub fn merge(&mut self, mut other: Self) {
        self.report.merge(&other.report);
        self.claims.append(&mut other.claims);
    }

    /// The report of the whole trial, once all of its parts are merged.
    ///
    /// `one_clock` says whether all parts read the same clock.
    #[must_use]
    pub fn settle<W>(mut self, workload: &W, one_clock: bool) -> Report
    where
        W: SessionMachines,
        W::Session: Session<Claim = C>,
    {
        let account = Account {
            ledger: &mut self.report.ledger,
            latency: &mut self.report.latency,
            began_ns: one_clock.then(|| self.report.clock.epoch_monotonic_ns()),
        };
        workload.settle(&self.claims, account);
        debug_assert!(
            self.report.ledger.is_whole(),
            "every frame that was due is answered, errored or lost: {:?}",
            self.report.ledger
        );
        self.report
    }
}
