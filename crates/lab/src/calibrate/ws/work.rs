//! What is measured: messages in two formats, one and several per write; echoes; connections.

use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::schedule::{Arrivals, Spacing};
use plimsoll_engine::{Options, Report};
use plimsoll_host::signals::Stop;
use plimsoll_protocol::websocket::append_client_frame;
use plimsoll_workload_ws::payload::TRADE_UPDATE;
use plimsoll_workload_ws::{Content, Dialect, EchoMessages, Format, Peer, Storm, WseMessages, wse};

use super::arrivals;
use crate::calibrate::bare::{self, Flow, WARM_UP};
use crate::calibrate::sink::{Bytes, Sink, SinkKind};
use crate::calibrate::{Engine, Settings, endpoint, go_on, profile, ramp_s};
use crate::error::Result;

/// Time between two messages of a connection that are written one at a time. It is long enough that two are hardly ever
/// due in one tick.
const PERIOD_NS: u64 = 2 * NS_PER_MS;
/// The engine's tick: what is due within it goes out together.
const TICK_NS: u64 = Options::DEFAULT_TICK_US * 1_000;
/// The number of messages in a burst.
const BURST: u32 = 8;
/// Time between two barriers of a connection, as in the engine.
const BARRIER_PERIOD_NS: u64 = 100 * NS_PER_MS;
/// Connections that arrive per second, for each connection that sends messages.
const ARRIVALS_PER_CONNECTION: u32 = 20;
/// How long an opened connection stays open: several intervals of the sink.
pub(super) const LINGER: Duration = Duration::from_millis(20);
/// At least this many lifetimes of a connection fit into a second, one after the other. A lifetime lasts from
/// connecting to the end of closing.
const LIFETIMES_PER_S: u32 = 5;

/// A kind of work for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Messages of dialect `wse` that nobody answers, except for a barrier from time to time.
    Messages {
        /// The format of the messages.
        format: Format,
        /// How many messages of a connection are due together and go out in one write.
        burst: u32,
    },
    /// Messages that come back, written one at a time.
    Echoes,
    /// Connections that are opened, upgraded and closed.
    Connections,
}

/// The result of a run of the engine.
pub(super) struct Run {
    pub(super) report: Report,
    /// The number of sessions that should have started.
    pub(super) sessions: u32,
}

