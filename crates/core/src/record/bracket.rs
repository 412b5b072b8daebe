//! The load line of one target, with its evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::build::Build;
use super::comparison::CostAccount;
use super::escalation::Escalation;
use super::goals::Goals;
use super::load_unit::LoadUnit;
use super::trial::{Goodput, Target, Trial, Verdict};
use crate::profile::Length;

/// The load line of one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bracket {
    /// Version of this schema.
    pub schema_version: u32,
    /// The system under test.
    pub target: Target,
    /// Name of the workload.
    pub workload: String,
    /// Name of the profile.
    pub profile: String,
    /// Name of the SLO.
    pub slo: String,
    /// CPU time that the target was given, in vCPU; `null` when Plimsoll did not start it.
    pub vcpu: Option<f64>,
    /// What the loads count.
    #[serde(default, skip_serializing_if = "LoadUnit::is_sessions")]
    pub load_unit: LoadUnit,
    /// The highest load classified as passing: the load line. `null` if no load is.
    pub confirmed: Option<u32>,
    /// Loads whose trials disagree.
    pub borderline: Vec<u32>,
    /// The lowest load classified as failing. `null` if no load is.
    pub first_fail: Option<u32>,
    /// The gate that failed first at `first_fail`.
    pub failing_gate: Option<String>,
    /// What ran out, in a word or two, with the evidence.
    pub bottleneck: Option<String>,
    /// `confirmed` per vCPU.
    pub sessions_per_vcpu: Option<f64>,
    /// Whether the client or the machine ran out before the target did: the answer is then "at least".
    pub lower_bound_only: bool,
    /// Whether a signal ended the search early.
    pub interrupted: bool,
    /// Why the search ended, in a sentence.
    pub conclusion: String,
    /// Where the edge lies: the load at which half of the trials pass. `null` if no trial passed, or if the search
    /// could not determine it.
    #[serde(default)]
    pub edge: Option<Edge>,
    /// What the trials show, load by load, ascending.
    #[serde(default)]
    pub evidence: Vec<LoadEvidence>,
    /// What a session costs the target, load by load, ascending.
    #[serde(default)]
    pub cost_curve: Vec<CostPoint>,
    /// What became of the target beyond its load line; `null` unless the search went on there, and in the brackets of
    /// further SLOs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
    /// The trial that ran before the search, for the trials of the search to be compared with; `null` if they stand for
    /// themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What became of the goals that were set before the first trial; `null` if none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goals: Option<Goals>,
    /// Seed of the search.
    pub seed: u64,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// When the search began, RFC 3339 in UTC.
    pub started_at: String,
    /// The trials, in the order in which they ran.
    pub trials: Vec<TrialSummary>,
}

/// The trial that ran before a search, for the trials of the search to be compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// What it is, in a few words: `unloaded run`.
    pub what: String,
    /// Its load.
    pub sessions: u32,
    /// The file of its record, from the result folder.
    pub file: String,
    /// Why no trial could be compared with it; `null` if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_used: Option<String>,
}

/// Where the edge lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The best estimate, in sessions.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval; `null` if nothing failed.
    pub high: Option<f64>,
    /// Confidence of the interval, 0 to 1.
    pub confidence: f64,
}

/// What all trials together say about a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadClass {
    /// It passes.
    Passing,
    /// It fails.
    Failing,
    /// Its trials disagree.
    Borderline,
    /// Too little is known.
    Undecided,
}

impl LoadClass {
    /// Its name in results and on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Failing => "failing",
            Self::Borderline => "borderline",
            Self::Undecided => "undecided",
        }
    }
}

/// The trials at one load, and the class of the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadEvidence {
    /// The load.
    pub sessions: u32,
    /// Full trials that passed.
    pub passed: u32,
    /// Full trials that failed.
    pub failed: u32,
    /// Short trials that passed.
    pub short_passed: u32,
    /// Short trials that failed.
    pub short_failed: u32,
    /// Trials of either length that were invalid.
    pub invalid: u32,
    /// What the search concludes, including from trials at neighbouring loads.
    pub class: LoadClass,
}

