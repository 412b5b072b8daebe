//! What this machine's client can honestly generate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What this machine's client can honestly generate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Version of this schema.
    pub schema_version: u32,
    /// CPU time per 648-byte message of a bare send loop, the receiver's softirq work included.
    pub bare_us_per_frame: f64,
    /// CPU time per frame of the engine against a sink: sending, receiving and accounting.
    pub engine_us_per_frame: f64,
    /// Median over the rounds of engine / bare within a round.
    pub ratio: f64,
    /// The most sessions that this client can honestly drive.
    pub max_sessions: u32,
    /// Send lag at `max_sessions`.
    pub send_lag_p99_us: f64,
    /// How late a sleep ends.
    pub timer_error_p99_us: f64,
    /// Sessions on which the two costs were measured.
    pub sessions: u32,
    /// How the engine waits for sockets.
    pub engine_backend: String,
    /// When, RFC 3339 in UTC.
    pub started_at: String,
}
