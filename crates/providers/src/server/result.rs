//! What a session of speech recognition says, as Deepgram words it.

use plimsoll_workload_voice::marks::{BLOCK_MS, TranscriptMark};
use serde::Serialize;
use serde_json::json;

use crate::ear::Heard;

#[derive(Serialize)]
struct Results<'a> {
    r#type: &'static str,
    channel_index: [u32; 2],
    start: f64,
    duration: f64,
    is_final: bool,
    speech_final: bool,
    channel: Channel<'a>,
}

#[derive(Serialize)]
struct Channel<'a> {
    alternatives: [Alternative<'a>; 1],
}

#[derive(Serialize)]
struct Alternative<'a> {
    transcript: &'a str,
    confidence: f64,
    words: [(); 0],
}

/// A result, whose mark says when the last block was read and when the result is handed over.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a session")]
pub(super) fn results(heard: &Heard, read_ns: u64, handed_ns: u64) -> String {
    let mark = TranscriptMark {
        vu: heard.vu,
        from: heard.from,
        to: heard.to,
        read_ns,
        handed_ns,
    };
    let seconds = |blocks: u32| (u64::from(blocks) * BLOCK_MS) as f64 / 1e3;
    let results = Results {
        r#type: "Results",
        channel_index: [0, 1],
        start: seconds(heard.from - 1),
        duration: seconds(heard.to - heard.from + 1),
        is_final: heard.last,
        speech_final: heard.last,
        channel: Channel {
            alternatives: [Alternative {
                transcript: &format!("{mark}what the caller said"),
                confidence: 0.98,
                words: [],
            }],
        },
    };
    // Numbers and texts: nothing that JSON lacks.
    serde_json::to_string(&results).unwrap_or_default()
}

/// What follows the last result, after the gateway asked for the end.
pub(super) fn metadata() -> String {
    json!({"type": "Metadata", "request_id": "mock", "channels": 1}).to_string()
}

/// What a fault says before it closes the session.
pub(super) fn error() -> String {
    json!({"type": "Error", "description": "failed on demand"}).to_string()
}
