//! Two targets, or two results, compared with each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;
use super::bracket::{Edge, LoadEvidence, TrialSummary};
use super::build::Build;
use super::load_unit::LoadUnit;
use crate::profile::Length;
use crate::stats::Ratio;

/// The conclusion of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// `b` is better than `a`.
    Better,
    /// `b` is worse than `a`.
    Worse,
    /// The measurements show no difference. This is no proof that there is none.
    NoDifferenceShown,
}

impl Conclusion {
    /// Its name on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceShown => "no difference shown",
        }
    }
}

/// The account of CPU time that a cost uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostAccount {
    /// What the kernel charged to the target's processes (`cpu_us_per_session_second`).
    #[default]
    Charged,
    /// Busy time of the target's CPUs (`core_us_per_session_second`).
    Core,
}

/// One side of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The target's name.
    pub name: String,
    /// `default` or `tuned`, by the target's manifest; `null` if its manifest does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The result folder it was read from; `null` if it was measured for this comparison.
    pub folder: Option<String>,
    /// Its load line, if one was searched.
    pub confirmed: Option<u32>,
    /// The lowest load classified as failing, if a load line was searched.
    #[serde(default)]
    pub first_fail: Option<u32>,
    /// Where its edge lies.
    pub edge: Option<Edge>,
    /// CPU time per session-second, as charged: mean over the pairs that count, or over the loads in common.
    pub cpu_us_per_session_second: Option<f64>,
    /// Busy time of its cores per session-second, likewise; `null` if a trial of either side does not know it.
    #[serde(default)]
    pub core_us_per_session_second: Option<f64>,
    /// Why the search for its load line ended, in a sentence; `null` if none was searched.
    #[serde(default)]
    pub search: Option<String>,
    /// What the search's trials show, load by load, ascending.
    #[serde(default)]
    pub evidence: Vec<LoadEvidence>,
    /// Every trial of this side, in the order in which they ran: those of the search and those of pairs. For a folder,
    /// its trials.
    #[serde(default)]
    pub trials: Vec<TrialSummary>,
}

/// One pair of trials at the same load, one right after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The load.
    pub sessions: u32,
    /// Whether `b` ran before `a`.
    pub b_first: bool,
    /// File of the trial of `a` in the result folder; empty if the pair ended before it.
    pub a_file: String,
    /// File of the trial of `b` in the result folder; empty if the pair ended before it.
    pub b_file: String,
    /// CPU time of `a` per session-second, as charged.
    pub a_cpu_us_per_session_second: Option<f64>,
    /// CPU time of `b` per session-second, as charged.
    pub b_cpu_us_per_session_second: Option<f64>,
    /// Busy time of the cores of `a` per session-second; `null` if they were not its own.
    #[serde(default)]
    pub a_core_us_per_session_second: Option<f64>,
    /// Busy time of the cores of `b` per session-second; `null` if they were not its own.
    #[serde(default)]
    pub b_core_us_per_session_second: Option<f64>,
    /// The verdict of the trial of `a`; `null` if the pair ended before it.
    #[serde(default)]
    pub a_verdict: Option<Verdict>,
    /// The verdict of the trial of `b`; `null` if the pair ended before it.
    #[serde(default)]
    pub b_verdict: Option<Verdict>,
    /// Why the pair does not count for the cost, if it does not. With two valid verdicts it still counts for `carried`.
    pub left_out: Option<String>,
}

impl Pair {
    /// The cost of `a` and that of `b` by that account, as far as known.
    #[must_use]
    pub fn each_cost(&self, account: CostAccount) -> [Option<f64>; 2] {
        match account {
            CostAccount::Charged => [
                self.a_cpu_us_per_session_second,
                self.b_cpu_us_per_session_second,
            ],
            CostAccount::Core => [
                self.a_core_us_per_session_second,
                self.b_core_us_per_session_second,
            ],
        }
    }

    /// The costs of `a` and `b` by that account, if both are known.
    #[must_use]
    pub fn costs(&self, account: CostAccount) -> Option<(f64, f64)> {
        let [a, b] = self.each_cost(account);
        a.zip(b)
    }
}

