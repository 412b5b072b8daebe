//! Agents that drive parts of a load, with the real command: one ledger and one verdict, and what becomes of a trial if
//! an agent or its coordinator fails. [`machines`] has those on machines of their own, which are network namespaces, [`links`]
//! those over a bad way to the coordinator, [`observers`] those that measure the target there, [`rankings`] those that drive
//! the load of several targets, and [`calibrations`] what agents can drive.

mod calibrations;
mod links;
mod machines;
mod observers;
mod rankings;

use std::path::{Path, PathBuf};

use crate::support::echo_server::{self, Manner};
use crate::support::invocation::Running;
use crate::support::manifests::file;
use crate::support::records::{self, Trial};
use crate::support::{
    Ended, Plimsoll, ROOMY_SLO, conclusive, shared_turn, short_phases, undisturbed_beside_few,
    undisturbed_call,
};
use plimsoll_testing::measures;

/// A server, and the files of a fleet.
struct Fleet {
    url: String,
    slo: PathBuf,
    token: PathBuf,
    files: tempfile::TempDir,
}

impl Fleet {
    fn new() -> Self {
        let files = tempfile::tempdir().expect("a scratch folder");
        Self {
            url: echo_server::start(Manner::Honest),
            slo: file(files.path(), "roomy.toml", ROOMY_SLO),
            token: files.path().join("token"),
            files,
        }
    }

    /// A trial of this server.
    fn trial(&self, line: &str, measured_s: u32) -> Plimsoll {
        let line = format!(
            "run --url {} --slo {} --workload echo {line}",
            self.url,
            self.slo.display()
        );
        let words = line.split_whitespace().map(str::to_owned);
        Plimsoll::measuring(words.chain(short_phases(measured_s)))
    }

    /// A trial with the agents that the line asks for, which come to this address.
    fn trial_at(&self, listen: &str, line: &str, measured_s: u32) -> Plimsoll {
        let token = self.token.display();
        let line = format!("--listen {listen} --token-file {token} {line}");
        self.trial(&line, measured_s)
    }

    /// The same, as it waits for them.
    fn coordinator(&self, line: &str, measured_s: u32) -> (Running, Door) {
        let coordinator = self.trial_at("127.0.0.1:0", line, measured_s).start();
        let door = Door::of(&coordinator);
        (coordinator, door)
    }

    /// An agent of the coordinator that listens there.
    fn agent(&self, at: &Door, line: &str) -> Plimsoll {
        agent_with(&self.token, at, line)
    }

    /// A call, with so many agents until its end.
    fn run_with(&self, agents: u32, line: &str) -> Ended {
        let (coordinator, door) = self.coordinator(&format!("--agents {agents} {line}"), 3);
        let agents: Vec<Running> = (0..agents).map(|_| self.agent(&door, "").start()).collect();
        let ended = coordinator.wait();
        for agent in agents {
            agent.wait().expect_code(0);
        }
        ended
    }
}

/// Where a coordinator listens, and its certificate.
struct Door {
    address: String,
    fingerprint: String,
}

impl Door {
    fn of(coordinator: &Running) -> Self {
        let line = coordinator.wait_for_line(&["waiting for", "certificate"]);
        let word_after = |before: &str| {
            let after = line.split(before).nth(1).expect(before);
            let word = after.split([';', ' ']).next().unwrap_or_default();
            word.to_owned()
        };
        Self {
            address: word_after(" at "),
            fingerprint: word_after("certificate "),
        }
    }
}

fn agent_with(token: &Path, at: &Door, line: &str) -> Plimsoll {
    let line = format!(
        "agent --join {} --token-file {} {line}",
        at.address,
        token.display()
    );
    Plimsoll::plain(line.split_whitespace())
}

/// What a trial counted, without what depends on the moment.
fn counted(trial: &Trial) -> [u64; 4] {
    [
        "frames_due",
        "frames_answered",
        "frames_lost",
        "sessions_started",
    ]
    .map(|count| trial.ledger(count))
}

#[test]
#[measures]
fn four_agents_are_one_client() {
    let fleet = Fleet::new();
    let sessions = "--sessions 42";
    let alone = conclusive!(undisturbed_call(&[], || fleet.trial(sessions, 3).run()));
    let divided = conclusive!(undisturbed_beside_few(|| fleet.run_with(4, sessions)));
    divided.expect_code(0);
    divided.expect_nothing_left_running();
    let trial = divided.trial();
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_flawless_ledger();
    // The same sessions have the same schedules, whoever drives them.
    assert_eq!(counted(&trial), counted(&alone.trial()));
    let agents = trial.at("client.agents").as_array().expect("a list");
    let parts: Vec<u64> = agents
        .iter()
        .map(|agent| agent["sessions"].as_u64().expect("a number"))
        .collect();
    assert_eq!(parts, [11, 11, 10, 10]);
    for (index, agent) in agents.iter().enumerate() {
        assert_eq!(agent["index"], index);
        assert!(
            agent["lost"].is_null() && agent["resources"].is_object(),
            "{agent}"
        );
        assert!(agent["send_lag"]["p999_us"].as_f64().is_some(), "{agent}");
        // They have one clock here, so only the way counts.
        let error_us = agent["clock_error_us"].as_f64().expect("a number");
        assert!(error_us > 0.0, "{agent}");
    }
    assert!(
        divided
            .text_of("report.html")
            .contains("The agents that drove the load")
    );
    assert!(
        !divided
            .text_of("trial-001.json")
            .contains(&token_text(&fleet.token))
    );
}

