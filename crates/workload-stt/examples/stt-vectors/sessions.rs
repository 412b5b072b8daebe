//! What a session carries: synthetic frames in, partials and errors out.

use plimsoll_workload_stt::reference::{Answer, compute};
use plimsoll_workload_stt::synthetic::Synthetic;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::answers::hex;

#[derive(Serialize)]
pub(crate) struct Frame {
    id: String,
    session: u64,
    seq: u64,
    pcm_sha256: String,
    first_samples: Vec<i16>,
    last_samples: Vec<i16>,
}

pub(crate) fn synthetic() -> Vec<Frame> {
    let synthetic = Synthetic::new();
    let frames = [
        (0, 1),
        (0, 2),
        (0, 50),
        (0, 62),
        (0, 63),
        (0, 125),
        (1, 1),
        (17, 1),
        (999, 4500),
        (19_999, 1),
        (123_456, 7_890),
    ];
    frames
        .into_iter()
        .map(|(session, seq)| {
            let pcm = synthetic.frame(session, seq);
            let samples: Vec<i16> = pcm
                .chunks(2)
                .map(|b| i16::from_le_bytes([b[0], b[1]]))
                .collect();
            Frame {
                id: format!("session-{session}-frame-{seq}"),
                session,
                seq,
                pcm_sha256: hex(&Sha256::digest(pcm)),
                first_samples: samples[..8].to_vec(),
                last_samples: samples[samples.len() - 8..].to_vec(),
            }
        })
        .collect()
}

#[derive(Serialize)]
pub(crate) struct Partial {
    id: &'static str,
    inference: Answer,
    batch: PartialBatch,
    config: Config,
    expect: PartialMessage,
}

#[derive(Clone, Copy, Serialize)]
struct PartialBatch {
    oldest_frame_seq: u64,
    newest_frame_seq: u64,
    frames: u64,
    flush_lateness_ms: f64,
}

#[derive(Clone, Copy, Serialize)]
struct Config {
    cpu_passes: u32,
}

#[derive(Serialize)]
struct PartialMessage {
    r#type: &'static str,
    oldest_frame_seq: u64,
    newest_frame_seq: u64,
    frames: u64,
    #[serde(flatten)]
    inference: Answer,
    cpu_passes: u32,
    flush_lateness_ms: f64,
}

pub(crate) fn partials() -> Vec<Partial> {
    let synthetic = Synthetic::new();
    let case = |id, (session, first, frames), flush_lateness_ms, cpu_passes| {
        let inference =
            compute(&synthetic.batch(session, first, frames), cpu_passes).expect("whole samples");
        let batch = PartialBatch {
            oldest_frame_seq: first,
            newest_frame_seq: first + frames - 1,
            frames,
            flush_lateness_ms,
        };
        let expect = PartialMessage {
            r#type: "partial",
            oldest_frame_seq: batch.oldest_frame_seq,
            newest_frame_seq: batch.newest_frame_seq,
            frames,
            inference: inference.clone(),
            cpu_passes,
            flush_lateness_ms,
        };
        Partial {
            id,
            inference,
            batch,
            config: Config { cpu_passes },
            expect,
        }
    };
    vec![
        case("golden-frame", (0, 1, 1), 0.0, 4),
        case("first-second", (0, 1, 50), 0.25, 4),
        case("later-second", (3, 151, 50), 1.5, 4),
        case("two-seconds-after-a-deferred-tick", (3, 201, 100), 0.125, 4),
        case("other-passes", (5, 51, 49), 12.75, 1),
    ]
}

#[derive(Serialize)]
pub(crate) struct ErrorCase {
    id: &'static str,
    input: ErrorInput,
    expect: ErrorMessage,
}

#[derive(Clone, Serialize)]
struct ErrorInput {
    stage: &'static str,
    kind: &'static str,
    message: &'static str,
    batch: ErrorBatch,
    inference_elapsed_ms: Option<f64>,
    inflight_gateway_batches: u64,
    gateway_buffer_frames: u64,
    inference_status: Option<u16>,
}

