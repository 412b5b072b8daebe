//! The inference simulator: how it is found, and what it answers to control requests.
//!
//! It is the program `plimsoll-inference`; that crate says what it does. It shares the client's CPUs, so its cost and
//! its lateness help decide whether a measurement can be trusted.

use std::collections::BTreeMap;

use plimsoll_core::latency::Percentiles;
use plimsoll_workload::companion::program::About;
use serde::{Deserialize, Serialize};

/// The simulator's program.
pub const ABOUT: About = About {
    called: "the inference simulator",
    name: "plimsoll-inference",
    variable: "PLIMSOLL_INFERENCE_BIN",
    remedy: "cargo build --release -p plimsoll-inference",
    not_inherited: &[
        "BIND",
        "MODEL_DELAY_MS",
        "MODEL_JITTER_SIGMA",
        "MODEL_BATCH_WAIT_MAX_MS",
        "MODEL_LONGTAIL_MULT",
        "MODEL_LONGTAIL_PROB",
        "MODEL_MAX_CONCURRENT",
        "MODEL_SEED",
    ],
};

/// The variables of a gateway's contract that are its workload's own.
pub const CONTRACT_VARIABLES: [&str; 14] = [
    "INFERENCE_URL",
    "INFERENCE_HTTP_CLIENTS",
    "INFERENCE_TIMEOUT_MS",
    "FLUSH_INTERVAL_MS",
    "FLUSH_PHASE_JITTER_MS",
    "CPU_PASSES",
    "MAX_SESSIONS",
    "MAX_BUFFER_FRAMES",
    "OVERFLOW_POLICY",
    "MAX_INFLIGHT_JOBS",
    "OUTBOX_MESSAGES",
    "START_TIMEOUT_MS",
    "DRAIN_TIMEOUT_MS",
    "AUTH_TOKEN",
];

/// The answer to `GET /stats`. Unless stated otherwise, a value covers the window since the last reset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Number of requests read.
    pub requests: u64,
    /// Bytes of audio in them.
    #[serde(default)]
    pub request_bytes: u64,
    /// Bytes of audio in all requests since it started, regardless of the window.
    #[serde(default)]
    pub request_bytes_in_all: u64,
    /// Time in the window for which its event loop was busy, µs.
    pub busy_us: u64,
    /// The window's length: time since the start or the last reset, µs.
    pub window_us: u64,
    /// CPU time of the process since it started, µs.
    pub cpu_us: u64,
    /// Time since it started, µs.
    pub uptime_us: u64,
    /// How long requests waited for one of the model's places.
    pub queue_wait: Percentiles,
    /// How late answers were, compared with their drawn deadlines.
    pub answer_lateness: Percentiles,
    /// Requests in flight now.
    pub inflight: u64,
    /// The most requests in flight at once.
    pub inflight_max: u64,
    /// How often each fault was applied, by the fault's name.
    pub faults: BTreeMap<String, u64>,
}

impl Stats {
    /// The share of the window in which its one thread was busy, 0 to 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Hours in µs are far below 2^53.
    pub fn busy_share(&self) -> f64 {
        self.busy_us as f64 / self.window_us.max(1) as f64
    }
}

/// A request that the simulator saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRequest {
    /// When it was read, µs since the simulator started.
    pub at_us: u64,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub http_version: String,
    /// Its `content-type`.
    pub content_type: Option<String>,
    /// Its `x-cpu-passes`, if the value was usable.
    pub cpu_passes: Option<u32>,
    /// Length of its body.
    pub audio_bytes: u64,
    /// The answer's checksum, once computed.
    pub checksum: Option<u32>,
    /// Requests in flight at that time, this one included.
    pub inflight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_read_and_later_fields_do_not_break_it() {
        let text = r#"{"requests":2,"busy_us":50,"window_us":200,"cpu_us":3,"uptime_us":4,"queue_wait":{"p50_us":1,"p99_us":2,"max_us":3},
            "answer_lateness":{"p50_us":4,"p99_us":5,"max_us":6},"inflight":0,"inflight_max":1,"faults":{"never":2},"later":1}"#;
        let stats: Stats = serde_json::from_str(text).expect("stats");
        assert_eq!(stats.answer_lateness.p99_us, 5);
        assert_eq!(stats.faults["never"], 2);
        assert!((stats.busy_share() - 0.25).abs() < 1e-9);
        assert_eq!(Stats::default().busy_share(), 0.0);
    }
}
