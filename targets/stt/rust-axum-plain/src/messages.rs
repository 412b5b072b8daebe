//! The JSON of the WebSocket and the answer of the inference server, strict in what is accepted.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use crate::failure::{Failure, FailureKind};

/// 20 ms of 16 kHz, mono, 16-bit PCM.
pub const FRAME_BYTES: usize = 640;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    r#type: String,
}

/// Whether a text is the start message, however it is spaced or escaped.
pub fn is_start(text: &str) -> bool {
    object::<Start>(text.as_bytes()).is_ok_and(|message| message.r#type == "start")
}

/// What the inference server says about a batch: exactly these fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inference {
    pub rms: f64,
    pub zero_crossings: u64,
    pub checksum: u32,
    pub samples: u64,
    pub transcript: String,
    pub audio_bytes: u64,
}

impl Inference {
    /// Reads the body of a 200.
    pub fn parse(body: &[u8]) -> Result<Self, Failure> {
        object(body).map_err(|error| Failure::new(FailureKind::ParseError, error, Some(200)))
    }
}

/// Reads a JSON object. serde alone would also take an array of the fields' values.
fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(serde::de::Error::custom("not a JSON object"));
    }
    serde_json::from_slice(json)
}

/// A range of frames: their numbers, and when the gateway received its first and last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub oldest_seq: u64,
    pub newest_seq: u64,
    pub oldest_at: Instant,
    pub newest_at: Instant,
}

impl Span {
    /// How many frames, at least 1.
    pub fn frames(&self) -> u64 {
        self.newest_seq - self.oldest_seq + 1
    }
}

#[derive(Serialize)]
struct Partial<'a> {
    r#type: &'static str,
    oldest_frame_seq: u64,
    newest_frame_seq: u64,
    frames: u64,
    #[serde(flatten)]
    inference: &'a Inference,
    cpu_passes: u32,
    flush_lateness_ms: f64,
}

/// The `partial` of an answered batch.
pub fn partial(span: &Span, inference: &Inference, cpu_passes: u32, flush_lateness: Duration) -> String {
    let partial = Partial {
        r#type: "partial",
        oldest_frame_seq: span.oldest_seq,
        newest_frame_seq: span.newest_seq,
        frames: span.frames(),
        inference,
        cpu_passes,
        flush_lateness_ms: as_ms(flush_lateness),
    };
    serde_json::to_string(&partial).expect("numbers and strings can always be written")
}

/// What an `error` tells beside its failure and its frames.
#[derive(Debug)]
pub struct Circumstances {
    pub flush_lateness: Duration,
    /// None for dropped frames.
    pub inference_elapsed: Option<Duration>,
    pub inflight_gateway_batches: usize,
    pub gateway_buffer_frames: usize,
}

/// The `error` for a range of frames that has no transcript, as of `now`.
pub fn error(failure: &Failure, span: &Span, now: Instant, circumstances: &Circumstances) -> String {
    let (stage, kind, retryable) = failure.kind.row();
    json!({
        "type": "error",
        "stage": stage,
        "kind": kind,
        "message": failure.message,
        "oldest_frame_seq": span.oldest_seq,
        "newest_frame_seq": span.newest_seq,
        "frames": span.frames(),
        "audio_bytes": span.frames() * FRAME_BYTES as u64,
        "oldest_age_ms": as_ms(now.saturating_duration_since(span.oldest_at)),
        "newest_age_ms": as_ms(now.saturating_duration_since(span.newest_at)),
        "flush_lateness_ms": as_ms(circumstances.flush_lateness),
        "inference_elapsed_ms": circumstances.inference_elapsed.map(as_ms),
        "inflight_gateway_batches": circumstances.inflight_gateway_batches,
        "gateway_buffer_frames": circumstances.gateway_buffer_frames,
        "inference_status": failure.status,
        "retryable": retryable,
    })
    .to_string()
}

fn as_ms(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}
