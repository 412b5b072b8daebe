//! A server that is not the same each time it is started, and one that is not the same all the time.

use plimsoll_core::profile::Profile;

use super::{call, count, expect_sound, with_fault};
use crate::support::built;
use crate::support::manifests::Root;
use crate::support::records;
use crate::support::{Ended, Plimsoll, Trial, conclusive, turn, turn_of_search, undisturbed};
use plimsoll_testing::measures;

/// Fault of the report: one run for each cell. Here a start gives a delay of 5 or of 200 ms for the life of the process.
/// The test draws one after the other, so that the repeats disagree for certain.
#[test]
#[ignore = "long; make test-all runs it"]
#[measures]
fn a_server_whose_start_draws_its_delay_is_borderline() {
    let program = built("http/lying-http").display().to_string();
    let line = format!(
        "n=$(cat starts); echo $((n + 1)) > starts; COIN=low; [ $((n % 2)) = 0 ] || COIN=high; export COIN FAULT=slow_start; exec {program}"
    );
    let manifest = format!(
        r#"name = "drawing"
workload = "http"
tier = "test"
language = "Rust"
description = "made up for a test"
protocols = ["h1"]
[run]
command = ["sh", "-c", {line:?}]
"#
    );
    let root = Root::new().with("http", "drawing", &manifest);
    let starts = root.path().join("targets/http/drawing/starts");
    let root = root.path().display();
    let line = format!(
        "find drawing --root {root} --start 400 --max 400 --repeats 3 --time-budget 1.5 --ramp 0.2 --warm-up 0.5 --measured 2 --grace 1"
    );
    // The first start of the search draws 5 ms.
    std::fs::write(&starts, "0").expect("write");
    let _turn = turn_of_search();
    let ended = call(&line).run();
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    let evidence = bracket["evidence"].as_array().expect("a list");
    let top = evidence.last().expect("a load");
    assert_eq!(top["sessions"], 400);
    assert_eq!(top["class"], "borderline", "{bracket:#}");
    let borderline = bracket["borderline"].as_array().expect("a list");
    assert!(borderline.contains(&400.into()), "{bracket:#}");
    // No load of a server that fails every second time is a load line.
    assert!(bracket["confirmed"].is_null(), "{bracket:#}");
    assert!(ended.stdout.contains("borderline"), "{}", ended.stdout);

    // Each trial stands by itself, with its own percentiles.
    let summary = ended.text_of("summary.md");
    let trials = bracket["trials"].as_array().expect("a list");
    assert!(trials.len() >= 3, "{trials:?}");
    let mut slow_ones = 0;
    for of_search in trials {
        let trial = Trial(ended.json_of(of_search["file"].as_str().expect("a name")));
        let p50_ms = trial.number("latency.newest.from_schedule.p50_ms");
        let slow = p50_ms >= 200.0;
        assert!(slow || p50_ms < 150.0, "{p50_ms} ms");
        slow_ones += usize::from(slow);
        assert_eq!(of_search["verdict"], if slow { "fail" } else { "pass" });
        let p99_ms = trial.number("latency.newest.from_schedule.p99_ms");
        let shown = [format!("{p99_ms:.1}"), format!("{p99_ms:.0}")];
        assert!(
            shown.iter().any(|text| summary.contains(text)),
            "{p99_ms}: {summary}"
        );
    }
    assert!(slow_ones > 0 && slow_ones < trials.len(), "{slow_ones}");
}

/// One trial at a time; the caller has the turn.
fn stalling(line: &str, of_call: impl Fn(&str) -> Plimsoll) -> Option<Ended> {
    let line = format!("run lying-http --sessions 1000 --ramp 0.2 --warm-up 0.5 --grace 1 {line}");
    let fault = "stall_rare STOP_MS=250 EVERY_MS=12500";
    undisturbed(|| with_fault(of_call(&line), fault))
}

/// Fault of the report: a window of 20 s said 15.6 ms, one of 30 s said 200. A server that stands still for 0.5 s of each
/// 25 s fails in the window of `standard`. This one does so for half of that time, in a window half as long, because
/// tests should not take minutes.
#[test]
#[ignore = "long; make test-all runs it"]
#[measures]
fn a_rare_stall_fails_in_the_window_of_standard_and_a_short_window_misses_it() {
    built("http/lying-http");
    let _turn = turn();
    let measured_s = Profile::standard().measured_s / 2.0;
    assert!(
        measured_s > 12.5,
        "a window of standard holds no whole period"
    );
    let with_usual_gates = |line: &str| {
        let line = format!("{line} --workload http");
        Plimsoll::measuring(line.split_whitespace())
    };
    let ended = conclusive!(stalling(
        &format!("--measured {measured_s}"),
        with_usual_gates
    ));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    assert_eq!(trial.at("slo"), "http-strict");
    trial.expect_failed_by("newest_p99_ms");
    assert_eq!(trial.ledger("frames_answered"), trial.ledger("frames_due"));
    assert!(count(&trial, "http.found_all_busy") > 0);
    let max_ms = trial.number("latency.newest.from_schedule.max_ms");
    assert!(max_ms >= 240.0, "{max_ms}");

    // Its window ends before the first stall begins.
    let ended = conclusive!(stalling("--measured 4", call));
    ended.expect_code(0);
    let trial = expect_sound(&ended);
    let max_ms = trial.number("latency.newest.from_schedule.max_ms");
    assert!(max_ms < 240.0, "{max_ms}");
}
