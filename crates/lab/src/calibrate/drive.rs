//! One run of the engine against the sink of a work.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use plimsoll_core::profile::Profile;
use plimsoll_core::session::Endpoint;
use plimsoll_engine::{Options, Report};
use plimsoll_host::isolation::OwnNetwork;
use plimsoll_host::signals::Stop;
use plimsoll_tls::OwnTls;
use plimsoll_workload::Work;

use super::bare::WARM_UP;
use super::sink::Sink;
use super::{Settings, go_on, tls};
use crate::error::Result;

/// How much longer connections over TLS take to open: both sides have to shake hands.
const TLS_OPENS_LONGER: f64 = 5.0;

/// A run of the engine.
pub(super) struct Run {
    pub(super) report: Report,
    /// The number of sessions that should have started.
    sessions: u32,
}

impl Run {
    /// Whether all of the load was there, and answered if the work says so. A session may start more than once: with a
    /// connection for each request, it does so with each.
    pub(super) fn all_there(&self, work: &dyn Work) -> bool {
        let ledger = &self.report.ledger;
        ledger.sessions_started >= u64::from(self.sessions)
            && (!work.all_are_answered() || ledger.frames_answered == ledger.frames_due)
    }
}

/// The way from the engine to the sink.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way<'a> {
    /// Into the sink's own network, or else over the loopback.
    Plain(Option<&'a OwnNetwork>),
    /// With TLS, over the loopback.
    Tls(&'a OwnTls),
}

/// Runs the engine with the sessions of a work against the work's server.
pub(super) fn drive(
    work: &dyn Work,
    amount: u32,
    settings: &Settings,
    cpus: &[u32],
    way: Way<'_>,
    stop: &Stop,
) -> Result<Run> {
    go_on(stop)?;
    let mut profile = profile(amount, settings.seconds);
    work.unit().shape(&mut profile);
    let mut server = work.server();
    let (network, tls) = match way {
        Way::Plain(network) => (network, None),
        Way::Tls(tls) => (None, Some(tls)),
    };
    if let Some(tls) = tls {
        server = tls::over_tls(server, tls);
        profile.ramp_s *= TLS_OPENS_LONGER;
    }
    let sink = Sink::start(server, &profile, &settings.sink_cpus, network)?;
    let to = Endpoint {
        host: sink.address().to_string(),
        path: work.path().to_owned(),
        headers: Vec::new(),
    };
    let mut sessions = work.sessions(amount, to, &profile);
    if let Some(tls) = tls {
        sessions.machines.use_tls(tls.client().clone());
    }
    let options = Options {
        cpus: cpus.iter().map(|cpu| *cpu as usize).collect(),
        ..Options::new(sink.address(), sessions.count, profile)
    };
    let flag: &AtomicBool = &stop.flag();
    let machines = sessions.machines;
    // The sink has the clock of the run, so it is the run's company.
    let part = machines.run_part(&sink, &options, flag, &mut |_| ControlFlow::Continue(()))?;
    // What was cut short has measured nothing.
    go_on(stop)?;
    let report = machines.settle(part, true)?;
    Ok(Run {
        report,
        sessions: sessions.count,
    })
}

/// Connections are opened so slowly that the sink, which looks at its sockets at intervals, accepts every one.
pub(super) fn profile(connections: u32, measured_s: f64) -> Profile {
    Profile {
        name: "calibrate".to_owned(),
        ramp_s: (f64::from(connections) / 2_500.0).max(0.5),
        warm_up_s: WARM_UP.as_secs_f64(),
        measured_s,
        grace_s: 2.0,
        session_start_spread_ms: 1_000.0,
        soak: false,
    }
}
