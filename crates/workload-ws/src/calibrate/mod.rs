//! What the messages and connections of this workload cost the client: messages in two formats, one and several per
//! write; echoes; connections.

mod server;

use std::time::Duration;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Profile};
use plimsoll_core::record::LoadUnit;
use plimsoll_core::schedule::{Arrivals, Spacing};
use plimsoll_core::session::Endpoint;
use plimsoll_engine::Options;
use plimsoll_protocol::server::{Echo, Upgraded};
use plimsoll_protocol::websocket::{Opcode, append_client_frame, close, upgrade_request};
use plimsoll_workload::calibrate::{
    Answers, Connections, Flow, Messages, Opening, Server, Sessions,
};
use plimsoll_workload::{Work, machines};

use crate::payload::TRADE_UPDATE;
use crate::{Content, Dialect, EchoMessages, Format, Peer, Storm, WseMessages, wse};
use server::{PONG_BYTES, Wse};

/// Connections on which the costs are measured: as many as share the messages in a trial.
const USUAL_CONNECTIONS: u32 = 100;
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
const LINGER: Duration = Duration::from_millis(20);
/// How long the sink has to answer a close.
const FAREWELL: Duration = Duration::from_millis(20);
/// At least this many lifetimes of a connection fit into a second, one after the other. A lifetime lasts from
/// connecting to the end of closing.
const LIFETIMES_PER_S: u32 = 5;
/// Time between two looks of the sink at messages that nobody answers. There are many of them per second, and what
/// arrives in between must fit into the socket.
const MESSAGES_PACE: Duration = Duration::from_millis(5);
/// The same if each message and each connection is answered.
const ECHO_PACE: Duration = Duration::from_millis(1);

/// All works, in the order of the report.
pub(crate) static WORKS: [&dyn Work; 6] = [
    &DataMessages {
        format: Format::Json,
        burst: 1,
    },
    &DataMessages {
        format: Format::Json,
        burst: BURST,
    },
    &DataMessages {
        format: Format::Msgpack,
        burst: 1,
    },
    &DataMessages {
        format: Format::Msgpack,
        burst: BURST,
    },
    &Echoes,
    &Arriving,
];

/// Messages of dialect `wse` that nobody answers, except for a barrier from time to time.
#[derive(Debug)]
struct DataMessages {
    /// The format of the messages.
    format: Format,
    /// How many messages of a connection are due together and go out in one write.
    burst: u32,
}

impl DataMessages {
    /// Time between two messages of a connection, ns. Those of a burst are due within one tick.
    fn period_ns(&self) -> u64 {
        match self.burst {
            1 => PERIOD_NS,
            burst => TICK_NS / u64::from(burst),
        }
    }
}

impl Work for DataMessages {
    fn name(&self) -> &'static str {
        self.format.name()
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::MESSAGES_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        messages_per_s(amount, self.period_ns())
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(self.format.trade_update().bytes.len())
    }

    fn messages_per_write(&self) -> Option<u32> {
        Some(self.burst)
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CONNECTIONS
    }

    /// Bursts go out on a quarter of the connections, which write four times as often, so all kinds of messages make
    /// the same number of writes.
    fn amount(&self, sessions: u32) -> u32 {
        match self.burst {
            1 => sessions,
            _ => (sessions / 4).max(1),
        }
    }

    fn flow(&self, amount: u32) -> Flow {
        let answers = Answers::Unread {
            frames: BARRIER_PERIOD_NS / self.period_ns(),
            bytes: PONG_BYTES,
        };
        let content = self.format.trade_update();
        messages(&content, amount, self.period_ns(), answers)
    }

    fn server(&self) -> Server {
        let message_bytes = self.format.trade_update().bytes.len();
        Server::new(MESSAGES_PACE, move || Wse::upgraded(message_bytes))
    }

    fn path(&self) -> &'static str {
        wse::path(self.format)
    }

    fn sessions(&self, amount: u32, to: Endpoint, _profile: &Profile) -> Sessions {
        let content = self.format.trade_update();
        let messages = WseMessages::new(to, &content, self.format, self.period_ns());
        Sessions {
            machines: machines(messages),
            count: amount,
        }
    }
}

/// Messages that come back, written one at a time.
#[derive(Debug)]
struct Echoes;

impl Work for Echoes {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::MESSAGES_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        messages_per_s(amount, PERIOD_NS)
    }

    fn message_bytes(&self) -> Option<usize> {
        Some(TRADE_UPDATE.len())
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CONNECTIONS
    }

    fn flow(&self, amount: u32) -> Flow {
        let opening = Opening {
            request: upgrade(),
            answer_end: b"\r\n\r\n",
        };
        let content = Content::filler(TRADE_UPDATE.len());
        messages(&content, amount, PERIOD_NS, Answers::Read(opening))
    }

    fn server(&self) -> Server {
        echo_server()
    }

    fn sessions(&self, amount: u32, to: Endpoint, _profile: &Profile) -> Sessions {
        let content = EchoMessages::content_of(TRADE_UPDATE.len())
            .unwrap_or_else(|small| unreachable!("{small}"));
        Sessions {
            machines: machines(EchoMessages::new(to, content, PERIOD_NS)),
            count: amount,
        }
    }
}

