//! Conformance: whether a server does what its workload's contract says, case by case.
//!
//! The server is a black box. Each case is one sentence of the contract that can be seen from outside, tried over real
//! sockets with blocking I/O and time-outs, and reports what was expected and what was seen. This crate knows no
//! workload: a workload's crate has the cases.
//!
//! - [`suite`]: what a workload brings: its cases, and what runs beside its servers.
//! - [`case`]: what a case is, and the running server that it is tried on.
//! - `bad_value`: the cases of variables, which every contract has.
//! - [`location`]: where a server is that is known by its URL only.
//! - [`setup`]: the environments that cases need. Cases with the same one share a server and its companion.
//! - [`socket`]: the WebSocket client that cases are written with.
//! - [`subject`]: what is checked: a server that can be started again and again, or one that is only an address.
//! - [`Laboratory`]: starts a target that is built.
//! - `runner`: starts the setups (`running`), runs their cases and repeats disturbed ones.
//! - `watch`: whether the processes of a case were kept from their cores meanwhile.

mod bad_value;
pub mod case;
mod laboratory;
pub mod location;
mod runner;
mod running;
pub mod setup;
pub mod socket;
pub mod start_line;
pub mod subject;
pub mod suite;
mod watch;

use serde::Serialize;

pub use case::{AT_ONCE, Case, Level, Needs, Site, Trial, Verdict};
pub use laboratory::{Laboratory, Program};
pub use runner::Options;
pub use setup::{Setup, Sharing};
pub use subject::Subject;
pub use suite::{Check, Suite};
pub use watch::Witnesses;

/// What one case showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// The case's name: lower-case letters, digits and dashes; the same in every version of the tool.
    pub id: String,
    /// The sentence of the contract.
    pub title: String,
    /// Whether the target must pass, which is usual, or should.
    #[serde(skip_serializing_if = "Level::is_must")]
    pub level: Level,
    /// Whether the target does as the sentence says. Never true for a case that did not run.
    pub pass: bool,
    /// What the contract demands.
    pub expected: String,
    /// What the target did.
    pub seen: String,
    /// Why the case did not run; absent when it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// What kept a process of the case from its core, in each of its attempts, so that not to pass says nothing about the target; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// Why the target does not pass, as its manifest says; absent when that does not name the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<String>,
    /// How often it ran; absent when once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// What all cases showed, in the order of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The target's name, or its URL.
    pub target: String,
    /// Every case, those that did not run included.
    pub cases: Vec<CaseResult>,
    /// Cases that ran and passed.
    pub passed: usize,
    /// Cases that ran and did not pass, undisturbed, though the target must pass them and its manifest does not name
    /// them.
    pub failed: usize,
    /// Cases that ran and did not pass, undisturbed, that the target should pass.
    pub failed_should: usize,
    /// Cases that ran and did not pass, undisturbed, that the target must pass and whose reason its manifest states.
    pub deviations: usize,
    /// Cases that did not run.
    pub skipped: usize,
    /// Cases that did not pass, but were disturbed whenever they ran: nothing is known of them.
    pub disturbed: usize,
}

impl CaseResult {
    /// Whether it ran and did not pass, undisturbed.
    #[must_use]
    pub fn failed(&self) -> bool {
        !self.pass && self.skipped.is_none() && self.disturbed.is_none()
    }

    /// Whether the target does not conform if it does not pass.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.level.is_must() && self.deviation.is_none()
    }
}

impl CheckReport {
    fn new(target: String, cases: Vec<CaseResult>) -> Self {
        let count =
            |wanted: &dyn Fn(&CaseResult) -> bool| cases.iter().filter(|case| wanted(case)).count();
        Self {
            passed: count(&|case| case.pass),
            failed: count(&|case| case.failed() && case.decides()),
            failed_should: count(&|case| case.failed() && !case.level.is_must()),
            deviations: count(&|case| {
                case.failed() && case.level.is_must() && case.deviation.is_some()
            }),
            skipped: count(&|case| case.skipped.is_some()),
            disturbed: count(&|case| case.disturbed.is_some()),
            target,
            cases,
        }
    }

    /// Whether a case that decides was disturbed whenever it ran, so that it is not known whether the target conforms.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        let mut cases = self.cases.iter();
        cases.any(|case| case.disturbed.is_some() && case.decides())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(level: Level, deviation: Option<&str>) -> CaseResult {
        CaseResult {
            id: "a".to_owned(),
            title: "it answers".to_owned(),
            level,
            pass: false,
            expected: "an answer".to_owned(),
            seen: "none".to_owned(),
            skipped: None,
            disturbed: None,
            deviation: deviation.map(str::to_owned),
            attempts: None,
        }
    }

    #[test]
    fn only_a_must_without_a_reason_fails_a_check() {
        use Level::{Must, Should};
        let cases = vec![
            case(Must, None),
            case(Must, Some("the library cannot")),
            case(Should, None),
            case(Should, Some("the library cannot")),
            CaseResult {
                pass: true,
                ..case(Must, Some("it could not"))
            },
        ];
        let report = CheckReport::new("a".to_owned(), cases);
        let counts = [
            report.failed,
            report.deviations,
            report.failed_should,
            report.passed,
        ];
        assert_eq!(counts, [1, 1, 2, 1]);
    }

    #[test]
    fn only_a_case_that_decides_leaves_a_doubt() {
        let disturbed = |case: CaseResult| {
            let disturbed = Some("kept for 9 ms".to_owned());
            let report = CheckReport::new("a".to_owned(), vec![CaseResult { disturbed, ..case }]);
            (report.is_in_doubt(), report.disturbed, report.failed)
        };
        assert_eq!(disturbed(case(Level::Must, None)), (true, 1, 0));
        assert_eq!(disturbed(case(Level::Should, None)), (false, 1, 0));
        assert_eq!(disturbed(case(Level::Must, Some("why"))), (false, 1, 0));
    }

    #[test]
    fn the_usual_level_is_left_out_of_a_record() {
        let written = |level| serde_json::to_value(case(level, None)).expect("JSON");
        assert_eq!(written(Level::Must).get("level"), None);
        assert_eq!(written(Level::Should)["level"], "should");
    }
}
