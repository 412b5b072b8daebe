//! What the agents of a command can drive, from the command's side.
//!
//! Each agent first measures its own client ([`task`](super::task)). All do so at the same time, so those that share a machine share
//! its cores, but their searches end at different times. So at the end all drive an even part of a load at once, and what they are
//! on time with then is what the fleet can drive.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use plimsoll_core::record::{AgentCost, CalibratedAgent, FleetWork};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_workload::{Plan, Work, Workload};

use super::reach::{Search, Step};
use super::task::{Found, OfClient, Task, What, WorkOf};
use super::{BRIEF_SECONDS, CalibrationStep, ENGINE_BACKEND, LOADS_OF_ALL_CORES};
use crate::error::{Error, Result};
use crate::fleet::Fleet;
use crate::fleet::member::Joined;
use crate::trial::parts::{Heard, Said, Told};

/// How often to look whether we were asked to stop.
const POLL: Duration = Duration::from_millis(50);

/// The settings of a calibration of agents. Each splits its own CPUs.
#[derive(Debug, Clone)]
pub struct AgentsSettings {
    /// The number of sessions with which the costs are measured.
    pub sessions: u32,
    /// How often bare loop and engine take turns. Medians are reported.
    pub rounds: u32,
    /// How long each of them runs, in seconds.
    pub seconds: f64,
}

/// What the agents of a fleet measured.
#[derive(Debug, Clone, PartialEq)]
pub struct OfAgents {
    /// The agents, by their numbers.
    pub agents: Vec<CalibratedAgent>,
    /// The works, in their order.
    pub works: Vec<FleetWork>,
    /// How the engine waits for sockets.
    pub engine_backend: &'static str,
}

/// What a frame costs the engine of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineOnAgent {
    /// Its number and its machine.
    pub name: String,
    /// The CPUs that it has; less than it may use if others run there.
    pub cores: f64,
    /// CPU time of the engine per frame, µs.
    pub us_per_frame: f64,
}

/// Calibrates all agents of a fleet with the works of a workload. `on_step` hears each step, with the name of its agent.
///
/// # Errors
/// An agent is not there, refuses, or is lost. Or we were asked to stop.
pub fn calibrate_agents(
    fleet: &Fleet,
    workload: &dyn Workload,
    settings: &AgentsSettings,
    stop: &Stop,
    mut on_step: impl FnMut(&str, &dyn Work, &CalibrationStep),
) -> Result<OfAgents> {
    let circle = Circle::of(fleet, stop)?;
    let mut agents = circle.described();
    let mut works = Vec::new();
    for (place, work) in workload.works().iter().enumerate() {
        let task = Task {
            of: WorkOf::List {
                workload: workload.about().name.to_owned(),
                place,
            },
            sessions: settings.sessions,
            rounds: settings.rounds,
            seconds: settings.seconds,
            cores_share: 1.0,
            what: What::Client,
        };
        let mut show = |name: &str, step: &CalibrationStep| on_step(name, *work, step);
        let clients = circle.clients(&task, stop, &mut show)?;
        for (agent, client) in agents.iter_mut().zip(&clients) {
            agent.client_cpus = client.client_cpus;
            agent.shares_cpu = client.shares_cpu;
            agent.timer_error_p99_us = agent.timer_error_p99_us.max(client.timer_error_p99_us);
        }
        let together = circle.together(*work, &task, &clients, stop, &mut show)?;
        works.push(of_work(*work, &clients, together));
    }
    Ok(OfAgents {
        agents,
        works,
        engine_backend: ENGINE_BACKEND,
    })
}

/// What a frame of a plan's load costs the engine of each agent. A search uses it to warn early.
///
/// # Errors
/// As [`calibrate_agents`].
pub fn engine_on_agents(
    fleet: &Fleet,
    plan: &dyn Plan,
    work: &dyn Work,
    stop: &Stop,
) -> Result<Vec<EngineOnAgent>> {
    let circle = Circle::of(fleet, stop)?;
    let task = Task {
        of: WorkOf::Load {
            workload: plan.workload().about().name.to_owned(),
            values: plan.values().without_secrets(),
        },
        sessions: work.usual_sessions(),
        rounds: 1,
        seconds: BRIEF_SECONDS,
        cores_share: 1.0,
        what: What::Engine,
    };
    let found = circle.ask(&task, stop, &mut |_, _| {})?;
    let agents = circle.joined.iter().zip(&circle.cores).zip(found);
    let engine = agents.map(|((agent, cores), found)| match found {
        Found::Engine { us_per_frame } => Ok(EngineOnAgent {
            name: agent.share().name(),
            cores: *cores,
            us_per_frame,
        }),
        other => Err(misunderstood(agent, &other)),
    });
    engine.collect()
}

