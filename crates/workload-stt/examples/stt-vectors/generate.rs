//! The files, each with what it is about.

use serde::Serialize;

use crate::{answers, messages, sessions};

/// A vector file: its name and its whole text.
pub(crate) struct VectorFile {
    pub(crate) name: &'static str,
    pub(crate) json: String,
}

#[derive(Serialize)]
struct Vectors<Case> {
    about: &'static str,
    cases: Vec<Case>,
}

/// Every vector file.
pub(crate) fn files() -> Vec<VectorFile> {
    vec![
        file(
            "start.json",
            "The client's first message, as text. ok: the session starts; otherwise the gateway closes with `close`. \
             Strict: one JSON object with the one field `type`, whose value is \"start\" once unescaped.",
            messages::starts(),
        ),
        file(
            "frames.json",
            "One message after a good start, by opcode and declared length in bytes (the content does not matter). \
             ok: the gateway takes it as a frame; otherwise it closes with `close`. A message over 65536 bytes is refused at \
             the latest when more than that has come; a gateway may refuse it from its header alone.",
            messages::frames(),
        ),
        file(
            "synthetic.json",
            "Synthetic audio: sample i of 320 of frame `seq` of session `session` is \
             ((seq*320 + session + i) * 17 mod 20000) - 10000, as signed 16-bit little-endian. pcm_sha256 is over \
             the frame's 640 bytes.",
            sessions::synthetic(),
        ),
        file(
            "reference.json",
            "The inference server's answer for a batch. The batch is `pcm` (hex), or, from `pcm_from`, `frames` \
             consecutive synthetic frames of `session` from `first_seq` on. Compare rms within a relative 1e-9, all else exactly.",
            answers::reference(),
        ),
        file(
            "inference_answers.json",
            "Bodies of a 200 answer from the inference server. ok: the strict answer object; otherwise the batch \
             ends in one error of `kind`, stage inference_response_parse, not retryable.",
            answers::bodies(),
        ),
        file(
            "inference_failures.json",
            "How a failed inference request is named: by its HTTP status, or by what happened to the transport.",
            answers::failures(),
        ),
        file(
            "partials.json",
            "The `partial` that a gateway sends for an inference answer and the batch it covers: exactly these \
             fields. Compare parsed JSON, numbers by value.",
            sessions::partials(),
        ),
        file(
            "errors.json",
            "The `error` that a gateway sends for a failed batch or dropped frames: exactly these fields, null where \
             nothing is known. Compare parsed JSON, numbers by value. `message` is free text for people.",
            sessions::errors(),
        ),
    ]
}

fn file<Case: Serialize>(name: &'static str, about: &'static str, cases: Vec<Case>) -> VectorFile {
    let mut json =
        serde_json::to_string_pretty(&Vectors { about, cases }).expect("vectors are plain data");
    json.push('\n');
    VectorFile { name, json }
}
