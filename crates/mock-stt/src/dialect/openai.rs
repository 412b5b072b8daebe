//! OpenAI's Realtime API, transcription sessions: <https://platform.openai.com/docs/api-reference/realtime-server-events>.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plimsoll_mock_server::http::Answer;
use serde_json::{Value, json};

use super::{Ask, Dialect, Incoming, Out, Refusal, refused_with};
use crate::audio::{Encoding, Format};
use crate::scribe::{Event, Final, text};

/// A session.
#[derive(Debug)]
pub struct Openai {
    format: Format,
    client_turns: bool,
    /// What the client set up, as it is told back.
    session: Value,
    /// Numbers of events and of items.
    events: u64,
    items: u64,
    /// The item of the utterance that is being spoken.
    speaking: Option<u64>,
    /// Audio came since the last commit.
    heard: bool,
    /// Commits of the client that have no item yet, and whether audio came before each.
    commits: VecDeque<bool>,
}

impl Default for Openai {
    fn default() -> Self {
        Self {
            format: Format::s16le(24_000),
            client_turns: false,
            session: json!({
                "type": "transcription", "object": "realtime.transcription_session", "id": "sess_mock", "expires_at": 1_767_225_600,
                "audio": {"input": {
                    "format": {"type": "audio/pcm", "rate": 24_000}, "noise_reduction": null, "transcription": {"model": "mock", "language": "en", "prompt": ""},
                    "turn_detection": {
                        "type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 300,
                    },
                }},
                "include": null,
            }),
            events: 0,
            items: 0,
            speaking: None,
            heard: false,
            commits: VecDeque::new(),
        }
    }
}

fn item_id(number: u64) -> Value {
    if number == 0 {
        Value::Null
    } else {
        json!(format!("item_{number:06}"))
    }
}

/// Sets what the client sets. What it leaves out of an object stays as it was.
fn merge(known: &mut Value, wanted: &Value) {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => {
            for (name, value) in wanted {
                merge(known.entry(name).or_insert(Value::Null), value);
            }
        }
        (known, wanted) => known.clone_from(wanted),
    }
}

impl Openai {
    fn say(&mut self, kind: &str, fields: Value, out: &mut Out) {
        self.events += 1;
        let mut message = json!({"type": kind, "event_id": format!("event_{:06}", self.events)});
        if let (Value::Object(message), Value::Object(fields)) = (&mut message, fields) {
            message.extend(fields);
        }
        out.json(&message);
    }

    fn error(&mut self, kind: &str, code: &str, told: &str, out: &mut Out) {
        let error =
            json!({"type": kind, "code": code, "message": told, "param": null, "event_id": null});
        self.say("error", json!({"error": error}), out);
    }

    fn update(&mut self, wanted: &Value, out: &mut Out) {
        let input = &wanted["audio"]["input"];
        let format = match input["format"]["type"].as_str() {
            Some("audio/pcmu") => Some(Format {
                encoding: Encoding::MuLaw,
                rate_hz: 8_000,
            }),
            Some("audio/pcm") if input["format"]["rate"] == 24_000 => Some(Format::s16le(24_000)),
            None => Some(self.format),
            Some(_) => None,
        };
        let Some(format) = format else {
            let told = "give audio/pcm with rate 24000, or audio/pcmu";
            return self.error("invalid_request_error", "invalid_value", told, out);
        };
        self.format = format;
        if input.is_object() {
            merge(&mut self.session["audio"]["input"], input);
        }
        self.client_turns = self.session["audio"]["input"]["turn_detection"].is_null();
        let session = self.session.clone();
        self.say("session.updated", json!({"session": session}), out);
    }

    fn append(&mut self, message: &Value, asks: &mut Vec<Ask>, out: &mut Out) {
        let audio = message["audio"]
            .as_str()
            .and_then(|text| BASE64.decode(text).ok());
        match audio {
            Some(audio) => {
                self.heard = true;
                asks.push(Ask::Audio(audio));
            }
            None => self.error(
                "invalid_request_error",
                "invalid_value",
                "audio is no base64",
                out,
            ),
        }
    }

    /// A commit with nothing said in it. With endpointing by the server, silence is in no buffer.
    fn commit_of_nothing(&mut self, heard: bool, out: &mut Out) {
        if heard && self.client_turns {
            let item = self.item();
            return self.committed(item, "", out);
        }
        let told = "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has 0.00ms of audio.";
        let code = "input_audio_buffer_commit_empty";
        self.error("invalid_request_error", code, told, out);
    }

    /// The item of what is being spoken, or a new one.
    fn item(&mut self) -> u64 {
        self.speaking.take().unwrap_or_else(|| {
            self.items += 1;
            self.items
        })
    }

