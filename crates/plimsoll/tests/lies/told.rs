//! Runs the real command against a lie over real sockets, and compares the record with the table.

use std::path::Path;

use crate::document;
use crate::entry::{Counter, Lie, Manifest};
use crate::support::manifests::file;
use crate::support::{
    Ended, Plimsoll, Trial, attempts, built, half_turn, inconclusive, records, turn,
    turn_of_attempt,
};
use crate::table;

/// The most attempts at a trial. It is run again if a caveat blocks it that the lie does not explain, because a machine
/// that was busy with something else is no reason to fail.
const ATTEMPTS: u32 = 4;

/// Lies that take more of the machine than their few sessions suggest, for good or when they work off what came while
/// they stood still.
const WANTS_A_CORE: [&str; 5] = [
    "burn_core",
    "flood",
    "late_after_window",
    "stall_once",
    "stall_rarely",
];

/// Runs the lie with this name and expects exactly what the table says. If the machine disturbs every attempt, the row
/// is inconclusive: nothing is expected of it, and it counts as skipped, with the reason.
pub(crate) fn told(name: &str) {
    let lie = table::named(name);
    let ended = match undisturbed(lie) {
        Ok(ended) => ended,
        Err(disturbances) => {
            inconclusive(&disturbances);
            return document::inconclusive(lie.name, &disturbances);
        }
    };
    ended.expect_code(lie.verdict.code());
    let trial = ended.trial();
    expect_verdict(lie, &trial);
    expect_caveats(lie, &trial);
    expect_gates(lie, &trial);
    expect_counters(lie, &trial);
    trial.expect_every_frame_accounted_for();
    expect_reason(lie, &trial);
    records::expect_valid(&trial.0, "trial.json");
    ended.expect_nothing_left_running();
    document::note(lie, &trial);
}

/// The first trial that the machine did not disturb; otherwise, what disturbed the last one.
fn undisturbed(lie: &Lie) -> Result<Ended, Vec<String>> {
    let expected: Vec<&str> = expected_caveats(lie).collect();
    let turn_of = |attempt| {
        let wants_a_core = WANTS_A_CORE.contains(&lie.lie);
        Some(match attempt {
            1 if wants_a_core => half_turn(),
            _ if wants_a_core => turn(),
            _ => turn_of_attempt(attempt, ATTEMPTS),
        })
    };
    attempts(ATTEMPTS, turn_of, &expected, || call(lie))
}

fn call(lie: &Lie) -> Ended {
    let files = tempfile::tempdir().expect("a scratch folder");
    let mut call = Plimsoll::measuring(["run"]);
    call = match lie.manifest {
        Manifest::Own => call.arg("lying-server"),
        Manifest::ThatClaimsToAsk => call.arg("--manifest").arg(claims_to_ask(files.path())),
    };
    call = call.arg("--sessions").arg(lie.sessions.to_string());
    for flag in lie.flags.split(' ') {
        call = call.arg(flag);
    }
    call = call.env("LIE", lie.lie);
    for (name, value) in lie.parameters {
        call = call.env(&format!("LIE_{name}"), value);
    }
    call.run()
}

/// A manifest for the same program that does not declare that it asks no inference server.
fn claims_to_ask(folder: &Path) -> std::path::PathBuf {
    let program = built("stt/lying-server");
    let manifest = format!(
        r#"name = "claims-to-ask"
workload = "stt"
tier = "test"
language = "Rust"
description = "the lying server as if it were a gateway like any other"
inference_transport = "h2c"
[run]
command = [{program:?}]
"#
    );
    file(folder, "target.toml", manifest)
}

fn expected_caveats(lie: &Lie) -> impl Iterator<Item = &'static str> {
    lie.caveats.iter().chain(lie.caveats_perhaps).copied()
}

#[track_caller]
fn expect_verdict(lie: &Lie, trial: &Trial) {
    assert_eq!(
        trial.verdict(),
        lie.verdict.word(),
        "{}: gates {:?}, caveats {:?}",
        lie.name,
        trial.failed_gates(),
        trial.caveats()
    );
}

#[track_caller]
fn expect_caveats(lie: &Lie, trial: &Trial) {
    let seen = trial.caveats();
    for id in lie.caveats {
        assert!(seen.contains(id), "{}: no {id} in {seen:?}", lie.name);
    }
    for id in &seen {
        // Caused by the machine, possibly by another trial beside this one.
        let expected =
            *id == "machine-moved" || expected_caveats(lie).any(|expected| expected == *id);
        assert!(expected, "{}: {id} in {seen:?}", lie.name);
    }
    let faults = trial.at("client.faults").as_object().expect("by name");
    assert!(faults.is_empty(), "{}: {faults:?}", lie.name);
}

#[track_caller]
fn expect_gates(lie: &Lie, trial: &Trial) {
    let seen = trial.failed_gates();
    for gate in lie.gates {
        assert!(seen.contains(gate), "{}: {gate} held; {seen:?}", lie.name);
    }
    for gate in &seen {
        let expected = lie.gates.contains(gate) || lie.gates_perhaps.contains(gate);
        assert!(expected, "{}: {gate} failed; {seen:?}", lie.name);
    }
}

#[track_caller]
fn expect_counters(lie: &Lie, trial: &Trial) {
    for Counter { path, low, high } in lie.counters {
        let seen = trial.number_at(path);
        assert!(
            (*low..=*high).contains(&seen),
            "{}: {path} is {seen}, not {low} to {high}",
            lie.name
        );
    }
    for fault in records::FAULTS {
        let named = lie.counters.iter().any(|counter| {
            let name = counter.path.strip_prefix("ledger.");
            name == Some(fault)
        });
        if !named {
            let seen = trial.ledger(fault);
            assert_eq!(seen, 0, "{}: {fault} is {seen}", lie.name);
        }
    }
}

#[track_caller]
fn expect_reason(lie: &Lie, trial: &Trial) {
    if lie.reason.is_empty() {
        return;
    }
    let reasons = trial.at("ledger.reasons").as_object().expect("by name");
    let found = reasons.keys().any(|reason| reason.contains(lie.reason));
    assert!(found, "{}: no {:?} in {reasons:?}", lie.name, lie.reason);
}
