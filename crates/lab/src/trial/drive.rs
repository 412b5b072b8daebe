//! The engine with the sessions of a workload: the only place that knows which workloads exist.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::record::ClosedLoopRecord;
use plimsoll_core::session::Workload;
use plimsoll_engine::{Alone, Company, EngineSecond, Options, Report};
use plimsoll_workloads::connection::Endpoint;
use plimsoll_workloads::echo::Echo;
use plimsoll_workloads::stt::Stt;
use plimsoll_workloads::ws::closed_loop::{ClosedLoop, ClosedPings, Flood, PINGS_PER_CONNECTION};
use plimsoll_workloads::ws::{
    DecodeProof, Dialect, EchoMessages, Fanout, Peer, Storm, Test, WseMessages, WsePings, wse,
};
use serde::{Deserialize, Serialize};

use super::Asked;
use super::conditions::{self, Conditions, Load};
use super::processes::{ClientProcesses, Order, shares};
use super::subject::TargetUrl;
use super::ws::WsLoad;
use crate::error::{Error, Result};

/// The shortest grace of a closed loop, in seconds. Its pings are given up after 5 s, and the grace must leave that
/// time to the last one.
const CLOSED_LOOP_GRACE_S: f64 = 6.0;

/// The result of driving a load.
pub(super) struct Driven {
    pub(super) report: Report,
    /// Whether the server decodes what it was sent, if it was asked.
    pub(super) decode: Option<DecodeProof>,
}

impl From<Report> for Driven {
    fn from(report: Report) -> Self {
        Self {
            report,
            decode: None,
        }
    }
}

/// Where the engine's seconds go.
type Seconds<'a> = &'a mut dyn FnMut(EngineSecond);

/// The client: this process, or several processes that are ready.
pub(super) enum Client {
    Ourselves,
    Several(ClientProcesses),
}

impl Client {
    /// Gets the client ready for the requested load.
    pub(super) fn start(asked: &Asked<'_>, url: &TargetUrl) -> Result<Self> {
        let conditions = asked.conditions;
        let Load::Ws(ws) = &conditions.load else {
            return Ok(Self::Ourselves);
        };
        if asked.processes <= 1 {
            return Ok(Self::Ourselves);
        }
        let pings = Pings::of(ws, peer(ws, endpoint(conditions, url)?).endpoint);
        let order = |options| Order {
            options,
            pings: pings.clone(),
        };
        let shares = shares(asked.options, asked.processes).into_iter();
        let orders: Vec<Order> = shares.map(order).collect();
        let cpus = &conditions.placement.client_cpus;
        ClientProcesses::start(&orders, &conditions.log_folder, cpus, asked.stop).map(Self::Several)
    }

    /// The client's processes besides ours.
    pub(super) fn others(&self) -> Vec<i32> {
        match self {
            Self::Ourselves => Vec::new(),
            Self::Several(processes) => processes.pids(),
        }
    }
}

/// Drives the requested load.
pub(super) fn drive(
    asked: &Asked<'_>,
    url: &TargetUrl,
    client: Client,
    on_second: Seconds<'_>,
) -> Result<Driven> {
    if let Client::Several(processes) = client {
        return processes.run(asked.stop, on_second).map(Driven::from);
    }
    let engine = Engine {
        options: asked.options,
        stop: asked.stop.flag(),
    };
    let endpoint = endpoint(asked.conditions, url)?;
    match &asked.conditions.load {
        Load::Stt { audio } => {
            // A target that we did not start may be configured differently.
            let known = asked.conditions.configured.then_some(());
            let workload = Stt::new(
                endpoint,
                audio.table()?,
                known.map(|()| conditions::CPU_PASSES),
                known.map(|()| conditions::MODEL_DELAY_MS),
            );
            engine.run(&workload, on_second).map(Driven::from)
        }
        Load::Echo {
            message_bytes,
            period_ms,
        } => {
            let workload = Echo::new(endpoint, *message_bytes, *period_ms);
            engine.run(&workload, on_second).map(Driven::from)
        }
        Load::Ws(ws) => drive_ws(ws, asked.load, &engine, endpoint, on_second),
    }
}

