//! One second of a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A phase of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The target starts; no second has passed yet.
    #[default]
    Starting,
    /// Sessions connect.
    Ramp,
    /// All sessions run, nothing counts yet.
    WarmUp,
    /// Frames due now count.
    Measured,
    /// The client waits for answers.
    Grace,
}

impl Phase {
    /// The phases that have seconds, in order.
    pub const OF_SECONDS: [Self; 4] = [Self::Ramp, Self::WarmUp, Self::Measured, Self::Grace];

    /// Its name in files.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ramp => "ramp",
            Self::WarmUp => "warm_up",
            Self::Measured => "measured",
            Self::Grace => "grace",
        }
    }

    /// Its name on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            other => other.key(),
        }
    }
}

/// One second of a trial: a row of `trial-*.csv`, and of a running trial. What is known only afterwards is `null` in a
/// running trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Second {
    /// Seconds since the trial began, at the row's end.
    pub at_s: u64,
    /// The phase of the trial.
    pub phase: Phase,
    /// Sessions open at the row's end.
    pub sessions_open: u64,
    /// Frames written in this second, measured or not.
    pub frames_sent: u64,
    /// Partials in this second that covered measured frames.
    pub partials: u64,
    /// Errors in this second that named measured frames.
    pub errors: u64,
    /// Protocol faults in this second.
    pub protocol_faults: u64,
    /// Sessions that failed or died in this second.
    pub sessions_lost: u64,
    /// Newest-frame latency, 50th percentile from the schedule.
    pub newest_p50_ms: Option<f64>,
    /// Newest-frame latency, 95th percentile from the schedule.
    pub newest_p95_ms: Option<f64>,
    /// Newest-frame latency, 99th percentile from the schedule.
    #[serde(default)]
    pub newest_p99_ms: Option<f64>,
    /// Newest-frame latency, maximum from the schedule.
    pub newest_max_ms: Option<f64>,
    /// Oldest-frame latency, 50th percentile from the schedule.
    pub oldest_p50_ms: Option<f64>,
    /// Oldest-frame latency, 95th percentile from the schedule.
    pub oldest_p95_ms: Option<f64>,
    /// Latency of the confirmation, 50th percentile from the schedule; `null` if nothing was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_p50_ms: Option<f64>,
    /// Latency of the confirmation, 99th percentile from the schedule; `null` if nothing was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_p99_ms: Option<f64>,
    /// The client's send lag, 99th percentile.
    pub send_lag_p99_us: Option<f64>,
    /// Time that frames waited for the target, 99th percentile.
    pub send_wait_p99_us: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub client_cpu_share: f64,
    /// CPU time of the target in this second, in cores; `null` if unknown.
    pub target_cpu_cores: Option<f64>,
    /// Resident set of the target.
    pub target_rss_bytes: Option<u64>,
    /// Share of this second's quota periods in which the target was throttled; `null` without a quota.
    pub target_throttled_share: Option<f64>,
    /// Time that the target's threads waited for a core, per unit of time.
    pub target_run_queue_wait_share: Option<f64>,
    /// Open files of the target.
    pub target_fds: Option<u64>,
    /// CPU time of the program beside the target in this second, in cores.
    #[serde(rename = "inference_cpu_cores")]
    pub companion_cpu_cores: Option<f64>,
}

impl Second {
    /// The greatest 99th percentile that one of these seconds has, of newest-frame latency from the schedule.
    #[must_use]
    pub fn worst_p99_ms(seconds: &[Self]) -> Option<f64> {
        let of_each = seconds.iter().filter_map(|second| second.newest_p99_ms);
        of_each.reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_comes_back_from_json_and_phases_have_one_name() {
        let second = Second {
            at_s: 7,
            phase: Phase::WarmUp,
            sessions_open: 1,
            frames_sent: 2,
            partials: 3,
            errors: 4,
            protocol_faults: 5,
            sessions_lost: 6,
            newest_p95_ms: Some(8.5),
            client_cpu_share: 0.25,
            target_cpu_cores: Some(0.5),
            companion_cpu_cores: Some(0.125),
            ..Second::default()
        };
        let json = serde_json::to_string(&second).unwrap();
        let again: Second = serde_json::from_str(&json).unwrap();
        assert_eq!(again, second);
        let worse = Second {
            newest_p99_ms: Some(3.0),
            ..second
        };
        assert_eq!(Second::worst_p99_ms(&[second]), None);
        assert_eq!(Second::worst_p99_ms(&[second, worse]), Some(3.0));
        for phase in Phase::OF_SECONDS {
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.key());
        }
    }
}
