//! Machines as network namespaces, joined by a bridge: coordinator, agents and target each have one.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_host::isolation::CpuList;
use plimsoll_testing::{measures, skipped};

use crate::support::manifests::file;
use crate::support::{
    Ended, Plimsoll, ROOMY_SLO, built, conclusive, records, shared_turn, short_phases,
    undisturbed_call,
};

use super::Door;

/// The port of coordinator and target.
pub(super) const PORT: u16 = 7117;

/// The machines, by their places: 1 coordinates, 2 is measured, the others are agents. They vanish when dropped.
/// The target has the last CPU, and whoever drives it the first.
pub(super) struct Machines {
    names: Vec<String>,
    target: Child,
    files: tempfile::TempDir,
}

/// The first and the last CPU that we may use.
pub(super) fn two_cpus() -> (u32, u32) {
    let cpus = CpuList::allowed_to_us().expect("allowed");
    let (first, last) = (cpus.as_slice().first(), cpus.as_slice().last());
    (*first.expect("one"), *last.expect("one"))
}

fn ip(line: &str) -> Result<(), String> {
    call("ip", line)
}

/// Shapes what a card sends.
pub(super) fn tc(line: &str) -> Result<(), String> {
    call("tc", line)
}

fn call(program: &str, line: &str) -> Result<(), String> {
    let words = line.split_whitespace();
    let done = Command::new(program).args(words).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(format!("{program} {line}: {why}"))
}

pub(super) fn address(place: usize) -> String {
    format!("198.18.77.{place}")
}

