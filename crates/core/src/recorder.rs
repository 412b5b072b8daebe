//! What one engine thread records: ledger, latencies of the current second, claims to audit.

use std::collections::BTreeMap;

use crate::latency::{LatencySet, Series};
use crate::ledger::Ledger;
use crate::sanity::Residence;

/// Written by session machines and by the engine; owned by one thread, so without locks.
#[derive(Debug)]
pub struct Recorder<C> {
    /// Totals since the trial began.
    pub ledger: Ledger,
    /// Latencies since the current interval began; measured frames only.
    pub interval: LatencySet,
    /// Answers kept for the audit.
    pub claims: Vec<C>,
    /// Faults of the client's own machine (no descriptors, no ports): never charged to the target.
    pub client_faults: BTreeMap<&'static str, u64>,
    /// Sessions open now.
    pub sessions_open: u64,
    /// Latencies of measured frames summed, and their integral over time, which the engine keeps: for Little's law.
    pub residence: Residence,
}

impl<C> Default for Recorder<C> {
    fn default() -> Self {
        Self {
            ledger: Ledger::default(),
            interval: LatencySet::new(),
            claims: Vec::new(),
            client_faults: BTreeMap::new(),
            sessions_open: 0,
            residence: Residence::default(),
        }
    }
}

impl<C> Recorder<C> {
    /// An answer arrived at `now_ns`. `from_schedule`/`from_write` of the newest and of the oldest frame that it covers, where those are measured.
    pub fn answered(&mut self, newest: Option<Ages>, oldest: Option<Ages>) {
        if let Some(ages) = newest {
            self.interval
                .record_ns(Series::NewestFromSchedule, ages.from_schedule_ns);
            self.interval
                .record_ns(Series::NewestFromWrite, ages.from_write_ns);
        }
        if let Some(ages) = oldest {
            self.interval
                .record_ns(Series::OldestFromSchedule, ages.from_schedule_ns);
            self.interval
                .record_ns(Series::OldestFromWrite, ages.from_write_ns);
        }
    }

    /// So many measured frames were named for the first time; together they had been unanswered for `latency_ns` since their writes.
    pub fn resided(&mut self, frames: u64, latency_ns: u128) {
        self.residence.latency_frame_ns += latency_ns;
        self.residence.frames += frames;
    }

    /// Measured frames that were written and that nothing has named yet.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        let ledger = &self.ledger;
        ledger
            .frames_sent
            .saturating_sub(ledger.frames_answered + ledger.frames_errored)
    }

    /// A message broke the contract.
    pub fn protocol_fault(&mut self, reason: &str) {
        self.ledger.protocol_faults += 1;
        self.ledger.because(reason);
    }

    /// A session's handshake succeeded.
    pub fn session_started(&mut self) {
        self.ledger.sessions_started += 1;
        self.sessions_open += 1;
    }

    /// A session could not be opened.
    pub fn session_failed(&mut self, reason: &str) {
        self.ledger.sessions_failed += 1;
        self.ledger.because(reason);
    }

    /// A session that was open ended before the trial did.
    pub fn session_died(&mut self, reason: &str) {
        self.ledger.sessions_died += 1;
        self.sessions_open = self.sessions_open.saturating_sub(1);
        self.ledger.because(reason);
    }

    /// The client's own machine could not do what was asked.
    pub fn client_fault(&mut self, what: &'static str) {
        *self.client_faults.entry(what).or_default() += 1;
    }
}

/// How old a frame was when its answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ages {
    /// Since its scheduled time.
    pub from_schedule_ns: u64,
    /// Since it was written.
    pub from_write_ns: u64,
}