/// What a session costs the target at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostPoint {
    /// The load.
    pub sessions: u32,
    /// CPU time per session-second, as charged to the target: mean over the valid trials.
    pub cpu_us_per_session_second: f64,
    /// Busy time of the target's cores per session-second, if they were its own: mean over the same trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_us_per_session_second: Option<f64>,
    /// The lowest `cpu_us_per_session_second` of these trials.
    pub low: f64,
    /// The highest `cpu_us_per_session_second` of these trials.
    pub high: f64,
    /// Number of these trials.
    pub trials: u32,
    /// Resident memory per session: mean over the same trials.
    pub rss_bytes_per_session: Option<f64>,
}

impl CostPoint {
    /// The mean by one account. `None` if the account is not known.
    #[must_use]
    pub fn by(&self, account: CostAccount) -> Option<f64> {
        match account {
            CostAccount::Charged => Some(self.cpu_us_per_session_second),
            CostAccount::Core => self.core_us_per_session_second,
        }
    }
}

/// One trial within a bracket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSummary {
    /// Its file in the result folder.
    pub file: String,
    /// The load.
    pub sessions: u32,
    /// Whether it ran the whole profile or a shorter one.
    #[serde(default)]
    pub length: Length,
    /// The outcome.
    pub verdict: Verdict,
    /// Gates that did not hold.
    pub failed_gates: Vec<String>,
    /// Names of the caveats.
    pub caveats: Vec<String>,
    /// Newest-frame latency, 50th percentile from the schedule.
    pub newest_p50_ms: Option<f64>,
    /// Newest-frame latency, 95th percentile from the schedule.
    pub newest_p95_ms: Option<f64>,
    /// Newest-frame latency, 99th percentile from the schedule.
    #[serde(default)]
    pub newest_p99_ms: Option<f64>,
    /// Oldest-frame latency, 50th percentile from the schedule.
    pub oldest_p50_ms: Option<f64>,
    /// Oldest-frame latency, 95th percentile from the schedule.
    pub oldest_p95_ms: Option<f64>,
    /// Oldest-frame latency, 99th percentile from the schedule.
    #[serde(default)]
    pub oldest_p99_ms: Option<f64>,
    /// Latency of the confirmation, 50th percentile from the schedule; `null` if nothing was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_p50_ms: Option<f64>,
    /// Latency of the confirmation, 95th percentile from the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_p95_ms: Option<f64>,
    /// Latency of the confirmation, 99th percentile from the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_p99_ms: Option<f64>,
    /// Which of the percentiles charts and tables show beside the median; unknown in older records, whose
    /// gates were all on the 95th.
    #[serde(default)]
    pub tail: Option<Tail>,
    /// How much of what was due was done, right and in time; `null` if the workload does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// CPU time of the target per session-second, as charged.
    pub cpu_us_per_session_second: Option<f64>,
    /// Busy time of the target's cores per session-second, if they were its own.
    #[serde(default)]
    pub core_us_per_session_second: Option<f64>,
    /// CPU time of the target as a share of what it was given.
    pub target_cpu_share: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub client_cpu_share: f64,
    /// Client's send lag, 99.9th percentile.
    pub send_lag_p999_us: Option<f64>,
}

