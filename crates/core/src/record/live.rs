//! What a running `run`, `find` or `compare` shows: `live.json`, written once a second and removed at the end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_unit::LoadUnit;
use super::second::{Phase, Second};
use super::trial::{Goodput, Trial, Verdict};
use crate::broken_gate::first_broken;
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
    pub seconds: Vec<Second>,
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
    /// How much of what was due was done, right and in time; `null` if the workload does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// The gate that gave way first; `null` if the trial did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_first: Option<String>,
}

impl LiveEnded {
    /// The live form of a trial's record.
    #[must_use]
    pub fn of(number: u32, target: &str, trial: &Trial) -> Self {
        let newest = &trial.latency.newest.from_schedule;
        let resources = trial.target_resources.as_ref();
        let failed = trial.verdict == Verdict::Fail;
        let broken = failed.then(|| first_broken(&trial.gates)).flatten();
        Self {
            number,
            target: target.to_owned(),
            sessions: trial.sessions,
            verdict: trial.verdict,
            newest_p50_ms: newest.p50_ms,
            newest_p95_ms: newest.p95_ms,
            cpu_us_per_session_second: resources.and_then(|r| r.cpu_us_per_session_second),
            goodput: trial.goodput,
            broke_first: broken.map(|gate| gate.name.clone()),
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
}