fn drive_ws(
    ws: &WsLoad,
    load: u32,
    engine: &Engine<'_>,
    endpoint: Endpoint,
    on_second: Seconds<'_>,
) -> Result<Driven> {
    let peer = peer(ws, endpoint);
    let report = match (ws.test, ws.dialect) {
        (Test::Ping | Test::Hold | Test::Limit, _) => {
            let pings = Pings::of(ws, peer.endpoint);
            pings.run_in(&Alone, engine.options, &engine.stop, on_second)
        }
        (Test::Throughput | Test::Matrix | Test::Formats, Dialect::Wse) => {
            let period_ns = ws.message_period_ns(load);
            let messages = WseMessages::new(peer.endpoint, &ws.content()?, ws.format, period_ns);
            let report = engine.run(&messages, on_second)?;
            return Ok(Driven {
                report,
                decode: Some(messages.decode_proof()),
            });
        }
        (Test::Throughput | Test::Matrix | Test::Formats, Dialect::Echo) => {
            let period_ns = ws.message_period_ns(load);
            let messages = EchoMessages::new(peer.endpoint, ws.content()?, period_ns);
            engine.run(&messages, on_second)
        }
        (Test::Storm, _) => {
            let storm = Storm::new(peer, ws.arrivals(load), ws.linger_ns);
            engine.run(&storm, on_second)
        }
        (Test::Fanout, _) => {
            let period_ns = ws.message_period_ns(load);
            let fanout = Fanout::new(peer, load, ws.message_bytes, period_ns);
            engine.run(&fanout, on_second)
        }
    };
    report.map(Driven::from)
}

/// What a closed loop shows of the same server at the same load, if one was asked for. Run this after everything that
/// counts has been measured and read.
///
/// Also `None` if the closed loop gave no result: it was interrupted, or the client's own machine ran out.
pub(super) fn closed_loop(asked: &Asked<'_>, url: &TargetUrl) -> Result<Option<ClosedLoopRecord>> {
    let Load::Ws(ws) = &asked.conditions.load else {
        return Ok(None);
    };
    if !ws.closed_loop {
        return Ok(None);
    }
    let mut options = asked.options.clone();
    let grace_s = &mut options.profile.grace_s;
    *grace_s = grace_s.max(CLOSED_LOOP_GRACE_S);
    let engine = Engine {
        options: &options,
        stop: asked.stop.flag(),
    };
    let peer = peer(ws, endpoint(asked.conditions, url)?);
    let (report, told) = if ws.pings() {
        let pings = ClosedPings::new(peer, PINGS_PER_CONNECTION);
        let report = engine.run(&pings, &mut |_| {})?;
        (report, record_of_pings(&pings.told()))
    } else {
        let window = options.profile.window();
        let flood = Flood::new(peer, &ws.flood_content()?, window);
        let report = engine.run(&flood, &mut |_| {})?;
        (report, record_of_messages(&flood.told()))
    };
    let told_all = !report.interrupted && report.client_faults.is_empty();
    Ok(told_all.then_some(told))
}

fn record_of_pings(told: &ClosedLoop) -> ClosedLoopRecord {
    ClosedLoopRecord {
        pings_answered: told.pings_answered,
        pings_given_up: told.pings_given_up,
        p50_ms: told.round_trip.p50_ms,
        p95_ms: told.round_trip.p95_ms,
        p99_ms: told.round_trip.p99_ms,
        max_ms: told.round_trip.max_ms,
        messages_per_second: None,
    }
}

fn record_of_messages(told: &ClosedLoop) -> ClosedLoopRecord {
    ClosedLoopRecord {
        messages_per_second: Some(told.messages_per_second),
        ..ClosedLoopRecord::default()
    }
}