impl TrialSummary {
    /// The summary of a trial that is stored in `file`.
    #[must_use]
    pub fn of(trial: &Trial, file: &str) -> Self {
        let latency = &trial.latency;
        let confirm = latency.confirm.as_ref().map(|both| &both.from_schedule);
        let resources = trial.target_resources.as_ref();
        Self {
            file: file.to_owned(),
            sessions: trial.sessions,
            length: trial.length,
            verdict: trial.verdict,
            failed_gates: trial
                .gates
                .iter()
                .filter(|gate| !gate.pass)
                .map(|gate| gate.name.clone())
                .collect(),
            caveats: trial.caveats.iter().map(|c| c.id.clone()).collect(),
            newest_p50_ms: latency.newest.from_schedule.p50_ms,
            newest_p95_ms: latency.newest.from_schedule.p95_ms,
            newest_p99_ms: latency.newest.from_schedule.p99_ms,
            oldest_p50_ms: latency.oldest.from_schedule.p50_ms,
            oldest_p95_ms: latency.oldest.from_schedule.p95_ms,
            oldest_p99_ms: latency.oldest.from_schedule.p99_ms,
            confirm_p50_ms: confirm.and_then(|confirm| confirm.p50_ms),
            confirm_p95_ms: confirm.and_then(|confirm| confirm.p95_ms),
            confirm_p99_ms: confirm.and_then(|confirm| confirm.p99_ms),
            tail: Some(Tail::judged_in(trial)),
            goodput: trial.goodput,
            cpu_us_per_session_second: resources.and_then(|r| r.cpu_us_per_session_second),
            core_us_per_session_second: resources.and_then(|r| r.core_us_per_session_second),
            target_cpu_share: resources.map(|r| r.cpu_share),
            client_cpu_share: trial.client.cpu_share,
            send_lag_p999_us: trial.client.send_lag.p999_us,
        }
    }

    /// The tail of the newest-frame latency: see [`TrialSummary::tail`].
    #[must_use]
    pub fn newest_tail_ms(&self) -> Option<f64> {
        self.tail
            .unwrap_or_default()
            .of_two(self.newest_p95_ms, self.newest_p99_ms)
    }

    /// The tail of the oldest-frame latency.
    #[must_use]
    pub fn oldest_tail_ms(&self) -> Option<f64> {
        self.tail
            .unwrap_or_default()
            .of_two(self.oldest_p95_ms, self.oldest_p99_ms)
    }

    /// The tail of the confirmation's latency.
    #[must_use]
    pub fn confirm_tail_ms(&self) -> Option<f64> {
        self.tail
            .unwrap_or_default()
            .of_two(self.confirm_p95_ms, self.confirm_p99_ms)
    }
}

/// The percentile that stands for the tail of a latency in charts and tables: the one that is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tail {
    /// The 95th percentile.
    #[default]
    P95,
    /// The 99th percentile.
    P99,
}

impl Tail {
    /// The tail that gates of these names judge: p99 if one of them is on a p99 and none on a p95, else p95.
    pub fn of<'a>(gates: impl Iterator<Item = &'a str>) -> Self {
        let mut tail = None;
        for gate in gates {
            for side in ["newest", "oldest", "confirm"] {
                match gate.strip_prefix(side) {
                    Some("_p95_ms") => return Self::P95,
                    Some("_p99_ms") => tail = Some(Self::P99),
                    _ => {}
                }
            }
        }
        tail.unwrap_or_default()
    }

    /// The tail that the gates of a trial judge.
    #[must_use]
    pub fn judged_in(trial: &Trial) -> Self {
        Self::of(trial.gates.iter().map(|gate| gate.name.as_str()))
    }

    /// The tail of these trials, which one SLO judges.
    pub fn of_trials<'a>(mut trials: impl Iterator<Item = &'a TrialSummary>) -> Self {
        trials
            .next()
            .and_then(|trial| trial.tail)
            .unwrap_or_default()
    }

    /// Of a 95th and a 99th percentile, the one that it stands for.
    #[must_use]
    pub fn of_two(self, p95: Option<f64>, p99: Option<f64>) -> Option<f64> {
        match self {
            Self::P95 => p95,
            Self::P99 => p99,
        }
    }

    /// Its name: `p95`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::P95 => "p95",
            Self::P99 => "p99",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_percentile_that_is_judged() {
        let of = |gates: &[&str]| Tail::of(gates.iter().copied());
        assert_eq!(of(&["newest_p99_ms", "error_rate"]), Tail::P99);
        assert_eq!(of(&["newest_p99_ms", "oldest_p95_ms"]), Tail::P95);
        assert_eq!(of(&["newest_p50_ms", "confirm_p99_ms"]), Tail::P99);
        assert_eq!(of(&["newest_p50_ms", "send_lag_p99_ms"]), Tail::P95);
    }
}
