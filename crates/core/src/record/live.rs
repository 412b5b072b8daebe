//! What a running `run`, `find` or `compare` shows: `live.json`, written once a second and removed at the end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_unit::LoadUnit;
use super::second::Second;
use super::trial::{Trial, Verdict};
use crate::profile::Profile;

/// What a running command shows. It is not a record of a result: the final values are in the trials' files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// Version of this schema.
    pub schema_version: u32,
    /// The command that is running.
    pub command: LiveCommand,
    /// The target being measured now.
    pub target: String,
    /// All targets of the command.
    pub targets: Vec<String>,
    /// Name of the SLO that has the gates.
    pub slo: String,
    /// Name of the profile.
    pub profile: String,
    /// When the command began, RFC 3339 in UTC.
    pub started_at: String,
    /// When this was written, RFC 3339 in UTC. A file written more than [`Live::STALE_AFTER_S`] ago was left behind by
    /// a crash.
    pub updated_at: String,
    /// Process ID of the command.
    pub pid: u32,
    /// What the target is given, in vCPU; `null` when Plimsoll does not start it.
    pub vcpu: Option<f64>,
    /// How long each phase of a full trial takes.
    pub phases: LivePhases,
    /// What the loads count.
    #[serde(default, skip_serializing_if = "LoadUnit::is_sessions")]
    pub load_unit: LoadUnit,
    /// The trial that is running; `null` between two trials.
    pub trial: Option<LiveTrial>,
    /// The gates of the SLO, in its order.
    pub gates: Vec<LiveGate>,
    /// The seconds of the trial that is running, or between two trials those of the last one: the newest
    /// [`Live::SECONDS_MAX`].
    pub seconds: Vec<LiveSecond>,
    /// The trials that ended, in the order in which they ran.
    pub trials: Vec<LiveEnded>,
    /// What the trials of `target` show of its load line so far.
    pub bracket: LiveBracket,
    /// About how many trials are left, including the one that is running.
    pub trials_left: u32,
    /// About how long the command will still take, in seconds.
    pub time_left_s: f64,
    /// Whether the command has ended. This is never true in a file, which is removed at the end; a program that passes
    /// the file on sets it in its last copy.
    pub ended: bool,
}

impl Live {
    /// A file older than this is not live, in seconds.
    pub const STALE_AFTER_S: u64 = 5;
    /// The most seconds of a trial that are kept.
    pub const SECONDS_MAX: usize = 600;
}

/// A command that measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveCommand {
    /// One trial at one load.
    Run,
    /// The search for load lines.
    Find,
    /// Two targets compared with each other.
    Compare,
}

impl LiveCommand {
    /// Its verb on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Find => "find",
            Self::Compare => "compare",
        }
    }
}

/// A phase of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The target starts; no second has passed yet.
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
    /// The phase that a row of seconds names. An unknown name counts as grace.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        match word {
            "ramp" => Self::Ramp,
            "warm_up" => Self::WarmUp,
            "measured" => Self::Measured,
            _ => Self::Grace,
        }
    }

    /// Its name on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ramp => "ramp",
            Self::WarmUp => "warm-up",
            Self::Measured => "measured",
            Self::Grace => "grace",
        }
    }
}

/// How long each phase of a full trial takes. A short trial takes less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LivePhases {
    /// Length of the ramp: sessions connect.
    pub ramp_s: f64,
    /// Length of the warm-up: nothing counts yet.
    pub warm_up_s: f64,
    /// Length of the measured window: frames due in it count.
    pub measured_s: f64,
    /// Length of the grace: the client waits for answers.
    pub grace_s: f64,
}

impl LivePhases {
    /// The phases of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        Self {
            ramp_s: profile.ramp_s,
            warm_up_s: profile.warm_up_s,
            measured_s: profile.measured_s,
            grace_s: profile.grace_s,
        }
    }

    /// Time until the measured window ends, in seconds. Grace is over as soon as everything is answered.
    #[must_use]
    pub fn to_window_end_s(&self) -> f64 {
        self.ramp_s + self.warm_up_s + self.measured_s
    }
}

/// The trial that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveTrial {
    /// Number of the trial, from 1. A search counts by target, a comparison counts over both targets.
    pub number: u32,
    /// The load.
    pub sessions: u32,
    /// What the trial is for, in a few words; empty for the one trial of a `run`.
    pub why: String,
    /// The current phase.
    pub phase: Phase,
    /// Seconds since the trial's epoch.
    pub at_s: u64,
    /// Errors and protocol faults so far.
    pub errors: u64,
    /// Sessions that failed or died so far.
    pub sessions_lost: u64,
}

/// A gate, and how close the trial is to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveGate {
    /// Name of the metric; latencies carry their unit.
    pub name: String,
    /// The greatest value that passes.
    pub threshold: f64,
    /// For a latency, the value over the last second's answers; for a count, the value over the trial so far. `null` if
    /// nothing was measured yet, or if it is known only at the end of the trial.
    pub observed: Option<f64>,
}

/// A second of the trial: a [`Second`] without what is known only afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveSecond {
    /// Seconds since the trial began, at the end of this second.
    pub at_s: u64,
    /// The phase of the trial.
    pub phase: Phase,
    /// Sessions open at the end of this second.
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
    /// Newest-frame latency, maximum from the schedule.
    pub newest_max_ms: Option<f64>,
    /// Oldest-frame latency, 50th percentile from the schedule.
    pub oldest_p50_ms: Option<f64>,
    /// Oldest-frame latency, 95th percentile from the schedule.
    pub oldest_p95_ms: Option<f64>,
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
    /// CPU time of the inference simulator in this second, in cores.
    pub inference_cpu_cores: Option<f64>,
}