fn token_text(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("a token");
    text.trim().to_owned()
}

#[test]
fn an_agent_that_dies_makes_the_trial_invalid_and_the_next_search_goes_on() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let (coordinator, door) = fleet.coordinator("--agents 2 --sessions 20", 60);
    let stays = fleet.agent(&door, "--index 0").start();
    let dies = fleet.agent(&door, "--index 1").start();
    coordinator.wait_for_two_seconds_of(1);
    dies.kill();
    let ended = coordinator.wait();
    ended.expect_code(3);
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    let caveats = trial.blocking_caveats();
    assert!(caveats.contains(&"agent-lost".to_owned()), "{caveats:?}");
    let accuses = |id: &String| id.ends_with("-disagree") || id == "littles-law";
    assert!(!caveats.iter().any(accuses), "{caveats:?}");
    assert_eq!(trial.at("interrupted"), false);
    let lost = trial.at("client.agents")[1]["lost"]
        .as_str()
        .expect("a reason")
        .to_owned();
    assert!(lost.contains("closed") || lost.contains("reset"), "{lost}");
    assert!(ended.stdout.contains("agent 1 ("), "{}", ended.stdout);
    stays.wait().expect_code(0);
    dies.wait();
}

#[test]
#[measures]
fn an_agent_outlives_its_coordinator_for_a_minute() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let (coordinator, door) = fleet.coordinator("--agents 1 --sessions 5", 60);
    let agent = fleet.agent(&door, "").start();
    coordinator.wait_for_two_seconds_of(1);
    coordinator.kill();
    agent.wait_for_line(&["the coordinator is gone", "60 s"]);
    coordinator.wait();
    // Another one may have it.
    let port = door.address.rsplit(':').next().expect("a port");
    let listen = format!("127.0.0.1:{port}");
    let again = fleet.trial_at(&listen, "--agents 1 --sessions 5", 1).run();
    assert_eq!(again.trial().at("client.agents")[0]["sessions"], 5);
    agent.wait().expect_code(0);
}

#[test]
#[measures]
fn who_does_not_belong_is_refused_in_one_line() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let (coordinator, door) = fleet.coordinator("--agents 1 --sessions 5", 1);
    let other = fleet.files.path().join("other-token");
    std::fs::write(&other, "0f".repeat(32)).expect("written");
    let pin = "0".repeat(64);
    for (token, line, words) in [
        (&other, String::new(), "another token"),
        (
            &fleet.token,
            format!("--fingerprint {pin}"),
            "another certificate than --fingerprint",
        ),
        (&fleet.token, "--index 1".to_owned(), "none has number 1"),
    ] {
        let ended = agent_with(token, &door, &line).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    // The right one is still let in.
    let right = format!("--fingerprint {}", door.fingerprint);
    let agent = fleet.agent(&door, &right).start();
    assert_eq!(
        coordinator.wait().trial().at("client.agents")[0]["sessions"],
        5
    );
    agent.wait().expect_code(0);
}

#[test]
#[measures]
fn an_agent_goes_nowhere_that_nobody_allowed() {
    let fleet = Fleet::new();
    let _turn = shared_turn();
    let (coordinator, door) = fleet.coordinator("--agents 1 --sessions 5", 1);
    let agent = fleet.agent(&door, "--allow 198.18.0.0/15").start();
    let ended = coordinator.wait();
    ended.expect_code(2);
    for words in ["agent 0 (", "--allow 127.0.0.1"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    agent.wait().expect_code(0);
}

#[test]
#[measures]
fn what_agents_cannot_do_is_refused_before_anyone_waits() {
    let fleet = Fleet::new();
    for (line, words) in [
        (
            "--agents 1 --sessions 5 --workload broker --dialect mqtt --url tcp://127.0.0.1:1",
            "agents have clocks of their own",
        ),
        ("--agents 0 --sessions 5", "--agents"),
    ] {
        let line = format!("run {line} --token-file {}", fleet.token.display());
        let line = if line.contains("--url") {
            line
        } else {
            format!("{line} --url {}", fleet.url)
        };
        let ended = Plimsoll::measuring(line.split_whitespace()).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    let line = "--agents 2 --sessions 5 --join-timeout 1";
    let ended = fleet.trial_at("127.0.0.1:0", line, 1).run();
    ended.expect_code(3);
    assert!(
        ended.stderr.contains("agents 0, 1 of 2 are missing"),
        "{}",
        ended.stderr
    );
}
