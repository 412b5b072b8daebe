//! Workload `http`, with the real command over real sockets. Most trials are of `targets/http/lying-http`, which is
//! honest unless `FAULT` names a fault. What needs no socket is in the tests of `workload-http`.
//!
//! - [`honest`]: what a trial of a good server shows, for each protocol and test;
//! - [`faults`]: a server with a fault fails, and the record names it;
//! - [`pacing`]: what the clock of the client shows, and a client that is at its limit;
//! - [`repeats`]: a server that is not the same at each start, or all the time;
//! - [`unlike`]: results that do not compare;
//! - [`complete`]: what no record and no manifest may leave out;

mod complete;
mod faults;
mod honest;
mod pacing;
mod repeats;
mod unlike;

use std::sync::OnceLock;

use crate::support::built;
use crate::support::manifests::slo_file;
use crate::support::records::{self, Trial};
use crate::support::{Ended, Plimsoll, undisturbed_beside_another};

/// Latencies that a machine under test load can hold, and the shares of workload `http`.
const GATES: &str = "[gates]
newest_p50_ms = 150
newest_p95_ms = 500
error_rate = 0.001
content_wrong = 0
shortfall = 0.01
";

/// Short phases: the window begins 0.7 s after the trial.
const PHASES: &str = "--ramp 0.2 --warm-up 0.5 --measured 2 --grace 1";
/// The same, so that whatever was written in the window is answered or timed out, which takes 2 s.
const TIMED_OUT: &str = "--ramp 0.2 --warm-up 0.5 --measured 2 --grace 2.5";
/// Seconds of the window.
const MEASURED_S: u64 = 2;
/// The usual load, so small that trials side by side do not disturb one another.
const RATE: u64 = 500;
/// The requests of the window at that load.
const DUE: u64 = RATE * MEASURED_S;

/// A file with [`GATES`].
fn gates() -> &'static str {
    static WRITTEN: OnceLock<String> = OnceLock::new();
    WRITTEN.get_or_init(|| slo_file("roomy-http", GATES))
}

/// `plimsoll VERB …` of this workload, with roomy gates.
fn call(line: &str) -> Plimsoll {
    let line = format!("{line} --workload http --slo {}", gates());
    Plimsoll::measuring(line.split_whitespace())
}

/// A trial of the lying server with this fault, `NAME VARIABLE=VALUE …`, at the usual load.
fn lying(fault: &str, line: &str) -> Option<Ended> {
    built("http/lying-http");
    undisturbed_beside_another(|| {
        with_fault(
            call(&format!("run lying-http --sessions {RATE} {line}")),
            fault,
        )
    })
}

fn with_fault(call: Plimsoll, fault: &str) -> Plimsoll {
    call.lying("FAULT", fault)
}

/// How many measured requests had this outcome.
fn outcome(trial: &Trial, name: &str) -> u64 {
    let outcomes = trial.at("http.outcomes").as_array().expect("a list");
    let found = outcomes.iter().find(|outcome| outcome["name"] == name);
    found.map_or(0, |outcome| outcome["count"].as_u64().expect("a count"))
}

/// How many measured requests had an outcome at all. An answer that nobody asked for is none of a request.
fn outcomes(trial: &Trial) -> u64 {
    let outcomes = trial.at("http.outcomes").as_array().expect("a list");
    let counts = outcomes
        .iter()
        .filter(|outcome| outcome["name"] != "unasked_answer")
        .filter_map(|outcome| outcome["count"].as_u64());
    counts.sum()
}

fn count(trial: &Trial, path: &str) -> u64 {
    let value = trial.at(path);
    value
        .as_u64()
        .unwrap_or_else(|| panic!("`{path}` is no count: {value}"))
}

/// The trial's record is complete, and so is its account: each request that was due has one end, and each bad end a
/// name.
#[track_caller]
fn expect_sound(ended: &Ended) -> Trial {
    let trial = ended.sound_trial();
    assert_eq!(
        outcomes(&trial),
        trial.ledger("frames_errored") + trial.ledger("frames_lost"),
        "{:#}",
        trial.at("http.outcomes")
    );
    trial
}

/// The trial passed, and nothing went wrong in it.
#[track_caller]
fn expect_flawless(ended: &Ended) -> Trial {
    ended.expect_code(0);
    let trial = expect_sound(ended);
    assert_eq!(trial.verdict(), "pass");
    assert_eq!(trial.ledger("frames_answered"), trial.ledger("frames_due"));
    for name in records::FAULTS {
        assert_eq!(trial.ledger(name), 0, "{name}");
    }
    assert_eq!(trial.at("load_unit"), "requests_per_second");
    trial
}

/// An undisturbed trial of a server of the test.
fn at_url(url: &str, line: &str) -> Option<Ended> {
    undisturbed_beside_another(|| call(&format!("run --url {url} --sessions {RATE} {line}")))
}
