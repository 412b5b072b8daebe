//! What this machine's client can generate soundly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, LoadUnit};

/// What this machine's client can generate soundly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// Version of this schema.
    pub schema_version: u32,
    /// CPU time per 648-byte message of a bare send loop, including the receiver's softirq work.
    pub bare_us_per_frame: f64,
    /// CPU time per frame of the engine against a sink: sending, receiving and accounting.
    pub engine_us_per_frame: f64,
    /// Engine / bare within a round: median over the rounds.
    pub ratio: f64,
    /// The most sessions that this client can soundly drive.
    pub max_sessions: u32,
    /// Send lag at `max_sessions`. If that is 0, send lag at the lowest load tried.
    pub send_lag_p99_us: f64,
    /// What TLS adds to a frame; `null` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<CostOverTls>,
    /// How late a sleep ends.
    pub timer_error_p99_us: f64,
    /// Number of sessions with which the two costs were measured.
    pub sessions: u32,
    /// How the engine waits for sockets.
    pub engine_backend: String,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// When the calibration began, RFC 3339 in UTC.
    pub started_at: String,
}

/// What each kind of work of a workload costs one core of this machine's client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCosts {
    /// Version of this schema.
    pub schema_version: u32,
    /// Name of the workload. Earlier records lack it; it is then in the name of their file.
    #[serde(default)]
    pub workload: String,
    /// What each kind of work costs, in the order measured.
    pub costs: Vec<ClientCost>,
    /// How late a sleep ends.
    pub timer_error_p99_us: f64,
    /// How often bare loop and engine took turns.
    pub rounds: u32,
    /// How long each of them ran in a round.
    pub seconds: f64,
    /// How the engine waits for sockets.
    pub engine_backend: String,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// When the calibration began, RFC 3339 in UTC.
    pub started_at: String,
}

/// What a kind of work costs one core of the client. The engine takes turns with a bare loop that does the same work
/// and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCost {
    /// What the client does, in the words of its workload: `json` and `msgpack` send messages, `echo` sends and receives
    /// them, `connections` opens and closes connections.
    pub work: String,
    /// What a load of this work counts.
    pub load_unit: LoadUnit,
    /// The load at which the costs were measured.
    pub load: u32,
    /// Connections that shared the load; `null` if they are the load.
    pub connections: Option<u32>,
    /// Payload of a message in bytes; `null` for connections.
    pub message_bytes: Option<u64>,
    /// Messages of a connection that are due together and sent with one write; `null` for connections.
    pub messages_per_write: Option<u32>,
    /// CPU time of the bare loop per message, echo or connection.
    pub bare_cpu_us: Spread,
    /// CPU time of the engine per message, echo or connection.
    pub engine_cpu_us: Spread,
    /// Engine / bare within a round.
    pub ratio: Spread,
    /// What the bare loop would do per second with a core to itself: 10⁶ / the median of `bare_cpu_us`.
    pub bare_per_core_second: f64,
    /// What the engine would do per second with a core to itself.
    pub engine_per_core_second: f64,
    /// The highest load at which one core of the engine was tried and was on time; `null` if it never was.
    pub on_time_load: Option<u32>,
    /// Send lag at `on_time_load`. Of messages that the sink delivers: how late they were read, from when they were due at
    /// the sink.
    pub send_lag_p99_us: Option<f64>,
    /// The same work over TLS; `null` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<CostOverTls>,
}

/// What a kind of work costs one core of the client over TLS. The engine takes turns with itself without TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostOverTls {
    /// CPU time of the engine per frame, message or echo over TLS, without the handshake.
    pub engine_cpu_us: Spread,
    /// What TLS adds: this minus the engine's without TLS, within a round.
    pub added_cpu_us: Spread,
    /// Engine over TLS / engine without it, within a round.
    pub ratio: Spread,
    /// The part of `engine_cpu_us` that encryption and decryption took, as `client.tls_us_per_frame` of a trial says it.
    pub tls_cpu_us: Spread,
    /// CPU time of a session's whole handshake on the client's side.
    pub handshake_cpu_us: Spread,
}

/// The results of several rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub least: f64,
    /// The highest.
    pub greatest: f64,
}
