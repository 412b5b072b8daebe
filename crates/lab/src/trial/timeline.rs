//! One row per second. The engine's columns are filled as it runs, the target's afterwards.

use std::time::Instant;

use plimsoll_core::latency::{LatencySet, Series, quantile_us};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::profile::{NS_PER_S, Profile};
use plimsoll_core::record::{Phase, Second};
use plimsoll_engine::EngineSecond;
use plimsoll_host::resources::{Recorded, Usage};

use super::stage::{COMPANION, TARGET};

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

    /// Adds a second. Counters become what happened within it.
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
            newest_p99_ms: at_ms(latency, Series::NewestFromSchedule, 0.99),
            newest_max_ms: at_ms(latency, Series::NewestFromSchedule, 1.0),
            oldest_p50_ms: at_ms(latency, Series::OldestFromSchedule, 0.5),
            oldest_p95_ms: at_ms(latency, Series::OldestFromSchedule, 0.95),
            confirm_p50_ms: at_ms(latency, Series::ConfirmFromSchedule, 0.5),
            confirm_p99_ms: at_ms(latency, Series::ConfirmFromSchedule, 0.99),
            send_lag_p99_us: quantile_us(latency.histogram(Series::SendLag), 0.99),
            send_wait_p99_us: quantile_us(latency.histogram(Series::SendWait), 0.99),
            client_cpu_share: second.busy.busiest(),
            target_cpu_cores: None,
            target_rss_bytes: None,
            target_throttled_share: None,
            target_run_queue_wait_share: None,
            target_fds: None,
            companion_cpu_cores: None,
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
fn phase(profile: &Profile, index: u64) -> Phase {
    let middle_s = index as f64 + 0.5;
    if middle_s < profile.ramp_s {
        Phase::Ramp
    } else if middle_s < profile.ramp_s + profile.warm_up_s {
        Phase::WarmUp
    } else if middle_s < profile.ramp_s + profile.warm_up_s + profile.measured_s {
        Phase::Measured
    } else {
        Phase::Grace
    }
}

/// Fills in the columns of target and companion from their samples. The samples' clock began at `sampling_epoch`, the
/// trial's at `trial_epoch`.
pub(super) fn add_target(
    rows: &mut [Second],
    recorded: &Recorded,
    sampling_epoch: Instant,
    trial_epoch: Instant,
) {
    let offset_ns = nanoseconds_between(sampling_epoch, trial_epoch);
    for row in rows {
        let end_ns = offset_ns + row.at_s * NS_PER_S;
        let usage = |name: &str| {
            let series = recorded.series.get(name)?;
            series.between(end_ns - NS_PER_S, end_ns)
        };
        fill(row, &usage);
    }
}

/// The same for a row that is shown while the trial runs: roughly that second, as the monitor last had it.
pub(super) fn so_far(row: &Second, latest: impl Fn(&str) -> Option<Usage>) -> Second {
    let mut row = *row;
    fill(&mut row, &latest);
    row
}

fn fill(row: &mut Second, usage: &impl Fn(&str) -> Option<Usage>) {
    if let Some(usage) = usage(TARGET) {
        row.target_cpu_cores = Some(usage.cpus_busy);
        row.target_rss_bytes = Some(usage.rss_last_bytes);
        row.target_throttled_share = usage.throttled_share;
        row.target_run_queue_wait_share = usage.runqueue_wait_share;
        row.target_fds = usage.fds_max;
    }
    row.companion_cpu_cores = usage(COMPANION).map(|usage| usage.cpus_busy);
}

/// Sessions open on average between two moments of the trial. Each row says how many were open at its end. Between rows
/// a straight line is assumed, and after the last row nothing changes. `None` without rows or without time.
pub(super) fn open_between(rows: &[Second], from_ns: u64, to_ns: u64) -> Option<f64> {
    if to_ns <= from_ns {
        return None;
    }
    let inner = rows.iter().map(|row| row.at_s * NS_PER_S);
    let inner = inner.filter(|at_ns| (from_ns + 1..to_ns).contains(at_ns));
    let mut area = 0.0;
    let (mut last_ns, mut last) = (from_ns, open_at(rows, from_ns)?);
    for at_ns in inner.chain([to_ns]) {
        let now = open_at(rows, at_ns)?;
        area += (last + now) / 2.0 * seconds(at_ns - last_ns);
        (last_ns, last) = (at_ns, now);
    }
    Some(area / seconds(to_ns - from_ns))
}

