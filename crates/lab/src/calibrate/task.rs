//! What an agent is told to measure of its own client, and does: against a sink on its own loopback, on its own CPUs. A task
//! names a workload and its values, so it can start no program and read no file.

use plimsoll_host::isolation::{CpuList, Placement};
use plimsoll_host::signals::Stop;
use plimsoll_workload::calibrate::Reach;
use plimsoll_workload::{Values, Work, Workload};
use serde::{Deserialize, Serialize};

use super::rounds::Rounds;
use super::{
    CalibrationStep, ROUNDS_MAX, SECONDS_MAX, Settings, Tried, Way, bare, drive,
    engine_us_per_frame, first_cpu, most, round, sessions_max,
};
use crate::error::{Error, Result};
use crate::fleet::agent::must_name_no_file;
use crate::trial::Registry;

/// What an agent is told to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) of: WorkOf,
    /// The number of sessions with which the costs are measured. An agent with descriptors for fewer takes fewer.
    pub(super) sessions: u32,
    pub(super) rounds: u32,
    pub(super) seconds: f64,
    /// The part of its CPUs that it has, because other agents run on them.
    pub(super) cores_share: f64,
    pub(super) what: What,
}

/// A kind of work, by the names that both sides know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum WorkOf {
    /// One of those that a workload lists.
    List { workload: String, place: usize },
    /// That of a load's own frames.
    Load { workload: String, values: Values },
}

/// What is measured of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum What {
    /// What a frame costs the engine, once.
    Engine,
    /// What bare loop and engine cost, and the highest load.
    Client,
    /// Whether the client is on time with this amount.
    Amount(u32),
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Found {
    /// CPU time of the engine per frame, µs.
    Engine {
        us_per_frame: f64,
    },
    Client(Box<OfClient>),
    /// The send lag (99th percentile, µs) if the client was on time.
    Amount(Option<f64>),
}

/// What an agent found of its client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OfClient {
    /// How many CPUs the client had.
    pub(super) client_cpus: usize,
    /// Whether the sink was on one of them.
    pub(super) shares_cpu: bool,
    pub(super) timer_error_p99_us: f64,
    /// The load at which the costs were measured.
    pub(super) load: u32,
    pub(super) bare_us: f64,
    pub(super) engine_us: f64,
    pub(super) ratio: f64,
    /// The highest amount on time on all CPUs of the client.
    pub(super) amount: Option<u32>,
    /// The send lag there, or at the lowest load tried.
    pub(super) send_lag_p99_us: f64,
}

impl Task {
    /// Does it on these CPUs: the client on all but the last, the sink on that one.
    ///
    /// # Errors
    /// There is no such work, it asks for what an agent does not do, or as [`calibrate`](super::calibrate).
    pub(crate) fn perform(
        &self,
        workloads: Registry,
        cpus: &CpuList,
        stop: &Stop,
        mut on_step: impl FnMut(&CalibrationStep),
    ) -> Result<Found> {
        self.must_be_possible()?;
        let placement = Placement::choose(1.0, cpus, None, None)?;
        let settings = Settings {
            client_cpus: placement.client_cpus.clone(),
            sink_cpus: placement.target_cpus.clone(),
            sessions: self.sessions.min(sessions_max()),
            rounds: self.rounds,
            seconds: self.seconds,
            sessions_max: sessions_max(),
            tls: false,
            cores_share: self.cores_share,
        };
        self.of.with(workloads, |work| match self.what {
            What::Engine => Ok(Found::Engine {
                us_per_frame: engine_us_per_frame(work, &settings, None, stop)?,
            }),
            What::Client => {
                let found = of_client(work, &settings, placement.shared(), stop, on_step)?;
                Ok(Found::Client(Box::new(found)))
            }
            What::Amount(amount) => {
                let tried = tried(work, amount, &settings, stop)?;
                on_step(&tried.as_step(work.load(amount)));
                Ok(Found::Amount(tried.on_time()))
            }
        })
    }

    /// Refuses what no command asks for.
    fn must_be_possible(&self) -> Result<()> {
        let times = self.seconds > 0.0 && self.seconds <= SECONDS_MAX;
        let rounds = (1..=ROUNDS_MAX).contains(&self.rounds);
        let share = self.cores_share > 0.0 && self.cores_share <= 1.0;
        if times && rounds && share && self.sessions > 0 {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "it does not calibrate with {} rounds of {} s and {} sessions; give --rounds 1 to {ROUNDS_MAX} and --seconds up to {SECONDS_MAX}",
            self.rounds, self.seconds, self.sessions
        )))
    }
}

impl WorkOf {
    /// Does something with the work.
    fn with<T>(&self, workloads: Registry, work: impl FnOnce(&dyn Work) -> Result<T>) -> Result<T> {
        match self {
            Self::List { workload, place } => {
                let works = named(workload, workloads)?.works();
                let listed = works.get(*place).ok_or_else(|| unknown(workload));
                work(*listed?)
            }
            Self::Load { workload, values } => {
                must_name_no_file(values.names_a_file())?;
                let plan = named(workload, workloads)?.plan(values.clone())?;
                let of_load = plan.work().ok_or_else(|| unknown(workload));
                work(&*of_load?)
            }
        }
    }
}

