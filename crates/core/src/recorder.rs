//! What one engine thread records: ledger, latencies of the current second, and claims to settle.

use std::collections::BTreeMap;

use crate::latency::{LatencySet, Series};
use crate::ledger::Ledger;
use crate::sanity::Residence;
use crate::tls_cost::TlsCost;

/// Session machines and the engine write to it. One thread owns it, so it has no locks.
#[derive(Debug)]
pub struct Recorder<C> {
    /// Totals since the start of the trial.
    pub ledger: Ledger,
    /// Latencies of measured frames since the current interval began.
    pub interval: LatencySet,
    /// What the sessions keep until all of them have ended.
    pub claims: Vec<C>,
    /// Faults of the client's own machine (no descriptors, no ports): never charged to the target.
    pub client_faults: BTreeMap<&'static str, u64>,
    /// Sessions that are open now.
    pub sessions_open: u64,
    /// Sum of the latencies of measured frames, and the integral of unanswered frames over time, which the engine
    /// keeps: for Little's law.
    pub residence: Residence,
    /// What TLS costs, where sessions use it.
    pub tls: TlsCost,
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
            tls: TlsCost::default(),
        }
    }
}

impl<C> Recorder<C> {
    /// Records an answer, with the ages of the newest and of the oldest frame it covers, if those frames are measured.
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

    /// Records that a measured frame was confirmed, with its age at that time.
    pub fn confirmed(&mut self, ages: Ages) {
        self.interval
            .record_ns(Series::ConfirmFromSchedule, ages.from_schedule_ns);
        self.interval
            .record_ns(Series::ConfirmFromWrite, ages.from_write_ns);
    }

    /// Records that this many measured frames were named for the first time. Together they had been unanswered for
    /// `latency_ns` since they were written.
    pub fn resided(&mut self, frames: u64, latency_ns: u128) {
        self.residence.latency_frame_ns += latency_ns;
        self.residence.frames += frames;
    }

    /// The number of measured frames that were written and that nothing has named yet.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        let ledger = &self.ledger;
        ledger
            .frames_sent
            .saturating_sub(ledger.frames_answered + ledger.frames_errored)
    }

    /// Records that a message broke the contract.
    pub fn protocol_fault(&mut self, reason: &str) {
        self.ledger.protocol_faults += 1;
        self.ledger.because(reason);
    }

    /// Records that a session's handshake succeeded.
    pub fn session_started(&mut self) {
        self.ledger.sessions_started += 1;
        self.sessions_open += 1;
    }

    /// Records that a session could not be opened.
    pub fn session_failed(&mut self, reason: &str) {
        self.ledger.sessions_failed += 1;
        self.ledger.because(reason);
    }

    /// Records that an open session ended before the trial did.
    pub fn session_died(&mut self, reason: &str) {
        self.ledger.sessions_died += 1;
        self.sessions_open = self.sessions_open.saturating_sub(1);
        self.ledger.because(reason);
    }

    /// Records that the client ended an open session, as its load wants it.
    pub fn session_left(&mut self) {
        self.sessions_open = self.sessions_open.saturating_sub(1);
    }

    /// Records that the client's own machine could not do what was asked.
    pub fn client_fault(&mut self, what: &'static str) {
        *self.client_faults.entry(what).or_default() += 1;
    }
}

/// The age of a frame when its answer or its confirmation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ages {
    /// Age since its scheduled time.
    pub from_schedule_ns: u64,
    /// Age since it was written.
    pub from_write_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_is_no_answer() {
        let mut recorder = Recorder::<()>::default();
        recorder.confirmed(Ages {
            from_schedule_ns: 7_000,
            from_write_ns: 5_000,
        });
        let max_us = |series| recorder.interval.histogram(series).max();
        assert_eq!(max_us(Series::ConfirmFromSchedule), 7);
        assert_eq!(max_us(Series::ConfirmFromWrite), 5);
        for series in Series::ALL
            .into_iter()
            .filter(|series| !series.is_optional())
        {
            assert!(recorder.interval.histogram(series).is_empty(), "{series:?}");
        }
        assert_eq!(recorder.ledger, Ledger::default());
    }
}