/// The figures of a work. `together` is what all agents did at once: the amount of each, and the highest send lag.
fn of_work(work: &dyn Work, clients: &[OfClient], together: Option<(u32, f64)>) -> FleetWork {
    let agents = (0..).zip(clients).map(|(index, client)| AgentCost {
        index,
        load: client.load,
        bare_cpu_us: client.bare_us,
        engine_cpu_us: client.engine_us,
        ratio: client.ratio,
        on_time_load: client.amount.map(|amount| work.load(amount)),
        send_lag_p99_us: client.send_lag_p99_us,
    });
    let whole = FleetWork {
        work: work.name().to_owned(),
        load_unit: work.unit(),
        message_bytes: work.message_bytes().map(|bytes| bytes as u64),
        messages_per_write: work.messages_per_write(),
        agents: agents.collect(),
        ..FleetWork::default()
    };
    FleetWork {
        on_time_load: together.map(|(amount, _)| work.load(amount).saturating_mul(whole.of())),
        send_lag_p99_us: together.map(|(_, lag_us)| lag_us),
        ..whole.summed()
    }
}

/// How many cores each agent has: those that it may use, each divided by the number of agents that may use it. An agent is
/// where its machine started, and its CPUs.
fn cores_of_each(places: &[(String, CpuList)]) -> Vec<f64> {
    let users = |boot: &str, cpu: u32| {
        let here = |(other, cpus): &&(String, CpuList)| other == boot && cpus.contains(cpu);
        u32::try_from(places.iter().filter(here).count()).unwrap_or(u32::MAX)
    };
    let cores = |(boot, cpus): &(String, CpuList)| {
        let each = cpus.as_slice().iter();
        each.map(|cpu| 1.0 / f64::from(users(boot, *cpu))).sum()
    };
    places.iter().map(cores).collect()
}

/// The higher of two send lags; `None` if one was not on time.
fn on_time_both(one_us: Option<f64>, other_us: Option<f64>) -> Option<f64> {
    Some(one_us?.max(other_us?))
}

/// The error for an answer to another question.
fn misunderstood(agent: &Joined, found: &Found) -> Error {
    let name = agent.share().name();
    Error::Fault(format!("agent {name} answers another question: {found:?}"))
}

/// All agents of a fleet, as they calibrate.
struct Circle {
    joined: Vec<Joined>,
    heard: Receiver<(usize, Heard)>,
    /// How many cores each has.
    cores: Vec<f64>,
    /// The part of the CPUs that it may use.
    cores_share: Vec<f64>,
}

impl Circle {
    fn of(fleet: &Fleet, stop: &Stop) -> Result<Self> {
        let (sender, heard) = channel();
        let joined = fleet.joined(&sender, stop)?;
        let place = |(boot, cpus): (&str, &CpuList)| (boot.to_owned(), cpus.clone());
        let places: Vec<_> = joined.iter().map(|agent| place(agent.place())).collect();
        let cores = cores_of_each(&places);
        let shares = cores.iter().zip(&places);
        let cores_share = shares.map(|(cores, (_, cpus))| cores / cpus.vcpu());
        Ok(Self {
            cores_share: cores_share.collect(),
            joined,
            heard,
            cores,
        })
    }

    /// What is known of the agents before.
    fn described(&self) -> Vec<CalibratedAgent> {
        let agents = self.joined.iter().map(|agent| {
            let share = agent.share();
            CalibratedAgent {
                index: share.index,
                host: share.host.clone(),
                kernel: share.kernel.clone(),
                cpus: share.cpus,
                ..CalibratedAgent::default()
            }
        });
        agents.collect()
    }

    /// What each agent measures of its own client.
    fn clients(
        &self,
        task: &Task,
        stop: &Stop,
        on_step: &mut dyn FnMut(&str, &CalibrationStep),
    ) -> Result<Vec<OfClient>> {
        let found = self.ask(task, stop, on_step)?;
        let clients = self.joined.iter().zip(found);
        let clients = clients.map(|(agent, found)| match found {
            Found::Client(client) => Ok(*client),
            other => Err(misunderstood(agent, &other)),
        });
        clients.collect()
    }

    /// The highest amount with which all agents are on time when they drive it at once, and the highest send lag then. It is at
    /// most what the least of them did by itself. `None` if one was on time with nothing.
    fn together(
        &self,
        work: &dyn Work,
        task: &Task,
        clients: &[OfClient],
        stop: &Stop,
        on_step: &mut dyn FnMut(&str, &CalibrationStep),
    ) -> Result<Option<(u32, f64)>> {
        let least = clients
            .iter()
            .map(|client| client.amount.unwrap_or(0))
            .min();
        let Some(least) = least.filter(|least| *least > 0) else {
            return Ok(None);
        };
        let search = Search {
            guess: f64::from(least),
            grain: work.grain(),
            max: least,
            loads: LOADS_OF_ALL_CORES,
            step: Step::TENTH,
        };
        search.greatest(|amount| {
            let task = Task {
                what: What::Amount(amount),
                ..task.clone()
            };
            let mut highest_us = Some(0.0);
            let found = self.ask(&task, stop, on_step)?;
            for (agent, found) in self.joined.iter().zip(found) {
                let Found::Amount(on_time) = found else {
                    return Err(misunderstood(agent, &found));
                };
                highest_us = on_time_both(highest_us, on_time);
            }
            Ok(highest_us)
        })
    }