impl LiveSecond {
    /// The live form of a row.
    #[must_use]
    pub fn of(second: &Second) -> Self {
        Self {
            at_s: second.at_s,
            phase: Phase::of_word(second.phase),
            sessions_open: second.sessions_open,
            frames_sent: second.frames_sent,
            partials: second.partials,
            errors: second.errors,
            protocol_faults: second.protocol_faults,
            sessions_lost: second.sessions_lost,
            newest_p50_ms: second.newest_p50_ms,
            newest_p95_ms: second.newest_p95_ms,
            newest_max_ms: second.newest_max_ms,
            oldest_p50_ms: second.oldest_p50_ms,
            oldest_p95_ms: second.oldest_p95_ms,
            send_lag_p99_us: second.send_lag_p99_us,
            send_wait_p99_us: second.send_wait_p99_us,
            client_cpu_share: second.client_cpu_share,
            target_cpu_cores: second.target_cpu_cores,
            target_rss_bytes: second.target_rss_bytes,
            target_throttled_share: second.target_throttled_share,
            target_run_queue_wait_share: second.target_run_queue_wait_share,
            target_fds: second.target_fds,
            inference_cpu_cores: second.inference_cpu_cores,
        }
    }
}

/// A trial that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveEnded {
    /// Its number, as in [`LiveTrial`].
    pub number: u32,
    /// The target.
    pub target: String,
    /// The load.
    pub sessions: u32,
    /// The outcome.
    pub verdict: Verdict,
    /// Newest-frame latency over the window, 50th percentile from the schedule.
    pub newest_p50_ms: Option<f64>,
    /// Newest-frame latency over the window, 95th percentile from the schedule.
    pub newest_p95_ms: Option<f64>,
    /// CPU time of the target per session-second, as charged.
    pub cpu_us_per_session_second: Option<f64>,
}

impl LiveEnded {
    /// The live form of a trial's record.
    #[must_use]
    pub fn of(number: u32, target: &str, trial: &Trial) -> Self {
        let newest = &trial.latency.newest.from_schedule;
        let resources = trial.target_resources.as_ref();
        Self {
            number,
            target: target.to_owned(),
            sessions: trial.sessions,
            verdict: trial.verdict,
            newest_p50_ms: newest.p50_ms,
            newest_p95_ms: newest.p95_ms,
            cpu_us_per_session_second: resources.and_then(|r| r.cpu_us_per_session_second),
        }
    }
}

/// What the trials show of a load line so far. Near a soft edge, a load can fail below one that passes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveBracket {
    /// The highest load at which a trial passed; `null` if none passed.
    pub highest_pass: Option<u32>,
    /// The lowest load at which a trial failed; `null` if none failed.
    pub lowest_fail: Option<u32>,
}

impl LiveBracket {
    /// Adds the verdict of a trial. An invalid trial shows nothing.
    pub fn add(&mut self, sessions: u32, verdict: Verdict) {
        match verdict {
            Verdict::Pass => self.highest_pass = self.highest_pass.max(Some(sessions)),
            Verdict::Fail => {
                let lowest = self.lowest_fail.unwrap_or(u32::MAX).min(sessions);
                self.lowest_fail = Some(lowest);
            }
            Verdict::Invalid => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_closes_in_and_invalid_trials_show_nothing() {
        let mut bracket = LiveBracket::default();
        for (sessions, verdict) in [
            (400, Verdict::Pass),
            (1_600, Verdict::Fail),
            (800, Verdict::Pass),
            (900, Verdict::Invalid),
            (1_200, Verdict::Fail),
            (600, Verdict::Pass),
        ] {
            bracket.add(sessions, verdict);
        }
        assert_eq!(bracket.highest_pass, Some(800));
        assert_eq!(bracket.lowest_fail, Some(1_200));
    }

    #[test]
    fn phases_are_named_as_rows_name_them() {
        for phase in [Phase::Ramp, Phase::WarmUp, Phase::Measured, Phase::Grace] {
            let word = serde_json::to_value(phase).unwrap();
            assert_eq!(Phase::of_word(word.as_str().unwrap()), phase);
        }
    }

    #[test]
    fn a_second_keeps_every_column() {
        let row = Second {
            at_s: 7,
            phase: "warm_up",
            sessions_open: 1,
            frames_sent: 2,
            partials: 3,
            errors: 4,
            protocol_faults: 5,
            sessions_lost: 6,
            newest_p95_ms: Some(8.5),
            client_cpu_share: 0.25,
            target_cpu_cores: Some(0.5),
            inference_cpu_cores: Some(0.125),
            ..Second::default()
        };
        let second = LiveSecond::of(&row);
        assert_eq!((second.at_s, second.phase), (7, Phase::WarmUp));
        let json = serde_json::to_string(&second).unwrap();
        let again: LiveSecond = serde_json::from_str(&json).unwrap();
        assert_eq!(again, second);
        // One per field of the row, so that a new column is not forgotten here.
        let fields = serde_json::to_value(second).unwrap();
        assert_eq!(fields.as_object().unwrap().len(), 22);
    }
}
