//! Conformance: whether a server does what its workload's contract says, case by case.
//!
//! The server is a black box. Each case is one sentence of the contract that can be seen from outside, tried over real
//! sockets with blocking I/O and time-outs, and reports what was expected and what was seen. This crate knows no
//! workload: a workload's crate has the cases.
//!
//! - [`suite`]: what a workload brings: its cases, and what runs beside its servers.
//! - [`case`]: what a case is, and the running server that it is tried on.
//! - `bad_value`: the cases of variables, which every contract has.
//! - [`setup`]: the environments that cases need. Cases with the same one share a server and its companion.
//! - [`socket`]: the WebSocket client that cases are written with.
//! - [`subject`]: what is checked: a server that can be started again and again, or one that is only an address.
//! - [`Laboratory`]: starts a target that is built.
//! - `runner`: starts the setups (`running`), runs their cases and repeats disturbed ones.
//! - `watch`: whether the processes of a case were kept from their cores meanwhile.

mod bad_value;
pub mod case;
mod laboratory;
mod runner;
mod running;
pub mod setup;
pub mod socket;
pub mod start_line;
pub mod subject;
pub mod suite;
mod watch;

use serde::Serialize;

pub use case::{AT_ONCE, Case, Needs, Site, Trial, Verdict};
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

/// What all cases showed, in the order of the contract.
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
