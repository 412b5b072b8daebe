//! `plimsoll history`, with the real command: what was measured so far, how it changed, and whether the newest is
//! worse.

#[path = "support/past_results.rs"]
mod past_results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use past_results::{copy, halved, on_day};
use serde_json::Value;

/// A folder of results.
struct Place(tempfile::TempDir);

/// The outcome of a call.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a scratch folder"));
        fs::create_dir_all(place.results()).expect("mkdir");
        place
    }

    fn results(&self) -> PathBuf {
        self.0.path().join("results")
    }

    fn with(self, name: &str, change: impl Fn(&mut Value)) -> Self {
        copy(&self.results().join(name), change);
        self
    }

    /// `plimsoll history …` in the folder that has `results`.
    fn history(&self, line: &str) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .arg("history")
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .output()
            .expect("the command runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Ended {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ended {
    #[track_caller]
    fn expect(&self, code: i32, words: &[&str]) -> &Self {
        let said = format!("{}{}", self.stdout, self.stderr);
        assert_eq!(self.code, Some(code), "{said}");
        for word in words {
            assert!(said.contains(word), "no {word:?} in: {said}");
        }
        self
    }

    /// One line that names the thing, and nothing on stdout.
    #[track_caller]
    fn expect_refused(&self, words: &[&str]) {
        self.expect(2, words);
        assert_eq!(self.stdout, "");
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("plimsoll: "), "{}", self.stderr);
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("stdout is one JSON document")
    }
}

fn at_half_a_vcpu(record: &mut Value) {
    record["vcpu"] = 0.5.into();
}

#[test]
fn the_table_lists_newest_first_and_filters() {
    let place = Place::new()
        .with("old", on_day(1))
        .with("deep/er/new", on_day(3))
        .with("half", |record| {
            on_day(2)(record);
            at_half_a_vcpu(record);
        });
    fs::create_dir_all(place.results().join("odd")).expect("mkdir");
    fs::write(place.results().join("odd/bracket.json"), "{").expect("written");
    let table = place.history("");
    table.expect(
        0,
        &[
            "1,400 sessions",
            "1,603 (1,506 to 1,702, 95 %)",
            "rust-axum-plain",
        ],
    );
    let at = |word: &str| {
        table
            .stdout
            .find(word)
            .unwrap_or_else(|| panic!("no {word}"))
    };
    assert!(at("deep/er/new") < at("half") && at("half") < at(" old"));
    table.expect(0, &["broken: odd: ", "bracket.json is broken"]);

    let json = place.history("--json --limit 2").json();
    let folders: Vec<_> = json["results"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|result| result["folder"].as_str().expect("a name"))
        .collect();
    assert_eq!(folders, ["deep/er/new", "half"]);
    assert_eq!(json["results"][0]["load_line"], 1400);
    assert_eq!(json["broken"][0]["folder"], "odd");
    let half = place.history(
        "--vcpu 0.5 --kind find --target rust-axum-plain --workload stt --since 2026-12-02",
    );
    let half = half.expect(0, &["half"]);
    assert!(!half.stdout.contains("deep"), "{}", half.stdout);
    place.history("--target nobody").expect(0, &["no result"]);
}

#[test]
fn a_trend_is_in_groups_of_like_conditions() {
    let place = Place::new()
        .with("old", on_day(1))
        .with("half", |record| {
            on_day(2)(record);
            at_half_a_vcpu(record);
        })
        .with("worse", |record| {
            on_day(3)(record);
            halved(record);
        });
    let text = place.history("--trend rust-axum-plain");
    text.expect(0, &["1 vCPU", "0.5 vCPU", "700", "●", "├"]);
    let json = place.history("--trend rust-axum-plain --json").json();
    let groups = json["groups"].as_array().expect("a list");
    assert_eq!(groups.len(), 2);
    let lines: Vec<_> = groups[0]["points"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|point| point["load_line"].as_u64())
        .collect();
    assert_eq!(lines, [Some(1400), Some(700)]);
    place
        .history("--trend nobody")
        .expect(0, &["no load line of nobody"]);
}

