//! Measures what this machine's client can generate soundly.
//!
//! One run measures three things, so that they can be compared on a noisy machine: a bare loop that only does a
//! [`Work`]'s flow on time ([`bare`]), the engine with the work's sessions, which does the same and everything else
//! besides ([`drive`](mod@drive)), and how late a sleep ends. Loop and engine write to the same kind of [`sink`] in the same order, and get as
//! many bytes back. The sink has its own core if there is one. What the works are, their workloads say.
//!
//! If it is asked for, the engine takes a further turn over [`tls`]. The bare loop has none: engine over TLS is compared with
//! engine without it.
//!
//! Agents do the same for the command that coordinates them ([`task`]), all at once ([`agents`]).
//!
//! [`inference`] asks another question with the same search: which load an inference server holds alone.
//!
//! On the loopback the kernel does the receiver's protocol work on the sender's core, so both numbers are higher than
//! over a network. What a search is told is measured in the network that its target will have.

mod agents;
mod bare;
mod connections;
mod deliveries;
mod drive;
mod inference;
mod reach;
mod rounds;
mod sink;
mod task;
mod tls;

use plimsoll_core::latency::{Series, quantile_us};
use plimsoll_core::record::ClientCost;
use plimsoll_engine::Report;
use plimsoll_host::isolation::{CpuList, OwnNetwork};
use plimsoll_host::machine::Limits;
use plimsoll_host::signals::Stop;
use plimsoll_workload::Work;
use plimsoll_workload::calibrate::{Counts, Reach};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use agents::{AgentsSettings, EngineOnAgent, OfAgents, calibrate_agents, engine_on_agents};
use bare::us_each;
use drive::{Way, drive, profile};
pub use inference::{InferenceFound, InferenceSettings, inference};
use rounds::{Rounds, per_core_second};
pub(crate) use task::{Found, Task};
pub use tls::RoundOverTls;

/// The highest send lag (99th percentile) at which a client counts as honest.
pub const SEND_LAG_P99_LIMIT_US: f64 = 2_000.0;
/// The highest share of its core at which an engine thread counts as honest.
pub const BUSY_LIMIT: f64 = 0.9;

/// The longest run of the bare loop or the engine, in seconds.
pub const SECONDS_MAX: f64 = 600.0;
/// The most rounds.
pub const ROUNDS_MAX: u32 = 100;
/// How long the engine is measured when only its cost is asked for, in seconds.
pub const BRIEF_SECONDS: f64 = 1.5;

/// The most loads to try on one core. They let the search go down by a third from the guess, or up by half.
const LOADS_OF_ONE_CORE: u32 = 5;
/// The same on all cores. The cost is measured on one, so the guess is worse.
const LOADS_OF_ALL_CORES: u32 = 10;

/// How the engine waits for sockets.
const ENGINE_BACKEND: &str = "epoll";

/// Descriptors that are for other things than sessions.
const OTHER_FILES: u64 = 512;
/// The most sessions to try, however many descriptors there are.
const SESSIONS_MAX: u32 = 10_000;

/// The settings of a calibration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cores of the client. The costs are measured on the first.
    pub client_cpus: CpuList,
    /// Cores of the sink.
    pub sink_cpus: CpuList,
    /// The number of sessions with which the costs are measured; each work makes its own amount of it.
    pub sessions: u32,
    /// How often bare loop and engine take turns. Medians are reported.
    pub rounds: u32,
    /// How long each of them runs, in seconds.
    pub seconds: f64,
    /// The highest number of sessions to try.
    pub sessions_max: u32,
    /// Whether the engine's costs are measured over TLS as well.
    pub tls: bool,
    /// The part of the client's cores that it has, above 0: 1 unless others run there. The search for the highest load begins
    /// where that part ends.
    pub cores_share: f64,
}

/// The most sessions that this process has descriptors for. Client and sink are one process here, so a session takes two.
#[must_use]
pub fn sessions_max() -> u32 {
    let files = Limits::of_this_process()
        .fd_soft
        .saturating_sub(OTHER_FILES);
    u32::try_from(files / 2)
        .unwrap_or(u32::MAX)
        .min(SESSIONS_MAX)
}

/// One step, for the progress display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CalibrationStep {
    /// The bare loop's cost in one round.
    Bare {
        /// CPU time per frame, µs.
        us_per_frame: f64,
    },
    /// The engine's cost in one round.
    Engine {
        /// CPU time per frame, µs.
        us_per_frame: f64,
    },
    /// The engine's cost over TLS in one round.
    EngineOverTls {
        /// CPU time per frame, µs.
        us_per_frame: f64,
        /// CPU time per handshake, µs.
        us_per_handshake: f64,
    },
    /// A load was tried: a number of sessions, or of what else the load counts.
    Load {
        /// The load.
        load: u32,
        /// 99th percentile of the send lag, µs; of messages that the sink sends, how late they were taken. `None` if nothing
        /// moved.
        send_lag_p99_us: Option<f64>,
        /// Share of its core that the busiest thread used.
        busy_share: f64,
        /// Whether the client counts as honest.
        honest: bool,
    },
}

