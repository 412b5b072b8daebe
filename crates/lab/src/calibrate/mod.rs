//! What this machine's client can honestly generate.
//!
//! Three things are measured in one run, so that they can be compared on a noisy machine: a bare loop that does nothing but write
//! 648-byte messages on time ([`bare`]), the engine with the speech-to-text sessions doing the same and everything else besides, and how late a
//! sleep ends. Both write to the same kind of [`sink`], which has a core of its own where there is one, in the same order, and get as many bytes back.
//!
//! On the loopback the kernel does the receiver's protocol work on the sender's core, so both numbers are higher than over a network.

mod bare;
mod sink;

use std::sync::atomic::AtomicBool;

use plimsoll_core::latency::{Series, quantile_us};
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{Calibration, SCHEMA_VERSION};
use plimsoll_engine::{Options, Report};
use plimsoll_workloads::connection::Endpoint;
use plimsoll_workloads::stt::{Audio, Stt};

use crate::error::{Error, Result};
use crate::isolation::CpuList;
use crate::signals::Stop;

use sink::{Sink, SinkKind};

/// Send lag (99th percentile) up to which a client is called honest.
pub const SEND_LAG_P99_LIMIT_US: f64 = 2_000.0;
/// Share of its core up to which an engine thread is called honest.
pub const BUSY_LIMIT: f64 = 0.9;

/// How a calibration is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cores of the client; the first is used for the costs, all for the greatest number of sessions.
    pub client_cpus: CpuList,
    /// Cores for the sink.
    pub sink_cpus: CpuList,
    /// Sessions on which the costs are measured.
    pub sessions: u32,
    /// How often bare loop and engine take turns; medians are reported.
    pub rounds: u32,
    /// How long each of them runs, in seconds.
    pub seconds: f64,
    /// The most sessions to be tried.
    pub sessions_max: u32,
}

/// One step, for the progress display.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The bare loop's cost in one round.
    Bare {
        /// CPU time per frame.
        us_per_frame: f64,
    },
    /// The engine's cost in one round.
    Engine {
        /// CPU time per frame.
        us_per_frame: f64,
    },
    /// A number of sessions was tried.
    Load {
        /// How many.
        sessions: u32,
        /// 99th percentile of the send lag.
        send_lag_p99_us: f64,
        /// Share of its core that the busiest thread used.
        busy_share: f64,
        /// Whether the client would be believed.
        honest: bool,
    },
}

/// Measures. `on_step` is told of each step.
///
/// # Errors
/// When sockets or threads cannot be had, or the run is interrupted.
pub fn calibrate(
    settings: &Settings,
    started_at: String,
    stop: &Stop,
    mut on_step: impl FnMut(&Step),
) -> Result<Calibration> {
    let first_cpu = settings.client_cpus.as_slice()[0];
    let timer_error_p99_us = bare::timer_error_p99_us(first_cpu)?;
    let (mut bare_us, mut engine_us) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        let bare = bare::run(settings, first_cpu, stop)?;
        on_step(&Step::Bare { us_per_frame: bare });
        bare_us.push(bare);
        let engine = drive(settings, settings.sessions, &[first_cpu], stop)?;
        let us_per_frame = engine.cpu_us_per_frame().unwrap_or(f64::NAN);
        on_step(&Step::Engine { us_per_frame });
        engine_us.push(us_per_frame);
    }
    // Of each round, for what disturbs the machine meets both halves of a round alike.
    let mut ratios: Vec<f64> = engine_us.iter().zip(&bare_us).map(|(e, b)| e / b).collect();
    let ratio = median(&mut ratios);
    let bare_us_per_frame = median(&mut bare_us);
    let engine_us_per_frame = median(&mut engine_us);
    let (max_sessions, send_lag_p99_us) =
        most_sessions(settings, engine_us_per_frame, stop, &mut on_step)?;
    Ok(Calibration {
        schema_version: SCHEMA_VERSION,
        bare_us_per_frame,
        engine_us_per_frame,
        ratio,
        max_sessions,
        send_lag_p99_us,
        timer_error_p99_us,
        sessions: settings.sessions,
        engine_backend: "epoll".to_owned(),
        started_at,
    })
}

/// CPU time of the engine per frame in one short run: what `find` uses to warn early.
///
/// # Errors
/// As [`calibrate`].
pub fn engine_us_per_frame(settings: &Settings, stop: &Stop) -> Result<f64> {
    let report = drive(
        settings,
        settings.sessions,
        &settings.client_cpus.as_slice()[..1],
        stop,
    )?;
    report
        .cpu_us_per_frame()
        .ok_or_else(|| Error::Usage("the calibration sent nothing; see `plimsoll doctor`".into()))
}