/// Which side carried the load of the pairs. All pairs with two valid trials count, even those that do not count for
/// the cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// The load of the pairs.
    pub sessions: u32,
    /// Pairs in which both sides carried it.
    pub both: u32,
    /// Pairs in which `a` carried it and `b` did not.
    pub only_a: u32,
    /// Pairs in which `b` carried it and `a` did not.
    pub only_b: u32,
    /// Pairs in which neither side carried it.
    pub neither: u32,
    /// The probability that `only_a` and `only_b` differ at least this much if the targets are equal: the exact
    /// two-sided sign test.
    pub p_value: f64,
    /// What that shows by itself, at the confidence of one statement of the comparison.
    pub shows: Conclusion,
}

/// The costs of both sides of a comparison of folders, at a load that both were tried at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadCosts {
    /// The load.
    pub sessions: u32,
    /// Whether the trials ran the whole profile or a shorter one.
    #[serde(default)]
    pub length: Length,
    /// CPU time per session-second of each trial of `a`, as charged.
    pub a_cpu_us_per_session_second: Vec<f64>,
    /// CPU time per session-second of each trial of `b`, as charged.
    pub b_cpu_us_per_session_second: Vec<f64>,
    /// Busy time of the cores per session-second of each trial of `a`; empty if a trial does not know it.
    #[serde(default)]
    pub a_core_us_per_session_second: Vec<f64>,
    /// Busy time of the cores per session-second of each trial of `b`; empty if a trial does not know it.
    #[serde(default)]
    pub b_core_us_per_session_second: Vec<f64>,
}

impl LoadCosts {
    /// The costs of `a` and of `b` by that account, one value per trial.
    #[must_use]
    pub fn costs(&self, account: CostAccount) -> (&[f64], &[f64]) {
        match account {
            CostAccount::Charged => (
                &self.a_cpu_us_per_session_second,
                &self.b_cpu_us_per_session_second,
            ),
            CostAccount::Core => (
                &self.a_core_us_per_session_second,
                &self.b_core_us_per_session_second,
            ),
        }
    }
}

/// Two targets, or two result folders, compared with each other. Ratios are `b / a`: `a` is the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this schema.
    pub schema_version: u32,
    /// The baseline.
    pub a: Side,
    /// The side compared with the baseline.
    pub b: Side,
    /// CPU time per session-second of `b` over that of `a`, by `cost_account`; `null` if unknown. Below 1 is better.
    pub cost_ratio: Option<Ratio>,
    /// The account of CPU time behind `cost_ratio`: `core` if every trial that counts knows it, otherwise `charged`.
    #[serde(default)]
    pub cost_account: CostAccount,
    /// Load line of `b` over that of `a`; `null` if none was searched, or if one is only a lower bound. Above 1 is
    /// better.
    pub load_line_ratio: Option<Ratio>,
    /// Which side carried the load of the pairs; `null` without a pair of valid trials, and for folders.
    #[serde(default)]
    pub carried: Option<Carried>,
    /// The confidence, 0 to 1, with which all statements here hold together. Each of `n` statements (the two ratios,
    /// and `carried` if its pairs are enough to show anything) is made at `1 - (1 - confidence) / n`.
    pub confidence: f64,
    /// The conclusion.
    pub conclusion: Conclusion,
    /// The reason for the conclusion, in a sentence.
    pub explanation: String,
    /// What else the reader must know, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Name of the workload.
    #[serde(default)]
    pub workload: String,
    /// Name of the profile.
    #[serde(default)]
    pub profile: String,
    /// What each target was given, in vCPU; `null` if Plimsoll did not start it.
    #[serde(default)]
    pub vcpu: Option<f64>,
    /// What the loads count.
    #[serde(default, skip_serializing_if = "LoadUnit::is_sessions")]
    pub load_unit: LoadUnit,
    /// Pairs of trials behind `cost_ratio`, in the order in which they ran; empty for two folders.
    pub pairs: Vec<Pair>,
    /// The costs behind `cost_ratio` for two folders, by load, ascending; empty otherwise.
    #[serde(default)]
    pub loads: Vec<LoadCosts>,
    /// Whether a signal or an error ended the comparison early.
    pub interrupted: bool,
    /// Seed of everything drawn.
    pub seed: u64,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// When the comparison began, RFC 3339 in UTC.
    pub started_at: String,
}
