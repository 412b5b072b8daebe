//! A ranking of several targets, whose searches and rounds are all driven by the same agents.

use std::path::Path;

use plimsoll_host::isolation::CpuList;
use serde_json::Value;

use crate::support::invocation::Running;
use crate::support::manifests::{Root, manifest_of_gateway};
use crate::support::{Ended, Plimsoll, built, median_slo, records, shared_turn, turn_of_search};
use plimsoll_testing::measures;

use super::Door;

const SESSIONS: u64 = 60;
/// Below whatever a search finds.
const COMMON_LOAD: u64 = 20;

/// Two targets that are the lying server under other names, and none of them lies. (`--all` leaves out targets of tier
/// `test`, so they are ranked by their names.)
fn catalogue() -> Root {
    let line = format!("exec {}", built("stt/lying-server").display());
    let manifest =
        |name: &str| manifest_of_gateway(name, "the lying server, which does not lie", &line);
    Root::new()
        .with("stt", "one", &manifest("one"))
        .with("stt", "two", &manifest("two"))
}

/// An agent of the coordinator that listens there. A target that the coordinator starts has CPUs of its own, the last
/// ones, so this agent keeps to the first.
fn agent(token: &Path, at: &Door) -> Running {
    let allowed = CpuList::allowed_to_us().expect("CPUs");
    let bound = format!("taskset -pc {} $$ >/dev/null", allowed.as_slice()[0]);
    let token = token.to_str().expect("UTF-8");
    let line = [
        "agent",
        "--join",
        &at.address,
        "--token-file",
        token,
        "--fingerprint",
        &at.fingerprint,
    ];
    Plimsoll::after(&bound, &line).start()
}

/// Ranks all targets with two agents, which stay from the first search to the last round.
fn ranked(targets: &Root) -> Ended {
    let files = tempfile::tempdir().expect("a scratch folder");
    let token = files.path().join("token");
    let line = format!(
        "find one two --agents 2 --listen 127.0.0.1:0 --token-file {} --start {SESSIONS} --max {SESSIONS} --repeats 1 --rounds 1 \
         --common-load {COMMON_LOAD} --time-budget 0.25 --ramp 0.2 --warm-up 1 --measured 2 --grace 1.5 --slo {}",
        token.display(),
        median_slo()
    );
    let coordinator = Plimsoll::measuring(line.split_whitespace())
        .env("PLIMSOLL_ROOT", targets.path())
        .start();
    let door = Door::of(&coordinator);
    let agents = [(); 2].map(|()| agent(&token, &door));
    let ended = coordinator.wait();
    for agent in agents {
        let agent = agent.wait();
        agent.expect_code(0);
        // It joined once, and whoever is sent away joins again.
        let joined = agent.stderr.matches(", joined ").count();
        assert_eq!(joined, 1, "{}", agent.stderr);
    }
    ended
}

/// Expects that two agents drove this trial of so many sessions, each half of it.
fn expect_two_halves(trial: &Value, sessions: u64) {
    let agents = trial["client"]["agents"].as_array().expect("a list");
    assert_eq!(agents.len(), 2, "{agents:?}");
    for agent in agents {
        assert_eq!(agent["sessions"], sessions / 2, "{agent}");
        assert!(agent["lost"].is_null(), "{agent}");
    }
}

#[test]
#[measures]
fn one_fleet_drives_the_load_of_all_targets() {
    if CpuList::allowed_to_us().expect("CPUs").as_slice().len() < 2 {
        plimsoll_testing::skipped!("the target and the agents need a CPU each");
        return;
    }
    let targets = catalogue();
    let _turn = turn_of_search();
    let ended = ranked(&targets);
    let ranking = ended.json_of("ranking.json");
    records::expect_valid(&ranking, "ranking.json");
    assert_eq!(ranking["interrupted"], false);
    assert_eq!(
        ended.stderr.matches("waiting for 2 agents").count(),
        1,
        "{}",
        ended.stderr
    );
    let rows = ranking["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 2, "{}", ended.stderr);
    for row in rows {
        let folder = row["folder"].as_str().expect("a folder");
        let bracket = ended.json_of(&format!("{folder}/bracket.json"));
        assert_eq!(bracket, row["bracket"]);
        expect_two_halves(
            &ended.json_of(&format!("{folder}/trial-001.json")),
            SESSIONS,
        );
        // How far the search comes within its budget is of no matter here.
        let confirmed = bracket["confirmed"].as_u64();
        assert!(
            confirmed.is_some_and(|sessions| sessions > 0),
            "{bracket:#}"
        );
        let file = row["at_common_load"]["trials"][0].as_str();
        let file = format!("{folder}/{}", file.expect("a trial of the round"));
        expect_two_halves(&ended.json_of(&file), COMMON_LOAD);
    }
    ended.expect_nothing_left_running();
}

#[test]
#[measures]
fn a_ranking_that_agents_cannot_drive_is_refused_before_anyone_waits() {
    let _turn = shared_turn();
    let broker = |name: &str| {
        format!(
            r#"name = "{name}"
workload = "broker"
tier = "test"
language = "sh"
description = "made up for a test"
dialect = "mqtt"
levels = ["ephemeral: confirm cache, deliver cache"]
[run]
command = ["sh", "-c", "exit 1"]
"#
        )
    };
    let targets = catalogue().with("broker", "three", &broker("three")).with(
        "broker",
        "four",
        &broker("four"),
    );
    for (line, words) in [
        (
            "find one two --observer",
            "--observer is for a server that runs already",
        ),
        (
            "find three four --workload broker --level ephemeral --agents 2",
            "agents have clocks of their own",
        ),
    ] {
        let line = format!("{line} --token-file token");
        let ended = Plimsoll::measuring(line.split_whitespace())
            .env("PLIMSOLL_ROOT", targets.path())
            .run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let left = std::fs::read_dir(ended.scratch()).expect("a folder");
        assert_eq!(left.count(), 0, "neither a token nor a result");
    }
}
