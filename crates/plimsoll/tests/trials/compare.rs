//! `plimsoll compare`: two targets with alternating trials, two result folders, and what is refused.

use std::path::{Path, PathBuf};

use crate::support::manifests::file;
use crate::support::{Ended, Plimsoll, median_slo, records, root, shared_turn, turn_of_search};
use plimsoll_testing::measures;
use serde_json::Value;

fn compare(line: &str) -> Plimsoll {
    Plimsoll::measuring(format!("compare {line}").split_whitespace())
}

/// The same with phases as short as the SLO allows.
fn measured(line: &str) -> Plimsoll {
    let phases = "--ramp 0.2 --warm-up 1 --measured 2 --grace 1.5";
    compare(&format!("{line} {phases} --slo")).arg(median_slo())
}

/// A refusal is one line and leaves nothing behind.
#[track_caller]
fn refused(call: Plimsoll, names: &[&str]) {
    let ended = call.run();
    ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for name in names {
        assert!(ended.stderr.contains(name), "no {name:?}: {}", ended.stderr);
    }
    let left: Vec<_> = std::fs::read_dir(ended.scratch())
        .expect("the scratch folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
#[measures]
fn what_a_user_gets_wrong_is_one_line() {
    let _turn = shared_turn();
    refused(compare("rust-axum"), &["<B>", "--help"]);
    refused(
        compare("rust-axum no-such-thing"),
        &["no-such-thing", "lying-server"],
    );
    refused(
        compare("no/such/folder rust-axum"),
        &["no/such/folder", "result folder"],
    );
    for (flags, names) in [
        ("--pairs 2", ["--pairs", "3..=1000"]),
        ("--sessions 0", ["--sessions", "1..="]),
        ("--confidence 95", ["--confidence 95", "0.95"]),
        ("--fail-if better", ["--fail-if", "worse"]),
        ("--sessions 40 --start 50", ["--start", "--sessions"]),
        ("--width=-1", ["width", "above 0"]),
        ("--pid 1", ["--pid", "--url"]),
        ("--workload echo", ["rust-axum", "echo"]),
    ] {
        refused(compare(&format!("rust-axum rust-axum {flags}")), &names);
    }
    let empty = tempfile::tempdir().expect("a scratch folder");
    let folder = empty.path().display().to_string();
    refused(
        compare(&format!("{folder} {folder}")),
        &[&folder, "holds no Plimsoll result"],
    );
    refused(
        compare(&format!("rust-axum {folder}")),
        &["one is a target", "two targets"],
    );
    let manifest = file(empty.path(), "other.toml", "name = 3");
    refused(
        compare(&format!("rust-axum {}", manifest.display())),
        &["other.toml"],
    );
}

/// Copies the trial records of a result folder, each modified by `change`.
pub(crate) fn copy(from: &Path, to: &Path, change: impl Fn(&mut Value)) -> PathBuf {
    std::fs::create_dir_all(to).expect("mkdir");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        if name.starts_with("trial-") && name.ends_with(".json") {
            let text = std::fs::read_to_string(entry.path()).expect("read");
            let mut record: Value = serde_json::from_str(&text).expect("JSON");
            change(&mut record);
            file(to, &name, record.to_string());
        }
    }
    to.to_owned()
}

fn costs_more(by: f64) -> impl Fn(&mut Value) {
    move |trial| {
        // The core account is known only if the cores were the target's own.
        for account in ["cpu_us_per_session_second", "core_us_per_session_second"] {
            let cost = &mut trial["target_resources"][account];
            if let Some(us) = cost.as_f64() {
                *cost = (us * by).into();
            }
        }
        // The trials were quick and the machine may have disturbed one, but that is not tested here.
        trial["verdict"] = "pass".into();
    }
}

pub(crate) fn compare_folders(a: &Path, b: &Path, flags: &str) -> Ended {
    let call = Plimsoll::measuring(["compare"]).arg(a).arg(b);
    let call = flags.split_whitespace().fold(call, Plimsoll::arg);
    call.run()
}

/// The whole way: pairs of trials of a target and itself, the record, the renderings. Then copies of the folder are
/// compared with each other.
#[test]
#[measures]
fn a_target_against_itself_and_then_its_folders() {
    let line = "lying-server lying-server --sessions 40 --pairs 3 --json";
    let _turn = turn_of_search();
    let ended = measured(line).run();
    let comparison = ended.json_of("comparison.json");
    records::expect_valid(&comparison, "comparison.json");
    let said: Value = serde_json::from_str(&ended.stdout).expect("stdout is one JSON document");
    assert_eq!(said, comparison);
    let pairs = comparison["pairs"].as_array().expect("a list");
    assert_eq!(pairs.len(), 3);
    ended.expect_code(0);
    assert!(comparison["cost_ratio"].is_object());
    assert!(comparison["load_line_ratio"].is_null(), "none was searched");
    for pair in pairs {
        assert!(pair["left_out"].is_null(), "{pairs:#?}");
        assert_eq!(pair["sessions"], 40);
        let trials = ["a_file", "b_file"].map(|name| {
            let file = pair[name].as_str().expect("a name");
            ended.text_of(&file.replace("json", "hlog"));
            ended.json_of(file)
        });
        assert_eq!(trials[0]["seed"], trials[1]["seed"]);
        assert_eq!(trials[0]["target"]["name"], "lying-server");
    }
    let told = comparison["a"]["trials"].as_array().expect("a list").len()
        + comparison["b"]["trials"].as_array().expect("a list").len();
    assert!(told >= 6, "{told}");
    assert!(
        ended
            .text_of("summary.md")
            .contains("lying-server against lying-server")
    );
    ended.expect_nothing_left_running();
    let again = Plimsoll::plain(["report"]).arg(ended.folder()).run();
    again.expect_code(0);

    let files = tempfile::tempdir().expect("a scratch folder");
    let old = copy(&ended.folder(), &files.path().join("old"), costs_more(1.0));
    let new = copy(&ended.folder(), &files.path().join("new"), costs_more(3.0));
    let same = compare_folders(&old, &old, "--fail-if worse");
    same.expect_code(0);
    assert!(
        same.stdout.contains("NO DIFFERENCE SHOWN"),
        "{}",
        same.stdout
    );
    let worse = compare_folders(&old, &new, "--fail-if worse --json");
    worse.expect_code(1);
    let record = worse.json_of("comparison.json");
    records::expect_valid(&record, "comparison.json");
    assert_eq!(record["conclusion"], "worse");
    let ratio = record["cost_ratio"]["value"].as_f64().expect("a number");
    assert!((ratio - 3.0).abs() < 1e-6, "{ratio}");
    assert_eq!(record["b"]["folder"], new.display().to_string());
    compare_folders(&new, &old, "--fail-if worse").expect_code(0);
    compare_folders(&old, &new, "").expect_code(0);

    let other = copy(&ended.folder(), &files.path().join("other"), |trial| {
        trial["vcpu"] = 7.5.into();
        trial["environment"]["nodelay"] = false.into();
    });
    let call = |flags: &str| {
        let paths = format!("{} {}", old.display(), other.display());
        compare(&format!("{paths} {flags}"))
    };
    refused(
        call(""),
        &[
            "vCPU (1 against 7.5)",
            "TCP_NODELAY (true against false)",
            "old",
            "other",
        ],
    );
    refused(call("--pairs 5"), &["--pairs", "as they are"]);
}

#[test]
#[measures]
fn ctrl_c_keeps_the_pairs_that_were_measured() {
    let _turn = shared_turn();
    let running = measured("lying-server lying-server --sessions 40 --pairs 5").start();
    running.wait_for_two_seconds_of(3);
    running.ctrl_c();
    let ended = running.wait();
    ended.expect_code(130);
    ended.expect_nothing_left_running();
    let comparison = ended.json_of("comparison.json");
    records::expect_valid(&comparison, "comparison.json");
    assert_eq!(comparison["interrupted"], true);
    let pairs = comparison["pairs"].as_array().expect("a list");
    assert!((2..=3).contains(&pairs.len()), "{pairs:?}");
    let last = &pairs[pairs.len() - 1]["left_out"];
    assert_eq!(last, "it was not finished");
    ended.text_of("trial-003.json");
    assert!(ended.text_of("summary.md").contains("interrupted"));
    assert!(ended.stdout.contains("interrupted"), "{}", ended.stdout);
}

/// The searches of both targets take turns. They find a load for the pairs that both carry. Lower bounds have no ratio.
#[test]
#[measures]
fn without_a_load_both_load_lines_are_searched_first() {
    let manifest = root().join("targets/stt/lying-server/target.toml");
    let line = format!(
        "lying-server {} --start 60 --max 60 --pairs 3 --time-budget 1",
        manifest.display()
    );
    let _turn = turn_of_search();
    let ended = measured(&line).run();
    let comparison = ended.json_of("comparison.json");
    records::expect_valid(&comparison, "comparison.json");
    assert!(comparison["load_line_ratio"].is_null());
    for side in ["a", "b"] {
        assert!(comparison[side]["search"].is_string(), "{comparison:#}");
    }
    let pairs = comparison["pairs"].as_array().expect("a list");
    for side in ["a", "b"] {
        assert_eq!(comparison[side]["confirmed"], 60, "{comparison:#}");
    }
    assert_eq!(pairs[0]["sessions"], 42, "70 % of 60");
    let notes = comparison["notes"].to_string();
    assert!(notes.contains("lower bound"), "{notes}");
}
