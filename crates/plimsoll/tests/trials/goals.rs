//! Goals: kept with their file's hash from before the first trial, told on every page, and refused if the file was changed
//! afterwards.

use std::path::Path;

use serde_json::Value;

use crate::support::manifests::file;
use crate::support::{
    Ended, Plimsoll, conclusive, median_slo, records, shared_turn, turn_of_search,
    undisturbed_beside_another,
};
use plimsoll_testing::measures;

const PHASES: &str = "--ramp 0.2 --warm-up 1 --measured 2 --grace 1.5";

/// Nobody loses 100 frames, nobody starts a trial's search in one trial, and nobody costs nothing.
const OF_A_TRIAL: &str = r#"
[[goal]]
metric = "frames_lost"
at_most = 100

[[goal]]
metric = "client_cpu_us_per_session_second"
at_most = 0

[[goal]]
metric = "load_line"
at_least = 50

[[goal]]
metric = "newest_p999_ms"
at_most = 300
why_waived = "too few samples for a < b"
"#;

const OF_A_SEARCH: &str = r#"
[[goal]]
metric = "load_line"
at_least = 40

[[goal]]
metric = "load_line"
at_least = 400000

[[goal]]
metric = "frames_lost"
at_most = 0
"#;

fn trial_with(goals: Option<&Path>) -> Option<Ended> {
    undisturbed_beside_another(|| {
        let slo = median_slo();
        let line = format!("run lying-server --sessions 60 {PHASES} --slo {slo}");
        let call = Plimsoll::measuring(line.split(' '));
        match goals {
            Some(goals) => call.arg("--goals").arg(goals),
            None => call,
        }
    })
}

fn report(folders: &[&Path], goals: &Path) -> Ended {
    let call = Plimsoll::plain(["report", "--goals"]).arg(goals);
    folders
        .iter()
        .fold(call, |call, folder| call.arg(folder))
        .run()
}

/// A call that is refused in one line with these words.
#[track_caller]
fn expect_refusal(ended: &Ended, words: &[&str]) {
    ended.expect_code(2);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "no {word:?}: {}", ended.stderr);
    }
}

/// The outcome of each finding.
fn outcomes(record: &Value) -> Vec<String> {
    let findings = record["goals"]["findings"].as_array().expect("a list");
    let outcome = |finding: &Value| finding["outcome"].as_str().expect("a word").to_owned();
    findings.iter().map(outcome).collect()
}

#[test]
#[measures]
fn a_trial_keeps_its_goals_and_tells_what_became_of_them() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let goals = file(scratch.path(), "goals.toml", OF_A_TRIAL);
    let ended = conclusive!(trial_with(Some(&goals)));
    // A missed goal is no failed gate.
    ended.expect_code(0);
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    assert_eq!(
        outcomes(&trial.0),
        ["met", "missed", "not_measured", "waived"]
    );
    let cost = &trial.at("goals.findings")[1]["result"];
    let cost = cost.as_f64().expect("the client costs something");
    assert!((1.0..1e6).contains(&cost), "{cost} µs");
    assert_eq!(trial.number("client.cpu_us_per_session_second"), cost);
    let hash = trial.at("goals.sha256").as_str().expect("a text");
    assert_eq!(hash.len(), 64);
    for page in [
        ended.stdout.clone(),
        ended.text_of("summary.md"),
        ended.text_of("report.html"),
    ] {
        for words in ["Key findings", "use `plimsoll find`", "waived"] {
            let words = words.replace('`', "");
            let page = page
                .replace(['`', '\\'], "")
                .replace("<code>", "")
                .replace("</code>", "");
            assert!(page.contains(&words), "no {words:?}: {page}");
        }
    }
    assert!(
        ended.text_of("report.html").contains("for a &lt; b"),
        "escaped"
    );

    let again = report(&[&ended.folder()], &goals);
    again.expect_code(0);
    assert!(again.stdout.contains("Key findings"), "{}", again.stdout);
    let summary = ended.text_of("summary.md");
    let easier = OF_A_TRIAL.replace("at_most = 0\n", "at_most = 1000000\n");
    assert_ne!(easier, OF_A_TRIAL);
    std::fs::write(&goals, easier).expect("write");
    expect_refusal(
        &report(&[&ended.folder()], &goals),
        &["goals.toml", "trial-001.json", "another goals file", hash],
    );
    assert_eq!(ended.text_of("summary.md"), summary, "nothing was written");
}