/// The peer that connections talk to; in dialect `wse` with a token.
fn peer(ws: &WsLoad, endpoint: Endpoint) -> Peer {
    let endpoint = match ws.dialect {
        Dialect::Echo => endpoint,
        Dialect::Wse => {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
            let now_s = since_1970.map_or(0, |since| since.as_secs());
            wse::with_token(endpoint, &ws.credentials, now_s)
        }
    };
    Peer {
        dialect: ws.dialect,
        endpoint,
    }
}

fn endpoint(conditions: &Conditions, url: &TargetUrl) -> Result<Endpoint> {
    let endpoint = Endpoint {
        host: url.host.clone(),
        path: url.path.clone(),
        headers: conditions
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect(),
    };
    endpoint
        .check()
        .map_err(|error| Error::Usage(error.to_string()))?;
    Ok(endpoint)
}

/// The load engine, ready to be run.
struct Engine<'a> {
    options: &'a Options,
    stop: Arc<AtomicBool>,
}

impl Engine<'_> {
    fn run<W: Workload>(&self, workload: &W, on_second: Seconds<'_>) -> Result<Report> {
        plimsoll_engine::run(workload, self.options, &self.stop, on_second)
            .map_err(|error| Error::of_engine(&error))
    }
}

/// Connections that ping. Several processes can share these sessions, because no session knows of another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Pings {
    /// In dialect `wse`.
    Wse { endpoint: Endpoint, period_ns: u64 },
    /// In dialect `echo`.
    Echo {
        endpoint: Endpoint,
        message_bytes: usize,
        period_ns: u64,
    },
}

impl Pings {
    fn of(ws: &WsLoad, endpoint: Endpoint) -> Self {
        let period_ns = ws.period_ns;
        match ws.dialect {
            Dialect::Wse => Self::Wse {
                endpoint,
                period_ns,
            },
            Dialect::Echo => Self::Echo {
                endpoint,
                message_bytes: ws.message_bytes,
                period_ns,
            },
        }
    }

    /// Runs the engine with these pings.
    pub(super) fn run_in(
        &self,
        company: &dyn Company,
        options: &Options,
        stop: &AtomicBool,
        on_second: Seconds<'_>,
    ) -> Result<Report> {
        let run = match self {
            Self::Wse {
                endpoint,
                period_ns,
            } => {
                let pings = WsePings::new(endpoint.clone(), *period_ns);
                plimsoll_engine::run_in(company, &pings, options, stop, on_second)
            }
            Self::Echo {
                endpoint,
                message_bytes,
                period_ns,
            } => {
                let content = WsLoad::ping_content(*message_bytes)?;
                let pings = EchoMessages::new(endpoint.clone(), content, *period_ns);
                plimsoll_engine::run_in(company, &pings, options, stop, on_second)
            }
        };
        run.map_err(|error| Error::of_engine(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loops_pings_and_messages_are_told_apart() {
        let mut told = ClosedLoop {
            pings_answered: 9,
            pings_given_up: 1,
            ..ClosedLoop::default()
        };
        told.round_trip.p99_ms = Some(2.5);
        let pings = record_of_pings(&told);
        assert_eq!((pings.pings_answered, pings.pings_given_up), (9, 1));
        assert_eq!((pings.p99_ms, pings.messages_per_second), (Some(2.5), None));
        told.messages_per_second = 100.0;
        let messages = record_of_messages(&told);
        assert_eq!(messages.messages_per_second, Some(100.0));
        assert_eq!((messages.pings_answered, messages.p99_ms), (0, None));
    }

    #[test]
    fn only_a_wse_server_is_given_a_token() {
        let endpoint = Endpoint {
            host: "127.0.0.1:1".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
        };
        for dialect in Dialect::ALL {
            let ws = WsLoad::new(Test::Ping, dialect);
            let peer = peer(&ws, endpoint.clone());
            assert_eq!(peer.endpoint.headers.is_empty(), dialect == Dialect::Echo);
            peer.endpoint.check().expect("can be asked for");
        }
    }
}