/// Sessions open at a moment of the trial, by the same rule.
pub(super) fn open_at(rows: &[Second], at_ns: u64) -> Option<f64> {
    let next = rows.partition_point(|row| row.at_s * NS_PER_S <= at_ns);
    let point = |row: &Second| (seconds(row.at_s * NS_PER_S), float(row.sessions_open));
    let before = next.checked_sub(1).map_or((0.0, 0.0), |i| point(&rows[i]));
    let Some(after) = rows.get(next).map(point) else {
        return rows.last().map(|row| point(row).1);
    };
    let passed = (seconds(at_ns) - before.0) / (after.0 - before.0);
    Some(before.1 + (after.1 - before.1) * passed)
}

fn seconds(duration_ns: u64) -> f64 {
    float(duration_ns) / 1e9
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds and sessions of a trial are far below 2^53"
)]
fn float(count: u64) -> f64 {
    count as f64
}

/// Whole nanoseconds from one instant to a later one.
pub(crate) fn nanoseconds_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::NS_PER_MS;
    use plimsoll_engine::CoreShares;

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
                busy: CoreShares::of(Some(0), 0.1),
            });
            (row.frames_sent, row.sessions_lost, row.phase)
        };
        assert_eq!(second(0, 100, 0), (100, 0, Phase::Ramp));
        assert_eq!(second(3, 350, 2), (250, 2, Phase::WarmUp));
        assert_eq!(second(6, 350, 2), (0, 0, Phase::Measured));
        assert_eq!(second(16, 351, 3), (1, 1, Phase::Grace));
    }

    #[test]
    fn a_second_has_the_confirmations_that_came_in_it() {
        let mut rows = Rows::new(&Profile::quick());
        let mut second = |index, latency| {
            *rows.add(&EngineSecond {
                index,
                latency,
                ledger: Ledger::default(),
                sessions_open: 1,
                busy: CoreShares::default(),
            })
        };
        let mut latency = LatencySet::new();
        for ms in 1..=100 {
            latency.record_ns(Series::ConfirmFromSchedule, ms * NS_PER_MS);
            latency.record_ns(Series::ConfirmFromWrite, 500 * NS_PER_MS);
        }
        let row = second(6, latency);
        let close = |found: Option<f64>, ms: f64| (found.expect("a value") - ms).abs() < 0.1;
        assert!(close(row.confirm_p50_ms, 50.0), "{row:?}");
        assert!(close(row.confirm_p99_ms, 99.0), "{row:?}");
        let row = second(7, LatencySet::new());
        assert_eq!((row.confirm_p50_ms, row.confirm_p99_ms), (None, None));
    }

    fn rows_of(open: &[u64]) -> Vec<Second> {
        let row = |(at_s, open): (u64, &u64)| Second {
            at_s,
            sessions_open: *open,
            ..Second::default()
        };
        (1..).zip(open).map(row).collect()
    }

    const HALF_S: u64 = NS_PER_S / 2;

    #[test]
    fn open_sessions_are_averaged_over_the_time_asked_for() {
        let close = |found: Option<f64>, expected: f64| {
            let found = found.expect("rows");
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        };
        let rows = rows_of(&[100, 100, 100, 0, 0]);
        close(open_between(&rows, NS_PER_S, 3 * NS_PER_S), 100.0);
        // All sessions die in the fourth second: a count at the end would say none.
        close(open_between(&rows, NS_PER_S, 5 * NS_PER_S), 62.5);
        close(
            open_between(&rows, 3 * HALF_S, 7 * HALF_S),
            (150.0 + 37.5) / 2.0,
        );
        // The ramp from nothing, within one second.
        close(open_between(&rows, 0, HALF_S), 25.0);
        close(open_at(&rows, HALF_S), 50.0);
        close(open_at(&rows, 7 * HALF_S), 50.0);
        // Beyond the last row.
        close(open_between(&rows_of(&[7]), NS_PER_S, 9 * NS_PER_S), 7.0);
    }

    #[test]
    fn without_rows_or_time_nobody_was_open() {
        assert_eq!(open_between(&[], 0, NS_PER_S), None);
        assert_eq!(open_between(&rows_of(&[5]), NS_PER_S, NS_PER_S), None);
    }
}
