//! The engine over TLS: the same sessions against the same sink, which has a certificate of Plimsoll's own.

use plimsoll_engine::Report;
use plimsoll_host::signals::Stop;
use plimsoll_tls::OwnTls;
use plimsoll_workload::calibrate::{Flow, Server, Work};

use super::bare::us_each;
use super::{Settings, Way, cost_us, drive, first_cpu, nothing_moved};
use crate::error::{Error, Result};

/// What a frame of a work costs the engine over TLS in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundOverTls {
    /// CPU time of the engine, µs.
    pub engine_us: f64,
    /// The part of it that encryption and decryption took, µs.
    pub tls_us: f64,
    /// CPU time of a handshake, µs.
    pub handshake_us: f64,
}

/// Whether a work is measured over TLS. A connection that is opened and closed is not: over TLS, nearly all of it would be
/// the handshake, which is measured beside every other work.
pub(super) fn is_measured(work: &dyn Work) -> bool {
    !matches!(work.flow(1), Flow::Connections(_))
}

/// The engine over TLS.
///
/// # Errors
/// As [`calibrate`](super::calibrate).
pub(super) fn round(work: &dyn Work, settings: &Settings, stop: &Stop) -> Result<RoundOverTls> {
    let tls = OwnTls::new()
        .map_err(|error| Error::Fault(format!("the calibration has no TLS: {error}")))?;
    let amount = work.amount(settings.sessions);
    let cpus = [first_cpu(settings)];
    let report = drive(work, amount, settings, &cpus, Way::Tls(&tls), stop)?.report;
    let engine_us = cost_us(work, amount, settings, &report);
    let round = engine_us.and_then(|engine_us| of(&report, engine_us));
    round.ok_or_else(nothing_moved)
}

/// `None` if nothing went over TLS.
fn of(report: &Report, engine_us: f64) -> Option<RoundOverTls> {
    // What a work counts need not be the frames that were written, so this is a share of all the CPU time.
    let share = report.tls.window_us()? / us_each(report.cpu_ns, 1);
    Some(RoundOverTls {
        engine_us,
        tls_us: engine_us * share,
        handshake_us: report.tls.handshakes.mean_us()?,
    })
}

/// The same server over TLS.
pub(super) fn over_tls(server: Server, tls: &OwnTls) -> Server {
    let Server { pace, mut speakers } = server;
    let tls = tls.clone();
    Server::new(pace, move || tls.speaker(speakers()))
}