impl Work {
    /// All kinds of work, in the order of the report.
    pub const ALL: [Self; 6] = [
        Self::Messages {
            format: Format::Json,
            burst: 1,
        },
        Self::Messages {
            format: Format::Json,
            burst: BURST,
        },
        Self::Messages {
            format: Format::Msgpack,
            burst: 1,
        },
        Self::Messages {
            format: Format::Msgpack,
            burst: BURST,
        },
        Self::Echoes,
        Self::Connections,
    ];

    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages { format, .. } => format.name(),
            Self::Echoes => "echo",
            Self::Connections => "connections",
        }
    }

    /// What its load counts.
    #[must_use]
    pub fn load_unit(self) -> LoadUnit {
        match self {
            Self::Messages { .. } | Self::Echoes => LoadUnit::MESSAGES_PER_SECOND,
            Self::Connections => LoadUnit::CONNECTIONS_PER_SECOND,
        }
    }

    /// How many messages of a connection go out in one write.
    #[must_use]
    pub fn messages_per_write(self) -> Option<u32> {
        match self {
            Self::Messages { burst, .. } => Some(burst),
            Self::Echoes => Some(1),
            Self::Connections => None,
        }
    }

    /// What a message contains.
    pub(super) fn content(self) -> Option<Content> {
        match self {
            Self::Messages { format, .. } => Some(format.trade_update()),
            Self::Echoes => Some(Content::filler(TRADE_UPDATE.len())),
            Self::Connections => None,
        }
    }

    /// The amount at which the costs are measured: connections that send, or arrivals per second. Bursts go out on a
    /// quarter of the connections, which write four times as often, so all kinds of messages make the same number of
    /// writes.
    pub(super) fn amount(self, sessions: u32) -> u32 {
        match self {
            Self::Messages { burst: 1, .. } | Self::Echoes => sessions,
            Self::Messages { .. } => (sessions / 4).max(1),
            Self::Connections => sessions.saturating_mul(ARRIVALS_PER_CONNECTION),
        }
    }

    /// The highest amount for which there are descriptors.
    pub(super) fn amount_max(self, sessions_max: u32) -> u32 {
        match self {
            Self::Messages { .. } | Self::Echoes => sessions_max,
            Self::Connections => sessions_max.saturating_mul(LIFETIMES_PER_S),
        }
    }

    /// The step in which the amount can be changed.
    pub(super) fn grain(self) -> u32 {
        match self {
            Self::Messages { .. } | Self::Echoes => 1,
            Self::Connections => 50,
        }
    }

    /// This amount as a load, in the unit of the load.
    pub(super) fn load(self, amount: u32) -> u32 {
        match self {
            Self::Messages { .. } | Self::Echoes => {
                let each = NS_PER_S / self.period_ns();
                amount.saturating_mul(u32::try_from(each).unwrap_or(u32::MAX))
            }
            Self::Connections => amount,
        }
    }

    /// Time between two messages of a connection, ns. Those of a burst are due within one tick.
    fn period_ns(self) -> u64 {
        match self {
            Self::Messages { burst, .. } if burst > 1 => TICK_NS / u64::from(burst),
            _ => PERIOD_NS,
        }
    }

    /// The bare loop's CPU time for each message or connection, µs.
    pub(super) fn bare_us(
        self,
        amount: u32,
        settings: &Settings,
        cpu: u32,
        stop: &Stop,
    ) -> Result<f64> {
        let Some(content) = self.content() else {
            return arrivals::run(amount, settings, cpu, stop);
        };
        let mut frame = Vec::new();
        let mask = [0x42, 0x41, 0x52, 0x45];
        append_client_frame(&mut frame, true, content.opcode, &content.bytes, mask);
        let sink = match self {
            Self::Echoes => SinkKind::Echo,
            _ => SinkKind::Bytes(Bytes::wse(
                frame.len(),
                BARRIER_PERIOD_NS / self.period_ns(),
            )),
        };
        let flow = Flow::of(&frame, amount, self.period_ns(), sink);
        bare::run(flow, settings, cpu, stop)
    }

    /// Runs the engine with this work.
    pub(super) fn drive(
        self,
        amount: u32,
        settings: &Settings,
        cpu: u32,
        stop: &Stop,
    ) -> Result<Run> {
        go_on(stop)?;
        let sink = Sink::start(self.sink(), &settings.sink_cpus)?;
        let ramp_s = match self {
            Self::Messages { .. } | Self::Echoes => ramp_s(amount),
            Self::Connections => 0.0,
        };
        let engine = Engine {
            address: sink.address(),
            profile: profile(ramp_s, WARM_UP.as_secs_f64(), settings.seconds),
            cpus: &[cpu],
            stop,
        };
        let period_ns = self.period_ns();
        let mut sessions = amount;
        let report = match self {
            Self::Messages { format, .. } => {
                let endpoint = endpoint(sink.address(), wse::path(format));
                let content = format.trade_update();
                let messages = WseMessages::new(endpoint, &content, format, period_ns);
                engine.run(&messages, sessions)?
            }
            Self::Echoes => {
                let content = EchoMessages::content_of(TRADE_UPDATE.len())
                    .unwrap_or_else(|small| unreachable!("{small}"));
                let endpoint = endpoint(sink.address(), "/");
                let echoes = EchoMessages::new(endpoint, content, period_ns);
                engine.run(&echoes, sessions)?
            }
            Self::Connections => {
                let arrivals = Arrivals {
                    rate_per_s: f64::from(amount),
                    spacing: Spacing::Even,
                    open_within_ns: NS_PER_S,
                };
                sessions = arrivals.count(&engine.profile);
                let peer = Peer {
                    dialect: Dialect::Echo,
                    endpoint: endpoint(sink.address(), "/"),
                };
                let linger_ns = u64::try_from(LINGER.as_nanos()).unwrap_or(u64::MAX);
                engine.run(&Storm::new(peer, arrivals, linger_ns), sessions)?
            }
        };
        Ok(Run { report, sessions })
    }

    fn sink(self) -> SinkKind {
        match self {
            Self::Messages { format, .. } => SinkKind::Wse {
                message_bytes: format.trade_update().bytes.len(),
            },
            Self::Echoes | Self::Connections => SinkKind::Echo,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: fn(u32) -> Work = |burst| Work::Messages {
        format: Format::Json,
        burst,
    };

    #[test]
    fn a_burst_is_due_in_a_tick() {
        assert_eq!(MESSAGES(8).period_ns() * 8, TICK_NS);
        assert!(MESSAGES(1).period_ns() > 2 * TICK_NS);
        assert_eq!(Work::Echoes.period_ns(), MESSAGES(1).period_ns());
    }

    #[test]
    fn every_kind_of_messages_makes_as_many_writes() {
        let writes =
            |work: Work| work.load(work.amount(100)) / work.messages_per_write().expect("messages");
        assert_eq!(writes(MESSAGES(1)), 50_000);
        assert_eq!(writes(MESSAGES(8)), 50_000);
        assert_eq!(writes(Work::Echoes), 50_000);
        assert_eq!(MESSAGES(8).amount(2), 1);
        assert_eq!(Work::Connections.load(Work::Connections.amount(100)), 2_000);
    }

    #[test]
    fn messages_have_the_sizes_of_the_public_suite() {
        let sizes = Work::ALL.map(|work| work.content().map(|content| content.bytes.len()));
        let (json, msgpack) = (Some(175), Some(137));
        assert_eq!(sizes, [json, json, msgpack, msgpack, json, None]);
    }

    /// The descriptors for arrivals are counted on this basis.
    #[test]
    fn a_connection_is_over_before_it_is_counted_again() {
        assert!((LINGER + arrivals::FAREWELL) * LIFETIMES_PER_S < Duration::from_secs(1));
    }
}