#[test]
fn the_newest_is_judged_against_the_last_the_best_or_a_folder() {
    let place = Place::new()
        .with("first", on_day(1))
        .with("second", |record| {
            on_day(2)(record);
            halved(record);
        })
        .with("third", |record| {
            on_day(3)(record);
            halved(record);
        });
    // The same as the one before, and half of the best.
    let last = place.history("--against last --fail-if worse");
    last.expect(
        0,
        &[
            "results/third against results/second",
            "NO DIFFERENCE SHOWN",
        ],
    );
    let best = place.history("--against best --fail-if worse");
    best.expect(1, &["results/third against results/first", "WORSE"]);
    place.history("--against best").expect(0, &["WORSE"]);
    // A path from here, or below the folder of results.
    for name in ["results/first", "first"] {
        let line = format!("--against {name} --fail-if worse --json");
        let named = place.history(&line);
        named.expect(1, &[]);
        let judged = &named.json()[0];
        assert_eq!(judged["target"], "rust-axum-plain");
        assert_eq!(judged["comparison"]["conclusion"], "worse");
        assert_eq!(judged["cannot_tell"], Value::Null);
    }
    let other_way = place.history("--against second --result first --fail-if worse");
    other_way.expect(0, &["BETTER"]);
}

#[test]
fn what_cannot_be_told_is_3_and_says_why() {
    let place = Place::new()
        .with("first", on_day(1))
        .with("half", |record| {
            on_day(2)(record);
            at_half_a_vcpu(record);
        });
    // The conditions differ: the output names them.
    let unlike = place.history("--against first --fail-if worse");
    unlike.expect(3, &["no conclusion", "vCPU (1 against 0.5)"]);
    // No earlier result has the same conditions.
    let none = place.history("--against last --fail-if worse");
    none.expect(3, &["no conclusion", "no search of rust-axum-plain before"]);
    let newest = place.history("--against half --fail-if worse");
    newest.expect(3, &["is newer than results/half"]);
    let empty = Place::new();
    empty
        .history("--against last")
        .expect(3, &["no search and no trial"]);
}

#[test]
fn what_a_user_gets_wrong_is_one_line() {
    let place = Place::new().with("first", on_day(1));
    for (line, words) in [
        ("--against nowhere", &["nowhere", "`last` or `best`"][..]),
        (
            "--against first --result nowhere",
            &["--result nowhere"][..],
        ),
        (
            "--against first --confidence 95",
            &["--confidence 95", "0.95"][..],
        ),
        ("--fail-if worse", &["--against", "--help"][..]),
        (
            "--against last --fail-if better",
            &["--fail-if", "worse"][..],
        ),
        ("--since yesterday", &["--since yesterday", "7d"][..]),
        ("--kind nonsense", &["--kind", "ranking"][..]),
        ("--limit 0", &["--limit"][..]),
        ("--trend a --against last", &["--trend", "--help"][..]),
        ("--results nowhere", &["nowhere", "--results"][..]),
        (
            "--results results/first/bracket.json",
            &["is not a folder"][..],
        ),
    ] {
        place.history(line).expect_refused(words);
    }
}

#[test]
fn an_index_that_is_no_use_names_the_remedy_and_the_remedy_helps() {
    let place = Place::new().with("first", on_day(1));
    let index = place.results().join("history.sqlite");
    let nonsense = "no database at all, though it is long enough to be one. ".repeat(9);
    fs::write(&index, nonsense).expect("written");
    place
        .history("")
        .expect_refused(&["history.sqlite", "`plimsoll history --rebuild`"]);
    place.history("--rebuild").expect(0, &["1,400 sessions"]);
    place.history("").expect(0, &["1,400 sessions"]);
    assert!(only_the_index_is_new(&place.results()));
}

fn only_the_index_is_new(results: &Path) -> bool {
    let names = fs::read_dir(results).expect("a folder").flatten();
    let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    names.sort();
    names == ["first", "history.sqlite"]
}