    /// Gives all agents the same task at once, and waits for all answers.
    fn ask(
        &self,
        task: &Task,
        stop: &Stop,
        on_step: &mut dyn FnMut(&str, &CalibrationStep),
    ) -> Result<Vec<Found>> {
        for (agent, cores_share) in self.joined.iter().zip(&self.cores_share) {
            let told = Told::Calibrate(Box::new(Task {
                cores_share: *cores_share,
                ..task.clone()
            }));
            let told = agent.tell(&told);
            told.map_err(|error| lost(agent, &error.to_string()))?;
        }
        let mut found: Vec<Option<Found>> = self.joined.iter().map(|_| None).collect();
        while found.iter().any(Option::is_none) {
            if stop.requested() {
                return Err(Error::Interrupted("calibrating agents".to_owned()));
            }
            let (number, heard) = match self.heard.recv_timeout(POLL) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Fault("no agent is listened to".to_owned()));
                }
            };
            let agent = &self.joined[number];
            match heard.read() {
                Ok(Said::Calibrated(answer)) => found[number] = Some(*answer),
                Ok(Said::Stepped(step)) => on_step(&agent.share().name(), &step),
                Ok(Said::Refused(why)) => {
                    let name = agent.share().name();
                    return Err(Error::Usage(format!("agent {name} refuses: {why}")));
                }
                Ok(_) => {}
                Err(why) => {
                    return Err(lost(agent, &why.unwrap_or_else(|| "it left".to_owned())));
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}

/// The error for an agent that was lost before it had answered.
fn lost(agent: &Joined, why: &str) -> Error {
    plimsoll_host::Error::Io {
        what: format!("calibrating agent {}", agent.share().name()),
        source: std::io::Error::other(why.to_owned()),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use plimsoll_workload::Values;
    use plimsoll_workload_echo::Echo;
    use proptest::prelude::*;

    use super::*;

    fn place(boot: &str, cpus: &[u32]) -> (String, CpuList) {
        let cpus = CpuList::new(cpus.to_vec()).expect("a CPU");
        (boot.to_owned(), cpus)
    }

    #[test]
    fn agents_on_one_machine_share_its_cores() {
        let alone = [place("a", &[0, 1]), place("b", &[0, 1, 2])];
        assert_eq!(cores_of_each(&alone), [2.0, 3.0]);
        let shared = [
            place("a", &[0, 1]),
            place("a", &[1, 2, 3]),
            place("b", &[1]),
        ];
        assert_eq!(cores_of_each(&shared), [1.5, 2.5, 1.0]);
    }

    proptest! {
        /// However agents share machines, together they have each CPU once.
        #[test]
        fn no_core_is_counted_twice(agents in prop::collection::vec((0_u32..3, prop::collection::btree_set(0_u32..8, 1..8)), 1..6)) {
            let places: Vec<_> = agents.iter().map(|(boot, cpus)| {
                let cpus: Vec<u32> = cpus.iter().copied().collect();
                place(&boot.to_string(), &cpus)
            }).collect();
            let all: std::collections::BTreeSet<_> = agents.iter()
                .flat_map(|(boot, cpus)| cpus.iter().map(move |cpu| (boot, cpu)))
                .collect();
            let sum: f64 = cores_of_each(&places).iter().sum();
            prop_assert!((sum - f64::from(u32::try_from(all.len()).expect("few"))).abs() < 1e-9);
        }
    }

    fn client(amount: Option<u32>) -> OfClient {
        OfClient {
            client_cpus: 1,
            shares_cpu: false,
            timer_error_p99_us: 60.0,
            load: 500,
            bare_us: 2.0,
            engine_us: 3.0,
            ratio: 1.5,
            amount,
            send_lag_p99_us: 700.0,
        }
    }

    #[test]
    fn a_fleet_drives_what_its_agents_did_at_once() {
        let work = Echo.plan(Values::default()).expect("a plan").work();
        let work = work.expect("a work");
        let clients = [client(Some(40)), client(Some(20))];
        let of = |together| of_work(&*work, &clients, together);
        let fleet = of(Some((18, 900.0)));
        let each = work.load(1);
        assert_eq!(fleet.on_time_load, Some(36 * each));
        assert_eq!((fleet.even_load, fleet.load_sum), (40 * each, 60 * each));
        assert_eq!((fleet.least_agent, fleet.send_lag_p99_us), (1, Some(900.0)));
        assert_eq!(fleet.agents[0].on_time_load, Some(40 * each));
        assert_eq!(of(None).on_time_load, None);
    }
}
