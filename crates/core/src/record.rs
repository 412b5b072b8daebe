//! What a result folder holds: the records that every rendering is made from, and that other tools read.
//!
//! The JSON schema is generated from these types, checked in, and tested; a change of meaning raises [`SCHEMA_VERSION`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::latency::{LagQuantiles, Latency};
use crate::ledger::Ledger;
use crate::profile::Profile;

/// Version of the records below.
pub const SCHEMA_VERSION: u32 = 1;

/// The outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every gate held.
    Pass,
    /// At least one gate did not hold.
    Fail,
    /// The measurement itself was the limit: nothing is said about the target.
    Invalid,
}

impl Verdict {
    /// A blocking caveat makes a trial invalid; otherwise every gate decides.
    #[must_use]
    pub fn of(gates: &[GateResult], caveats: &[Caveat]) -> Self {
        if caveats.iter().any(|caveat| caveat.blocking) {
            Self::Invalid
        } else if gates.iter().all(|gate| gate.pass) {
            Self::Pass
        } else {
            Self::Fail
        }
    }

    /// Its word in results and on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
        }
    }
}

/// One gate held against one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// Name of the metric; latencies carry their unit.
    pub name: String,
    /// The most that passes.
    pub threshold: f64,
    /// What the trial showed; `null` when it was never observed.
    pub observed: Option<f64>,
    /// Whether it held.
    pub pass: bool,
}

/// One run at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Version of this schema.
    pub schema_version: u32,
    /// The outcome.
    pub verdict: Verdict,
    /// Each gate and what was observed.
    pub gates: Vec<GateResult>,
    /// Reasons for doubt.
    pub caveats: Vec<Caveat>,
    /// Name of the workload.
    pub workload: String,
    /// Name of the profile.
    pub profile: String,
    /// Its phases.
    pub phases: Profile,
    /// Name of the SLO.
    pub slo: String,
    /// The load.
    pub sessions: u32,
    /// The system under test.
    pub target: Target,
    /// What the target was given, in vCPU; `null` when Plimsoll did not start it.
    pub vcpu: Option<f64>,
    /// The machine and the placement.
    pub environment: Environment,
    /// Seed of everything drawn.
    pub seed: u64,
    /// When the trial began, RFC 3339 in UTC.
    pub started_at: String,
    /// Whether a signal ended it early.
    pub interrupted: bool,
    /// Every frame due, accounted for.
    pub ledger: Ledger,
    /// How long answers took.
    pub latency: Latency,
    /// The load engine itself.
    pub client: Client,
    /// The target's resources over the measured window; `null` when they could not be read.
    pub target_resources: Option<TargetResources>,
    /// The inference simulator over the measured window; `null` when there was none of ours.
    pub inference: Option<Inference>,
}

/// The system under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Folder name, or the URL that the user gave.
    pub name: String,
    /// `idiomatic`, `engine`, `test`, or `url`.
    pub tier: String,
    /// Runtime and library versions, as the target's start line gives them.
    pub versions: BTreeMap<String, String>,
}

/// The machine a trial ran on, and who ran where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Facts about the machine by name: `os`, `kernel`, `cpu_model`, `cores`, `memory_bytes`, `clock_source`, `cgroup`, ….
    pub machine: BTreeMap<String, String>,
    /// Cores of the client and the simulator.
    pub client_cpus: Vec<usize>,
    /// Cores of the target; empty when Plimsoll did not place it.
    pub target_cpus: Vec<usize>,
    /// How the target was held to them: `cgroup v1`, `cgroup v2`, `affinity`, or `none`.
    pub isolation: String,
    /// Period of the target's CPU quota; `null` when it had none.
    pub quota_period_ms: Option<f64>,
    /// Version of Plimsoll.
    pub plimsoll_version: String,
    /// How the engine waits for sockets: `epoll` or `io_uring`.
    pub engine_backend: String,
    /// Width of the engine's tick: frames due within one were written together at its end.
    pub engine_tick_us: u64,
    /// Whether the client's sockets had `TCP_NODELAY`.
    pub nodelay: bool,
}

/// The load engine's own cost and lateness, over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// CPU time of the engine threads per frame written: sending, receiving and accounting.
    pub cpu_us_per_frame: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub cpu_share: f64,
    /// Write minus schedule, without waits for a full socket.
    pub send_lag: LagQuantiles,
    /// Time that due frames waited for a full socket.
    pub send_wait: LagQuantiles,
    /// Share of CPU time that the hypervisor took from the client's cores.
    pub steal_share: Option<f64>,
    /// Faults of the client's own machine by name (`EMFILE`, …): never charged to the target.
    pub faults: BTreeMap<String, u64>,
}

/// The target's resources over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetResources {
    /// CPU time per second and open session.
    pub cpu_us_per_session_second: Option<f64>,
    /// CPU time as a share of what the target was given (of one core, when that is unknown).
    pub cpu_share: f64,
    /// CPU time in user mode.
    pub cpu_user_us: u64,
    /// CPU time in kernel mode.
    pub cpu_system_us: u64,
    /// The greatest resident set.
    pub rss_peak_bytes: u64,
    /// Resident set at the window's end, less that before the first session, per session.
    pub rss_bytes_per_session: Option<f64>,
    /// Share of quota periods in which the target was held back.
    pub throttled_share: Option<f64>,
    /// Time its threads waited for a core, as a share of the window; can exceed 1 with several threads.
    pub run_queue_wait_share: Option<f64>,
    /// Where these numbers come from: `cgroup v1`, `cgroup v2` or `process tree`.
    pub source: String,
}

