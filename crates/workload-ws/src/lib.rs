//! General WebSocket servers: eight tests that tell the server's limit from the client's (`docs/ws/guide.md`).
//!
//! | test | load | machine | a frame of the load | answered when |
//! |---|---|---|---|---|
//! | `ping`, `hold`, `limit` | connections | [`WsePings`], [`EchoMessages`] | an application ping, or a message | its own pong or echo comes |
//! | `throughput`, `matrix`, `formats` | messages per second | [`WseMessages`], [`EchoMessages`] | a data message | a barrier's pong proves that it was read, or its echo comes |
//! | `storm` | connections per second | [`Storm`] | an arrival | it is open |
//! | `fanout` | receivers | [`Fanout`] | a delivery | it is there |
//!
//! Two dialects: `echo`, any RFC 6455 server that sends every message back, and [`wse`], the protocol of the WSE engine. [`closed_loop`] does two of the
//! tests as a closed loop does them, for comparison: its figures never enter a ledger.
//!
//! Shared: [`payload`] and [`formats`] say what messages contain, `wire` how they are kept masked and ready, `link` is a connection for the machines that are
//! no paced sessions.

mod account;
mod calibrate;
pub mod check;
pub mod closed_loop;
mod echo;
mod fanout;
pub mod formats;
pub mod jwt;
mod link;
pub mod load;
mod outcome;
mod parameters;
pub mod payload;
pub mod plan;
pub mod record;
mod storm;
mod tell;
mod wire;
pub mod wse;

#[cfg(test)]
mod faults;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod rig;

pub use echo::{EchoMessageDialogue, EchoMessages};
pub use fanout::{Fanout, FanoutSession};
pub use formats::Format;
pub use load::WsLoad;
pub use outcome::ArrivalOutcome;
pub use payload::Content;
pub use plan::Ws;
pub use storm::{Storm, StormSession};
pub use wse::{DecodeProof, WseMessages, WsePings};

use plimsoll_core::profile::NS_PER_S;
pub use plimsoll_core::record::LoadUnit;
use plimsoll_core::slo::{Metric, Percentile, Slo};
use serde::{Deserialize, Serialize};

use plimsoll_protocol::connection::Endpoint;

/// The variables of the contract that are its workload's own.
pub const CONTRACT_VARIABLES: [&str; 6] = [
    "DRAIN_TIMEOUT_MS",
    "MAX_MESSAGE_BYTES",
    "METRICS_PORT",
    "WSE_SECRET",
    "WSE_ISSUER",
    "WSE_AUDIENCE",
];

/// What the server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// RFC 6455, and every message comes back.
    #[default]
    Echo,
    /// The protocol of the WSE engine.
    Wse,
}

impl Dialect {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Echo, Self::Wse];

    /// Its name in manifests, on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Wse => "wse",
        }
    }

    /// The dialect of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// Whom connections talk to, and how.
#[derive(Debug, Clone)]
pub struct Peer {
    /// What it speaks.
    pub dialect: Dialect,
    /// Where upgrade requests go; in dialect `wse` with a token ([`wse::with_token`]).
    pub endpoint: Endpoint,
}

/// What is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// Connections that arrive at a rate.
    Storm,
    /// A ping per connection and second.
    Ping,
    /// Data messages at a rate.
    Throughput,
    /// The same, for each of several sizes.
    Matrix,
    /// The same, in each of several formats.
    Formats,
    /// A ping per connection every 5 s: who survives.
    Hold,
    /// A ping per connection every 10 s: how many there can be.
    Limit,
    /// One publisher, and every connection receives.
    Fanout,
}

impl Test {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Storm,
        Self::Ping,
        Self::Throughput,
        Self::Matrix,
        Self::Formats,
        Self::Hold,
        Self::Limit,
        Self::Fanout,
    ];

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Storm => "storm",
            Self::Ping => "ping",
            Self::Throughput => "throughput",
            Self::Matrix => "matrix",
            Self::Formats => "formats",
            Self::Hold => "hold",
            Self::Limit => "limit",
            Self::Fanout => "fanout",
        }
    }

    /// The test of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|test| test.name() == name)
    }

    /// The SLO that applies unless another is given.
    ///
    /// If the load is messages or connections at a rate, there are samples for a 99th percentile. With one ping every
    /// few seconds, a short trial of few connections has too few of them.
    #[must_use]
    pub fn slo(self) -> Slo {
        let newest = |percentile, ms| (Metric::Newest(percentile), ms);
        let mut gates = match self {
            Self::Hold | Self::Limit => vec![newest(Percentile::P95, 250.0)],
            Self::Throughput | Self::Matrix | Self::Formats | Self::Fanout => {
                vec![newest(Percentile::P99, 100.0)]
            }
            Self::Storm => vec![newest(Percentile::P99, 250.0)],
            Self::Ping => vec![
                newest(Percentile::P50, 10.0),
                newest(Percentile::P99, 100.0),
            ],
        };
        gates.push((Metric::ErrorRate, 1e-5));
        Slo::from_gates(&format!("ws-{}", self.name()), &gates)
    }

    /// What its load counts.
    #[must_use]
    pub fn load_unit(self) -> LoadUnit {
        match self {
            Self::Storm => LoadUnit::CONNECTIONS_PER_SECOND,
            Self::Ping | Self::Hold | Self::Limit => LoadUnit::CONNECTIONS,
            Self::Throughput | Self::Matrix | Self::Formats => LoadUnit::MESSAGES_PER_SECOND,
            Self::Fanout => LoadUnit::RECEIVERS,
        }
    }

    /// Time between two pings of a connection unless told otherwise; `None` where the period follows from the load.
    #[must_use]
    pub fn ping_period_ns(self) -> Option<u64> {
        match self {
            Self::Ping => Some(NS_PER_S),
            Self::Hold => Some(5 * NS_PER_S),
            Self::Limit => Some(10 * NS_PER_S),
            _ => None,
        }
    }
}

/// Time between two messages of a connection, if `connections` of them together send `rate_per_s` (neither zero).
///
/// A period is whole nanoseconds, so what is offered differs from `rate_per_s` by less than one part in 2,000 for periods of a microsecond, and less for longer.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "nanoseconds of a period: rounded, and at least 1"
)]
pub fn message_period_ns(connections: u32, rate_per_s: f64) -> u64 {
    ((f64::from(connections) * NS_PER_S as f64 / rate_per_s).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::by_name(dialect.name()), Some(dialect));
        }
        assert_eq!(Dialect::by_name("stt"), None);
        let mut names = Test::ALL.map(Test::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn every_test_has_gates_of_its_own() {
        for test in Test::ALL {
            let slo = test.slo();
            assert_eq!(slo.name, format!("ws-{}", test.name()));
            let samples = match test {
                Test::Hold | Test::Limit => 200,
                _ => 1_000,
            };
            assert_eq!(slo.samples_needed(), samples, "{test:?}");
        }
    }

    #[test]
    fn the_period_follows_from_the_rate() {
        assert_eq!(message_period_ns(100, 10_000.0), NS_PER_S / 100);
        assert_eq!(message_period_ns(1, 3.0), 333_333_333);
        assert_eq!(message_period_ns(1, 1e12), 1);
    }
}
