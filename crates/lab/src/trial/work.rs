//! What the sessions of a trial do, as data: the only place that knows which workloads exist. The command makes its
//! workload from it; a client process receives it in its order and makes the same one.

use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::session::Workload;
use plimsoll_engine::Options;
use plimsoll_protocol::connection::Endpoint;
use plimsoll_workload_echo::Echo;
use plimsoll_workload_stt::Stt;
use plimsoll_workload_ws::closed_loop::{ClosedLoop, ClosedPings, Flood, PINGS_PER_CONNECTION};
use plimsoll_workload_ws::record::ClosedLoopRecord;
use plimsoll_workload_ws::{
    Dialect, EchoMessages, Fanout, Peer, Storm, Test, WseMessages, WsePings, wse,
};
use serde::{Deserialize, Serialize};

use super::conditions::{self, AudioSource, Conditions, Load};
use super::machines::{Findings, Known, Machines};
use super::subject::TargetUrl;
use super::ws::WsLoad;
use crate::error::{Error, Result};

/// What the sessions do, and where they go. An endpoint already has its token, so no client process needs the secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Work {
    /// Speech-to-text.
    Stt {
        endpoint: Endpoint,
        audio: AudioSource,
        /// What the target is configured to tell, where that is known.
        cpu_passes: Option<u32>,
        model_delay_ms: Option<u64>,
    },
    /// Messages that come back.
    Echo {
        endpoint: Endpoint,
        message_bytes: usize,
        period_ms: u64,
    },
    /// A test of a general WebSocket server, at this load.
    Ws {
        endpoint: Endpoint,
        ws: Box<WsLoad>,
        load: u32,
    },
    /// The same as a closed loop, for comparison.
    ClosedLoop { endpoint: Endpoint, ws: Box<WsLoad> },
}

impl Work {
    /// The work of a trial at this load.
    ///
    /// # Errors
    /// No upgrade request can be made of what the user gave.
    pub(super) fn of(conditions: &Conditions, load: u32, url: &TargetUrl) -> Result<Self> {
        let endpoint = endpoint(conditions, url)?;
        Ok(match &conditions.load {
            Load::Stt { audio } => {
                // A target that we did not start may be configured differently.
                let known = conditions.configured.then_some(());
                Self::Stt {
                    endpoint,
                    audio: audio.clone(),
                    cpu_passes: known.map(|()| conditions::CPU_PASSES),
                    model_delay_ms: known.map(|()| conditions::MODEL_DELAY_MS),
                }
            }
            Load::Echo {
                message_bytes,
                period_ms,
            } => Self::Echo {
                endpoint,
                message_bytes: *message_bytes,
                period_ms: *period_ms,
            },
            Load::Ws(ws) => Self::Ws {
                endpoint: with_token(ws, endpoint),
                ws: ws.clone(),
                load,
            },
        })
    }

    /// The work of a closed loop after the trial, if one was asked for.
    ///
    /// # Errors
    /// The same as for [`Work::of`].
    pub(super) fn closed_loop(conditions: &Conditions, url: &TargetUrl) -> Result<Option<Self>> {
        Ok(match &conditions.load {
            Load::Ws(ws) if ws.closed_loop => Some(Self::ClosedLoop {
                endpoint: with_token(ws, endpoint(conditions, url)?),
                ws: ws.clone(),
            }),
            _ => None,
        })
    }

    /// The machines that do this work.
    ///
    /// # Errors
    /// A file cannot be read, or a value cannot be used.
    pub(super) fn machines(&self, options: &Options) -> Result<Box<dyn Machines>> {
        match self {
            Self::Stt {
                endpoint,
                audio,
                cpu_passes,
                model_delay_ms,
            } => {
                let audio = audio.table()?;
                let stt = Stt::new(endpoint.clone(), audio, *cpu_passes, *model_delay_ms);
                Ok(machines(stt))
            }
            Self::Echo {
                endpoint,
                message_bytes,
                period_ms,
            } => Ok(machines(Echo::new(
                endpoint.clone(),
                *message_bytes,
                *period_ms,
            ))),
            Self::Ws { endpoint, ws, load } => of_ws(ws, *load, endpoint.clone()),
            Self::ClosedLoop { endpoint, ws } => of_closed_loop(ws, endpoint.clone(), options),
        }
    }
}

fn of_ws(ws: &WsLoad, load: u32, endpoint: Endpoint) -> Result<Box<dyn Machines>> {
    let peer = Peer {
        dialect: ws.dialect,
        endpoint,
    };
    Ok(match (ws.test, ws.dialect) {
        (Test::Ping | Test::Hold | Test::Limit, Dialect::Wse) => {
            machines(WsePings::new(peer.endpoint, ws.period_ns))
        }
        (Test::Ping | Test::Hold | Test::Limit, Dialect::Echo) => {
            let content = WsLoad::ping_content(ws.message_bytes)?;
            machines(EchoMessages::new(peer.endpoint, content, ws.period_ns))
        }
        (Test::Throughput | Test::Matrix | Test::Formats, Dialect::Wse) => {
            let period_ns = ws.message_period_ns(load);
            let content = ws.content()?;
            Box::new(Known {
                workload: WseMessages::new(peer.endpoint, &content, ws.format, period_ns),
                findings: |messages| Findings {
                    decode: Some(messages.decode_proof()),
                    ..Findings::default()
                },
            })
        }
        (Test::Throughput | Test::Matrix | Test::Formats, Dialect::Echo) => {
            let period_ns = ws.message_period_ns(load);
            machines(EchoMessages::new(peer.endpoint, ws.content()?, period_ns))
        }
        (Test::Storm, _) => machines(Storm::new(peer, ws.arrivals(load), ws.linger_ns)),
        (Test::Fanout, _) => {
            let period_ns = ws.message_period_ns(load);
            machines(Fanout::new(peer, load, ws.message_bytes, period_ns))
        }
    })
}

fn of_closed_loop(ws: &WsLoad, endpoint: Endpoint, options: &Options) -> Result<Box<dyn Machines>> {
    let peer = Peer {
        dialect: ws.dialect,
        endpoint,
    };
    Ok(if ws.pings() {
        Box::new(Known {
            workload: ClosedPings::new(peer, PINGS_PER_CONNECTION),
            findings: |pings| Findings {
                closed_loop: Some(record_of_pings(&pings.told())),
                ..Findings::default()
            },
        })
    } else {
        let window = options.profile.window();
        Box::new(Known {
            workload: Flood::new(peer, &ws.flood_content()?, window),
            findings: |flood| Findings {
                closed_loop: Some(record_of_messages(&flood.told())),
                ..Findings::default()
            },
        })
    })
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

/// Machines that find out nothing in addition to their report.
fn machines<W: Workload + 'static>(workload: W) -> Box<dyn Machines> {
    Box::new(Known {
        workload,
        findings: |_| Findings::default(),
    })
}

/// The endpoint that connections ask for; in dialect `wse` with a token.
fn with_token(ws: &WsLoad, endpoint: Endpoint) -> Endpoint {
    match ws.dialect {
        Dialect::Echo => endpoint,
        Dialect::Wse => {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
            let now_s = since_1970.map_or(0, |since| since.as_secs());
            wse::with_token(endpoint, &ws.credentials, now_s)
        }
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

#[cfg(test)]
#[path = "work_tests.rs"]
pub(super) mod tests;