/// The inference simulator over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inference {
    /// Requests answered.
    pub requests: u64,
    /// Share of one core that the simulator used.
    pub busy_share: f64,
    /// CPU time per request.
    pub cpu_us_per_request: Option<f64>,
    /// Time requests waited for a free place.
    pub queue_wait: LagQuantiles,
    /// How much later than drawn the answers were given.
    pub answer_lateness: LagQuantiles,
}

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
    /// What the target was given, in vCPU; `null` when Plimsoll did not start it.
    pub vcpu: Option<f64>,
    /// The highest load classified as passing: the load line. `null` when none passed.
    pub confirmed: Option<u32>,
    /// Loads that disagree with themselves.
    pub borderline: Vec<u32>,
    /// The lowest load classified as failing. `null` when none failed.
    pub first_fail: Option<u32>,
    /// The gate that failed first at `first_fail`.
    pub failing_gate: Option<String>,
    /// What ran out, in a word or two, with the evidence.
    pub bottleneck: Option<String>,
    /// `confirmed` per vCPU.
    pub sessions_per_vcpu: Option<f64>,
    /// The client or the machine ran out before the target did: the answer is "at least".
    pub lower_bound_only: bool,
    /// Whether a signal ended the search early.
    pub interrupted: bool,
    /// Why the search ended, in a sentence.
    pub conclusion: String,
    /// Seed of the search.
    pub seed: u64,
    /// When the search began, RFC 3339 in UTC.
    pub started_at: String,
    /// The trials in the order in which they ran.
    pub trials: Vec<TrialSummary>,
}

/// One trial within a bracket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSummary {
    /// Its file in the result folder.
    pub file: String,
    /// The load.
    pub sessions: u32,
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
    /// Oldest-frame latency, 50th percentile from the schedule.
    pub oldest_p50_ms: Option<f64>,
    /// Oldest-frame latency, 95th percentile from the schedule.
    pub oldest_p95_ms: Option<f64>,
    /// CPU time of the target per second and session.
    pub cpu_us_per_session_second: Option<f64>,
    /// CPU time of the target as a share of what it was given.
    pub target_cpu_share: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub client_cpu_share: f64,
    /// Client's send lag, 99.9th percentile.
    pub send_lag_p999_us: Option<f64>,
}

impl TrialSummary {
    /// The summary of a trial that is kept in `file`.
    #[must_use]
    pub fn of(trial: &Trial, file: &str) -> Self {
        let latency = &trial.latency;
        let resources = trial.target_resources.as_ref();
        Self {
            file: file.to_owned(),
            sessions: trial.sessions,
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
            oldest_p50_ms: latency.oldest.from_schedule.p50_ms,
            oldest_p95_ms: latency.oldest.from_schedule.p95_ms,
            cpu_us_per_session_second: resources.and_then(|r| r.cpu_us_per_session_second),
            target_cpu_share: resources.map(|r| r.cpu_share),
            client_cpu_share: trial.client.cpu_share,
            send_lag_p999_us: trial.client.send_lag.p999_us,
        }
    }
}

/// One second of a trial: a row of `trial-*.csv`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Second {
    /// Seconds since the trial began, at the row's end.
    pub at_s: u64,
    /// `ramp`, `warm_up`, `measured` or `grace`.
    pub phase: &'static str,
    /// Sessions open.
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
    /// Latency of the newest frame from the schedule.
    pub newest_p50_ms: Option<f64>,
    /// The same, 95th percentile.
    pub newest_p95_ms: Option<f64>,
    /// The same, greatest.
    pub newest_max_ms: Option<f64>,
    /// Latency of the oldest frame from the schedule.
    pub oldest_p50_ms: Option<f64>,
    /// The same, 95th percentile.
    pub oldest_p95_ms: Option<f64>,
    /// The client's send lag, 99th percentile.
    pub send_lag_p99_us: Option<f64>,
    /// Time that frames waited for a full socket, 99th percentile.
    pub send_wait_p99_us: Option<f64>,
    /// Share of its core that the busiest engine thread used.
    pub client_cpu_share: f64,
    /// CPU time of the target in this second as cores; `None` when unknown.
    pub target_cpu_cores: Option<f64>,
    /// Resident set of the target.
    pub target_rss_bytes: Option<u64>,
}

/// What this machine's client can honestly generate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Version of this schema.
    pub schema_version: u32,
    /// CPU time per 648-byte message of a bare send loop, the receiver's softirq work included.
    pub bare_us_per_frame: f64,
    /// CPU time per frame of the engine against a sink: sending, receiving and accounting.
    pub engine_us_per_frame: f64,
    /// Median over the rounds of engine / bare within a round.
    pub ratio: f64,
    /// The most sessions that this client can honestly drive.
    pub max_sessions: u32,
    /// Send lag at `max_sessions`.
    pub send_lag_p99_us: f64,
    /// How late a sleep ends.
    pub timer_error_p99_us: f64,
    /// Sessions on which the two costs were measured.
    pub sessions: u32,
    /// How the engine waits for sockets.
    pub engine_backend: String,
    /// When, RFC 3339 in UTC.
    pub started_at: String,
}
