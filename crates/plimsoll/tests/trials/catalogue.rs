//! `find --all` and `check --all`: every target that runs here, and a reason for each that does not.

use crate::support::manifests::Root;
use crate::support::{Plimsoll, built, records, root, shared_turn, turn_of_search};
use plimsoll_testing::measures;
use serde_json::Value;

/// Two targets that are rust-epoll under other names, one that needs a tool that nobody has, and one of tier test.
fn catalogue() -> Root {
    let epoll = root().join("targets/stt/rust-epoll");
    let gateway = built("stt/rust-epoll");
    let crate_file = epoll.join("Cargo.toml");
    let manifest = |name: &str, tier: &str, needs: &str| {
        format!(
            r#"name = "{name}"
workload = "stt"
tier = "{tier}"
language = "Rust"
description = "rust-epoll by another name"
inference_transport = "h2c"
source = ["{epoll}/src"]
[build]
command = ["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", {crate_file:?}]
{needs}
[run]
command = [{gateway:?}]
"#,
            epoll = epoll.display()
        )
    };
    let missing = "[[build.needs]]\ntool = \"unobtainium\"\nversion_command = [\"no-such-tool-anywhere\"]\ninstall = \"dig deeper\"\n";
    Root::new()
        .with("stt", "one", &manifest("one", "idiomatic", ""))
        .with("stt", "two", &manifest("two", "engine", ""))
        .with("stt", "rare", &manifest("rare", "idiomatic", missing))
        .with("stt", "trial-only", &manifest("trial-only", "test", ""))
}

