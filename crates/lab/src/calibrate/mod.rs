//! Measures what this machine's client can generate soundly.
//!
//! One run measures three things, so that they can be compared on a noisy machine: a bare loop that only writes
//! 648-byte messages on time ([`bare`]), the engine with speech-to-text sessions, which does the same and everything
//! else besides, and how late a sleep ends. Loop and engine write to the same kind of [`sink`] in the same order, and
//! get as many bytes back. The sink has its own core if there is one.
//!
//! On the loopback the kernel does the receiver's protocol work on the sender's core, so both numbers are higher than
//! over a network.

mod bare;
mod reach;
mod rounds;
mod sink;
pub mod ws;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_core::latency::{Series, quantile_us};
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Calibration, SCHEMA_VERSION};
use plimsoll_core::session::Workload;
use plimsoll_engine::{Options, Report};
use plimsoll_host::isolation::CpuList;
use plimsoll_host::signals::Stop;
use plimsoll_protocol::connection::Endpoint;
use plimsoll_workload::Plan;
use plimsoll_workload_echo::Echoes;
use plimsoll_workload_stt::{Audio, Sessions};

use crate::error::{Error, Result};

use bare::Flow;
use rounds::Rounds;
use sink::{Sink, SinkKind};

/// The highest send lag (99th percentile) at which a client counts as honest.
pub const SEND_LAG_P99_LIMIT_US: f64 = 2_000.0;
/// The highest share of its core at which an engine thread counts as honest.
pub const BUSY_LIMIT: f64 = 0.9;

/// Time between two messages of a session whose messages come back: that of speech.
const ECHO_PERIOD_MS: u64 = 20;
/// About what a core can send and take back in that time. Longer messages get fewer sessions.
const ECHO_BYTES_PER_PERIOD: usize = 4_000_000;

/// How the engine waits for sockets.
const ENGINE_BACKEND: &str = "epoll";

/// The settings of a calibration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cores of the client. The costs are measured on the first, the highest number of sessions on all.
    pub client_cpus: CpuList,
    /// Cores of the sink.
    pub sink_cpus: CpuList,
    /// The number of sessions with which the costs are measured.
    pub sessions: u32,
    /// How often bare loop and engine take turns. Medians are reported.
    pub rounds: u32,
    /// How long each of them runs, in seconds.
    pub seconds: f64,
    /// The highest number of sessions to try.
    pub sessions_max: u32,
}

/// One step, for the progress display.
#[derive(Debug, Clone, PartialEq)]
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
    /// A load was tried: a number of sessions, or of what else the load counts.
    Load {
        /// The load.
        load: u32,
        /// 99th percentile of the send lag, µs.
        send_lag_p99_us: f64,
        /// Share of its core that the busiest thread used.
        busy_share: f64,
        /// Whether the client counts as honest.
        honest: bool,
    },
}

/// Runs a calibration, and calls `on_step` for each step.
///
/// # Errors
/// Sockets or threads cannot be created, or the run is interrupted.
pub fn calibrate(
    settings: &Settings,
    started_at: String,
    stop: &Stop,
    mut on_step: impl FnMut(&CalibrationStep),
) -> Result<Calibration> {
    let first_cpu = settings.client_cpus.as_slice()[0];
    let timer_error_p99_us = bare::timer_error_p99_us(first_cpu)?;
    let mut rounds = Rounds::default();
    for _ in 0..settings.rounds {
        let bare_us = bare::run(Flow::speech(settings.sessions), settings, first_cpu, stop)?;
        on_step(&CalibrationStep::Bare {
            us_per_frame: bare_us,
        });
        let engine_us = us_per_frame(&drive(settings, settings.sessions, &[first_cpu], stop)?)?;
        on_step(&CalibrationStep::Engine {
            us_per_frame: engine_us,
        });
        rounds.add(bare_us, engine_us);
    }
    let engine_us_per_frame = rounds.engine_us().median;
    let (max_sessions, send_lag_p99_us) =
        most_sessions(settings, engine_us_per_frame, stop, &mut on_step)?;
    Ok(Calibration {
        build: plimsoll_core::record::Build::default(),
        schema_version: SCHEMA_VERSION,
        bare_us_per_frame: rounds.bare_us().median,
        engine_us_per_frame,
        ratio: rounds.ratio().median,
        max_sessions,
        send_lag_p99_us,
        timer_error_p99_us,
        sessions: settings.sessions,
        engine_backend: ENGINE_BACKEND.to_owned(),
        started_at,
    })
}

/// CPU time of the engine per frame of this load in one short run, µs. `find` uses it to warn early.
///
/// # Errors
/// As [`calibrate`].
pub fn engine_us_per_frame(plan: &dyn Plan, settings: &Settings, stop: &Stop) -> Result<f64> {
    let cpus = &settings.client_cpus.as_slice()[..1];
    let report = match plan.frame_bytes() {
        Some(message_bytes) => drive_echoes(message_bytes, settings, cpus, stop)?,
        None => drive(settings, settings.sessions, cpus, stop)?,
    };
    us_per_frame(&report)
}

fn us_per_frame(report: &Report) -> Result<f64> {
    report
        .cpu_us_per_frame()
        .ok_or_else(|| Error::Usage("the calibration sent nothing; see `plimsoll doctor`".into()))
}

