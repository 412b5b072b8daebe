//! One trial: its verdict, and everything that the verdict is based on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::build::Build;
use super::goals::Goals;
use super::load_unit::LoadUnit;
use super::network::Network;
use super::probe::Probes;
use super::resources::{Client, CompanionWindow, Observer, TargetResources};
use super::sections::Sections;
use super::tls::Tls;
use crate::caveat::Caveat;
use crate::latency::Latency;
use crate::ledger::Ledger;
use crate::profile::{Length, Profile};

/// The outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every gate held.
    Pass,
    /// At least one gate did not hold.
    Fail,
    /// The measurement itself was the limit: it says nothing about the target.
    Invalid,
}

impl Verdict {
    /// The verdict from gates and caveats: a blocking caveat makes a trial invalid; otherwise the gates decide.
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

    /// Its name in results and on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
        }
    }
}

/// The result of comparing one trial with one gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// Name of the metric; latencies carry their unit.
    pub name: String,
    /// The greatest value that passes.
    pub threshold: f64,
    /// The value observed in the trial; `null` if it was not observed.
    pub observed: Option<f64>,
    /// Whether the gate held.
    pub pass: bool,
}

impl GateResult {
    /// Whether the gate is on a latency, not on a count or a rate.
    #[must_use]
    pub fn is_on_latency(&self) -> bool {
        self.name.ends_with("_ms")
    }
}

/// Values of a workload's parameters, by name.
pub type Parameters = BTreeMap<String, serde_json::Value>;

/// One run at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Version of this schema.
    pub schema_version: u32,
    /// The outcome.
    pub verdict: Verdict,
    /// Each gate, with the value observed.
    pub gates: Vec<GateResult>,
    /// Reasons for doubt.
    pub caveats: Vec<Caveat>,
    /// Name of the workload.
    pub workload: String,
    /// The workload's parameters by name, as far as they have a meaning for the trial; empty in results of 0.1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: Parameters,
    /// Name of the profile.
    pub profile: String,
    /// The phases of the trial.
    pub phases: Profile,
    /// Name of the SLO.
    pub slo: String,
    /// The load.
    pub sessions: u32,
    /// What the load counts.
    #[serde(default, skip_serializing_if = "LoadUnit::is_sessions")]
    pub load_unit: LoadUnit,
    /// Whether the trial ran the whole profile or, far from the edge of a search, a shorter one; `phases` has the
    /// seconds.
    #[serde(default)]
    pub length: Length,
    /// The system under test.
    pub target: Target,
    /// Time from the start of the target until it was ready: until its first answer with status 200, asked for every
    /// millisecond; without HTTP, until it answered as it should over a connection, made every 10 ms. `null` if Plimsoll
    /// did not start it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<f64>,
    /// CPU time that the target was given, in vCPU; `null` if Plimsoll did not start it.
    pub vcpu: Option<f64>,
    /// The machine and the placement.
    pub environment: Environment,
    /// The file of the record that the trial was compared with: from the folder of its result, or as the user gave it; `null`
    /// if it stands for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Seed of everything drawn.
    pub seed: u64,
    /// When the trial began, RFC 3339 in UTC.
    pub started_at: String,
    /// Whether a signal ended the trial early.
    pub interrupted: bool,
    /// The account of every frame due.
    pub ledger: Ledger,
    /// How long answers took.
    pub latency: Latency,
    /// How much of what was due was done, right and in time; `null` if the workload does not say when that is so, or if
    /// the trial was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Goodput>,
    /// The load engine's own cost and lateness.
    pub client: Client,
    /// The target's resources over the measured window; `null` if they could not be read.
    pub target_resources: Option<TargetResources>,
    /// The program beside the target, such as its back end, over the measured window; `null` if Plimsoll did not run one.
    #[serde(rename = "inference")]
    pub companion: Option<CompanionWindow>,
    /// What limited the target, or the measurement, with the evidence; `null` if every gate held.
    #[serde(default)]
    pub bottleneck: Option<String>,
    /// Quantities that are known from two independent accounts, compared with each other.
    #[serde(default)]
    pub sanity: Vec<SanityCheck>,
    /// What the workload adds, each object under its own name among these fields.
    #[serde(flatten)]
    #[schemars(skip)]
    pub sections: Sections,
    /// How latency and memory changed over the window; `null` if the window was too short for that.
    #[serde(default)]
    pub drift: Option<Drift>,
    /// The same trial judged by the further SLOs of a search with several.
    #[serde(default)]
    pub further_slos: Vec<SloVerdict>,
    /// What became of the goals that were set before the first trial; `null` if none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goals: Option<Goals>,
}

/// How much of what was due in the measured window was done, right and in time. Beyond the load line it goes on rising for a
/// while; then it falls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goodput {
    /// What was due, per second.
    pub due_per_s: f64,
    /// Of this, what was complete, right and in time, per second.
    pub good_per_s: f64,
    /// The share of what was due that was not complete, 0 to 1.
    pub failed_share: f64,
}

impl Trial {
    /// A parameter of the workload that is a whole number; `None` if it has no meaning for the trial.
    #[must_use]
    pub fn whole_parameter(&self, name: &str) -> Option<u64> {
        self.parameters.get(name)?.as_u64()
    }