fn named(workload: &str, workloads: Registry) -> Result<&'static dyn Workload> {
    let mut all = workloads.iter();
    let named = all.find(|known| known.about().name == workload);
    named.copied().ok_or_else(|| unknown(workload))
}

/// Both sides are of one build, so the user cannot be at fault.
fn unknown(workload: &str) -> Error {
    Error::Fault(format!(
        "an agent knows no such work of workload {workload}"
    ))
}

/// What bare loop and engine cost on one core, and the highest amount on all.
fn of_client(
    work: &dyn Work,
    settings: &Settings,
    shares_cpu: bool,
    stop: &Stop,
    mut on_step: impl FnMut(&CalibrationStep),
) -> Result<OfClient> {
    let timer_error_p99_us = bare::timer_error_p99_us(first_cpu(settings))?;
    let mut rounds = Rounds::default();
    for _ in 0..settings.rounds {
        rounds.add(round(work, settings, stop, &mut on_step)?);
    }
    let engine_us = rounds.engine_us().median;
    let most = most(work, Reach::AllCores, engine_us, settings, stop, on_step)?;
    Ok(OfClient {
        client_cpus: settings.client_cpus.count(),
        shares_cpu,
        timer_error_p99_us,
        load: work.load(work.amount(settings.sessions)),
        bare_us: rounds.bare_us().median,
        engine_us,
        ratio: rounds.ratio().median,
        amount: most.on_time.map(|(amount, _)| amount),
        send_lag_p99_us: most
            .on_time
            .map_or(most.least_load_lag_p99_us, |(_, lag_us)| lag_us),
    })
}

/// Tries an amount once, on all cores.
fn tried(work: &dyn Work, amount: u32, settings: &Settings, stop: &Stop) -> Result<Tried> {
    if amount == 0 || amount > work.amount_max(settings.sessions_max) {
        return Err(Error::Usage(format!(
            "it has no descriptors for {}; raise its limit of open files (ulimit -n)",
            work.load(amount)
        )));
    }
    let cpus = settings.client_cpus.as_slice();
    let run = drive(work, amount, settings, cpus, Way::Plain(None), stop)?;
    Ok(Tried::of(&run.report, work.counts(), run.all_there(work)))
}

#[cfg(test)]
mod tests {
    use plimsoll_workload_echo::Echo;

    use super::*;

    fn task(what: What) -> Task {
        Task {
            of: WorkOf::List {
                workload: "echo".to_owned(),
                place: 0,
            },
            sessions: 10,
            rounds: 1,
            seconds: 0.2,
            cores_share: 1.0,
            what,
        }
    }

    fn performed(task: &Task) -> Result<(Found, usize)> {
        let cpus = CpuList::allowed_to_us().expect("a machine");
        let mut steps = 0;
        let found = task.perform(&[&Echo], &cpus, &Stop::new(), |_| steps += 1)?;
        Ok((found, steps))
    }

    fn refused(task: &Task, words: &str) {
        let error = performed(task).expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn an_amount_is_tried_and_a_cost_measured() {
        let (found, steps) = performed(&task(What::Amount(10))).expect("measured");
        assert!(matches!(found, Found::Amount(_)), "{found:?}");
        assert_eq!(steps, 1);
        let (found, _) = performed(&task(What::Engine)).expect("measured");
        assert!(matches!(found, Found::Engine { us_per_frame } if us_per_frame > 0.0));
    }

    /// Everything that an agent says is finite, for JSON has no other numbers.
    #[test]
    fn a_task_and_its_steps_come_as_they_were_written() {
        let task = task(What::Client);
        let json = serde_json::to_string(&task).expect("written");
        assert_eq!(serde_json::from_str::<Task>(&json).expect("read"), task);
        let late = Tried {
            send_lag_p99_us: f64::INFINITY,
            busy_share: 0.0,
            honest: false,
        };
        let step = late.as_step(10);
        let json = serde_json::to_string(&step).expect("written");
        assert_eq!(
            serde_json::from_str::<CalibrationStep>(&json).expect("read"),
            step
        );
    }

    #[test]
    fn what_no_command_asks_for_is_refused() {
        let whole = task(What::Engine);
        for (bad, words) in [
            (
                Task {
                    seconds: 1e9,
                    ..whole.clone()
                },
                "--seconds up to 600",
            ),
            (
                Task {
                    seconds: f64::NAN,
                    ..whole.clone()
                },
                "it does not calibrate",
            ),
            (
                Task {
                    rounds: 0,
                    ..whole.clone()
                },
                "--rounds 1 to 100",
            ),
            (
                Task {
                    cores_share: 0.0,
                    ..whole.clone()
                },
                "it does not calibrate",
            ),
            (task(What::Amount(0)), "descriptors"),
            (task(What::Amount(u32::MAX)), "descriptors"),
        ] {
            refused(&bad, words);
        }
        for (workload, place) in [("echo", 7), ("nonsense", 0)] {
            let of = WorkOf::List {
                workload: workload.to_owned(),
                place,
            };
            refused(
                &Task {
                    of,
                    ..whole.clone()
                },
                "no such work",
            );
        }
    }
}
