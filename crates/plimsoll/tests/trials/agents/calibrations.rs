//! What agents can drive: `calibrate --agents`, and the estimate with which `find --agents` begins.

use serde_json::Value;

use crate::support::invocation::Running;
use crate::support::{Plimsoll, records, shared_turn};
use plimsoll_testing::measures;

use super::{Door, Fleet};

/// A calibration that waits for its agents.
fn calibration(fleet: &Fleet, line: &str) -> (Running, Door) {
    let line = format!(
        "calibrate --listen 127.0.0.1:0 --token-file {} --workload echo --sessions 10 {line}",
        fleet.token.display()
    );
    let coordinator = Plimsoll::measuring(line.split_whitespace()).start();
    let door = Door::of(&coordinator);
    (coordinator, door)
}

/// An agent with descriptors for two dozen connections, which keep the search for its highest load short.
fn agent(fleet: &Fleet, at: &Door, index: u32) -> Running {
    let line = format!(
        "agent --join {} --token-file {} --index {index}",
        at.address,
        fleet.token.display()
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    Plimsoll::after("ulimit -n 560", &words).start()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[test]
#[measures]
fn two_agents_are_calibrated_and_the_least_of_them_decides() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let (coordinator, door) = calibration(&fleet, "--agents 2 --rounds 1 --seconds 0.5 --json");
    let agents = [0, 1].map(|index| agent(&fleet, &door, index));
    let ended = coordinator.wait();
    ended.expect_code(0);
    ended.expect_nothing_left_running();
    for agent in agents {
        agent.wait().expect_code(0);
    }
    let record = ended.json_of("fleet.json");
    records::expect_valid(&record, "fleet.json");
    let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON and nothing else");
    assert_eq!(printed, record);
    assert_eq!(record["workload"], "echo");
    for (index, agent) in record["agents"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        assert_eq!(agent["index"], index);
        assert!(number(&agent["client_cpus"]) > 0, "{agent}");
        assert!(agent["timer_error_p99_us"].as_f64() > Some(0.0), "{agent}");
    }
    let works = record["works"].as_array().expect("a list");
    let [work] = works.as_slice() else {
        panic!("{works:?}")
    };
    let costs = work["agents"].as_array().expect("a list");
    assert_eq!(costs.len(), 2);
    assert!(
        costs
            .iter()
            .all(|cost| cost["engine_cpu_us"].as_f64() > Some(0.0))
    );
    let loads: Vec<u64> = costs
        .iter()
        .map(|cost| number(&cost["on_time_load"]))
        .collect();
    let least = loads.iter().copied().min().expect("two");
    assert_eq!(number(&work["even_load"]), 2 * least);
    assert_eq!(number(&work["load_sum"]), loads.iter().sum::<u64>());
    assert_eq!(
        loads[usize::try_from(number(&work["least_agent"])).expect("small")],
        least
    );
    assert!(number(&work["on_time_load"]) <= 2 * least, "{work}");
    for words in ["agent 0 (", "agent 1 ("] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let page = ended.text_of("report.html");
    assert!(page.contains("Calibration of 2 agents"));
}

#[test]
#[measures]
fn an_agent_that_dies_while_it_calibrates_is_named() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let (coordinator, door) = calibration(&fleet, "--agents 2 --rounds 50 --seconds 0.5");
    let stays = agent(&fleet, &door, 0);
    let dies = agent(&fleet, &door, 1);
    coordinator.wait_for_line(&["agent 1 (", "bare loop"]);
    dies.kill();
    let ended = coordinator.wait();
    ended.expect_code(3);
    let line = ended.stderr.lines().last().unwrap_or_default();
    assert!(line.contains("calibrating agent 1 ("), "{}", ended.stderr);
    assert!(!ended.result_files().contains(&"fleet.json".to_owned()));
    stays.wait().expect_code(0);
    dies.wait();
}

#[test]
#[measures]
fn a_calibration_that_is_stopped_lets_its_agents_go() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let (coordinator, door) = calibration(&fleet, "--agents 1 --rounds 50 --seconds 0.5");
    let agent = agent(&fleet, &door, 0);
    coordinator.wait_for_line(&["agent 0 (", "bare loop"]);
    coordinator.ctrl_c();
    coordinator.wait().expect_code(130);
    agent.wait().expect_code(0);
}

#[test]
#[measures]
fn a_calibration_of_agents_that_cannot_be_is_refused_in_one_line() {
    for (line, words) in [
        (
            "--inference http://127.0.0.1:1 --agents 2 --token-file token",
            "--agents",
        ),
        (
            "--agents 2 --token-file token --client-cpus 0",
            "--client-cpus: does not go with --agents",
        ),
        (
            "--agents 2 --token-file token --tls",
            "--tls: does not go with --agents",
        ),
        ("--agents 2", "--token-file"),
    ] {
        let line = format!("calibrate {line}");
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        let told = ended
            .stderr
            .lines()
            .filter(|it| it.starts_with("plimsoll:"));
        let told: Vec<&str> = told.collect();
        assert_eq!(told.len(), 1, "{}", ended.stderr);
        assert!(told[0].contains(words), "{}", ended.stderr);
    }
}

#[test]
#[measures]
fn a_search_with_agents_begins_with_what_they_can_drive() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let line = format!(
        "find --url {} --slo {} --workload echo --agents 2 --listen 127.0.0.1:0 --token-file {} --start 5 --max 5 --profile quick",
        fleet.url,
        fleet.slo.display(),
        fleet.token.display()
    );
    let coordinator = Plimsoll::measuring(line.split_whitespace()).start();
    let door = Door::of(&coordinator);
    let agents = [0, 1].map(|index| agent(&fleet, &door, index));
    coordinator.wait_for_line(&["2 agents can drive about", "agent ", "µs of CPU per frame"]);
    coordinator.ctrl_c();
    coordinator.wait().expect_code(130);
    for agent in agents {
        agent.wait().expect_code(0);
    }
}
