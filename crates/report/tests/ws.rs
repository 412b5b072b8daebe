//! Workload `ws`: renderings against checked-in files, and words that depend on what a load counts. After an intended change: `PLIMSOLL_UPDATE=1 cargo test -p plimsoll-report`, then review the
//! difference.

mod example;
mod golden_files;
mod page;

use std::fs;
use std::path::{Path, PathBuf};

use example::TELLERS;
use golden_files::assert_golden;
use page::{HOSTILE, assert_sound, folder_of, found, page_of, text_of};
use plimsoll_core::record::{Bracket, Sections, Trial};
use plimsoll_report::history::{Entry, ResultConditions, entry};
use plimsoll_report::{SearchView, StoredTrial, load, render_all, text, words};

fn crate_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Renders a folder and compares these files with those checked in. None of them may count sessions.
fn assert_renderings(name: &str, trials: &[Trial], bracket: Option<&Bracket>, files: &[&str]) {
    let place = folder_of(trials, bracket, &[], &[]);
    render_all(place.path(), TELLERS).unwrap();
    for file in files {
        let now = fs::read_to_string(place.path().join(file)).unwrap();
        assert_golden(&format!("{name}/{file}"), &now);
        assert_counts_no_sessions(file, &now);
    }
    let page = fs::read_to_string(place.path().join("report.html")).unwrap();
    assert_sound(&page);
    assert_counts_no_sessions("report.html", visible(&page));
}

/// The page without the raw records at its end, whose fields keep their names.
fn visible(page: &str) -> &str {
    page.split("id=\"raw-json\"").next().unwrap_or_default()
}

#[track_caller]
fn assert_counts_no_sessions(file: &str, text: &str) {
    for odd in [
        "session-second",
        "session and second",
        "second and session",
        "CPU/session",
        "RSS per session",
        "memory per session",
        "a session costs",
        "load (sessions",
        "against sessions",
        "sessions per vCPU",
        "| sessions |",
        ">sessions<",
        "0 sessions",
    ] {
        assert!(!text.contains(odd), "{odd} in {file}");
    }
}

fn stored(trials: Vec<Trial>) -> Vec<StoredTrial> {
    let numbered = |(index, trial)| StoredTrial {
        stem: format!("trial-{:03}", index + 1),
        trial,
    };
    trials.into_iter().enumerate().map(numbered).collect()
}

#[test]
fn a_run_with_all_that_can_be_said() {
    let run = example::ws::throughput();
    let files = ["summary.md", "step-summary.md", "junit.xml", "chart.svg"];
    assert_renderings("ws-throughput", std::slice::from_ref(&run), None, &files);
    let plain = text::trial(&run, false, TELLERS);
    assert_golden("ws-throughput/terminal.txt", &plain);
    assert_counts_no_sessions("the terminal", &plain);
    assert!(plain.contains("did not carry 20,000 messages per second on 1 vCPU"));
}

#[test]
fn a_search_by_arrivals_a_second() {
    let find = example::ws::storm();
    let files = [
        "summary.md",
        "step-summary.md",
        "junit.xml",
        "chart.svg",
        "cost.svg",
        "badge.svg",
    ];
    assert_renderings("ws-storm", &find.trials, Some(&find.bracket), &files);
    let view = SearchView {
        bracket: &find.bracket,
        trials: stored(find.trials),
        one_of_several: false,
    };
    let plain = text::search(&view, false, TELLERS);
    assert_golden("ws-storm/terminal.txt", &plain);
    assert!(plain.contains("node-ws accepts 600 connections per second on 1 vCPU"));
}

#[test]
fn the_cells_of_a_matrix_stand_side_by_side_and_are_no_loads() {
    let trials = example::ws::matrix();
    let files = ["summary.md", "step-summary.md", "junit.xml"];
    assert_renderings("ws-matrix", &trials, None, &files);
    let place = folder_of(&trials, None, &[], &[]);
    let page = assert_sound(&page_of(place.path()));
    assert!(!place.path().join("chart.svg").exists());
    assert!(!place.path().join("percentiles.svg").exists());
    let rows = found(&page, "[data-test=test-table] tbody th");
    let sizes: Vec<String> = rows.into_iter().map(page::text).collect();
    assert_eq!(sizes, ["64", "1,024", "65,536"]);
    assert_eq!(found(&page, "[data-test=evidence] table").len(), 1);
    let told = text::side_by_side(&load(place.path(), TELLERS).unwrap().trials, TELLERS);
    assert_golden("ws-matrix/terminal.txt", &told);
    // A terminal is narrow.
    assert!(told.contains("MB/s") && !told.contains("p99.9"), "{told}");
}

#[test]
fn trials_without_more_to_say_are_in_no_table() {
    let none = stored(vec![example::failed_run()]);
    assert_eq!(text::side_by_side(&none, TELLERS), "");
}

