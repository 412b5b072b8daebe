//! More of everything: seconds, samples, targets.

use plimsoll_core::latency::{LatencySet, Series};
use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::record::{Phase, Ranking, Second};
use plimsoll_report::IntervalHistograms;

use super::{evidence, find, ranking};

/// The same ranking, with targets whose brackets have trials and costs.
pub(crate) fn ranking_with_trials() -> Ranking {
    let mut ranking = ranking();
    let costs = evidence::two_slos().relaxed.cost_curve;
    let find = find().bracket;
    for (index, row) in (0u32..).zip(ranking.rows.iter_mut().take(3)) {
        let bracket = &mut row.bracket;
        bracket.trials = find.trials.clone();
        bracket.cost_curve.clone_from(&costs);
        for trial in &mut bracket.trials {
            trial.sessions -= trial.sessions / 10 * index;
            trial.newest_p95_ms = trial.newest_p95_ms.map(|ms| ms + 30.0 * f64::from(index));
        }
        for point in &mut bracket.cost_curve {
            point.cpu_us_per_session_second += 90.0 * f64::from(index);
        }
        bracket.confirmed = bracket.trials.first().map(|trial| trial.sessions);
    }
    ranking
}

/// A trial with more seconds than a timeline has points, and with everything that can happen in them.
pub(crate) fn seconds() -> Vec<Second> {
    let second = |at_s: u64| {
        let wave = f64::from(u32::try_from(at_s % 60).unwrap());
        let measured = (41..=470).contains(&at_s);
        Second {
            at_s,
            phase: match at_s {
                0..=30 => Phase::Ramp,
                31..=40 => Phase::WarmUp,
                41..=470 => Phase::Measured,
                _ => Phase::Grace,
            },
            sessions_open: (at_s * 60).min(1_600),
            frames_sent: 80_000,
            partials: 1_600,
            errors: u64::from(at_s == 222) * 3,
            protocol_faults: u64::from(at_s == 333),
            sessions_lost: u64::from(at_s == 444) * 1_000,
            newest_p50_ms: measured.then_some(96.0 + wave / 4.0),
            newest_p95_ms: measured.then_some(180.0 + wave),
            newest_max_ms: measured.then_some(if at_s == 300 { 5_200.0 } else { 260.0 + wave }),
            send_lag_p99_us: Some(310.0 + wave),
            send_wait_p99_us: Some(0.0),
            client_cpu_share: 0.4,
            target_cpu_cores: (at_s != 100).then_some(0.9 + wave / 1_000.0),
            target_rss_bytes: Some(60_000_000 + at_s * 20_000),
            companion_cpu_cores: None,
            ..Second::default()
        }
    };
    (1..=475).map(second).collect()
}

/// Histograms of some seconds, with a tail and with unanswered frames.
pub(crate) fn intervals() -> Vec<IntervalHistograms> {
    let interval = |second: u32| {
        let mut set = LatencySet::new();
        for number in 0..400u64 {
            let ns = (90 + number / 4 + u64::from(second)) * NS_PER_MS;
            set.record_ns(Series::NewestFromSchedule, ns);
            set.record_ns(Series::NewestFromWrite, ns - NS_PER_MS);
        }
        if second == 9 {
            set.record_unanswered(5_200 * NS_PER_MS, 5_199 * NS_PER_MS);
        }
        IntervalHistograms {
            start_s: f64::from(second) + 6.0,
            duration_s: 1.0,
            set,
        }
    };
    (0..10).map(interval).collect()
}
