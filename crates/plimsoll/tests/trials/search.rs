//! `plimsoll find`, and `plimsoll report` on its result folder.

use crate::support;
use crate::support::manifests::Root;
use crate::support::{Plimsoll, Trial, median_slo, records, shared_turn, turn_of_search};
use plimsoll_testing::measures;

const PHASES: &str = "--ramp 0.2 --warm-up 1 --measured 4 --grace 2";

/// A search in which every load passes ends at the highest load that it may try: the answer is "at least". Afterwards
/// the folder is rendered again, and a damaged trial is named.
#[test]
#[measures]
fn a_search_that_meets_no_limit_says_at_least() {
    let slo = median_slo();
    let line = format!(
        "find lying-server --start 60 --max 100 --repeats 1 --ramp 0.2 --warm-up 1 --measured 2 --grace 1.5 --slo {slo}"
    );
    let _turn = turn_of_search();
    let ended = Plimsoll::measuring(line.split(' ')).run();
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
    // Nothing ran out: `--max` ended the search.
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

/// If nothing passes, the search goes down to the lowest load at which 4 s hold 200 answers at one per second, and no
/// further. It ends there, long before its trials or its time run out, and says what failed and how to try less.
#[test]
#[measures]
fn a_target_that_fails_everywhere_ends_the_search_at_the_least_load() {
    let line = format!("find lying-server --start 110 --max 110 --repeats 3 {PHASES}");
    let _turn = turn_of_search();
    let ended = Plimsoll::measuring(line.split(' '))
        .env("LIE", "wrong_content")
        .env("LIE_EVERY", "1")
        .run();
    ended.expect_code(1);
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    assert!(bracket["confirmed"].is_null());
    assert_eq!(bracket["first_fail"], 50, "{}", bracket["conclusion"]);
    assert_eq!(bracket["failing_gate"], "content_wrong");
    assert_eq!(bracket["lower_bound_only"], false);
    let trials = bracket["trials"].as_array().expect("a list");
    let valid = |trial: &&serde_json::Value| trial["verdict"] != "invalid";
    // 110, 55, and two at 50.
    assert_eq!(trials.iter().filter(valid).count(), 4, "{trials:?}");
    for trial in trials {
        assert!(trial["sessions"].as_u64() >= Some(50), "{trial}");
    }
    let why = "50 is the least load at which this profile can give a verdict; measure longer to try lower loads (--profile standard, or --measured)";
    let pages = [
        ended.stdout.clone(),
        ended.text_of("summary.md"),
        ended.text_of("report.html"),
    ];
    for page in pages {
        let words: Vec<&str> = page.split_whitespace().collect();
        assert!(words.join(" ").replace('\\', "").contains(why), "{page}");
    }
}

/// A load too low for a verdict: a search is refused or starts higher, a trial says so before it begins.
#[test]
#[measures]
fn a_load_too_low_for_a_verdict_is_named_with_the_remedy() {
    let _turn = shared_turn();
    let why = "8 sessions cannot give a verdict by the SLO stt: its percentiles need 200 answers, and 4 s give about 32; use at least 50, or --measured 25";
    let line = format!("find lying-server --start 4 --max 8 {PHASES}");
    let refused = Plimsoll::measuring(line.split(' ')).run();
    refused.expect_code(2);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(&format!("--max 8: {why}")),
        "{}",
        refused.stderr
    );

    let line = format!("find lying-server --start 8 --max 50 --repeats 1 {PHASES}");
    let higher = Plimsoll::measuring(line.split(' ')).run();
    assert!(
        higher
            .stderr
            .contains(&format!("starting above --start: {why}")),
        "{}",
        higher.stderr
    );
    let trials = higher.json_of("bracket.json")["trials"].clone();
    for trial in trials.as_array().expect("a list") {
        assert_eq!(trial["sessions"], 50);
    }

    let line = format!("run lying-server --sessions 8 {PHASES}");
    let ran = Plimsoll::measuring(line.split(' ')).run();
    ran.expect_code(3);
    let early = ran
        .stderr
        .find(&format!("this trial will be invalid: {why}"))
        .expect("the warning");
    let late = ran.stderr.find("second 1").or(ran.stderr.find(" 1 s"));
    assert!(late.is_none_or(|late| early < late), "{}", ran.stderr);
}

/// A target that starts once and never again: its one trial is kept, and so is the reason.
#[test]
#[measures]
fn a_target_that_stops_starting_ends_the_search_with_what_is_known() {
    let _turn = shared_turn();
    let lying = support::root().join("targets/stt/lying-server/target/release/lying-server");
    // The gateway answers only a start message, so an echo session gets nothing from it, but its health check is fine.
    // What counts is that it starts once.
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
