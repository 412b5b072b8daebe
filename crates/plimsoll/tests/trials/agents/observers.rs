//! An observer beside a target on another machine: what it measures, and what becomes of a trial without it.

use crate::support::{conclusive, records, shared_turn, undisturbed_call};
use plimsoll_testing::measures;

use super::Door;
use super::machines::{Machines, PORT, address};

/// CPU time that a process has used since its start, in µs, in user mode and in the kernel.
fn cpu_us(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields = stat.rsplit_once(')').expect("a name").1;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks
        .map(|field| field.parse::<u64>().expect("ticks"))
        .sum();
    ticks * 10_000
}

#[test]
#[measures]
fn what_the_target_uses_is_measured_where_it_runs() {
    let Some(machines) = Machines::or_skip("o", 2) else {
        return;
    };
    let ended = conclusive!(undisturbed_call(&[], || {
        let coordinator = machines.coordinator("--observer --sessions 40", 3).start();
        Door::of(&coordinator);
        let observer = machines.observer("").start();
        let ended = coordinator.wait();
        observer.wait().expect_code(0);
        ended
    }));
    ended.expect_code(0);
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    let used = trial.at("target_resources");
    let figure = |name: &str| {
        used[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {used}"))
    };
    let cpu_us = figure("cpu_user_us") + figure("cpu_system_us");
    let all_us = self::cpu_us(machines.target()) as f64;
    assert!(
        cpu_us > 0.0 && cpu_us <= all_us + 20_000.0,
        "{cpu_us} of {all_us}"
    );
    assert_eq!(used["source"], "process tree");
    for moment in ["idle", "loaded"] {
        assert!(
            used["memory"][moment]["rss_bytes"].as_u64() > Some(0),
            "{used}"
        );
    }
    assert_eq!(used["sockets"]["connections_peak"], 40);
    let observer = trial.at("environment.observer");
    assert!(observer["lost"].is_null() && observer["clock_error_us"].as_f64() > Some(0.0));
    let seconds = trial.at("target_resources.cpu_us_per_session_second");
    assert!(seconds.as_f64() > Some(0.0));
}

#[test]
#[measures]
fn a_trial_that_loses_its_observer_is_invalid() {
    let Some(machines) = Machines::or_skip("p", 4) else {
        return;
    };
    let _turn = shared_turn();
    let coordinator = machines
        .coordinator("--agents 2 --observer --sessions 20", 60)
        .start();
    Door::of(&coordinator);
    let observer = machines.observer("").start();
    let agents = [3, 4].map(|place| machines.agent(place).start());
    coordinator.wait_for_two_seconds_of(1);
    observer.kill();
    let ended = coordinator.wait();
    ended.expect_code(3);
    let trial = ended.trial();
    let caveats = trial.blocking_caveats();
    assert!(caveats.contains(&"observer-lost".to_owned()), "{caveats:?}");
    assert!(!trial.at("environment.observer.lost").is_null());
    for agent in agents {
        agent.wait().expect_code(0);
    }
    observer.wait();
}

#[test]
#[measures]
fn a_driver_on_the_cores_of_the_target_is_seen() {
    let Some(machines) = Machines::or_skip("q", 3) else {
        return;
    };
    let _turn = shared_turn();
    let coordinator = machines
        .coordinator("--agents 1 --observer --sessions 5", 1)
        .start();
    Door::of(&coordinator);
    // It observes itself, and so a process on the core of the agent.
    let agent = machines.agent(3).start();
    let pid = agent.pid();
    let observer = machines.observer(&format!("--pid {pid}")).start();
    let ended = coordinator.wait();
    ended.expect_code(3);
    let caveats = ended.trial().blocking_caveats();
    assert!(caveats.contains(&"shared-cores".to_owned()), "{caveats:?}");
    agent.wait().expect_code(0);
    observer.wait().expect_code(0);
}

#[test]
#[measures]
fn an_observer_in_the_wrong_place_is_told_in_one_line() {
    let Some(machines) = Machines::or_skip("r", 3) else {
        return;
    };
    let _turn = shared_turn();
    let coordinator = machines.coordinator("--observer --sessions 5", 1).start();
    Door::of(&coordinator);
    let at = format!("{}:{PORT}", address(1));
    let observer = machines.agent_at(3, &at, "--observe").start();
    let ended = coordinator.wait();
    ended.expect_code(2);
    let words = [
        "observer (",
        &format!("nobody listens on port {PORT}"),
        "--pid",
    ];
    for word in words {
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
    observer.wait().expect_code(0);
    // And one that nobody asked for.
    let coordinator = machines.coordinator("--agents 1 --sessions 5", 1).start();
    Door::of(&coordinator);
    let ended = machines.observer("").run();
    ended.expect_code(2);
    assert!(
        ended.stderr.contains("give the coordinator --observer"),
        "{}",
        ended.stderr
    );
    machines.agent(3).run().expect_code(0);
    coordinator.wait();
}