/// It is interrupted once the first search has ended, and resumed.
#[test]
#[measures]
fn all_that_runs_here_is_ranked_and_the_rest_named_with_its_reason() {
    let catalogue = catalogue();
    let line = "find --all --start 70 --max 70 --repeats 1 --rounds 1 --ramp 0.2 --warm-up 1 --measured 4 --grace 2 --time-budget 0.25";
    let _turn = turn_of_search();
    let running = Plimsoll::measuring(line.split(' '))
        .env("PLIMSOLL_ROOT", catalogue.path())
        .start();
    running.wait_for_line(&["two: building"]);
    // The searches take turns.
    let first = running.wait_for_line(&["trial 1:"]);
    let second = running.wait_for_line(&["trial 2:"]);
    let [first, second] = [first, second].map(|line| match line.contains("(one, ") {
        true => "one",
        false => "two",
    });
    assert_ne!(first, second);
    running.ctrl_c();
    let ended = running.wait();
    ended.expect_code(130);
    let line = "to continue: plimsoll find --resume";
    assert_eq!(ended.stdout.matches(line).count(), 1, "{}", ended.stdout);
    let resume = || {
        let again = Plimsoll::plain(["find", "--resume"]).arg(ended.folder());
        again.env("PLIMSOLL_ROOT", catalogue.path()).run()
    };
    let found = ended.text_of(&format!("{first}/bracket.json"));
    let resumed = resume();
    assert!(
        resumed
            .stderr
            .contains(&format!("{first}: its search has ended")),
        "{}",
        resumed.stderr
    );
    assert_eq!(
        ended.text_of(&format!("{first}/bracket.json")),
        found,
        "not searched again"
    );
    let over = resume();
    over.expect_code(2);
    assert!(
        over.stderr.contains("that ranking has ended"),
        "{}",
        over.stderr
    );
    let ranking = ended.json_of("ranking.json");
    records::expect_valid(&ranking, "ranking.json");
    let names = |list: &str, of: fn(&Value) -> &Value| -> Vec<String> {
        let list = ranking[list].as_array().expect("a list");
        let mut names: Vec<_> = list
            .iter()
            .map(|row| of(row).as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names("rows", |row| &row["bracket"]["target"]["name"]),
        ["one", "two"],
        "{}",
        resumed.stderr
    );
    assert_eq!(names("left_out", |left| &left["name"]), ["rare"]);
    assert!(
        ended.stderr.contains("rare: needs unobtainium: dig deeper"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stdout.contains("trial-only"), "{}", ended.stdout);
    assert_eq!(ranking["interrupted"], false);
    let first_cores = &ended.json_of("one/trial-001.json")["environment"];
    for row in ranking["rows"].as_array().expect("a list") {
        assert!(row["lines_of_code"].as_u64() > Some(500), "{row:#}");
        let folder = row["folder"].as_str().expect("a folder");
        let bracket = ended.json_of(&format!("{folder}/bracket.json"));
        assert_eq!(bracket, row["bracket"]);
        // The second target's placement must not be chosen from within the first one's.
        let trial = ended.json_of(&format!("{folder}/trial-001.json"));
        let cores = &trial["environment"];
        assert_eq!(cores["target_cpus"], first_cores["target_cpus"], "{folder}");
        assert_eq!(cores["client_cpus"], first_cores["client_cpus"], "{folder}");
    }
    assert_eq!(ranking["common_load"], 50);
    for row in ranking["rows"].as_array().expect("a list") {
        assert_eq!(row["bracket"]["confirmed"], 70, "{row:#}");
        let cost = &row["at_common_load"];
        let us = cost["cpu_us_per_session_second"].as_f64();
        assert!(us > Some(10.0), "{row:#}");
        let folder = row["folder"].as_str().expect("a folder");
        let file = cost["trials"][0].as_str().expect("a file");
        let trial = ended.json_of(&format!("{folder}/{file}"));
        assert_eq!(trial["sessions"], 50);
    }
    let summary = ended.text_of("summary.md");
    assert!(
        summary.contains("# Ranking") && summary.contains("dig deeper"),
        "{summary}"
    );
    let svg = ended.text_of("ranking.svg");
    assert!(svg.contains("one") && svg.contains("two"));
    let page = ended.folder().join("two/report.html");
    std::fs::remove_file(&page).expect("its own page");
    let again = Plimsoll::plain(["report"]).arg(ended.folder()).run();
    again.expect_code(0);
    assert!(page.is_file(), "the ranking's page leads to it");
    assert!(again.stdout.contains("one") && again.stdout.contains("two"));

    // As if it had been interrupted in its last round: what it has of the rounds is not run again.
    let mut cut_short = ranking.clone();
    cut_short["interrupted"] = true.into();
    let file = ended.folder().join("ranking.json");
    std::fs::write(&file, cut_short.to_string()).expect("its folder");
    let trials = |name: &str| {
        let entries = std::fs::read_dir(ended.folder().join(name)).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with("trial-"))
            .count()
    };
    let before = [trials("one"), trials("two")];
    resume().expect_code(0);
    assert_eq!([trials("one"), trials("two")], before);
    assert_eq!(ended.json_of("ranking.json"), ranking);
    ended.expect_nothing_left_running();
}

#[test]
#[measures]
fn all_that_runs_here_is_checked() {
    let catalogue = catalogue();
    let _turn = shared_turn();
    let ended = Plimsoll::measuring("check --all --jobs 2 --only health".split(' '))
        .env("PLIMSOLL_ROOT", catalogue.path())
        .run();
    ended.expect_code(0);
    for name in ["one", "two"] {
        assert!(
            ended.stdout.contains(&format!("{name}: ")),
            "{}",
            ended.stdout
        );
        let check = ended.json_of(&format!("{name}/check.json"));
        assert!(
            check["passed"].as_u64() > Some(0) && check["failed"] == 0,
            "{check:#}"
        );
    }
    assert!(
        ended
            .stdout
            .contains("rare: not checked: needs unobtainium: dig deeper"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("trial-only"), "{}", ended.stdout);
    ended.expect_nothing_left_running();
}

#[test]
#[measures]
fn what_makes_no_sense_together_is_refused() {
    let _turn = shared_turn();
    let refused = |line: &str| {
        let ended = Plimsoll::plain(line.split(' ')).run();
        ended.expect_code(2);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    };
    refused("find --all rust-axum");
    refused("find --all --url ws://127.0.0.1:9/");
    refused("check --all --url http://127.0.0.1:9");
    refused("check rust-axum --jobs 2");
    refused("find rust-axum rust-axum");
    let empty = Root::new();
    let ended = Plimsoll::measuring(["check", "--all"])
        .env("PLIMSOLL_ROOT", empty.path())
        .run();
    ended.expect_code(2);
    assert!(
        ended.stderr.contains("no target of workload stt runs here"),
        "{}",
        ended.stderr
    );
}
