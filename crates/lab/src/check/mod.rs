//! `plimsoll check`: the conformance of a speech-to-text gateway to its contract, case by case.
//!
//! The gateway is a black box. Each case is one sentence of the contract that can be seen from outside, tried over real
//! sockets with blocking I/O and time-outs, and reports what was expected and what was seen.
//!
//! - [`subject`]: what is checked: a gateway that can be started again and again, or one that is only an address.
//! - `registry`: the list of all cases. A case is one function in a file of its area, and one line in that file's list:
//!   `http_surface`, `start`, `frames`, `rejected_frames`, `flush`, `in_flight`, `inference_request`, `inference_errors`,
//!   `overflow`, `limits`, `drain`, `metrics`, `environment`.
//! - `setup`: the environments that cases need. Cases with the same one share a gateway and its simulator.
//! - `runner`: starts the setups (`running`), runs their cases and repeats disturbed ones.
//! - `watch`: whether the processes of a case were kept from their cores meanwhile.
//! - `client`, `messages`: what cases are written with.

mod client;
mod drain;
mod environment;
mod flush;
mod frames;
mod http_surface;
mod in_flight;
mod inference_errors;
mod inference_request;
mod laboratory;
mod limits;
mod messages;
mod metrics;
mod overflow;
mod registry;
mod rejected_frames;
mod runner;
mod running;
mod setup;
mod start;
pub mod subject;
mod watch;

use serde::Serialize;

pub use laboratory::Laboratory;
pub use runner::{Options, case_ids, run};
pub use subject::Subject;

/// What one case showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// The case's name: lower-case letters, digits and dashes; the same in every version of the tool.
    pub id: String,
    /// The sentence of the contract.
    pub title: String,
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
    /// How often it ran; absent when once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

/// What all cases showed, in the order of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// The target's name, or its URL.
    pub target: String,
    /// Every case, those that did not run included.
    pub cases: Vec<CaseResult>,
    /// Cases that ran and passed.
    pub passed: usize,
    /// Cases that ran and did not pass, undisturbed.
    pub failed: usize,
    /// Cases that did not run.
    pub skipped: usize,
    /// Cases that did not pass, but were disturbed whenever they ran: nothing is known of them.
    pub disturbed: usize,
}

impl CheckReport {
    fn new(target: String, cases: Vec<CaseResult>) -> Self {
        let skipped = cases.iter().filter(|case| case.skipped.is_some()).count();
        let passed = cases.iter().filter(|case| case.pass).count();
        let disturbed = cases.iter().filter(|case| case.disturbed.is_some()).count();
        Self {
            failed: cases.len() - passed - skipped - disturbed,
            target,
            cases,
            passed,
            skipped,
            disturbed,
        }
    }
}

#[cfg(test)]
mod tests;