/// A load at which the client was too slow is tried once more, for a shared machine has bad seconds that are no limit of the client's.
const ATTEMPTS: u32 = 2;

/// The most sessions at which the client is still honest: from the cost, a guess, then down or up from there in steps of a tenth.
fn most_sessions(
    settings: &Settings,
    us_per_frame: f64,
    stop: &Stop,
    on_step: &mut impl FnMut(&Step),
) -> Result<(u32, f64)> {
    let threads = u32::try_from(settings.client_cpus.count()).unwrap_or(u32::MAX);
    let guess = f64::from(threads) * BUSY_LIMIT * 1e6 / (50.0 * us_per_frame);
    let mut sessions = round_sessions(guess).min(settings.sessions_max);
    let mut best: Option<(u32, f64)> = None;
    let mut failed_above = false;
    for _ in 0..10 {
        if let Some(send_lag_p99_us) = honest_lag_us(settings, sessions, stop, on_step)? {
            best = Some((sessions, send_lag_p99_us));
            if failed_above || sessions >= settings.sessions_max {
                break;
            }
            sessions = round_sessions(f64::from(sessions) * 1.1).min(settings.sessions_max);
        } else {
            if best.is_some() || sessions <= 50 {
                break;
            }
            failed_above = true;
            sessions = round_sessions(f64::from(sessions) * 0.9);
        }
    }
    Ok(best.unwrap_or((0, f64::INFINITY)))
}

/// The send lag (99th percentile) at which the client drives so many sessions; `None` when it is too slow for them.
fn honest_lag_us(
    settings: &Settings,
    sessions: u32,
    stop: &Stop,
    on_step: &mut impl FnMut(&Step),
) -> Result<Option<f64>> {
    for _ in 0..ATTEMPTS {
        let report = drive(settings, sessions, settings.client_cpus.as_slice(), stop)?;
        let lag = quantile_us(report.latency.histogram(Series::SendLag), 0.99);
        let send_lag_p99_us = lag.unwrap_or(f64::INFINITY);
        let honest = send_lag_p99_us <= SEND_LAG_P99_LIMIT_US
            && report.busiest_share <= BUSY_LIMIT
            && report.ledger.sessions_started == u64::from(sessions);
        on_step(&Step::Load {
            sessions,
            send_lag_p99_us,
            busy_share: report.busiest_share,
            honest,
        });
        if honest {
            return Ok(Some(send_lag_p99_us));
        }
    }
    Ok(None)
}

/// Whole fifties.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what fits"
)]
fn round_sessions(sessions: f64) -> u32 {
    let fifties = (sessions / 50.0).floor().clamp(1.0, 1e6);
    fifties as u32 * 50
}

/// The engine with speech-to-text sessions against a sink that answers.
fn drive(settings: &Settings, sessions: u32, cpus: &[u32], stop: &Stop) -> Result<Report> {
    go_on(stop)?;
    let sink = Sink::start(SinkKind::Gateway, &settings.sink_cpus)?;
    let endpoint = Endpoint {
        host: sink.address().to_string(),
        path: "/ws/stt".to_owned(),
        headers: Vec::new(),
    };
    let workload = Stt::new(endpoint, Audio::synthetic(), Some(4), Some(0));
    let options = Options {
        address: sink.address(),
        sessions,
        profile: Profile {
            name: "calibrate".to_owned(),
            // Slow enough that the sink, which looks at its sockets at a pace, lets everybody in.
            ramp_s: (f64::from(sessions) / 2_500.0).max(0.5),
            warm_up_s: 1.0,
            measured_s: settings.seconds,
            grace_s: 2.0,
            session_start_spread_ms: 1_000.0,
            soak: false,
        },
        seed: 1,
        nodelay: true,
        cpus: cpus.iter().map(|cpu| *cpu as usize).collect(),
        tick_us: Options::DEFAULT_TICK_US,
    };
    let flag: &AtomicBool = &stop.flag();
    plimsoll_engine::run(&workload, &options, flag, |_| {})
        .map_err(|error| Error::Usage(error.to_string()))
}

fn go_on(stop: &Stop) -> Result<()> {
    if stop.requested() {
        return Err(Error::Interrupted("calibrating".into()));
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values {
        [] => f64::NAN,
        values => values[values.len() / 2],
    }
}