#[test]
fn hostile_names_are_text_wherever_they_stand() {
    let mut trials = example::ws::formats();
    for trial in &mut trials {
        let mut ws = example::ws::record(trial);
        HOSTILE.clone_into(&mut ws.test);
        HOSTILE.clone_into(&mut ws.dialect);
        ws.format = Some(format!("{HOSTILE} | `x`"));
        ws.outcomes = vec![plimsoll_workload_ws::record::WsOutcome {
            name: format!("{HOSTILE}\u{1b}[31m"),
            count: 1,
        }];
        example::ws::set(trial, &ws);
    }
    let place = folder_of(&trials, None, &[], &[]);
    assert_sound(&page_of(place.path()));
    for file in ["summary.md", "step-summary.md"] {
        let told = fs::read_to_string(place.path().join(file)).unwrap();
        assert!(!told.contains('\u{1b}'), "{file}");
        // Nothing is markup within a code block.
        let text = told.lines().filter(|line| !line.starts_with("plimsoll "));
        assert!(!text.collect::<String>().contains("<img"), "{file}");
    }
    let told = text::side_by_side(&stored(trials.clone()), TELLERS)
        + &text::trial(&trials[0], false, TELLERS);
    assert!(!told.contains('\u{1b}'));
}

#[test]
fn records_hold_to_the_schema_and_come_back() {
    let path = crate_folder().join("schema/trial.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for trial in [example::ws::throughput(), example::failed_run()] {
        let record = serde_json::to_value(&trial).unwrap();
        validator.validate(&record).unwrap();
        // What other workloads write did not change.
        assert_eq!(record.get("ws").is_some(), !trial.sections.is_empty());
        assert_eq!(
            record.get("load_unit").is_some(),
            !trial.sections.is_empty()
        );
        assert_eq!(serde_json::from_value::<Trial>(record).unwrap(), trial);
    }
}

#[test]
fn a_trial_is_repeated_with_what_it_was_told() {
    let run = example::ws::throughput();
    let place = folder_of(std::slice::from_ref(&run), None, &[], &[]);
    let page = assert_sound(&page_of(place.path()));
    let command = text_of(&page, "pre code");
    for told in [
        "plimsoll run node-ws --sessions 20000 --workload ws",
        "--test throughput --dialect wse --message-bytes 175 --connections 100 --format json --closed-loop",
    ] {
        assert!(command.contains(told), "{told} in {command}");
    }
    assert!(!text_of(&page, "main").contains("with --slo and a file"));
    // One cell of a matrix is not measured by itself.
    let cells = example::ws::matrix();
    let place = folder_of(&cells[..1], None, &[], &[]);
    let page = assert_sound(&page_of(place.path()));
    let command = text_of(&page, "pre code");
    assert!(command.ends_with("--test matrix --dialect echo --connections 100"));
}

fn entries(folder: &Path) -> Vec<Entry> {
    entry::of("a-folder", &load(folder, TELLERS).unwrap())
}

#[test]
fn the_history_tells_the_load_in_its_unit_and_keeps_tests_apart() {
    let find = example::ws::storm();
    let place = folder_of(&find.trials, Some(&find.bracket), &[], &[]);
    let found = &entries(place.path())[0];
    assert_eq!(found.in_short(), "600 connections per second");
    assert_eq!(found.test.as_deref(), Some("storm"));
    let conditions = ResultConditions::of(found);
    assert!(
        conditions
            .words()
            .starts_with("workload ws, test storm, profile quick")
    );
    let run = example::ws::throughput();
    let place = folder_of(std::slice::from_ref(&run), None, &[], &[]);
    let ran = &entries(place.path())[0];
    assert_eq!(ran.in_short(), "fail at 20,000 messages per second");
    assert_eq!(ran.claim, words::outcome(&run, TELLERS));
    assert_ne!(ResultConditions::of(ran), conditions);
    // What is written for other workloads did not change.
    let place = folder_of(&[example::failed_run()], None, &[], &[]);
    let record = serde_json::to_value(&entries(place.path())[0]).unwrap();
    assert!(record.get("test").is_none() && record.get("load_unit").is_none());
    let again: Entry = serde_json::from_value(record).unwrap();
    assert_eq!(again.in_short(), "fail at 1,600");
}

#[test]
fn the_cells_of_a_matrix_have_names_of_their_own() {
    let trials = example::ws::matrix();
    let loads: Vec<String> = trials
        .iter()
        .map(|trial| words::load_of(trial, TELLERS))
        .collect();
    assert_eq!(loads[0], "10,000 messages per second of 64 B");
    let formats = example::ws::formats();
    let in_msgpack = words::load_of(&formats[1], TELLERS);
    assert_eq!(in_msgpack, "10,000 messages per second in msgpack");
}

#[test]
fn a_workload_that_nobody_knows_has_its_section_as_it_is() {
    let mut unknown = example::ws::throughput();
    "queue".clone_into(&mut unknown.workload);
    unknown.sections = Sections::of("queue", &serde_json::json!({"broker": HOSTILE, "depth": 7}));
    let mut broken = example::ws::throughput();
    broken.sections = Sections::of("ws", &serde_json::json!({"test": 5}));
    for (trial, told) in [(unknown, "broker"), (broken, "test")] {
        let place = folder_of(std::slice::from_ref(&trial), None, &[], &[]);
        let page = assert_sound(&page_of(place.path()));
        assert!(text_of(&page, "[data-test=sections]").contains(told));
        assert!(found(&page, "[data-test=delivered]").is_empty());
        let again = load(place.path(), TELLERS).unwrap().trials.remove(0).trial;
        assert_eq!(again, trial);
        assert!(!text::trial(&trial, false, TELLERS).contains("tested"));
    }
}
