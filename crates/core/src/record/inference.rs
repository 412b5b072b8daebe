//! How many gateway sessions an inference server holds when it is loaded alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;
use crate::latency::{LagQuantiles, Quantiles};

/// How many gateway sessions an inference server holds when it is loaded alone: one batch per session per second, by the
/// clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InferenceCalibration {
    /// Version of this schema.
    pub schema_version: u32,
    /// Name of the workload whose batches were sent.
    pub workload: String,
    /// The server, `http://HOST:PORT`.
    pub url: String,
    /// How the client spoke to it: `h2c` or `http1`.
    pub transport: String,
    /// Bytes of audio in a batch.
    pub batch_bytes: u64,
    /// The highest p99 from schedule at which a load counts as held.
    pub p99_limit_ms: f64,
    /// The most sessions that were tried and held; `null` if none were.
    pub sessions: Option<u32>,
    /// What ended the search.
    pub ended: EndedBy,
    /// All loads, in the order tried. A load that was not held is tried twice.
    pub loads: Vec<InferenceLoad>,
    /// Length of the measured window of each load.
    pub seconds: f64,
    /// Seed of the schedule and of the audio.
    pub seed: u64,
    /// The build of Plimsoll that made this.
    #[serde(default, skip_serializing_if = "Build::is_unknown")]
    pub build: Build,
    /// When the calibration began, RFC 3339 in UTC.
    pub started_at: String,
}

impl InferenceCalibration {
    /// The highest load that was held, with what was measured there.
    #[must_use]
    pub fn highest_held(&self) -> Option<&InferenceLoad> {
        let held = self.loads.iter().filter(|it| it.judged == Holding::Held);
        held.max_by_key(|load| load.sessions)
    }

    /// Whether it says nothing about the server: no load was held, and the client was the reason.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.sessions.is_none() && self.ended == EndedBy::Client
    }
}

/// What ended a search for the load that a server holds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The server: it did not hold the next load. `sessions` is its limit, within the last step.
    #[default]
    Server,
    /// The client: it was late with the next load. The server holds at least `sessions`.
    Client,
    /// Nothing: the highest load that can be tried was held.
    Nothing,
}

/// What is said of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holding {
    /// Every batch was answered, the p99 from schedule is within the limit, and the client was on time.
    Held,
    /// A batch was not answered, or not as the contract says.
    Unanswered,
    /// All were answered, but the p99 from schedule is over the limit.
    #[default]
    Late,
    /// Invalid: the client itself was late, so this says nothing about the server.
    ClientLate,
}

/// A load of an inference server, and what was measured of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InferenceLoad {
    /// The gateway sessions that it stands for: batches per second.
    pub sessions: u32,
    /// What is said of it.
    pub judged: Holding,
    /// Connections that shared the load.
    pub connections: u32,
    /// Batches that were due in the window.
    pub batches: u64,
    /// Batches due in the window that were written, per second.
    pub sent_per_s: f64,
    /// Batches due in the window that were answered rightly, per second.
    pub answered_per_s: f64,
    /// Latency from the scheduled time of a batch.
    pub from_schedule: Quantiles,
    /// Latency from the write.
    pub from_write: Quantiles,
    /// How often batches failed, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Send lag: how late the client itself wrote.
    pub send_lag: LagQuantiles,
    /// Share of its core that the client's busiest thread used.
    pub client_busy_share: f64,
    /// What the server used; `null` without `--pid`.
    pub server: Option<ServerUse>,
    /// What the server says of itself at `/stats`; `null` if it says nothing there.
    pub server_says: Option<ServerWords>,
}

/// What an inference server used in the measured window: the process and its descendants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerUse {
    /// CPU time per answered batch.
    pub cpu_us_per_batch: f64,
    /// CPU time as a share of one core: 2 are two busy cores.
    pub cpu_share: f64,
}

/// What an inference server says of itself, for all of a load with its warm-up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerWords {
    /// Requests that it read.
    pub requests: u64,
    /// Share of the time in which its event loop was busy.
    pub busy_share: f64,
    /// How long requests waited for a place of the model.
    pub queue_wait: LagQuantiles,
    /// How late answers were against the latency that the model wanted.
    pub answer_lateness: LagQuantiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(sessions: u32, judged: Holding) -> InferenceLoad {
        InferenceLoad {
            sessions,
            judged,
            ..InferenceLoad::default()
        }
    }

    #[test]
    fn only_a_held_load_is_the_highest_held() {
        let mut calibration = InferenceCalibration {
            loads: vec![
                load(10, Holding::Held),
                load(40, Holding::Late),
                load(20, Holding::Held),
                load(15, Holding::Held),
                load(30, Holding::ClientLate),
            ],
            sessions: Some(20),
            ended: EndedBy::Client,
            ..InferenceCalibration::default()
        };
        assert_eq!(calibration.highest_held().map(|it| it.sessions), Some(20));
        assert!(!calibration.is_invalid(), "it holds at least 20");
        calibration.sessions = None;
        assert!(calibration.is_invalid());
        calibration.ended = EndedBy::Server;
        assert!(!calibration.is_invalid(), "the server holds nothing");
    }
}
