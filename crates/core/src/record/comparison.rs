//! Two targets, or two results, held against each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;
use super::bracket::{Edge, LoadEvidence, TrialSummary};
use super::build::Build;
use super::load_unit::LoadUnit;
use crate::profile::Length;
use crate::stats::Ratio;

/// What a comparison came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// `b` is better than `a`.
    Better,
    /// `b` is worse than `a`.
    Worse,
    /// What was measured shows no difference; that is no proof that there is none.
    NoDifferenceShown,
}

impl Conclusion {
    /// Its words on terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceShown => "no difference shown",
        }
    }
}

/// Which account of CPU time a cost is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostAccount {
    /// What the kernel charged to the target's processes (`cpu_us_per_session_second`).
    #[default]
    Charged,
    /// What the target's CPUs did when they were not idle (`core_us_per_session_second`).
    Core,
}

/// One side of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The target's name.
    pub name: String,
    /// The result folder that it was read from; `null` when it was measured for this comparison.
    pub folder: Option<String>,
    /// Its load line, where one was searched.
    pub confirmed: Option<u32>,
    /// The lowest load that failed, where one was searched.
    #[serde(default)]
    pub first_fail: Option<u32>,
    /// Where its edge lies.
    pub edge: Option<Edge>,
    /// Mean CPU time per second and session over the pairs that count, or over the loads in common.
    pub cpu_us_per_session_second: Option<f64>,
    /// The same of its cores; `null` where a trial of either side does not know it.
    #[serde(default)]
    pub core_us_per_session_second: Option<f64>,
    /// Why the search for its load line ended, in a sentence; `null` when none was searched.
    #[serde(default)]
    pub search: Option<String>,
    /// What the search's trials say, load by load, ascending.
    #[serde(default)]
    pub evidence: Vec<LoadEvidence>,
    /// Every trial of this side in the order in which they ran, those of the search and those of pairs; for a folder, its trials.
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
    /// File of the trial of `a` in the result folder; empty when the pair ended before it.
    pub a_file: String,
    /// File of the trial of `b`; empty when the pair ended before it.
    pub b_file: String,
    /// CPU time of `a` per second and session.
    pub a_cpu_us_per_session_second: Option<f64>,
    /// CPU time of `b` per second and session.
    pub b_cpu_us_per_session_second: Option<f64>,
    /// CPU time of the cores of `a` per second and session; `null` where they were not its own.
    #[serde(default)]
    pub a_core_us_per_session_second: Option<f64>,
    /// CPU time of the cores of `b` per second and session.
    #[serde(default)]
    pub b_core_us_per_session_second: Option<f64>,
    /// What the trial of `a` came to; `null` when the pair ended before it.
    #[serde(default)]
    pub a_verdict: Option<Verdict>,
    /// What the trial of `b` came to; `null` when the pair ended before it.
    #[serde(default)]
    pub b_verdict: Option<Verdict>,
    /// Why the pair does not count for the cost, if it does not. With two valid verdicts it counts for `carried` all the same.
    pub left_out: Option<String>,
}

impl Pair {
    /// The cost of `a` and that of `b` by that account, as far as they are known.
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

    /// The costs of `a` and `b` by that account, where both are known.
    #[must_use]
    pub fn costs(&self, account: CostAccount) -> Option<(f64, f64)> {
        let [a, b] = self.each_cost(account);
        a.zip(b)
    }
}

/// Which side carried the load of the pairs: those with two valid trials, whether or not they count for the cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// The load of the pairs.
    pub sessions: u32,
    /// Pairs in which both carried it.
    pub both: u32,
    /// Pairs in which `a` carried it and `b` did not.
    pub only_a: u32,
    /// Pairs in which `b` carried it and `a` did not.
    pub only_b: u32,
    /// Pairs in which neither carried it.
    pub neither: u32,
    /// How probable `only_a` and `only_b` are to differ at least so much for two equal targets: the exact two-sided sign test.
    pub p_value: f64,
    /// What that shows by itself, with the confidence of one statement of the comparison.
    pub shows: Conclusion,
}

/// What the two sides of a comparison of folders cost at a load that both were tried at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadCosts {
    /// The load.
    pub sessions: u32,
    /// Whether the trials ran the whole profile or a shorter one.
    #[serde(default)]
    pub length: Length,
    /// CPU time per second and session of each trial of `a`.
    pub a_cpu_us_per_session_second: Vec<f64>,
    /// CPU time per second and session of each trial of `b`.
    pub b_cpu_us_per_session_second: Vec<f64>,
    /// The same of the cores of `a`; empty where a trial does not know it.
    #[serde(default)]
    pub a_core_us_per_session_second: Vec<f64>,
    /// The same of the cores of `b`.
    #[serde(default)]
    pub b_core_us_per_session_second: Vec<f64>,
}

impl LoadCosts {
    /// The costs of `a` and of `b` by that account, a value per trial.
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

/// Two targets, or two result folders, held against each other. Ratios are `b / a`: `a` is the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of this schema.
    pub schema_version: u32,
    /// The baseline.
    pub a: Side,
    /// The side compared with the baseline.
    pub b: Side,
    /// CPU time per session-second of `b` over that of `a`, by `cost_account`; `null` when it is unknown. Below 1 is better.
    pub cost_ratio: Option<Ratio>,
    /// The account of CPU time behind `cost_ratio`: `core` where every trial that counts knows it, else `charged`.
    #[serde(default)]
    pub cost_account: CostAccount,
    /// Load line of `b` over that of `a`; `null` when none was searched, or one is a lower bound only. Above 1 is better.
    pub load_line_ratio: Option<Ratio>,
    /// Which side carried the load of the pairs; `null` without a pair of valid trials, and for folders.
    #[serde(default)]
    pub carried: Option<Carried>,
    /// The confidence, 0 to 1, with which all that is stated here holds together: each of `n` statements (the two ratios, and `carried` where
    /// its pairs are enough to show anything) is made at `1 - (1 - confidence) / n`.
    pub confidence: f64,
    /// The conclusion.
    pub conclusion: Conclusion,
    /// Why, in a sentence.
    pub explanation: String,
    /// What the reader must know besides, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Name of the workload.
    #[serde(default)]
    pub workload: String,
    /// Name of the profile.
    #[serde(default)]
    pub profile: String,
    /// What each target was given, in vCPU; `null` when Plimsoll did not start it.
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
    /// Whether a signal or an error ended it early.
    pub interrupted: bool,
    /// Seed of everything drawn.
    pub seed: u64,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
}
