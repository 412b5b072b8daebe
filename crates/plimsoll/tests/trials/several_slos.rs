//! Several SLOs in one search: one set of trials, a load line for each.

use crate::support::{Plimsoll, records, shared_turn, turn_of_search};
use plimsoll_testing::measures;
use serde_json::Value;

/// The server answers 75 ms after a flush, and each answer of a session comes 30 ms later than the one before. So a
/// trial's median is well above 100 ms and below 2 s: one SLO holds at every load, the other at none.
#[test]
#[measures]
fn one_set_of_trials_gives_a_load_line_for_each_slo() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let slo = |name: &str, gates: &str| {
        let file = folder.path().join(format!("{name}.toml"));
        std::fs::write(&file, format!("[gates]\n{gates}\n")).expect("write");
        file
    };
    let strict = slo("strict", "newest_p50_ms = 100\nframes_lost = 0");
    let relaxed = slo("relaxed", "newest_p50_ms = 2000");
    let line = "find lying-server --start 60 --max 60 --repeats 1 --ramp 0.2 --warm-up 1 --measured 2 --grace 2 --time-budget 1";
    let _turn = turn_of_search();
    let ended = Plimsoll::measuring(line.split(' '))
        .arg("--slo")
        .arg(&relaxed)
        .arg("--slo")
        .arg(&strict)
        .env("LIE", "grow_latency")
        .env("LIE_MS", "30")
        .run();
    let bracket = ended.json_of("bracket.json");
    let further = ended.json_of("bracket-strict.json");
    for bracket in [&bracket, &further] {
        records::expect_valid(bracket, "bracket.json");
    }
    assert_eq!(bracket["slo"], "relaxed");
    // On a disturbed machine the load line may be a little below the highest load.
    assert!(bracket["confirmed"].is_u64(), "{}", bracket["conclusion"]);
    assert_eq!(further["slo"], "strict");
    assert!(further["confirmed"].is_null(), "{}", further["conclusion"]);
    let files = |bracket: &Value| {
        let trials = bracket["trials"].as_array().expect("a list");
        trials.iter().map(|t| t["file"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(files(&bracket), files(&further), "one set of trials");
    let trial = ended.trial();
    assert_eq!(trial.at("slo"), "relaxed");
    let judged = &trial.at("further_slos")[0];
    assert_eq!(judged["slo"], "strict");
    assert_ne!(judged["verdict"], "pass");
    // The exit code of the command is that of the worst SLO.
    ended.expect_code(1);
    let summary = ended.text_of("summary.md");
    assert!(
        summary.contains("strict") && summary.contains("relaxed"),
        "{summary}"
    );
}

#[test]
#[measures]
fn two_slos_of_one_name_are_refused() {
    let _turn = shared_turn();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("same.toml");
    std::fs::write(&file, "[gates]\nframes_lost = 0\n").expect("write");
    let ended = Plimsoll::measuring(["find", "lying-server", "--slo"])
        .arg(&file)
        .arg("--slo")
        .arg(&file)
        .run();
    ended.expect_code(2);
    assert!(
        ended.stderr.contains("two SLOs are named `same`"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}