/// Connections that are opened, upgraded and closed. The amount is how many arrive each second.
#[derive(Debug)]
struct Arriving;

impl Work for Arriving {
    fn name(&self) -> &'static str {
        "connections"
    }

    fn unit(&self) -> LoadUnit {
        LoadUnit::CONNECTIONS_PER_SECOND
    }

    fn load(&self, amount: u32) -> u32 {
        amount
    }

    fn message_bytes(&self) -> Option<usize> {
        None
    }

    fn usual_sessions(&self) -> u32 {
        USUAL_CONNECTIONS
    }

    fn amount(&self, sessions: u32) -> u32 {
        sessions.saturating_mul(ARRIVALS_PER_CONNECTION)
    }

    fn amount_max(&self, sessions_max: u32) -> u32 {
        sessions_max.saturating_mul(LIFETIMES_PER_S)
    }

    fn grain(&self) -> u32 {
        50
    }

    fn flow(&self, amount: u32) -> Flow {
        let mut close = Vec::new();
        let payload = close::payload(close::NORMAL, "");
        append_client_frame(&mut close, true, Opcode::Close, &payload, [7; 4]);
        Flow::Connections(Connections {
            per_s: amount,
            request: upgrade(),
            close,
            linger: LINGER,
            farewell: FAREWELL,
        })
    }

    fn server(&self) -> Server {
        echo_server()
    }

    fn sessions(&self, amount: u32, to: Endpoint, profile: &Profile) -> Sessions {
        let arrivals = Arrivals {
            rate_per_s: f64::from(amount),
            spacing: Spacing::Even,
            open_within_ns: NS_PER_S,
        };
        let count = arrivals.count(profile);
        let peer = Peer {
            dialect: Dialect::Echo,
            endpoint: to,
        };
        let linger_ns = u64::try_from(LINGER.as_nanos()).unwrap_or(u64::MAX);
        Sessions {
            machines: machines(Storm::new(peer, arrivals, linger_ns)),
            count,
        }
    }
}

/// How many messages these connections send each second.
fn messages_per_s(connections: u32, period_ns: u64) -> u32 {
    let each = u32::try_from(NS_PER_S / period_ns).unwrap_or(u32::MAX);
    connections.saturating_mul(each)
}

/// A bare loop that sends this content.
fn messages(content: &Content, connections: u32, period_ns: u64, answers: Answers) -> Flow {
    let mut frame = Vec::new();
    let mask = [0x42, 0x41, 0x52, 0x45];
    append_client_frame(&mut frame, true, content.opcode, &content.bytes, mask);
    Flow::Messages(Messages {
        connections,
        period_ns,
        frame,
        number: None,
        share_a_write: true,
        answers,
    })
}

/// The upgrade request of a bare connection.
fn upgrade() -> Vec<u8> {
    upgrade_request("127.0.0.1", "/", [7; 16], &[])
        .unwrap_or_else(|error| unreachable!("the request is always the same: {error}"))
}

fn echo_server() -> Server {
    Server::new(ECHO_PACE, || Upgraded::new(Echo::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(burst: u32) -> DataMessages {
        DataMessages {
            format: Format::Json,
            burst,
        }
    }

    #[test]
    fn a_burst_is_due_in_a_tick() {
        assert_eq!(data(8).period_ns() * 8, TICK_NS);
        assert!(data(1).period_ns() > 2 * TICK_NS);
        assert_eq!(Echoes.load(1), data(1).load(1));
    }

    #[test]
    fn every_kind_of_messages_makes_as_many_writes() {
        let writes = |work: &dyn Work| {
            work.load(work.amount(100)) / work.messages_per_write().expect("messages")
        };
        assert_eq!(writes(&data(1)), 50_000);
        assert_eq!(writes(&data(8)), 50_000);
        assert_eq!(writes(&Echoes), 50_000);
        assert_eq!(data(8).amount(2), 1);
        assert_eq!(Arriving.load(Arriving.amount(100)), 2_000);
    }

    #[test]
    fn a_flow_makes_its_load() {
        for work in WORKS {
            let flow = work.flow(25);
            assert!((flow.per_second() - f64::from(work.load(25))).abs() < 1e-6);
        }
    }

    #[test]
    fn messages_have_the_sizes_of_the_public_suite() {
        let sizes = WORKS.map(|work| work.message_bytes());
        let (json, msgpack) = (Some(175), Some(137));
        assert_eq!(sizes, [json, json, msgpack, msgpack, json, None]);
    }

    /// The descriptors for arrivals are counted on this basis.
    #[test]
    fn a_connection_is_over_before_it_is_counted_again() {
        assert!((LINGER + FAREWELL) * LIFETIMES_PER_S < Duration::from_secs(1));
    }
}