#[derive(Clone, Copy, Serialize)]
struct ErrorBatch {
    oldest_frame_seq: u64,
    newest_frame_seq: u64,
    frames: u64,
    audio_bytes: u64,
    oldest_age_ms: f64,
    newest_age_ms: f64,
    flush_lateness_ms: f64,
}

#[derive(Serialize)]
struct ErrorMessage {
    r#type: &'static str,
    stage: &'static str,
    kind: &'static str,
    message: &'static str,
    #[serde(flatten)]
    batch: ErrorBatch,
    inference_elapsed_ms: Option<f64>,
    inflight_gateway_batches: u64,
    gateway_buffer_frames: u64,
    inference_status: Option<u16>,
    retryable: bool,
}

const REQUEST: &str = "inference_request";
const PARSE: &str = "inference_response_parse";
const BUFFER: &str = "input_buffer";

/// What differs from row to row: (id, stage, kind, message, inference_elapsed_ms, inference_status, retryable).
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<f64>,
    Option<u16>,
    bool,
);

const ROWS: [Row; 8] = [
    (
        "timeout",
        REQUEST,
        "timeout",
        "no answer in 5000 ms",
        Some(5000.5),
        None,
        true,
    ),
    (
        "connection-reset",
        REQUEST,
        "connection_reset",
        "connection reset by peer",
        Some(12.5),
        None,
        true,
    ),
    (
        "http-429",
        REQUEST,
        "http_429",
        "the inference server answered 429",
        Some(3.25),
        Some(429),
        true,
    ),
    (
        "http-500",
        REQUEST,
        "http_5xx",
        "the inference server answered 500",
        Some(3.25),
        Some(500),
        true,
    ),
    (
        "http-503",
        REQUEST,
        "http_5xx",
        "the inference server answered 503",
        Some(3.25),
        Some(503),
        true,
    ),
    (
        "http-404",
        REQUEST,
        "http_4xx",
        "the inference server answered 404",
        Some(3.25),
        Some(404),
        false,
    ),
    (
        "parse-error",
        PARSE,
        "parse_error",
        "missing field \"rms\"",
        Some(80.125),
        Some(200),
        false,
    ),
    (
        "overflow",
        BUFFER,
        "overflow",
        "3 frames dropped: the buffer is full",
        None,
        None,
        false,
    ),
];

/// A second of audio whose request failed.
const SECOND: ErrorBatch = ErrorBatch {
    oldest_frame_seq: 51,
    newest_frame_seq: 100,
    frames: 50,
    audio_bytes: 32_000,
    oldest_age_ms: 1085.5,
    newest_age_ms: 105.25,
    flush_lateness_ms: 0.5,
};

/// Frames that the overflow policy dropped.
const DROPPED: ErrorBatch = ErrorBatch {
    oldest_frame_seq: 1,
    newest_frame_seq: 3,
    frames: 3,
    audio_bytes: 1_920,
    oldest_age_ms: 10_040.5,
    newest_age_ms: 10_000.25,
    flush_lateness_ms: 0.0,
};

pub(crate) fn errors() -> Vec<ErrorCase> {
    ROWS.into_iter()
        .map(
            |(id, stage, kind, message, inference_elapsed_ms, inference_status, retryable)| {
                let overflow = stage == BUFFER;
                let input = ErrorInput {
                    stage,
                    kind,
                    message,
                    batch: if overflow { DROPPED } else { SECOND },
                    inference_elapsed_ms,
                    // At an overflow the request that blocks the buffer is still out.
                    inflight_gateway_batches: u64::from(overflow),
                    gateway_buffer_frames: if overflow { 500 } else { 4 },
                    inference_status,
                };
                ErrorCase {
                    id,
                    expect: message_for(input.clone(), retryable),
                    input,
                }
            },
        )
        .collect()
}

fn message_for(input: ErrorInput, retryable: bool) -> ErrorMessage {
    ErrorMessage {
        r#type: "error",
        stage: input.stage,
        kind: input.kind,
        message: input.message,
        batch: input.batch,
        inference_elapsed_ms: input.inference_elapsed_ms,
        inflight_gateway_batches: input.inflight_gateway_batches,
        gateway_buffer_frames: input.gateway_buffer_frames,
        inference_status: input.inference_status,
        retryable,
    }
}
