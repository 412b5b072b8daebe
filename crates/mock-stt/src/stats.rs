//! What the mock says of itself: exact counts since the start, and a window of how late it was.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use plimsoll_core::latency::Percentiles;
use plimsoll_mock_server::program::Clocks;
use serde::Serialize;

use crate::faults::Fault;

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Sessions that were opened; on TCP, connections.
    pub sessions: u64,
    /// Sessions that are open.
    pub sessions_open: u64,
    /// Sessions that were refused.
    pub sessions_refused: u64,
    /// Sessions that ended as the client asked.
    pub sessions_ended: u64,
    /// Audio that came, in ms.
    pub audio_ms: u64,
    /// Audio that sounded and was part of no clip, in ms.
    pub audio_unknown_ms: u64,
    /// Interim results.
    pub interims: u64,
    /// Final results with words.
    pub finals: u64,
    /// Words of them.
    pub words: u64,
    /// How often each fault was told.
    pub faults: BTreeMap<Fault, u64>,
}

/// Everything counted.
#[derive(Debug)]
pub struct Stats {
    /// Since the start.
    pub counts: Counts,
    lateness: Histogram<u64>,
    began: Clocks,
    audio_began_ms: u64,
}

/// The answer to `GET /stats`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// How long the window is, in µs: since the last reset.
    pub window_us: u64,
    /// Of that, the loop was busy.
    pub busy_us: u64,
    /// Audio of the window, in ms.
    pub window_audio_ms: u64,
    /// How much later than their time results were handed over.
    pub lateness: Percentiles,
    /// Since the start.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            lateness: Histogram::new_with_bounds(1, 3_600_000_000, 3)
                .unwrap_or_else(|_| unreachable!("constant, valid bounds")),
            began: Clocks::default(),
            audio_began_ms: 0,
        }
    }
}

impl Stats {
    /// Something was handed over so much later than its time.
    pub fn late(&mut self, late_ns: u64) {
        self.lateness.saturating_record(late_ns / 1_000);
    }

    /// A fault was told.
    pub fn fault(&mut self, fault: Fault) {
        *self.counts.faults.entry(fault).or_default() += 1;
    }

    /// Begins a new window.
    pub fn reset_window(&mut self, now: Clocks) {
        self.lateness.reset();
        self.began = now;
        self.audio_began_ms = self.counts.audio_ms;
    }

    /// What is told.
    #[must_use]
    pub fn report(&self, now: Clocks) -> Report {
        Report {
            window_us: as_us(now.uptime.saturating_sub(self.began.uptime)),
            busy_us: as_us(now.loop_busy.saturating_sub(self.began.loop_busy)),
            window_audio_ms: self.counts.audio_ms - self.audio_began_ms,
            lateness: Percentiles::of(&self.lateness),
            counts: self.counts.clone(),
        }
    }
}

fn as_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_begins_anew_and_the_counts_do_not() {
        let clocks = |seconds| Clocks {
            uptime: Duration::from_secs(seconds),
            loop_busy: Duration::from_secs(seconds / 2),
        };
        let mut stats = Stats::default();
        stats.counts.audio_ms = 40;
        stats.late(5_000_000);
        stats.fault(Fault::Stall);
        stats.reset_window(clocks(10));
        stats.counts.audio_ms = 100;
        let report = stats.report(clocks(20));
        assert_eq!((report.window_us, report.busy_us), (10_000_000, 5_000_000));
        assert_eq!(report.lateness, Percentiles::default());
        assert_eq!((report.window_audio_ms, report.counts.audio_ms), (60, 100));
        let told = serde_json::json!(report);
        assert_eq!(told["faults"]["stall"], 1, "{told}");
        assert_eq!(told["sessions"], 0);
    }
}
