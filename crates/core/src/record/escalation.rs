//! What became of a target beyond its load line: where it does most, and where it collapses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a target beyond its load line. The load line, the knee and the collapse are three different loads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Escalation {
    /// Where the target does most; `null` if no valid trial said how much was done.
    pub knee: Option<Knee>,
    /// Where it collapses; `null` if that was not found.
    pub collapse: Option<Collapse>,
    /// If the collapse was not found: the highest load tried without one, so that it lies above, if it exists. `null` if
    /// it was found, or if no valid trial said how much was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_collapse_up_to: Option<u32>,
    /// Why it ended, in a sentence.
    pub conclusion: String,
}

/// The load at which a target does most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// The load with the greatest goodput.
    pub load: u32,
    /// The goodput there: the median of its valid trials.
    pub goodput_per_s: f64,
    /// Whether a higher load was tried and did less. If none was, the knee may lie higher.
    pub is_passed: bool,
}

/// The load at which a target collapses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collapse {
    /// The lowest load with a sign of collapse.
    pub load: u32,
    /// The highest load below it that was tried and had none; `null` if there is none.
    pub highest_without: Option<u32>,
    /// What showed it.
    pub sign: CollapseSign,
}

/// What shows that a target has collapsed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CollapseSign {
    /// It did at most half of what it did at the knee.
    GoodputHalved,
    /// At least 5 % of what was due failed.
    TooManyFailed,
    /// It was gone: it crashed, or it stopped answering.
    TargetGone,
}

impl CollapseSign {
    /// It in a few words, after "because".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::GoodputHalved => "it did half as much as at its knee, or less",
            Self::TooManyFailed => "5 % of what was due failed, or more",
            Self::TargetGone => "the target was gone",
        }
    }
}