impl Machines {
    /// Makes a bridge in a namespace of its own, and so many machines at it.
    fn make(tag: &str, machines: usize) -> Result<Self, String> {
        let hub = format!("pl{}{tag}", std::process::id());
        let mut names = vec![hub.clone()];
        ip(&format!("netns add {hub}"))?;
        let made = (|| {
            ip(&format!("-n {hub} link add hub type bridge"))?;
            ip(&format!("-n {hub} link set hub up"))?;
            for place in 1..=machines {
                let name = format!("{hub}-{place}");
                ip(&format!("netns add {name}"))?;
                names.push(name.clone());
                ip(&format!(
                    "-n {hub} link add m{place} type veth peer name card netns {name}"
                ))?;
                ip(&format!("-n {hub} link set m{place} master hub up"))?;
                ip(&format!(
                    "-n {name} addr add {}/24 dev card",
                    address(place)
                ))?;
                ip(&format!("-n {name} link set card up"))?;
                ip(&format!("-n {name} link set lo up"))?;
            }
            let target = Command::new("ip")
                .args(["netns", "exec", &format!("{hub}-2")])
                .args(["taskset", "-c", &two_cpus().1.to_string()])
                .arg(built("ws/rust-epoll-echo"))
                .env("PORT", PORT.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            target.map_err(|error| error.to_string())
        })();
        match made {
            Ok(target) => Ok(Self {
                names,
                target,
                files: tempfile::tempdir().expect("a scratch folder"),
            }),
            Err(why) => {
                remove(&names);
                Err(why)
            }
        }
    }

    /// The same; `None` where namespaces can't be made, which is noted as skipped.
    pub(super) fn or_skip(tag: &str, machines: usize) -> Option<Self> {
        match Self::make(tag, machines) {
            Ok(machines) => Some(machines),
            Err(why) => {
                skipped!("{why}");
                None
            }
        }
    }

    pub(super) fn name(&self, place: usize) -> &str {
        &self.names[place]
    }

    /// Turns the card of a machine off or on.
    fn set_link(&self, place: usize, how: &str) {
        let hub = self.name(0);
        ip(&format!("-n {hub} link set m{place} {how}")).expect("its link");
    }

    /// The target's process.
    pub(super) fn target(&self) -> u32 {
        self.target.id()
    }

    pub(super) fn coordinator(&self, line: &str, measured_s: u32) -> Plimsoll {
        let slo = file(self.files.path(), "roomy.toml", ROOMY_SLO);
        let line = format!(
            "run --url ws://{}:{PORT}/ --workload ws --test ping --period-ms 500 --slo {} --listen {}:{PORT} --token-file {} {line}",
            address(2),
            slo.display(),
            address(1),
            self.files.path().join("token").display()
        );
        let words = line.split_whitespace().map(str::to_owned);
        let words = words.chain(short_phases(measured_s));
        Plimsoll::within(self.name(1), two_cpus().0, words).keeping_results()
    }

    pub(super) fn agent(&self, place: usize) -> Plimsoll {
        self.agent_at(place, &format!("{}:{PORT}", address(1)), "")
    }

    /// The same, of the coordinator that is reached there.
    pub(super) fn agent_at(&self, place: usize, at: &str, line: &str) -> Plimsoll {
        let token = self.files.path().join("token");
        let line = format!("agent --join {at} --token-file {} {line}", token.display());
        Plimsoll::within(self.name(place), two_cpus().0, line.split_whitespace())
    }

    /// An agent on the target's machine that observes it.
    pub(super) fn observer(&self, line: &str) -> Plimsoll {
        let at = format!("{}:{PORT}", address(1));
        self.agent_at(2, &at, &format!("--observe {line}"))
    }

    pub(super) fn run(&self, agents: usize, line: &str) -> Ended {
        let line = format!("--agents {agents} {line}");
        let coordinator = self.coordinator(&line, 3).start();
        Door::of(&coordinator);
        let agents: Vec<_> = (3..3 + agents)
            .map(|place| self.agent(place).start())
            .collect();
        let ended = coordinator.wait();
        for agent in agents {
            agent.wait().expect_code(0);
        }
        ended
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        let _ = self.target.kill();
        let _ = self.target.wait();
        remove(&self.names);
    }
}

fn remove(names: &[String]) {
    for name in names {
        let _ = ip(&format!("netns del {name}"));
    }
}

#[test]
#[measures]
fn agents_on_two_machines_measure_a_third() {
    let Some(machines) = Machines::or_skip("a", 4) else {
        return;
    };
    let ended = conclusive!(undisturbed_call(&[], || machines.run(2, "--sessions 40")));
    ended.expect_code(0);
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_flawless_ledger();
    let agents = trial.at("client.agents").as_array().expect("a list");
    assert_eq!(agents.len(), 2);
    assert!(agents.iter().all(|agent| agent["sessions"] == 20));
}

#[test]
fn an_agent_that_is_cut_off_is_lost_after_three_seconds() {
    let Some(machines) = Machines::or_skip("b", 4) else {
        return;
    };
    let _turn = shared_turn();
    let coordinator = machines.coordinator("--agents 2 --sessions 20", 60).start();
    Door::of(&coordinator);
    let agents = [3, 4].map(|place| machines.agent(place).start());
    coordinator.wait_for_two_seconds_of(1);
    let began = Instant::now();
    machines.set_link(4, "down");
    let ended = coordinator.wait();
    let took = began.elapsed();
    ended.expect_code(3);
    let trial = ended.trial();
    assert!(trial.blocking_caveats().contains(&"agent-lost".to_owned()));
    let lost: Vec<_> = trial
        .at("client.agents")
        .as_array()
        .expect("a list")
        .iter()
        .collect();
    let why = lost.iter().filter_map(|agent| agent["lost"].as_str());
    assert_eq!(why.collect::<Vec<_>>(), ["no word for 3 s"]);
    assert!(
        took > Duration::from_secs(3) && took < Duration::from_secs(25),
        "{took:?}"
    );
    // It sees that as well, and waits for a coordinator that never comes.
    let [stays, cut_off] = agents;
    stays.wait().expect_code(0);
    cut_off.wait_for_line(&["the coordinator is gone", "no word for 3 s"]);
    cut_off.ctrl_c();
    cut_off.wait().expect_code(130);
}