/// The highest number of sessions at which the client is still honest. The first number tried follows from the cost.
fn most_sessions(
    settings: &Settings,
    us_per_frame: f64,
    stop: &Stop,
    on_step: &mut impl FnMut(&CalibrationStep),
) -> Result<(u32, f64)> {
    let threads = u32::try_from(settings.client_cpus.count()).unwrap_or(u32::MAX);
    let search = reach::Search {
        guess: f64::from(threads) * BUSY_LIMIT * 1e6 / (50.0 * us_per_frame),
        grain: 50,
        max: settings.sessions_max,
        loads: 10,
    };
    let mut least_load_lag_us = 0.0;
    let found = search.greatest(|sessions| {
        let report = drive(settings, sessions, settings.client_cpus.as_slice(), stop)?;
        let started = report.ledger.sessions_started == u64::from(sessions);
        let tried = Tried::of(&report, started);
        on_step(&tried.as_step(sessions));
        if tried.send_lag_p99_us.is_finite() {
            least_load_lag_us = tried.send_lag_p99_us;
        }
        Ok(tried.on_time())
    })?;
    Ok(found.unwrap_or((0, least_load_lag_us)))
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
    fn of(report: &Report, all_there: bool) -> Self {
        let lag = quantile_us(report.latency.histogram(Series::SendLag), 0.99);
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
            send_lag_p99_us: self.send_lag_p99_us,
            busy_share: self.busy_share,
            honest: self.honest,
        }
    }
}

/// Runs the engine with speech-to-text sessions against a sink that answers.
fn drive(settings: &Settings, sessions: u32, cpus: &[u32], stop: &Stop) -> Result<Report> {
    let stt = |endpoint| Sessions::new(endpoint, Arc::new(Audio::synthetic()), Some(4), Some(0));
    let place = (SinkKind::Gateway, "/ws/stt");
    drive_against(place, stt, sessions, settings, cpus, stop)
}

/// Runs the engine with messages that come back. They have the pace of speech, whatever the load's own pace is: the core
/// must be busy, because a frame costs twice as much if the core sleeps after each one.
fn drive_echoes(
    message_bytes: usize,
    settings: &Settings,
    cpus: &[u32],
    stop: &Stop,
) -> Result<Report> {
    let echoes = |endpoint| Echoes::new(endpoint, message_bytes, ECHO_PERIOD_MS);
    let fit = ECHO_BYTES_PER_PERIOD / message_bytes.max(1);
    let sessions = u32::try_from(fit.max(1)).unwrap_or(u32::MAX);
    let sessions = sessions.min(settings.sessions);
    drive_against(
        (SinkKind::Echo, "/"),
        echoes,
        sessions,
        settings,
        cpus,
        stop,
    )
}

/// Runs the engine with a workload against a sink of this kind, with this path.
fn drive_against<W: Workload>(
    (kind, path): (SinkKind, &str),
    workload: impl FnOnce(Endpoint) -> W,
    sessions: u32,
    settings: &Settings,
    cpus: &[u32],
    stop: &Stop,
) -> Result<Report> {
    go_on(stop)?;
    let sink = Sink::start(kind, &settings.sink_cpus)?;
    let workload = workload(endpoint(sink.address(), path));
    let engine = Engine {
        address: sink.address(),
        profile: Profile {
            session_start_spread_ms: 1_000.0,
            ..profile(ramp_s(sessions), 1.0, settings.seconds)
        },
        cpus,
        stop,
    };
    engine.run(&workload, sessions)
}

fn endpoint(address: SocketAddr, path: &str) -> Endpoint {
    Endpoint {
        host: address.to_string(),
        path: path.to_owned(),
        headers: Vec::new(),
    }
}

/// Slow enough that the sink, which looks at its sockets at intervals, accepts every connection.
fn ramp_s(sessions: u32) -> f64 {
    (f64::from(sessions) / 2_500.0).max(0.5)
}

fn profile(ramp_s: f64, warm_up_s: f64, measured_s: f64) -> Profile {
    Profile {
        name: "calibrate".to_owned(),
        ramp_s,
        warm_up_s,
        measured_s,
        grace_s: 2.0,
        session_start_spread_ms: 0.0,
        soak: false,
    }
}

/// The load engine, ready to run against a sink.
struct Engine<'a> {
    address: SocketAddr,
    profile: Profile,
    cpus: &'a [u32],
    stop: &'a Stop,
}

impl Engine<'_> {
    fn run<W: Workload>(self, workload: &W, sessions: u32) -> Result<Report> {
        let options = Options {
            cpus: self.cpus.iter().map(|cpu| *cpu as usize).collect(),
            ..Options::new(self.address, sessions, self.profile)
        };
        let flag: &AtomicBool = &self.stop.flag();
        plimsoll_engine::run(workload, &options, flag, |_| {})
            .map_err(|error| Error::of_engine(&error))
    }
}

fn go_on(stop: &Stop) -> Result<()> {
    if stop.requested() {
        return Err(Error::Interrupted("calibrating".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::tests::plan;

    #[test]
    fn a_frame_of_each_load_has_its_own_cost() {
        let cpus = CpuList::allowed_to_us().expect("a machine");
        let settings = Settings {
            client_cpus: cpus.clone(),
            sink_cpus: cpus,
            sessions: 20,
            rounds: 1,
            seconds: 0.5,
            sessions_max: 20,
        };
        for line in ["stt", "echo"] {
            let plan = plan(line);
            let cost_us = engine_us_per_frame(&*plan, &settings, &Stop::new());
            let cost_us = cost_us.expect("a cost");
            assert!(cost_us > 0.0 && cost_us < 10_000.0, "{cost_us} {line}");
        }
    }
}
