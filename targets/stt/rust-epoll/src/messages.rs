//! JSON: the start message and the inference server's answers, strictly read; partials and errors, written into the
//! buffer from which they are sent.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Bytes of one frame: 20 ms of 16 kHz, mono, 16 bit.
pub const FRAME_BYTES: usize = 640;

/// Longest quotation of a parser's complaint, in characters: it may repeat what it met.
const COMPLAINT_CHARS_MAX: usize = 200;

/// Whether a text is `{"type":"start"}`, in whatever spelling JSON has for that.
#[must_use]
pub fn is_start(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Start<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
    }
    object::<Start<'_>>(text).is_ok_and(|start| start.r#type == "start")
}

/// An answer of the inference server: these fields and no others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the contract, section 5")]
pub struct Inference<'a> {
    pub rms: f64,
    pub zero_crossings: u64,
    pub checksum: u32,
    pub samples: u64,
    #[serde(borrow)]
    pub transcript: Cow<'a, str>,
    pub audio_bytes: u64,
}

impl<'a> Inference<'a> {
    /// Reads the body of a 200.
    ///
    /// # Errors
    /// When it is anything but the object of the contract.
    pub fn parse(body: &'a [u8]) -> Result<Self, Failure> {
        object(body).map_err(|error| {
            let complaint: String = error.to_string().chars().take(COMPLAINT_CHARS_MAX).collect();
            Failure::parse(format!("inference answer: {complaint}"))
        })
    }
}

/// Reads a JSON object and nothing behind it. serde would take an array of the values for a struct as well.
fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, serde_json::Error> {
    match json.trim_ascii_start() {
        [b'{', ..] => serde_json::from_slice(json),
        _ => Err(serde::de::Error::custom("not an object")),
    }
}

/// A contiguous range of frames, with the times at which its ends were received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "said above")]
pub struct Span {
    pub oldest_seq: u64,
    pub newest_seq: u64,
    pub oldest_at: Instant,
    pub newest_at: Instant,
}

impl Span {
    /// How many frames; at least one.
    pub fn frames(&self) -> u64 {
        self.newest_seq - self.oldest_seq + 1
    }
}

/// Appends a `partial`.
pub fn partial(text: &mut Vec<u8>, span: &Span, inference: &Inference<'_>, cpu_passes: u32, flush_lateness: Duration) {
    #[derive(Serialize)]
    struct Partial<'a> {
        r#type: &'static str,
        oldest_frame_seq: u64,
        newest_frame_seq: u64,
        frames: u64,
        rms: f64,
        zero_crossings: u64,
        checksum: u32,
        samples: u64,
        transcript: &'a str,
        audio_bytes: u64,
        cpu_passes: u32,
        flush_lateness_ms: f64,
    }
    let Inference { rms, zero_crossings, checksum, samples, ref transcript, audio_bytes } = *inference;
    let partial = Partial {
        r#type: "partial",
        oldest_frame_seq: span.oldest_seq,
        newest_frame_seq: span.newest_seq,
        frames: span.frames(),
        rms,
        zero_crossings,
        checksum,
        samples,
        transcript,
        audio_bytes,
        cpu_passes,
        flush_lateness_ms: milliseconds(flush_lateness),
    };
    write(text, &partial);
}

/// What an `error` tells beside its failure.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// The frames that have no transcript.
    pub span: Span,
    /// Now: ages are counted from here.
    pub now: Instant,
    /// Of the flush of these frames, or of the tick that reports drops.
    pub flush_lateness: Duration,
    /// What the request took, if there was one.
    pub inference_elapsed: Option<Duration>,
    /// Requests of this session in flight.
    pub inflight_batches: u64,
    /// Frames in this session's buffer.
    pub buffered_frames: u64,
}

/// Appends an `error`.
pub fn error(text: &mut Vec<u8>, failure: &Failure, circumstances: &Circumstances) {
    #[derive(Serialize)]
    struct Error<'a> {
        r#type: &'static str,
        stage: &'static str,
        kind: &'static str,
        message: &'a str,
        oldest_frame_seq: u64,
        newest_frame_seq: u64,
        frames: u64,
        audio_bytes: u64,
        oldest_age_ms: f64,
        newest_age_ms: f64,
        flush_lateness_ms: f64,
        inference_elapsed_ms: Option<f64>,
        inflight_gateway_batches: u64,
        gateway_buffer_frames: u64,
        inference_status: Option<u16>,
        retryable: bool,
    }
    let Circumstances { span, now, flush_lateness, inference_elapsed, inflight_batches, buffered_frames } =
        *circumstances;
    let (stage, kind, retryable) = failure.kind.row();
    let error = Error {
        r#type: "error",
        stage,
        kind,
        message: &failure.message,
        oldest_frame_seq: span.oldest_seq,
        newest_frame_seq: span.newest_seq,
        frames: span.frames(),
        audio_bytes: span.frames() * FRAME_BYTES as u64,
        oldest_age_ms: milliseconds(now.saturating_duration_since(span.oldest_at)),
        newest_age_ms: milliseconds(now.saturating_duration_since(span.newest_at)),
        flush_lateness_ms: milliseconds(flush_lateness),
        inference_elapsed_ms: inference_elapsed.map(milliseconds),
        inflight_gateway_batches: inflight_batches,
        gateway_buffer_frames: buffered_frames,
        inference_status: failure.status,
        retryable,
    };
    write(text, &error);
}

/// Whole nanoseconds are exact in an `f64`, so that dividing once rounds once.
fn milliseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// serde_json writes straight into the buffer, without a heap allocation and with the fastest printing of floats there
/// is; what would be won by writing these fields out by hand was too little to measure.
fn write(text: &mut Vec<u8>, message: &impl Serialize) {
    serde_json::to_writer(text, message).expect("numbers and texts can be written, and a Vec takes all");
}