#[test]
#[measures]
fn results_without_goals_or_with_others_are_refused() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let goals = file(scratch.path(), "goals.toml", OF_A_TRIAL);
    let others = file(scratch.path(), "others.toml", OF_A_SEARCH);
    let bare = conclusive!(trial_with(None));
    assert!(bare.trial().0.get("goals").is_none());
    expect_refusal(
        &report(&[&bare.folder()], &goals),
        &["goals.toml", "trial-001.json", "without goals"],
    );
    let with = conclusive!(trial_with(Some(&goals)));
    let with_others = conclusive!(trial_with(Some(&others)));
    let two = [with.folder(), with_others.folder()];
    expect_refusal(
        &report(&[&two[0], &two[1]], &goals),
        &["another goals file"],
    );
    let call = Plimsoll::plain(["report"]).arg(&two[0]).arg(&two[1]);
    expect_refusal(&call.run(), &["another goals file"]);
    let out = Plimsoll::plain(["report", "--out", "x"]);
    let out = out.arg(bare.folder()).arg(with.folder());
    expect_refusal(&out.run(), &["--out is for the pages of one result"]);

    // One with the same goals and one without: one table, in which only what was set before counts.
    let call = Plimsoll::plain(["report"]).arg(bare.folder());
    let both = call.arg(with.folder()).run();
    both.expect_code(0);
    let told = "1 met, 1 missed, 1 not measured, 1 waived";
    assert!(both.stdout.contains(told), "{}", both.stdout);
}

#[test]
#[measures]
fn a_search_has_a_margin_and_cannot_go_on_with_other_goals() {
    let _turn = turn_of_search();
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let goals = file(scratch.path(), "goals.toml", OF_A_SEARCH);
    let slo = median_slo();
    let line = format!("find lying-server --start 60 --max 60 --repeats 1 {PHASES} --slo {slo}");
    let running = Plimsoll::measuring(line.split(' '))
        .arg("--goals")
        .arg(&goals)
        .start();
    running.wait_for_two_seconds_of(1);
    running.ctrl_c();
    let ended = running.wait();
    ended.expect_code(130);

    let resume = || {
        Plimsoll::plain(["find", "--resume"])
            .arg(ended.folder())
            .run()
    };
    let easier = OF_A_SEARCH.replace("400000", "4");
    std::fs::write(&goals, easier).expect("write");
    expect_refusal(
        &resume(),
        &[
            "goals.toml",
            "changed since the search began",
            "put it back",
        ],
    );
    std::fs::write(&goals, OF_A_SEARCH).expect("write");
    resume();
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    let line = bracket["confirmed"].as_f64().expect("a load line");
    // 60 may be tried at most, so it is a lower bound: enough for 40, and of 400,000 nothing is known.
    assert_eq!(outcomes(&bracket), ["met", "not_measured", "met"]);
    let first = &bracket["goals"]["findings"][0];
    assert_eq!(
        (first["result"].as_f64(), &first["bound"]),
        (Some(line), &"at_least".into())
    );
    assert_eq!(first["margin"].as_f64(), Some(line / 40.0 - 1.0));
    let told = report(&[&ended.folder()], &goals);
    told.expect_code(0);
    assert!(told.stdout.contains("at least +50 %"), "{}", told.stdout);
}

#[test]
#[measures]
fn goals_that_make_no_sense_are_refused_before_anything_is_measured() {
    let _turn = shared_turn();
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let goals = file(
        scratch.path(),
        "goals.toml",
        "[[goal]]\nmetric = \"loadline\"\nat_least = 5\n",
    );
    for verb in ["run lying-server --sessions 5", "find lying-server"] {
        let call = Plimsoll::measuring(verb.split(' '))
            .arg("--goals")
            .arg(&goals);
        let ended = call.run();
        expect_refusal(
            &ended,
            &["goals.toml", "unknown metric `loadline`", "load_line"],
        );
        assert!(!ended.folder().exists(), "nothing was begun");
    }
}
