//! Goals that a user set before the measurement, and what became of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The goals of a file that was read before the first trial, and what became of each. They decide no verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goals {
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// What became of each goal, in the order of the file.
    pub findings: Vec<Finding>,
}

/// A goal: what a metric is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// The metric, by its name in goals files.
    pub metric: String,
    /// The test of the workload that it is for; `null` if it is for every result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The greatest value that meets it; `null` if it has a least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The least value that meets it; `null` if it has a greatest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Why nobody insists on it; `null` if somebody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_waived: Option<String>,
}

/// What became of a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The goal.
    #[serde(flatten)]
    pub goal: Goal,
    /// What was measured; `null` if nothing was.
    pub result: Option<f64>,
    /// Where the value lies, if it is not known itself.
    #[serde(default, skip_serializing_if = "Bound::is_exact")]
    pub bound: Bound,
    /// Whether the goal is met.
    pub outcome: Outcome,
    /// Whether the goal is for another test than that of the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_another_test: bool,
    /// Why it was not measured, or why it is waived; `null` if it is met or missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Of a load line: the result as a share of the least value, minus 1. 0.5 is half as much again as is needed; below 0
    /// there is too little. `null` for all other metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
}

/// Where a value lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The result is the value.
    #[default]
    Exact,
    /// The value is the result or more: the client ran out before the target did, or the search was not ended.
    AtLeast,
    /// The value is less than the result: no load passed.
    Below,
}

impl Bound {
    /// Whether the result is the value, which records need not say.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// Whether a goal is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The result meets it.
    Met,
    /// The result does not meet it.
    Missed,
    /// Nothing was measured that says so.
    NotMeasured,
    /// Nobody insists on it.
    Waived,
}

impl Outcome {
    /// Its name on pages and terminals.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotMeasured => "not measured",
            Self::Waived => "waived",
        }
    }
}
