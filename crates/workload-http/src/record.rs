//! What a trial of an HTTP server reports besides its ledger and its latencies: the section `http` of its record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the section.
pub const SECTION: &str = "http";

/// What a trial of workload `http` reports besides its ledger and its latencies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpRecord {
    /// What was asked: `GET /`, `GET /bytes/1024`, `POST /sum`, `GET /json/K`, or the path of the URL.
    pub request: String,
    /// Requests per second that were due in the measured window.
    pub offered_per_s: f64,
    /// Requests per second that were handed to a socket inside the window.
    pub achieved_per_s: f64,
    /// Requests per second that were answered rightly and in full inside the window.
    pub completed_per_s: f64,
    /// Measured requests that found every connection busy when they were due.
    pub found_all_busy: u64,
    /// Why measured requests failed or got lost, by name, the most frequent first. `unasked_answer` counts answers of
    /// the whole trial that belong to no request.
    pub outcomes: Vec<HttpOutcome>,
    /// What became of connections, over the whole trial.
    pub connections: HttpConnections,
    /// Bytes that came for each request that was answered, heads and frames included; `null` if none was.
    pub bytes_per_answer: Option<f64>,
    /// What a closed loop measures on the same server. It decides nothing. `null` without `--closed-loop`.
    pub closed_loop: Option<HttpClosedLoop>,
}

/// How many requests ended in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpOutcome {
    /// Its name.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// What became of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpConnections {
    /// Opened.
    pub opened: u64,
    /// Not opened: refused, or not in time.
    pub failed: u64,
    /// Closed by the server after it had announced it.
    pub closed_announced: u64,
    /// Closed by the server without a word while nothing was asked on them.
    pub closed_idle: u64,
    /// Requests that were asked once more, because the server was just closing their connection.
    pub asked_again: u64,
    /// Left open by the server although it should close, so that the client closed them.
    pub left_open: u64,
}

/// What a closed loop shows: each connection asks again as soon as it has its answer, as wrk does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HttpClosedLoop {
    /// Answers per second.
    pub completed_per_s: f64,
    /// Latency from the write, in milliseconds.
    pub p50_ms: Option<f64>,
    /// Latency from the write, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Latency from the write, in milliseconds.
    pub max_ms: Option<f64>,
}
