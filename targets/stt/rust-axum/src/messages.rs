//! The JSON that crosses the WebSocket and the answer of the inference server, strict in what is accepted.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Bytes of one frame: 20 ms of 16 kHz, mono, 16-bit PCM.
pub const FRAME_BYTES: usize = 640;

/// Whether `text` is exactly the start message, `{"type":"start"}`, however it is spaced or escaped.
pub fn is_start(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Start {
        // A string and not an enum: serde_json would also read a unit variant from `{"start":null}`.
        r#type: String,
    }
    strict_object::<Start>(text).is_ok_and(|message| message.r#type == "start")
}

/// What the inference server says about a batch: exactly these fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inference {
    /// Root mean square of the samples.
    pub rms: f64,
    /// Changes of sign between consecutive samples.
    pub zero_crossings: u64,
    /// FNV-1a over the samples.
    pub checksum: u32,
    /// Samples computed over, all passes together.
    pub samples: u64,
    /// The recognised words.
    pub transcript: String,
    /// Length of the request body.
    pub audio_bytes: u64,
}

impl Inference {
    /// Reads the body of a 200.
    ///
    /// # Errors
    /// `parse_error` on anything but one JSON object with exactly the six fields, each once and of its type.
    pub fn parse(body: &[u8]) -> Result<Self, Failure> {
        strict_object(body).map_err(Failure::parse)
    }
}

/// Deserializes `T` from a JSON object; serde alone would accept an array of the fields' values as well.
fn strict_object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, serde_json::Error> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(serde::de::Error::custom("not a JSON object"));
    }
    serde_json::from_slice(json)
}

/// A contiguous range of frames: their numbers, and when the gateway received its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Number of the first frame.
    pub oldest_seq: u64,
    /// Number of the last frame.
    pub newest_seq: u64,
    /// When the first frame was received.
    pub oldest_at: Instant,
    /// When the last frame was received.
    pub newest_at: Instant,
}

impl Span {
    /// How many frames, at least 1.
    pub fn frames(&self) -> u64 {
        self.newest_seq - self.oldest_seq + 1
    }
}

/// The `partial` message for an answered batch.
pub fn partial(span: &Span, inference: &Inference, cpu_passes: u32, flush_lateness: Duration) -> String {
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
    to_json(&Partial {
        r#type: "partial",
        oldest_frame_seq: span.oldest_seq,
        newest_frame_seq: span.newest_seq,
        frames: span.frames(),
        rms: inference.rms,
        zero_crossings: inference.zero_crossings,
        checksum: inference.checksum,
        samples: inference.samples,
        transcript: &inference.transcript,
        audio_bytes: inference.audio_bytes,
        cpu_passes,
        flush_lateness_ms: milliseconds(flush_lateness),
    })
}

/// What an `error` message says beside the failure itself.
#[derive(Debug, Clone, Copy)]
pub struct ErrorContext {
    /// The frames that will have no transcript.
    pub span: Span,
    /// When the failure was found, from which the frames' ages count.
    pub now: Instant,
    /// Lateness of the flush of these frames, or of the tick that reports the dropped ones.
    pub flush_lateness: Duration,
    /// Time from sending the request to the failure; none for dropped frames.
    pub inference_elapsed: Option<Duration>,
    /// Requests of this session in flight.
    pub inflight_batches: u64,
    /// Frames that this session holds and has not sent on.
    pub buffered_frames: u64,
}

/// The `error` message for a range of frames.
pub fn error(failure: &Failure, context: &ErrorContext) -> String {
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
    let span = &context.span;
    let age = |received: Instant| milliseconds(context.now.saturating_duration_since(received));
    to_json(&Error {
        r#type: "error",
        stage: failure.kind.stage(),
        kind: failure.kind.name(),
        message: &failure.message,
        oldest_frame_seq: span.oldest_seq,
        newest_frame_seq: span.newest_seq,
        frames: span.frames(),
        audio_bytes: span.frames() * FRAME_BYTES as u64,
        oldest_age_ms: age(span.oldest_at),
        newest_age_ms: age(span.newest_at),
        flush_lateness_ms: milliseconds(context.flush_lateness),
        inference_elapsed_ms: context.inference_elapsed.map(milliseconds),
        inflight_gateway_batches: context.inflight_batches,
        gateway_buffer_frames: context.buffered_frames,
        inference_status: failure.status,
        retryable: failure.kind.retryable(),
    })
}

fn milliseconds(duration: Duration) -> f64 {
    // Nanoseconds first: they are exact, and the one division rounds once.
    duration.as_nanos() as f64 / 1e6
}

fn to_json(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("a struct of numbers and strings always serializes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_is_strict() {
        for good in [r#"{"type":"start"}"#, " {\n\"type\" : \"start\" }\t", r#"{"typ\u0065":"st\u0061rt"}"#] {
            assert!(is_start(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "start",
            "[]",
            r#"["start"]"#,
            r#""start""#,
            r#"{"type":"stop"}"#,
            r#"{"type":{"start":null}}"#,
            r#"{"type":"start","x":1}"#,
            r#"{"type":"start","type":"start"}"#,
            r#"{"type":"start"} x"#,
            "{}",
            "null",
        ] {
            assert!(!is_start(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn answers_are_strict() {
        let good = r#"{"rms":2425.5023191083533,"zero_crossings":7,"checksum":1745339397,"samples":1280,"transcript":"now","audio_bytes":640}"#;
        let answer = Inference::parse(good.as_bytes()).expect("the golden answer");
        assert_eq!(answer.rms.to_bits(), 2_425.502_319_108_353_3_f64.to_bits());
        for bad in [
            good.replace("1745339397", "4294967296"),
            good.replace(":7,", ":-7,"),
            good.replace(":7,", ":7.0,"),
            good.replace("\"now\"", "null"),
            good.replace("\"samples\":1280,", ""),
            good.replace("\"samples\":1280,", "\"samples\":1280,\"samples\":1280,"),
            good.replace("\"samples\":1280,", "\"samples\":1280,\"more\":1,"),
            format!("{good}x"),
            r#"[2425.5,7,1745339397,1280,"now",640]"#.to_owned(),
            String::new(),
        ] {
            let failure = Inference::parse(bad.as_bytes()).expect_err(&bad);
            assert_eq!(failure.kind, crate::failure::FailureKind::ParseError);
        }
    }
}
