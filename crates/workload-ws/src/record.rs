//! What a trial of a general WebSocket server reports besides its ledger and its latencies: the section `ws` of its
//! record.

use plimsoll_core::record::Parameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of the section.
pub const SECTION: &str = "ws";

/// What a trial of workload `ws` reports besides its ledger and its latencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WsRecord {
    /// Which test: `storm`, `ping`, `throughput`, `matrix`, `formats`, `hold`, `limit` or `fanout`.
    pub test: String,
    /// The dialect that the server speaks: `echo` or `wse`.
    pub dialect: String,
    /// Connections that share the load, if the load is a rate of messages.
    pub connections: Option<u32>,
    /// Bytes of a message's payload, if the test has one size.
    pub message_bytes: Option<u64>,
    /// The format of messages, if the test defines one: `json`, `msgpack`, ….
    pub format: Option<String>,
    /// Milliseconds between two pings of a connection, if connections ping.
    pub period_ms: Option<f64>,
    /// Messages published each second, in the test `fanout`.
    pub published_per_s: Option<f64>,
    /// How long an arrival stayed open, in milliseconds, in the test `storm`.
    pub linger_ms: Option<f64>,
    /// How arrivals were spaced, `even` or `poisson`, in the test `storm`.
    pub spacing: Option<String>,
    /// Addresses that the client connected from, in turn; empty if the kernel chose the address.
    pub source_addresses: Vec<String>,
    /// How far the load came.
    pub delivered: Delivered,
    /// Why arrivals did not open, by name, the most frequent first, in the test `storm`.
    pub outcomes: Vec<WsOutcome>,
    /// Whether the server decodes what it receives; `null` if the test does not ask.
    pub decode: Option<DecodeRecord>,
    /// What a closed loop measures on the same server. It decides nothing. `null` without `--closed-loop`.
    pub closed_loop: Option<ClosedLoopRecord>,
}

impl WsRecord {
    /// The parameters that a trial had, for results of 0.1, which have them only here.
    pub(crate) fn parameters(&self) -> Parameters {
        let given = |name: &str, value: Option<Value>| Some((name.to_owned(), value?));
        let number = |value: Option<f64>| value.map(whole_if_it_is);
        let is_storm = self.spacing.is_some();
        [
            given("test", Some(json!(self.test))),
            given("dialect", Some(json!(self.dialect))),
            given("connections", self.connections.map(|number| json!(number))),
            given(
                "message_bytes",
                self.message_bytes.map(|bytes| json!(bytes)),
            ),
            given("format", self.format.as_ref().map(|name| json!(name))),
            given("period_ms", number(self.period_ms)),
            given("rate", self.published_per_s.map(|rate| json!(rate))),
            given("linger_ms", number(self.linger_ms)),
            given(
                "poisson",
                is_storm.then(|| json!(self.spacing.as_deref() == Some("poisson"))),
            ),
            given(
                "source_addresses",
                (!self.source_addresses.is_empty()).then(|| json!(self.source_addresses)),
            ),
            given("closed_loop", self.closed_loop.map(|_| json!(true))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A number of milliseconds as parameters have it.
fn whole_if_it_is(number: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked just before"
    )]
    if number.fract() == 0.0 && (0.0..1e15).contains(&number) {
        json!(number as u64)
    } else {
        json!(number)
    }
}

/// How far the load came, in frames of the test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivered {
    /// Frames due in the measured window.
    pub offered: u64,
    /// Frames due in the measured window that were written to a socket.
    pub written: u64,
    /// Frames due in the measured window that the server provably read: echoed, or sent before a barrier that was
    /// answered.
    pub read: u64,
    /// Messages of the whole trial that the server's application received, by its own count; `null` if it does not
    /// report this, or if the test has no such count.
    pub processed: Option<u64>,
    /// Messages of the whole trial that were written; compare `processed` with this.
    pub written_in_all: u64,
}

/// A way in which arrivals failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WsOutcome {
    /// Its name: `tcp_refused`, `closed_before_http`, `http_status 503`, `auth_4401`, `no_server_ready`, `timeout`,
    /// `local_EMFILE`, …
    pub name: String,
    /// How often it happened, over the whole trial.
    pub count: u64,
}

/// Whether the server decodes what it receives. Each session asks once, in the same format as its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecodeRecord {
    /// Sessions that asked.
    pub asked: u64,
    /// Sessions that were answered.
    pub answered: u64,
    /// Whether all sessions that asked were answered; if not, the format is opaque to the server.
    pub proven: bool,
}

/// What a closed loop reports: each ping follows the last answer, unanswered pings are left out, and messages count
/// when they are handed to a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedLoopRecord {
    /// Pings that were answered.
    pub pings_answered: u64,
    /// Pings that were given up; they are in no percentile.
    pub pings_given_up: u64,
    /// Time from a ping's write to what counted as its answer, median, in milliseconds; `null` without pings.
    pub p50_ms: Option<f64>,
    /// Time from a ping's write to what counted as its answer, 95th percentile.
    pub p95_ms: Option<f64>,
    /// Time from a ping's write to what counted as its answer, 99th percentile.
    pub p99_ms: Option<f64>,
    /// Time from a ping's write to what counted as its answer, maximum.
    pub max_ms: Option<f64>,
    /// Messages handed to sockets each second of the window; `null` unless messages were sent.
    pub messages_per_second: Option<f64>,
}
