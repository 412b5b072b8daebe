//! `plimsoll find`, and `plimsoll report` on what it left.

mod support;

use support::manifests::Root;
use support::{Plimsoll, Trial, inconclusive, records, searched, turn};

const PHASES: &str = "--ramp 0.2 --warm-up 1 --measured 4 --grace 2";

/// A search in which every load passes ends at the greatest that it may try: the answer is "at least". Afterwards the folder is rendered
/// again, and a damaged trial is named.
#[test]
fn a_search_that_meets_no_limit_says_at_least() {
    let _turn = turn();
    let line = format!("find lying-server --start 60 --max 100 --repeats 1 {PHASES}");
    let (ended, disturbances) = searched(|| Plimsoll::measuring(line.split(' ')).run());
    if !disturbances.is_empty() {
        return inconclusive(&disturbances);
    }
    ended.expect_code(0);
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    for name in [
        "target",
        "vcpu",
        "confirmed",
        "borderline",
        "first_fail",
        "failing_gate",
        "bottleneck",
        "sessions_per_vcpu",
        "lower_bound_only",
        "trials",
    ] {
        assert!(bracket.get(name).is_some(), "no {name}");
    }
    assert_eq!(bracket["confirmed"], 100);
    assert_eq!(bracket["lower_bound_only"], true);
    assert!(bracket["first_fail"].is_null());
    assert_eq!(bracket["sessions_per_vcpu"], 100.0);
    let conclusion = bracket["conclusion"].as_str().expect("a sentence");
    assert!(conclusion.contains("at least 100"), "{conclusion}");
    assert!(ended.stdout.contains("at least 100"), "{}", ended.stdout);
    let trials = bracket["trials"].as_array().expect("a list");
    // Nobody ran out: the search was told to stop there.
    assert!(bracket["bottleneck"].is_null(), "{}", bracket["bottleneck"]);
    for summary in trials {
        let file = summary["file"].as_str().expect("a name");
        let trial = Trial(ended.json_of(file));
        assert_eq!(trial.at("sessions"), &summary["sessions"]);
        assert_eq!(trial.at("verdict"), &summary["verdict"]);
        for extension in ["hlog", "csv"] {
            ended.text_of(&file.replace("json", extension));
        }
    }
    ended.expect_nothing_left_running();

    let summary = ended.text_of("summary.md");
    std::fs::remove_file(ended.folder().join("summary.md")).expect("remove");
    let again = || Plimsoll::plain(["report"]).arg(ended.folder());
    again().run().expect_code(0);
    assert_eq!(ended.text_of("summary.md"), summary);
    let json = again().arg("--json").run();
    let document: serde_json::Value = serde_json::from_str(&json.stdout).expect("one document");
    assert_eq!(document["bracket"], bracket);

    let damaged = ended.folder().join("trial-001.json");
    let whole = ended.text_of("trial-001.json");
    std::fs::write(&damaged, &whole[..whole.len() / 2]).expect("write");
    let broken = again().run();
    broken.expect_code(2);
    assert_eq!(broken.stderr.lines().count(), 1, "{}", broken.stderr);
    assert!(
        broken.stderr.contains("trial-001.json"),
        "{}",
        broken.stderr
    );
    assert_eq!(ended.text_of("bracket.json").len(), {
        let again = serde_json::to_string_pretty(&bracket).expect("JSON");
        again.len() + 1
    });
    std::fs::remove_file(&damaged).expect("remove");
    let broken = again().run();
    broken.expect_code(2);
    assert!(
        broken.stderr.contains("trial-001.json"),
        "{}",
        broken.stderr
    );
}

/// Where nothing passes the search goes down to the smallest load, and says what failed. (The smallest of the three may have been disturbed: the send lag's p99.9 of a
/// session alone is its worst frame.)
#[test]
fn a_target_that_carries_nothing_is_told_as_such() {
    let _turn = turn();
    let line = "find lying-server --start 4 --max 4 --repeats 1 --ramp 0.1 --warm-up 1 --measured 3 --grace 1";
    let ended = Plimsoll::measuring(line.split(' '))
        .env("LIE", "wrong_content")
        .env("LIE_EVERY", "1")
        .run();
    ended.expect_code(1);
    let bracket = ended.json_of("bracket.json");
    assert!(bracket["confirmed"].is_null());
    let first_fail = bracket["first_fail"].as_u64().expect("a load");
    assert!([1, 2, 4].contains(&first_fail), "{first_fail}");
    assert_eq!(bracket["failing_gate"], "content_wrong");
    assert_eq!(bracket["lower_bound_only"], false);
}

/// A target that starts once and never again: the trial that there is, is kept, and so is the reason.
#[test]
fn a_target_that_stops_starting_ends_the_search_with_what_is_known() {
    let _turn = turn();
    let lying = support::root().join("targets/stt/lying-server/target/release/lying-server");
    // The gateway answers a start message only, so an echo session gets nothing from it but its health is fine; what counts is that it starts once.
    let line = format!(
        "if [ -e started ]; then echo second time, no; exit 5; fi; touch started; exec {}",
        lying.display()
    );
    assert!(build_of_lying_server().success());
    let root = Root::new().with_shell("once", &line);
    let arguments = format!("find once --workload echo --start 5 --max 10 --repeats 3 {PHASES}");
    let ended = Plimsoll::measuring(arguments.split(' '))
        .arg("--root")
        .arg(root.path())
        .run();
    ended.expect_code(3);
    assert!(ended.stderr.contains("second time, no"), "{}", ended.stderr);
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    assert_eq!(bracket["interrupted"], true);
    assert_eq!(bracket["trials"].as_array().expect("a list").len(), 1);
    assert_eq!(ended.trial().at("interrupted"), false);
    ended.text_of("summary.md");
}

fn build_of_lying_server() -> std::process::ExitStatus {
    std::process::Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked"])
        .current_dir(support::root().join("targets/stt/lying-server"))
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .expect("cargo runs")
}
