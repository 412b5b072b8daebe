//! `plimsoll find --resume`: a search that a signal or a crash ended resumes from the trials that were kept.

use crate::support::{Plimsoll, median_slo, records, shared_turn, turn_of_search};
use plimsoll_testing::measures;
use serde_json::Value;

/// A search with phases as short as the SLO allows.
fn search() -> Plimsoll {
    let line = "find lying-server --start 60 --max 100 --ramp 0.2 --warm-up 1 --measured 2 --grace 1.5 --slo";
    Plimsoll::measuring(line.split(' ')).arg(median_slo())
}

/// Files of the trials that the bracket rests on.
fn trials_of(bracket: &Value) -> Vec<String> {
    let trials = bracket["trials"].as_array().expect("a list");
    let file = |trial: &Value| trial["file"].as_str().expect("a name").to_owned();
    trials.iter().map(file).collect()
}

#[test]
#[measures]
fn an_interrupted_search_goes_on_where_it_was() {
    let _turn = turn_of_search();
    let running = search().start();
    running.wait_for_two_seconds_of(2);
    running.ctrl_c();
    let ended = running.wait();
    ended.expect_code(130);
    let line = "to continue: plimsoll find --resume";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    let first = ended.text_of("trial-001.json");
    let cut_short = trials_of(&ended.json_of("bracket.json"));
    assert_eq!(cut_short, ["trial-001.json", "trial-002.json"]);

    let resume = || Plimsoll::plain(["find", "--resume"]).arg(ended.folder());
    let again = resume().run();
    assert!(
        again.stderr.contains("resuming with 1 trial from"),
        "{}",
        again.stderr
    );
    again.expect_code(0);
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    assert_eq!(bracket["interrupted"], false);
    assert_eq!(
        bracket["lower_bound_only"], true,
        "{}",
        bracket["conclusion"]
    );
    // The kept trial is still evidence, the trial that was cut short is not, and the new ones come after both.
    let trials = trials_of(&bracket);
    assert_eq!(trials[..2], ["trial-001.json", "trial-003.json"]);
    assert_eq!(ended.text_of("trial-001.json"), first, "kept as it was");
    let passed: u64 = bracket["evidence"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|load| {
            [
                "passed",
                "failed",
                "short_passed",
                "short_failed",
                "invalid",
            ]
            .map(|n| load[n].as_u64().expect("a count"))
        })
        .sum();
    assert_eq!(passed, trials.len() as u64, "every trial is evidence once");

    let over = resume().run();
    over.expect_code(2);
    assert!(
        over.stderr.contains("that search has ended"),
        "{}",
        over.stderr
    );
    assert_eq!(over.stderr.lines().count(), 1, "{}", over.stderr);
}

/// A crash leaves no bracket, only the plan and whole trials.
#[test]
#[measures]
fn a_search_that_was_killed_goes_on_from_its_whole_trials() {
    let _turn = turn_of_search();
    let running = search().start();
    running.wait_for_line(&["trial 2:"]);
    running.kill();
    let ended = running.wait();
    assert!(!ended.folder().join("bracket.json").exists());
    let above = Plimsoll::plain(["find", "--resume"])
        .arg(ended.folder().parent().expect("a scratch folder"))
        .run();
    above.expect_code(2);
    assert!(
        above.stderr.contains("no search in this folder"),
        "one search is no ranking: {}",
        above.stderr
    );
    let again = Plimsoll::plain(["find", "--json", "--resume"])
        .arg(ended.folder())
        .run();
    again.expect_code(2);
    assert!(again.stderr.contains("--resume"), "{}", again.stderr);
    let again = Plimsoll::plain(["find", "--resume"])
        .arg(ended.folder())
        .run();
    let bracket = ended.json_of("bracket.json");
    assert_eq!(bracket["interrupted"], false);
    assert_eq!(trials_of(&bracket)[0], "trial-001.json");
    again.expect_code(0);
}

#[test]
#[measures]
fn what_cannot_be_gone_on_with_is_told_in_one_line() {
    let _turn = shared_turn();
    let empty = tempfile::tempdir().expect("a scratch folder");
    for (folder, words) in [
        (empty.path().join("nowhere"), "No such file"),
        (empty.path().to_owned(), "no search in this folder"),
    ] {
        let ended = Plimsoll::plain(["find", "--resume"]).arg(&folder).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}
