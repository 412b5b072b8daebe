//! One row per second: from the engine as it runs, the target's columns afterwards.

use std::time::Instant;

use plimsoll_core::latency::{LatencySet, Series, quantile_us};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::{NS_PER_S, Profile};
use plimsoll_core::record::Second;
use plimsoll_engine::EngineSecond;

use super::stage::TARGET;
use crate::resources::Recorded;

/// The rows so far.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<Second>,
    last: Ledger,
    profile: Profile,
}

impl Rows {
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            rows: Vec::new(),
            last: Ledger::default(),
            profile: profile.clone(),
        }
    }

    /// Adds a second; counters become what happened within it.
    pub(super) fn add(&mut self, second: &EngineSecond) -> &Second {
        let (now, last) = (&second.ledger, &self.last);
        let lost = |ledger: &Ledger| ledger.sessions_failed + ledger.sessions_died;
        let latency = &second.latency;
        let row = Second {
            at_s: second.index + 1,
            phase: phase(&self.profile, second.index),
            sessions_open: second.sessions_open,
            frames_sent: now.frames_sent_in_all - last.frames_sent_in_all,
            partials: now.partials - last.partials,
            errors: now.errors - last.errors,
            protocol_faults: now.protocol_faults - last.protocol_faults,
            sessions_lost: lost(now) - lost(last),
            newest_p50_ms: at_ms(latency, Series::NewestFromSchedule, 0.5),
            newest_p95_ms: at_ms(latency, Series::NewestFromSchedule, 0.95),
            newest_max_ms: at_ms(latency, Series::NewestFromSchedule, 1.0),
            oldest_p50_ms: at_ms(latency, Series::OldestFromSchedule, 0.5),
            oldest_p95_ms: at_ms(latency, Series::OldestFromSchedule, 0.95),
            send_lag_p99_us: quantile_us(latency.histogram(Series::SendLag), 0.99),
            send_wait_p99_us: quantile_us(latency.histogram(Series::SendWait), 0.99),
            client_cpu_share: second.busiest_share,
            target_cpu_cores: None,
            target_rss_bytes: None,
        };
        self.last = second.ledger.clone();
        self.rows.push(row);
        &self.rows[self.rows.len() - 1]
    }

    pub(super) fn finish(self) -> Vec<Second> {
        self.rows
    }
}

fn at_ms(latency: &LatencySet, series: Series, quantile: f64) -> Option<f64> {
    quantile_us(latency.histogram(series), quantile).map(|us| us / 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
fn phase(profile: &Profile, index: u64) -> &'static str {
    let middle_s = index as f64 + 0.5;
    if middle_s < profile.ramp_s {
        "ramp"
    } else if middle_s < profile.ramp_s + profile.warm_up_s {
        "warm_up"
    } else if middle_s < profile.ramp_s + profile.warm_up_s + profile.measured_s {
        "measured"
    } else {
        "grace"
    }
}

/// Fills in the target's columns from its samples, whose clock began at `sampling_epoch`, the trial's at `trial_epoch`.
pub(super) fn add_target(
    rows: &mut [Second],
    recorded: &Recorded,
    sampling_epoch: Instant,
    trial_epoch: Instant,
) {
    let Some(series) = recorded.series.get(TARGET) else {
        return;
    };
    let offset_ns = nanoseconds_between(sampling_epoch, trial_epoch);
    for row in rows {
        let end_ns = offset_ns + row.at_s * NS_PER_S;
        if let Some(usage) = series.between(end_ns - NS_PER_S, end_ns) {
            row.target_cpu_cores = Some(usage.cpus_busy);
            row.target_rss_bytes = Some(usage.rss_last_bytes);
        }
    }
}

/// Whole nanoseconds from one instant to a later one.
pub(super) fn nanoseconds_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_what_happened_within_the_second() {
        let mut rows = Rows::new(&Profile::quick());
        let mut second = |index, sent, died| {
            let ledger = Ledger {
                frames_sent_in_all: sent,
                sessions_died: died,
                ..Ledger::default()
            };
            let row = rows.add(&EngineSecond {
                index,
                latency: LatencySet::new(),
                ledger,
                sessions_open: 5,
                busiest_share: 0.1,
            });
            (row.frames_sent, row.sessions_lost, row.phase)
        };
        assert_eq!(second(0, 100, 0), (100, 0, "ramp"));
        assert_eq!(second(3, 350, 2), (250, 2, "warm_up"));
        assert_eq!(second(6, 350, 2), (0, 0, "measured"));
        assert_eq!(second(16, 351, 3), (1, 1, "grace"));
    }
}
