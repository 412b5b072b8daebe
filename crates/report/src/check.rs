//! The content of `check.json`: a conformance check, case by case. The laboratory writes it; this module defines how to
//! read it, and its schema.

use plimsoll_core::record::Build;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::count;

/// A conformance check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The target's name, or its URL.
    pub target: String,
    /// Every case, including those that did not run.
    pub cases: Vec<Case>,
    /// Cases that ran and passed.
    pub passed: u64,
    /// Cases that ran undisturbed and did not pass.
    pub failed: u64,
    /// Cases that did not run.
    #[serde(default)]
    pub skipped: u64,
    /// Cases that did not pass, but were disturbed every time they ran: they show nothing about the target.
    #[serde(default)]
    pub disturbed: u64,
    /// The build of Plimsoll that ran the check.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
}

/// One case of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// The name of the case.
    pub id: String,
    /// The sentence of the contract.
    pub title: String,
    /// Whether the target does what the sentence says.
    pub pass: bool,
    /// What the contract demands.
    pub expected: String,
    /// What the target did.
    pub seen: String,
    /// Why the case did not run; absent when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// What kept a process of the case from its core in each attempt, so that not passing shows nothing about the
    /// target; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// How many times the case ran; absent when it ran once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseOutcome {
    /// It ran and did not pass.
    Failed,
    /// It did not pass, and a process of it was kept from its core each time: it shows nothing about the target.
    Disturbed,
    /// It did not run.
    Skipped,
    /// It ran and passed.
    Passed,
}

impl Check {
    /// How many cases passed, in a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let counted = |outcome| {
            let cases = self.cases.iter().filter(|case| case.outcome() == outcome);
            cases.count() as u64
        };
        let (failed, skipped) = (counted(CaseOutcome::Failed), counted(CaseOutcome::Skipped));
        let disturbed = counted(CaseOutcome::Disturbed);
        let ran = self.cases.len() as u64 - skipped;
        let mut unknown = String::new();
        if disturbed > 0 {
            unknown += &format!(
                " {} did not pass and {} disturbed: nothing is known of {}.",
                count(disturbed),
                if disturbed == 1 { "was" } else { "were" },
                if disturbed == 1 { "it" } else { "them" },
            );
        }
        if skipped > 0 {
            unknown += &format!(" {} did not run.", count(skipped));
        }
        if ran == 0 {
            format!("No case ran: nothing is known.{unknown}")
        } else if failed > 0 {
            format!(
                "{} of {} cases that ran failed.{unknown}",
                count(failed),
                count(ran)
            )
        } else if disturbed > 0 {
            let passed = count(ran - disturbed);
            format!("{passed} of {} cases that ran passed.{unknown}", count(ran))
        } else {
            format!("All {} cases that ran passed.{unknown}", count(ran))
        }
    }
}

impl Case {
    /// How the case ended. A case that did not run did not pass, whatever `pass` says.
    #[must_use]
    pub fn outcome(&self) -> CaseOutcome {
        match (&self.skipped, self.pass, &self.disturbed) {
            (Some(_), _, _) => CaseOutcome::Skipped,
            (None, true, _) => CaseOutcome::Passed,
            (None, false, Some(_)) => CaseOutcome::Disturbed,
            (None, false, None) => CaseOutcome::Failed,
        }
    }

    /// What reports show as seen: why the case did not run, or what the target did and what disturbed the case.
    #[must_use]
    pub fn seen_in_words(&self) -> String {
        match (self.outcome(), &self.skipped, &self.disturbed) {
            (CaseOutcome::Skipped, Some(why), _) => why.clone(),
            (CaseOutcome::Disturbed, _, Some(why)) => format!("{} ({why})", self.seen),
            _ => self.seen.clone(),
        }
    }
}
