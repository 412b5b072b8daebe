//! What a trial of a general WebSocket server says beside its ledger and its latencies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a trial of workload `ws` says beside its ledger and its latencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WsRecord {
    /// Which test: `storm`, `ping`, `throughput`, `matrix`, `formats`, `hold`, `limit` or `fanout`.
    pub test: String,
    /// What the server speaks: `echo` or `wse`.
    pub dialect: String,
    /// Connections that share the load, where the load is a rate of messages.
    pub connections: Option<u32>,
    /// Bytes of a message's payload, where the test has one size.
    pub message_bytes: Option<u64>,
    /// What messages are written in: `json`, `msgpack`, … where the test says.
    pub format: Option<String>,
    /// Milliseconds between two pings of a connection, where connections ping.
    pub period_ms: Option<f64>,
    /// Messages published each second; a fan-out's.
    pub published_per_s: Option<f64>,
    /// Milliseconds that a connection which arrived stayed open; a storm's.
    pub linger_ms: Option<f64>,
    /// How arrivals were spaced, `even` or `poisson`; a storm's.
    pub spacing: Option<String>,
    /// Addresses that the client connected from, in turn; empty where the kernel chose.
    pub source_addresses: Vec<String>,
    /// How far the load came.
    pub delivered: Delivered,
    /// Why arrivals did not open, by name, the most frequent first; a storm's.
    pub outcomes: Vec<Outcome>,
    /// Whether the server decodes what it is sent; `null` where that is not asked.
    pub decode: Option<DecodeRecord>,
    /// What a closed loop measures on the same server; it decides nothing. `null` without `--closed-loop`.
    pub closed_loop: Option<ClosedLoopRecord>,
}

/// How far the load came, in frames of the test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivered {
    /// Due in the measured window.
    pub offered: u64,
    /// Of those, written to a socket.
    pub written: u64,
    /// Of those, proven to be read by the server: echoed, or before a barrier that was answered.
    pub read: u64,
    /// Messages of the whole trial that the server's application received, by its own count; `null` where it does not report this, or the test has no such count.
    pub processed: Option<u64>,
    /// Messages of the whole trial that were written: compare `processed` with this.
    pub written_in_all: u64,
}

/// A way in which arrivals failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Its name: `tcp_refused`, `closed_before_http`, `http_status 503`, `auth_4401`, `no_server_ready`, `timeout`, `local_EMFILE`, …
    pub name: String,
    /// How many, over the whole trial.
    pub count: u64,
}

/// Whether the server decodes what it is sent: each session asks once, in the very format of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecodeRecord {
    /// Sessions that asked.
    pub asked: u64,
    /// Sessions that were answered.
    pub answered: u64,
    /// Whether all were; if not, the format is opaque to the server.
    pub proven: bool,
}

/// What a closed loop says: the next ping after the last answer, unanswered ones left out, messages counted when they are handed to a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedLoopRecord {
    /// Pings that were answered.
    pub pings_answered: u64,
    /// Pings that were given up, and are in no percentile.
    pub pings_given_up: u64,
    /// Median time from a ping's write to what was taken for its answer, in milliseconds; `null` without pings.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the same.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the same.
    pub p99_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
    /// Messages handed to sockets each second of the window; `null` unless messages were sent.
    pub messages_per_second: Option<f64>,
}
