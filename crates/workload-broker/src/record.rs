//! What a trial of a broker reports besides its ledger and its latencies: the section `broker` of its record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use plimsoll_core::record::Storage;

use crate::backlog::BacklogSlope;
use crate::guarantee::Guarantee;
use crate::marks::Tally;
use crate::replay::Replay;
use crate::word::Judged;
use crate::writer::Waits;

/// The name of the section.
pub const SECTION: &str = "broker";

/// What a trial of workload `broker` reports besides its ledger and its latencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BrokerRecord {
    /// What is promised for a message; `null` if nobody said it of the broker of a URL.
    pub guarantee: Option<Guarantee>,
    /// Connections that published.
    pub writers: u32,
    /// Connections that read.
    pub readers: u32,
    /// Messages per second that were due in the measured window.
    pub offered_per_s: f64,
    /// Measured messages per second that a socket took wholly.
    pub published_per_s: f64,
    /// Measured messages per second whose confirmation came inside the window.
    pub confirmed_per_s: f64,
    /// Messages per second that arrived for the first time inside the window, whenever they were due; in a stream at all
    /// readers together. `null` without readers.
    pub delivered_per_s: Option<f64>,
    /// In a stream, the least and the most messages per second that a reader got; `null` otherwise.
    pub delivered_per_reader_per_s: Option<[f64; 2]>,
    /// What became of the measured messages.
    pub messages: Tally,
    /// Why messages waited, besides a full socket.
    pub waits: Waits,
    /// How what the broker holds changed over the window, by the client's account; in a stream that of the worst reader.
    /// `null` if the window is too short, and without readers.
    pub backlog_slope: Option<BacklogSlope>,
    /// What the broker held at the end of each second of the trial, by the client's account, in messages.
    pub backlog: Vec<i64>,
    /// What the broker said at the end of the trial that it still held; `null` if it did not say it.
    pub depth_at_end: Option<u64>,
    /// What the broker wrote in the window, and what the disk can do; `null` for the broker of a URL.
    pub storage: Option<Storage>,
    /// Bytes that the broker wrote to storage for each byte of the messages that were published meanwhile; `null` if nobody
    /// counts them.
    pub written_per_payload_byte: Option<f64>,
    /// Flush requests of the broker's disk for each thousand messages that were published meanwhile; `null` if nobody counts
    /// them.
    pub flushes_per_1000: Option<f64>,
    /// The word that sums the trial up, and what is said beside it.
    pub judged: Judged,
    /// What tests `drain` and `burst` show, which are closed loops; `null` for other tests.
    #[serde(default)]
    pub closed_loop: Option<ClosedLoop>,
    /// Payloads that were no message of the trial, by the name of the fault.
    pub faults: Vec<BrokerFault>,
    /// Messages that were compared byte by byte.
    pub compared: u64,
    /// The broker's crash, in test `replay`; `null` in others, and if the trial ended before it.
    pub replay: Option<Replay>,
}

/// How many payloads had one fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrokerFault {
    /// Its name: `foreign`, `leftover`, `another_size` or `damaged`.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// What a closed loop shows. It decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedLoop {
    /// The most messages that sockets took in a second.
    pub published_peak_per_s: u64,
    /// The most confirmations that came in a second.
    pub confirmed_peak_per_s: u64,
    /// The most messages that arrived in a second.
    pub delivered_peak_per_s: u64,
    /// What the broker held when the measured window ended, by the client's account.
    pub backlog_at_window_end: i64,
    /// How long the last message took to arrive, in s. In test `drain` it counts from the beginning of the window, when the
    /// readers connect; in test `burst` from its end, when the writers stop. `null` if none arrived after that.
    pub drain_s: Option<f64>,
    /// In test `drain`, messages per second that arrived in that time; `null` otherwise.
    pub drained_per_s: Option<f64>,
    /// In test `drain`, the messages that were confirmed before the readers began; `null` otherwise.
    pub preloaded: Option<u64>,
}