    /// A parameter of the workload that is a word; `None` if it has no meaning for the trial.
    #[must_use]
    pub fn word_parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name)?.as_str()
    }

    /// The trial as the SLO of that name judges it; `None` if it does not. A search with several SLOs has one set of trials
    /// and several judgements.
    #[must_use]
    pub fn judged_by(&self, slo: &str) -> Option<Self> {
        if self.slo == slo {
            return Some(self.clone());
        }
        let further = self.further_slos.iter().find(|judged| judged.slo == slo)?;
        let SloVerdict {
            slo,
            verdict,
            gates,
            caveats,
        } = further.clone();
        Some(Self {
            slo,
            verdict,
            gates,
            caveats,
            ..self.clone()
        })
    }

    /// The caveats that make it invalid.
    pub fn blocking_caveats(&self) -> impl Iterator<Item = &Caveat> {
        self.caveats.iter().filter(|caveat| caveat.blocking)
    }

    /// The names of these, for a line: `send-lag, steal`.
    #[must_use]
    pub fn blocking_names(&self) -> String {
        let names: Vec<&str> = self
            .blocking_caveats()
            .map(|caveat| caveat.id.as_str())
            .collect();
        names.join(", ")
    }
}

/// A trial's verdict by one SLO of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloVerdict {
    /// Name of the SLO.
    pub slo: String,
    /// The outcome.
    pub verdict: Verdict,
    /// Each gate, with the value observed.
    pub gates: Vec<GateResult>,
    /// Reasons for doubt. Their limits follow the tightest gate of this SLO.
    pub caveats: Vec<Caveat>,
}

/// A quantity that is known from two accounts: one value must lie within the range that the other allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SanityCheck {
    /// `littles_law`, `metrics_frames`, `metrics_sessions`, `metrics_partials`, `kernel_bytes_sent`, `back_end_bytes`,
    /// ….
    pub name: String,
    /// The lowest consistent value.
    pub low: f64,
    /// The highest consistent value.
    pub high: f64,
    /// The value observed.
    pub observed: f64,
    /// Whether the observed value lies between these.
    pub holds: bool,
}

impl SanityCheck {
    /// A value that must lie between these, both included.
    #[must_use]
    pub fn of(name: &str, low: f64, high: f64, observed: f64) -> Self {
        Self {
            name: name.to_owned(),
            low,
            high,
            observed,
            holds: (low..=high).contains(&observed),
        }
    }
}

/// How latency and memory changed over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// Newest-frame latency, 95th percentile of each second, from the schedule: change in ms per hour.
    pub newest_p95_ms_per_hour: Option<Slope>,
    /// Resident set of the target: change in bytes per hour.
    pub rss_bytes_per_hour: Option<Slope>,
    /// Resident set of the target per open session: change in bytes per hour.
    pub rss_bytes_per_session_hour: Option<Slope>,
    /// CPU time of the target: change in cores per hour.
    pub cpu_cores_per_hour: Option<Slope>,
}

/// A slope with its confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slope {
    /// The slope.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Confidence of the interval, 0 to 1.
    pub confidence: f64,
}

/// The system under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Name of its folder, or the URL that the user gave.
    pub name: String,
    /// `framework`, `idiomatic`, `tuned`, `engine`, `infrastructure`, `test`, or `url`.
    pub tier: String,
    /// Version of the workload's contract that it was measured by; `null` if the workload has none, or the record is older than this
    /// field: then 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<u32>,
    /// `default` or `tuned`, by its manifest; `null` if its manifest does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Each setting that it does not leave at its default, in words, by its manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Runtime and library versions, as reported by the target's start line.
    pub versions: BTreeMap<String, String>,
    /// Bytes of its own files, as its manifest names them; `null` if it names none, or one is missing.
    #[serde(default)]
    pub ships_bytes: Option<u64>,
    /// Bytes of its runtime's files; `null` as above.
    #[serde(default)]
    pub runtime_bytes: Option<u64>,
    /// Cases of its workload's contract that it does not pass by its own account, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deviations: BTreeMap<String, String>,
}

/// The machine a trial ran on, and the placement of client and target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Facts about the machine by name: `os`, `kernel`, `cpu_model`, `cores`, `memory_bytes`, `clock_source`, `cgroup`,
    /// ….
    pub machine: BTreeMap<String, String>,
    /// CPUs of the client and of what runs beside the target.
    pub client_cpus: Vec<usize>,
    /// CPUs of the target; empty if Plimsoll did not place it.
    pub target_cpus: Vec<usize>,
    /// What kept the target on its CPUs: `cgroup v1`, `cgroup v2`, `affinity`, or `none`.
    pub isolation: String,
    /// Period of the target's CPU quota; `null` if it had none.
    pub quota_period_ms: Option<f64>,
    /// Version of Plimsoll.
    pub plimsoll_version: String,
    /// Build of Plimsoll.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// How the engine waits for sockets: `epoll` or `io_uring`.
    pub engine_backend: String,
    /// Length of the engine's tick: frames due within one tick were written together at its end.
    pub engine_tick_us: u64,
    /// Whether the client's sockets had `TCP_NODELAY`.
    pub nodelay: bool,
    /// The file system that the target's data was on, as the kernel calls it: `ext4`, `tmpfs`; `null` if Plimsoll made no
    /// folder for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_file_system: Option<String>,
    /// The network between the client and a target that Plimsoll started; `null` if Plimsoll did not start the target,
    /// and in results of 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Who sampled a target on another machine; `null` if nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<Observer>,
    /// What client and target agreed on if the connections use TLS; `null` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The machine's times for the same small work before and after the trial; `null` in results of 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,
}
