//! What `check.json` holds: a conformance check, case by case. The laboratory writes it; this is how it is read, and its schema.

use plimsoll_core::record::Build;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A conformance check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The target's name, or its URL.
    pub target: String,
    /// Every case, those that did not run included.
    pub cases: Vec<Case>,
    /// Cases that ran and passed.
    pub passed: u64,
    /// Cases that ran and did not pass.
    pub failed: u64,
    /// Cases that did not run.
    #[serde(default)]
    pub skipped: u64,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
}

/// One case of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// The sentence of the contract.
    pub title: String,
    /// Whether the target does as the sentence says.
    pub pass: bool,
    /// What the contract demands.
    pub expected: String,
    /// What the target did.
    pub seen: String,
    /// Why the case did not run; absent when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ran and did not pass.
    Failed,
    /// It did not run.
    Skipped,
    /// It ran and passed.
    Passed,
}

impl Case {
    /// How it ended; a case that did not run did not pass, whatever it says.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match (&self.skipped, self.pass) {
            (Some(_), _) => Outcome::Skipped,
            (None, true) => Outcome::Passed,
            (None, false) => Outcome::Failed,
        }
    }
}
