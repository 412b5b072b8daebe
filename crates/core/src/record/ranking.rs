//! Several targets under the same conditions: the load line of each, and the cost of each at one load that all of them
//! carry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bracket::Bracket;
use super::build::Build;
use super::comparison::CostAccount;
use super::load_unit::LoadUnit;
use crate::caveat::Caveat;

/// Several targets, ranked by their load lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// Version of this schema.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// Name of the profile.
    pub profile: String,
    /// Name of the SLO.
    pub slo: String,
    /// What each target was given, in vCPU.
    pub vcpu: f64,
    /// What the loads count.
    #[serde(default, skip_serializing_if = "LoadUnit::is_sessions")]
    pub load_unit: LoadUnit,
    /// The load at which costs are compared; `null` if no load is carried by every target.
    pub common_load: Option<u32>,
    /// Rounds of trials at that load. Each has one trial of every target, in a newly drawn order.
    pub rounds: u32,
    /// The targets, those of tier `framework` first, then the highest load line.
    pub rows: Vec<RankedTarget>,
    /// Targets that should have been measured but were not, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Whether a signal ended the ranking early.
    pub interrupted: bool,
    /// Seed of the searches and of the order of the rounds.
    pub seed: u64,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// When the ranking began, RFC 3339 in UTC.
    pub started_at: String,
}

/// One of the ranked targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedTarget {
    /// Its result folder, below that of the ranking. It holds the trials of its search and those at the common load.
    pub folder: String,
    /// The language it is written in.
    pub language: String,
    /// Its runtime and libraries, in one line.
    pub description: String,
    /// Lines of its source that are neither blank nor comment, tests left out; `null` if they could not be counted.
    pub lines_of_code: Option<u64>,
    /// Of a target of tier `framework`: the name of the one of tier `tuned` on the same runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<String>,
    /// Its load line, as in `bracket.json` of its folder.
    pub bracket: Bracket,
    /// Reasons for doubt about its place among the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
    /// Its cost at the common load; `null` if no trial there was valid.
    pub at_common_load: Option<CostAtLoad>,
}

/// What a target costs at one load, over the trials that passed there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostAtLoad {
    /// CPU time per session-second, as charged to the target: mean.
    pub cpu_us_per_session_second: f64,
    /// Busy time of the target's cores per session-second, if they were its own: mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_us_per_session_second: Option<f64>,
    /// The lowest `cpu_us_per_session_second` of these trials.
    pub low: f64,
    /// The highest `cpu_us_per_session_second` of these trials.
    pub high: f64,
    /// The lowest `core_us_per_session_second` of these trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_low: Option<f64>,
    /// The highest `core_us_per_session_second` of these trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_high: Option<f64>,
    /// Resident memory per session: mean.
    pub rss_bytes_per_session: Option<f64>,
    /// Newest-frame latency, 95th percentile from the schedule: mean.
    pub newest_p95_ms: Option<f64>,
    /// Newest-frame latency, 99th percentile from the schedule: mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_p99_ms: Option<f64>,
    /// Newest-frame latency, median from the write: mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_write_p50_ms: Option<f64>,
    /// The trials, as files in the target's folder.
    pub trials: Vec<String>,
    /// Number of trials at this load that do not count: they failed, or the measurement was invalid.
    pub left_out: u32,
}

impl CostAtLoad {
    /// The cost by one account: mean, lowest and highest. `None` if the account is not known.
    #[must_use]
    pub fn by(&self, account: CostAccount) -> Option<(f64, f64, f64)> {
        match account {
            CostAccount::Charged => Some((self.cpu_us_per_session_second, self.low, self.high)),
            CostAccount::Core => Some((
                self.core_us_per_session_second?,
                self.core_low?,
                self.core_high?,
            )),
        }
    }
}

/// A target that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Name of the target.
    pub name: String,
    /// Why it was not measured, with the remedy if there is one.
    pub reason: String,
}
