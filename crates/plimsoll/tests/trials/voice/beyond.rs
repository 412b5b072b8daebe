//! Stages, and the search beyond the load line.

use super::gates;
use crate::support::manifests::Root;
use crate::support::records::{self, Trial};
use crate::support::{Plimsoll, built, turn_of_search};
use plimsoll_testing::measures;

/// Faults of a report: rates include the drain, and counters all stages.
#[test]
#[measures]
fn each_stage_is_a_trial_with_its_own_window_and_its_own_sums() {
    built("voice/lying-voice");
    let _turn = turn_of_search();
    let slo = gates();
    let line = format!(
        "run lying-voice --workload voice --slo {slo} --test stages --stages 3x8,6x8 --grace 7"
    );
    let ended = Plimsoll::measuring(line.split_whitespace())
        .lying("LIE", "none")
        .run();
    ended.expect_code(0);
    for (file, callers, starts_s) in [("trial-001.json", 3_u64, 3.03), ("trial-002.json", 6, 3.06)]
    {
        let trial = Trial(ended.json_of(file));
        trial.expect_every_frame_accounted_for();
        assert_eq!(trial.at("sessions").as_u64(), Some(callers));
        assert_eq!(trial.at("profile"), "custom");
        let window_s = trial.number("phases.ramp_s") + trial.number("phases.warm_up_s");
        assert!((window_s - starts_s).abs() < 1e-9, "{file}: {window_s}");
        assert!((trial.number("phases.measured_s") - 8.0).abs() < 1e-9);
        // A turn each 8 s; where an utterance ends in them is drawn.
        let turns = trial.number("voice.turns");
        let due = trial.number("goodput.due_per_s");
        let each = turns / trial.number("sessions");
        assert!((0.3..=2.0).contains(&each), "{file}: {turns} turns");
        assert!((due - turns / 8.0).abs() < 1e-9, "{file}: {due} per second");
        // The gateway and its mocks are new, and counted only this stage.
        assert_eq!(trial.ledger("sessions_started"), callers);
        let sessions = trial.at("voice.providers.deepgram_stt.sessions").as_u64();
        assert_eq!(sessions, Some(callers), "{file}");
        let connected = trial.at("voice.connect.samples").as_u64();
        assert_eq!(connected, Some(callers), "{file}");
    }
    let rows = |text: &str, begins: &str| -> Vec<String> {
        let cells = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let table = text.split(begins).nth(1).unwrap_or_default();
        table.lines().skip(2).take(2).filter_map(cells).collect()
    };
    for table in ["Test talk of lying-voice", "Escalation"] {
        assert_eq!(rows(&ended.stdout, table), ["3", "6"], "{}", ended.stdout);
    }
    let files = ended.result_files();
    for chart in ["escalation.svg", "escalation.png", "chart.svg"] {
        assert!(files.iter().any(|file| file == chart), "{chart}: {files:?}");
    }
    ended.expect_nothing_left_running();
}

#[test]
#[measures]
fn a_list_of_stages_is_read_or_refused_in_one_line() {
    for (line, words) in [
        ("--test stages --stages 5x10,20", "`20` is no stage"),
        (
            "--test stages --sessions 5",
            "--test stages has loads of its own",
        ),
        (
            "--test stages --measured 5",
            "a window of its own for each trial",
        ),
        ("--test stages --profile soak", "leave --profile soak out"),
        ("--test talk --stages 5x10", "--test stages"),
    ] {
        let line = format!("run lying-voice --workload voice {line}");
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{line}: {}", ended.stderr);
        assert_eq!(
            ended.stderr.trim_end().lines().count(),
            1,
            "{}",
            ended.stderr
        );
    }
    let line = "find lying-voice --workload voice --test stages";
    let ended = Plimsoll::plain(line.split_whitespace()).run();
    ended.expect_code(2);
    assert!(ended.stderr.contains("--test talk"), "{}", ended.stderr);
}

/// A gateway that lets eight callers in carries eight. A ninth is shut out, which is more than 5 % of nine: the collapse.
#[test]
#[measures]
fn a_search_goes_on_beyond_the_load_line_to_the_collapse() {
    let program = built("voice/lying-voice");
    let line = format!("MAX_SESSIONS=8 exec {}", program.display());
    let manifest = format!(
        r#"name = "for-eight"
workload = "voice"
tier = "test"
language = "Rust"
description = "lets eight callers in"
[run]
command = ["sh", "-c", {line:?}]
"#
    );
    let root = Root::new().with("voice", "for-eight", &manifest);
    let line = format!(
        "find for-eight --workload voice --test breaking --start 8 --max 9 --repeats 1 --width 0.5 --ramp 0.5 --warm-up 1.5 --measured 4 --grace 6 --slo {}",
        gates()
    );
    let _turn = turn_of_search();
    let ended = Plimsoll::measuring(line.split_whitespace())
        .arg("--root")
        .arg(root.path())
        .run();
    ended.expect_code(0);
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    assert_eq!(bracket["confirmed"], 8, "{bracket}");
    let beyond = &bracket["escalation"];
    assert_eq!(
        beyond["collapse"],
        serde_json::json!({"load": 9, "highest_without": 8, "sign": "too_many_failed"}),
        "{beyond}"
    );
    let knee = beyond["knee"]["load"].as_u64().expect("a load");
    assert!((6..=9).contains(&knee), "{beyond}");
    assert!(beyond.get("no_collapse_up_to").is_none(), "{beyond}");
    for (name, value) in [
        ("load line", "8 callers"),
        ("knee", "callers (goodput"),
        ("collapse", "9 callers (not yet at 8)"),
    ] {
        let told = |line: &str| line.contains(name) && line.contains(value);
        assert!(ended.stdout.lines().any(told), "{}", ended.stdout);
    }
    // Those of the search for the load line count, so there may be nothing left to repeat.
    let trials = bracket["trials"].as_array().expect("a list");
    for edge in [8, 9] {
        let at_edge = |trial: &&serde_json::Value| {
            trial["sessions"] == edge && trial["length"] == "full" && trial["verdict"] != "invalid"
        };
        assert!(trials.iter().filter(at_edge).count() >= 3, "{bracket}");
    }
    ended.expect_nothing_left_running();
}