/// What a calibration measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The works, in their order.
    pub works: Vec<MeasuredWork>,
    /// How late a sleep ends.
    pub timer_error_p99_us: f64,
    /// How the engine waits for sockets.
    pub engine_backend: &'static str,
}

/// What was measured of one work.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredWork {
    /// What it costs one core, and the greatest load on time.
    pub cost: ClientCost,
    /// Which cores did that load.
    pub reach: Reach,
    /// Send lag (99th percentile) at the lowest load that was tried, µs.
    pub least_load_lag_p99_us: f64,
}

/// Runs a calibration of these works, and calls `on_step` for each step.
///
/// # Errors
/// Sockets or threads cannot be created, or the run is interrupted.
pub fn calibrate(
    works: &[&'static dyn Work],
    settings: &Settings,
    stop: &Stop,
    mut on_step: impl FnMut(&dyn Work, &CalibrationStep),
) -> Result<Measured> {
    let timer_error_p99_us = bare::timer_error_p99_us(first_cpu(settings))?;
    let mut measured: Vec<_> = works
        .iter()
        .map(|work| (*work, Rounds::default()))
        .collect();
    // Each round goes through all works, so that a bad minute of the machine does not affect only one.
    for _ in 0..settings.rounds {
        for (work, rounds) in &mut measured {
            rounds.add(round(*work, settings, stop, |step| on_step(*work, step))?);
        }
    }
    let works = measured.into_iter().map(|(work, rounds)| {
        let engine_us = rounds.engine_us().median;
        let reach = work.reach();
        let most = most(work, reach, engine_us, settings, stop, |step| {
            on_step(work, step);
        })?;
        let on_time = most
            .on_time
            .map(|(amount, lag_us)| (work.load(amount), lag_us));
        Ok(MeasuredWork {
            cost: cost(work, settings.sessions, &rounds, on_time),
            reach,
            least_load_lag_p99_us: most.least_load_lag_p99_us,
        })
    });
    Ok(Measured {
        works: works.collect::<Result<_>>()?,
        timer_error_p99_us,
        engine_backend: ENGINE_BACKEND,
    })
}

/// What a frame of a work costs in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// CPU time of the bare loop, µs.
    pub bare_us: f64,
    /// CPU time of the engine, µs.
    pub engine_us: f64,
    /// The engine over TLS, if that is measured.
    pub tls: Option<RoundOverTls>,
}

/// The bare loop of a work, then the engine, and then the engine over TLS if that is asked for and possible.
///
/// # Errors
/// As [`calibrate`].
pub fn round(
    work: &dyn Work,
    settings: &Settings,
    stop: &Stop,
    mut on_step: impl FnMut(&CalibrationStep),
) -> Result<Round> {
    let amount = work.amount(settings.sessions);
    let bare_us = bare::run(work, amount, settings, first_cpu(settings), stop)?;
    on_step(&CalibrationStep::Bare {
        us_per_frame: bare_us,
    });
    let engine_us = engine_us_per_frame(work, settings, None, stop)?;
    on_step(&CalibrationStep::Engine {
        us_per_frame: engine_us,
    });
    let over_tls = settings.tls && tls::is_measured(work);
    let tls = over_tls.then(|| tls::round(work, settings, stop));
    let tls = tls.transpose()?;
    if let Some(over) = &tls {
        on_step(&CalibrationStep::EngineOverTls {
            us_per_frame: over.engine_us,
            us_per_handshake: over.handshake_us,
        });
    }
    Ok(Round {
        bare_us,
        engine_us,
        tls,
    })
}

/// CPU time of the engine per frame of this work in one run, µs: over the loopback, or to a sink in a network of its own, as a
/// target has it. A search uses it to warn early.
///
/// # Errors
/// As [`calibrate`].
pub fn engine_us_per_frame(
    work: &dyn Work,
    settings: &Settings,
    network: Option<&OwnNetwork>,
    stop: &Stop,
) -> Result<f64> {
    let amount = work.amount(settings.sessions);
    let way = Way::Plain(network);
    let run = drive(work, amount, settings, &[first_cpu(settings)], way, stop)?;
    cost_us(work, amount, settings, &run.report).ok_or_else(nothing_moved)
}

fn nothing_moved() -> Error {
    Error::Usage("the calibration moved no message; see `plimsoll doctor`".into())
}

/// CPU time of the engine in the window, for each frame of what the work counts.
fn cost_us(work: &dyn Work, amount: u32, settings: &Settings, report: &Report) -> Option<f64> {
    match work.counts() {
        Counts::Written => report.cpu_us_per_frame(),
        Counts::Paced => {
            let written = work.flow(amount).per_second() * settings.seconds;
            let all_there = report.ledger.sessions_started > 0;
            all_there.then(|| us_each(report.cpu_ns, 1) / written)
        }
        Counts::Taken => {
            let taken = report.ledger.frames_answered;
            (taken > 0).then(|| us_each(report.cpu_ns, taken))
        }
    }
}