    fn committed(&mut self, item: u64, transcript: &str, out: &mut Out) {
        let (item_id, previous) = (item_id(item), item_id(item - 1));
        self.say(
            "input_audio_buffer.committed",
            json!({"previous_item_id": previous, "item_id": item_id}),
            out,
        );
        let content = json!([{"type": "input_audio", "transcript": null}]);
        let added = json!({
            "id": item_id, "type": "message", "status": "completed", "role": "user", "content": content,
        });
        let fields = json!({"previous_item_id": previous, "item": added});
        self.say("conversation.item.added", fields, out);
        self.transcribed(item, transcript, out);
    }

    fn transcribed(&mut self, item: u64, transcript: &str, out: &mut Out) {
        const PREFIX: &str = "conversation.item.input_audio_transcription";
        let of_item = |rest: Value| {
            let mut fields = json!({"item_id": item_id(item), "content_index": 0});
            if let (Value::Object(fields), Value::Object(rest)) = (&mut fields, rest) {
                fields.extend(rest);
            }
            fields
        };
        for (number, word) in transcript.split_whitespace().enumerate() {
            let delta = if number == 0 {
                word.to_owned()
            } else {
                format!(" {word}")
            };
            let fields = of_item(json!({"delta": delta, "logprobs": null, "obfuscation": "mock"}));
            self.say(&format!("{PREFIX}.delta"), fields, out);
        }
        let words = transcript.split_whitespace().count();
        let usage = json!({
            "type": "tokens", "total_tokens": words, "input_tokens": 0, "output_tokens": words,
            "input_token_details": {"text_tokens": 0, "audio_tokens": 0},
        });
        let fields = of_item(json!({"transcript": transcript, "logprobs": null, "usage": usage}));
        self.say(&format!("{PREFIX}.completed"), fields, out);
    }

    fn tell_final(&mut self, told: &Final, out: &mut Out) {
        let transcript = text(&told.words);
        if told.again {
            return self.transcribed(self.items, &transcript, out);
        }
        let item = self.item();
        if told.asked {
            self.commits.pop_front();
        } else {
            let fields = json!({"audio_end_ms": told.end_ms, "item_id": item_id(item)});
            self.say("input_audio_buffer.speech_stopped", fields, out);
        }
        self.committed(item, &transcript, out);
    }
}

impl Dialect for Openai {
    fn format(&self) -> Format {
        self.format
    }

    fn client_turns(&self) -> bool {
        self.client_turns
    }

    fn greeting(&mut self, out: &mut Out) {
        let session = self.session.clone();
        self.say("session.created", json!({"session": session}), out);
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        let message: Value = match incoming {
            Incoming::Text(text) => serde_json::from_str(text).unwrap_or_default(),
            Incoming::Binary(_) | Incoming::Bytes(_) => Value::Null,
        };
        match message["type"].as_str() {
            Some("session.update") => self.update(&message["session"], out),
            Some("input_audio_buffer.append") => self.append(&message, asks, out),
            Some("input_audio_buffer.commit") => {
                self.commits.push_back(std::mem::take(&mut self.heard));
                asks.push(Ask::Flush);
            }
            Some("input_audio_buffer.clear") => {
                self.say("input_audio_buffer.cleared", json!({}), out);
            }
            _ => self.error(
                "invalid_request_error",
                "invalid_value",
                "unknown type of message",
                out,
            ),
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Speech { at_ms } if !self.client_turns => {
                let item = self.item();
                self.speaking = Some(item);
                let fields = json!({"audio_start_ms": at_ms, "item_id": item_id(item)});
                self.say("input_audio_buffer.speech_started", fields, out);
            }
            Event::Final(told) => self.tell_final(told, out),
            Event::Flushed => {
                if let Some(heard) = self.commits.pop_front() {
                    self.commit_of_nothing(heard, out);
                }
            }
            _ => {}
        }
    }

    fn goodbye(&mut self, _heard_ms: u64, _out: &mut Out) {}

    fn refused(&self, refusal: Refusal) -> Option<Answer> {
        let (status, kind, code, told) = match refusal {
            Refusal::Key => (
                "401 Unauthorized",
                "invalid_request_error",
                "invalid_api_key",
                "Incorrect API key provided.",
            ),
            Refusal::Rate => (
                "429 Too Many Requests",
                "requests",
                "rate_limit_exceeded",
                "Rate limit reached.",
            ),
            Refusal::Capacity => (
                "503 Service Unavailable",
                "server_error",
                "overloaded",
                "The server is overloaded.",
            ),
        };
        let error = json!({"message": told, "type": kind, "param": null, "code": code});
        Some(refused_with(status, &json!({"error": error})))
    }

    fn fail(&mut self, out: &mut Out) {
        self.error("server_error", "internal_error", "failed on demand", out);
        out.close(super::INTERNAL_ERROR, "failed on demand");
    }
}
