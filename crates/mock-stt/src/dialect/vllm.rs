//! vLLM's realtime API: <https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html>, `vllm/entrypoints/openai/realtime/`.
//!
//! Text has no times: words come as they are understood, and all of them at the end.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plimsoll_mock_server::http::Answer;
use serde_json::{Value, json};

use super::{Ask, Dialect, Incoming, Out, Refusal, refused_plainly};
use crate::scribe::Event;

/// A session.
#[derive(Debug, Default)]
pub struct Vllm {
    /// The model is chosen.
    is_set: bool,
    /// All words so far.
    text: String,
}

impl Vllm {
    fn word(&mut self, word: &str, out: &mut Out) {
        let delta = format!(" {word}");
        self.text.push_str(&delta);
        out.json(&json!({"type": "transcription.delta", "delta": delta}));
    }
}

fn error(told: &str, code: &str, out: &mut Out) {
    out.json(&json!({"type": "error", "error": told, "code": code}));
}

impl Dialect for Vllm {
    fn greeting(&mut self, out: &mut Out) {
        out.json(&json!({"type": "session.created", "id": "sess-mock", "created": 1_767_225_600}));
    }

    /// It hears until the client says that this was all.
    fn client_turns(&self) -> bool {
        true
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        let message: Value = match incoming {
            Incoming::Text(text) => serde_json::from_str(text).unwrap_or_default(),
            Incoming::Binary(_) | Incoming::Bytes(_) => Value::Null,
        };
        match message["type"].as_str() {
            Some("session.update") => self.is_set = true,
            Some("input_audio_buffer.append") => {
                let audio = message["audio"]
                    .as_str()
                    .and_then(|text| BASE64.decode(text).ok());
                match audio {
                    Some(audio) => asks.push(Ask::Audio(audio)),
                    None => error("Invalid audio data", "invalid_audio", out),
                }
            }
            Some("input_audio_buffer.commit") if !self.is_set => {
                error(
                    "Model not validated. Send session.update first.",
                    "model_not_validated",
                    out,
                );
            }
            Some("input_audio_buffer.commit") if message["final"] == true => asks.push(Ask::End),
            Some("input_audio_buffer.commit") => {}
            _ => error("Unknown event type", "unknown_event", out),
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Word(word) => self.word(&word.text, out),
            Event::Final(told) if told.again => {
                for word in &told.words {
                    self.word(&word.text, out);
                }
            }
            _ => {}
        }
    }

    fn goodbye(&mut self, _heard_ms: u64, out: &mut Out) {
        let words = self.text.split_whitespace().count();
        out.json(&json!({
            "type": "transcription.done", "text": self.text,
            "usage": {"prompt_tokens": 0, "total_tokens": words, "completion_tokens": words, "prompt_tokens_details": null},
        }));
    }

    fn refused(&self, refusal: Refusal) -> Option<Answer> {
        Some(refused_plainly(refusal))
    }

    fn fail(&mut self, out: &mut Out) {
        error("failed on demand", "processing_error", out);
        out.close(super::INTERNAL_ERROR, "");
    }
}