/// The core on which costs are measured.
fn first_cpu(settings: &Settings) -> u32 {
    settings.client_cpus.as_slice()[0]
}

/// What a search for the highest load found.
struct Most {
    /// The highest amount that is on time, and its send lag (99th percentile, µs) there.
    on_time: Option<(u32, f64)>,
    least_load_lag_p99_us: f64,
}

/// The highest load at which the client is still honest. The first one tried follows from the cost.
fn most(
    work: &dyn Work,
    reach: Reach,
    engine_us: f64,
    settings: &Settings,
    stop: &Stop,
    mut on_step: impl FnMut(&CalibrationStep),
) -> Result<Most> {
    let (cpus, loads) = match reach {
        Reach::OneCore => (&settings.client_cpus.as_slice()[..1], LOADS_OF_ONE_CORE),
        Reach::AllCores => (settings.client_cpus.as_slice(), LOADS_OF_ALL_CORES),
    };
    let threads = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let cores = f64::from(threads) * settings.cores_share;
    let frames_per_s = cores * BUSY_LIMIT * per_core_second(engine_us);
    let search = reach::Search {
        guess: frames_per_s / work.flow(1).per_second(),
        grain: work.grain(),
        max: work.amount_max(settings.sessions_max),
        loads,
        step: reach::Step::TENTH,
    };
    let mut least_load_lag_p99_us = 0.0;
    let found = search.greatest(|amount| {
        let run = drive(work, amount, settings, cpus, Way::Plain(None), stop)?;
        let tried = Tried::of(&run.report, work.counts(), run.all_there(work));
        on_step(&tried.as_step(work.load(amount)));
        // Without an answer yet, each load is lower than the one before.
        if tried.send_lag_p99_us.is_finite() {
            least_load_lag_p99_us = tried.send_lag_p99_us;
        }
        Ok(tried.on_time())
    })?;
    Ok(Most {
        on_time: found,
        least_load_lag_p99_us,
    })
}

fn cost(
    work: &dyn Work,
    sessions: u32,
    rounds: &Rounds,
    on_time: Option<(u32, f64)>,
) -> ClientCost {
    let amount = work.amount(sessions);
    let (bare_cpu_us, engine_cpu_us) = (rounds.bare_us(), rounds.engine_us());
    let message_bytes = work.message_bytes();
    ClientCost {
        work: work.name().to_owned(),
        load_unit: work.unit(),
        load: work.load(amount),
        connections: message_bytes.map(|_| amount),
        message_bytes: message_bytes.map(|bytes| bytes as u64),
        messages_per_write: work.messages_per_write(),
        bare_cpu_us,
        engine_cpu_us,
        ratio: rounds.ratio(),
        bare_per_core_second: per_core_second(bare_cpu_us.median),
        engine_per_core_second: per_core_second(engine_cpu_us.median),
        on_time_load: on_time.map(|(load, _)| load),
        send_lag_p99_us: on_time.map(|(_, send_lag_p99_us)| send_lag_p99_us),
        tls: rounds.over_tls(),
    }
}

/// The result of trying a load.
#[derive(Debug, Clone, Copy)]
struct Tried {
    send_lag_p99_us: f64,
    busy_share: f64,
    honest: bool,
}

impl Tried {
    /// `all_there` says whether the whole load was there.
    fn of(report: &Report, counts: Counts, all_there: bool) -> Self {
        let series = match counts {
            Counts::Written | Counts::Paced => Series::SendLag,
            Counts::Taken => Series::NewestFromSchedule,
        };
        let lag = quantile_us(report.latency.histogram(series), 0.99);
        let send_lag_p99_us = lag.unwrap_or(f64::INFINITY);
        Self {
            send_lag_p99_us,
            busy_share: report.busy.busiest(),
            honest: send_lag_p99_us <= SEND_LAG_P99_LIMIT_US
                && report.busy.busiest() <= BUSY_LIMIT
                && all_there,
        }
    }

    /// The send lag (99th percentile, µs), if the client was on time with the whole load.
    fn on_time(self) -> Option<f64> {
        self.honest.then_some(self.send_lag_p99_us)
    }

    fn as_step(self, load: u32) -> CalibrationStep {
        CalibrationStep::Load {
            load,
            send_lag_p99_us: Some(self.send_lag_p99_us).filter(|lag_us| lag_us.is_finite()),
            busy_share: self.busy_share,
            honest: self.honest,
        }
    }
}

fn go_on(stop: &Stop) -> Result<()> {
    if stop.requested() {
        return Err(Error::Interrupted("calibrating".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
