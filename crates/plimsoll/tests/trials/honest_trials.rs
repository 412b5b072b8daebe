//! Speech-to-text trials against honest gateways: they pass, and the result folder is complete. Dishonest ones are in
//! `tests/lies`.

use crate::support;
use crate::support::{
    Ended, Plimsoll, Trial, built, conclusive, records, short_phases, undisturbed_beside_another,
};
use plimsoll_testing::measures;
use serde_json::Value;

const FRAMES_PER_S: u64 = 50;

#[test]
#[measures]
fn an_honest_server_passes_and_its_result_folder_is_complete() {
    let ended = conclusive!(undisturbed_beside_another(|| {
        let mut call = Plimsoll::measuring(["run", "lying-server", "--sessions", "60"]);
        for argument in short_phases(4) {
            call = call.arg(argument);
        }
        call
    }));
    ended.expect_code(0);
    let trial = ended.trial();
    assert_eq!(trial.verdict(), "pass");
    trial.expect_flawless_ledger();
    // Every session was open before the window, so the number of frames due is simple arithmetic.
    assert_eq!(trial.ledger("frames_due"), 60 * 4 * FRAMES_PER_S);
    assert_eq!(trial.ledger("sessions_started"), 60);
    // Each session has four flushes within the window, and one after it that covers the rest.
    assert!((240..=300).contains(&trial.ledger("partials")));
    // The first answer of each session is recomputed, and a sample of the others.
    assert!((60..=trial.ledger("partials")).contains(&trial.ledger("content_checked")));
    expect_the_fields_of_the_design(&trial);
    records::expect_valid(&trial.0, "trial.json");
    for name in [
        "trial-001.hlog",
        "trial-001.csv",
        "summary.md",
        "chart.svg",
        "chart.png",
    ] {
        let file = ended.folder().join(name);
        let size = std::fs::metadata(&file).map_or(0, |file| file.len());
        assert!(size > 100, "{name} has {size} bytes");
    }
    expect_one_row_per_second(&ended);
    assert!(ended.text_of("trial-001.hlog").contains("Tag=newest"));
    ended.expect_nothing_left_running();
}

#[track_caller]
fn expect_one_row_per_second(ended: &Ended) {
    let csv = ended.text_of("trial-001.csv");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name| {
        let found = header.iter().position(|column| *column == name);
        found.unwrap_or_else(|| panic!("no column {name} in {header:?}"))
    };
    let (at, phase, sent) = (column("at_s"), column("phase"), column("frames_sent"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for (number, row) in (1_usize..).zip(&rows) {
        assert_eq!(row.len(), header.len());
        assert_eq!(row[at], number.to_string());
    }
    assert!(rows.iter().any(|row| row[phase] == "measured"));
    let in_all: u64 = rows
        .iter()
        .map(|row| row[sent].parse::<u64>().unwrap_or(0))
        .sum();
    assert_eq!(in_all, ended.trial().ledger("frames_sent_in_all"));
}

/// The fields that others rely on, as the documentation lists them.
#[track_caller]
fn expect_the_fields_of_the_design(trial: &Trial) {
    for name in [
        "schema_version",
        "workload",
        "profile",
        "sessions",
        "seed",
        "started_at",
        "caveats",
        "target.name",
        "target.tier",
        "target.versions",
        "environment",
        "ledger.errors",
        "ledger.content_checked",
        "client.cpu_us_per_frame",
        "client.cpu_share",
        "target_resources.cpu_us_per_session_second",
        "target_resources.cpu_share",
        "target_resources.rss_peak_bytes",
        "target_resources.rss_bytes_per_session",
        "target_resources.throttled_share",
        "inference.requests",
        "inference.busy_share",
        "inference.queue_wait",
    ] {
        trial.at(name);
    }
    for series in ["newest", "oldest"] {
        for from in ["from_schedule", "from_write"] {
            for name in [
                "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "count",
            ] {
                assert!(trial.number(&format!("latency.{series}.{from}.{name}")) > 0.0);
            }
        }
    }
    for series in ["send_lag", "send_wait"] {
        for name in ["p50_us", "p99_us", "p999_us", "max_us"] {
            assert!(trial.number(&format!("client.{series}.{name}")) >= 0.0);
        }
    }
    assert_eq!(trial.at("environment.nodelay"), &Value::Bool(true));
    assert_eq!(trial.at("target.tier"), "test");
}

#[test]
#[measures]
fn without_nodelay_the_record_says_so() {
    let ended = conclusive!(undisturbed_beside_another(|| {
        let line =
            "run lying-server --sessions 60 --no-nodelay --ramp 0.2 --warm-up 1 --measured 4";
        Plimsoll::measuring(line.split(' '))
    }));
    assert_eq!(ended.trial().at("environment.nodelay"), &Value::Bool(false));
}

#[test]
#[measures]
fn a_real_gateway_with_the_real_simulator_and_real_speech_passes() {
    built("stt/rust-epoll");
    let ended = conclusive!(undisturbed_beside_another(|| {
        let line =
            "run rust-epoll --sessions 60 --ramp 0.2 --warm-up 1 --measured 4 --grace 2 --audio";
        let speech = support::root().join("audio/speech.wav");
        Plimsoll::measuring(line.split(' ')).arg(speech)
    }));
    ended.expect_code(0);
    let trial = ended.trial();
    trial.expect_flawless_ledger();
    assert!(trial.ledger("content_checked") >= 60);
    assert!(
        trial.number("inference.requests") >= 60.0 * 3.0,
        "the simulator was asked"
    );
    assert_eq!(trial.at("target.tier"), "engine");
    let versions = trial.at("target.versions").as_object().expect("names");
    assert!(!versions.is_empty(), "its start line was read");
    ended.expect_nothing_left_running();
}
