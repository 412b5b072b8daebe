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
    /// Cases that ran undisturbed and did not pass, though the target must pass them and its manifest does not name
    /// them.
    pub failed: u64,
    /// Cases that ran undisturbed and did not pass, that the target should pass.
    #[serde(default)]
    pub failed_should: u64,
    /// Cases that ran undisturbed and did not pass, that the target must pass and whose reason its manifest states.
    #[serde(default)]
    pub deviations: u64,
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
    /// Whether the target must pass, or should; absent when it must.
    #[serde(default, skip_serializing_if = "Level::is_must")]
    pub level: Level,
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
    /// Why the target does not pass, as its manifest says; absent when that does not name the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<String>,
    /// How many times the case ran; absent when it ran once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// How much a case weighs, in the words of RFC 2119.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A target that does not pass fails the check.
    #[default]
    Must,
    /// A target that does not pass may still conform.
    Should,
}

impl Level {
    /// Whether it is the usual one.
    #[must_use]
    pub fn is_must(&self) -> bool {
        *self == Self::Must
    }
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseOutcome {
    /// It ran and did not pass, and the target does not conform.
    Failed,
    /// It ran and did not pass, and the target should.
    NotMet,
    /// It ran and did not pass, for a reason that the target's manifest states.
    Deviates,
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
        let (not_met, deviates) = (counted(CaseOutcome::NotMet), counted(CaseOutcome::Deviates));
        let ran = self.cases.len() as u64 - skipped;
        let mut unknown = String::new();
        if not_met > 0 {
            unknown += &format!(" {} should pass and did not.", count(not_met));
        }
        if deviates > 0 {
            unknown += &format!(" {} did not pass, as its manifest says.", count(deviates));
        }
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
        } else if disturbed + not_met + deviates > 0 {
            let passed = count(ran - disturbed - not_met - deviates);
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
            (None, false, None) => match (self.level, &self.deviation) {
                (Level::Should, _) => CaseOutcome::NotMet,
                (Level::Must, Some(_)) => CaseOutcome::Deviates,
                (Level::Must, None) => CaseOutcome::Failed,
            },
        }
    }

    /// Whether the target does not conform if the case does not pass.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.level.is_must() && self.deviation.is_none()
    }

    /// What reports show as seen: why the case did not run, or what the target did, what disturbed the case, and the
    /// reason of a deviation.
    #[must_use]
    pub fn seen_in_words(&self) -> String {
        let seen = self.seen_and_why();
        match (&self.deviation, self.outcome()) {
            (None, _) | (_, CaseOutcome::Skipped) => seen,
            (Some(_), CaseOutcome::Passed) => {
                format!("{seen} (listed under [deviations]: remove it there)")
            }
            (Some(reason), _) => format!("{seen} (reason: {reason})"),
        }
    }

    fn seen_and_why(&self) -> String {
        match (self.outcome(), &self.skipped, &self.disturbed) {
            (CaseOutcome::Skipped, Some(why), _) => why.clone(),
            (CaseOutcome::Disturbed, _, Some(why)) => format!("{} ({why})", self.seen),
            _ => self.seen.clone(),
        }
    }
}
