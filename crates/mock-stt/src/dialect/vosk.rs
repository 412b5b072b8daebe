//! The Vosk server: <https://github.com/alphacep/vosk-server>, `websocket/asr_server.py`.
//!
//! It answers each message of audio with exactly one text, and names no errors: it drops the line.

use plimsoll_mock_server::http::Answer;
use serde_json::{Value, json};

use super::{Ask, Dialect, Incoming, NORMAL, Out, Refusal, seconds};
use crate::audio::{Encoding, Format};
use crate::corpus::Word;
use crate::scribe::{Event, Final, text};

/// The end, as the server compares it: to the byte.
const EOF: &str = r#"{"eof" : 1}"#;
/// The same for a new utterance.
const RESET: &str = r#"{"reset" : 1}"#;

/// A session.
#[derive(Debug)]
pub struct Vosk {
    rate_hz: u32,
    /// Whether finals have their words one by one.
    words: bool,
    /// The words of the utterance.
    said: Vec<Word>,
    /// A final that was not told yet.
    over: Option<Value>,
}

impl Default for Vosk {
    fn default() -> Self {
        Self {
            // The server's own; the client's configuration changes it.
            rate_hz: 8_000,
            words: false,
            said: Vec::new(),
            over: None,
        }
    }
}

impl Vosk {
    /// Takes a configuration; false if it cannot be used.
    fn configure(&mut self, text: &str) -> bool {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let config = &message["config"];
        let known = [8_000, 16_000, 24_000];
        let wanted = config["sample_rate"].as_f64();
        match known
            .into_iter()
            .find(|rate| wanted == Some(f64::from(*rate)))
        {
            Some(rate_hz) => self.rate_hz = rate_hz,
            None if wanted.is_some() => return false,
            None => {}
        }
        self.words = config["words"].as_bool().unwrap_or(self.words);
        config.is_object()
    }

    fn result(&self, told: &Final) -> Value {
        let words = told.words.iter().map(|word| {
            json!({
                "conf": 1.0, "start": seconds(word.start_ms), "end": seconds(word.end_ms), "word": &*word.text,
            })
        });
        let words: Vec<Value> = words.collect();
        let text = text(&told.words);
        if self.words && !words.is_empty() {
            json!({"result": words, "text": text})
        } else {
            json!({"text": text})
        }
    }
}

impl Dialect for Vosk {
    fn format(&self) -> Format {
        Format {
            encoding: Encoding::S16le,
            rate_hz: self.rate_hz,
        }
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        match incoming {
            Incoming::Text(EOF) => asks.push(Ask::End),
            Incoming::Text(RESET) => asks.push(Ask::Flush),
            Incoming::Text(text) => {
                if !self.configure(text) {
                    out.drop_line();
                }
            }
            Incoming::Binary(audio) | Incoming::Bytes(audio) => {
                asks.push(Ask::Audio(audio.to_vec()));
            }
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Word(word) => self.said.push(word.clone()),
            Event::Final(told) => {
                self.said.clear();
                let result = self.result(told);
                if let Some(earlier) = self.over.replace(result) {
                    out.json(&earlier);
                }
            }
            Event::Flushed => {
                let over = self.over.take();
                out.json(&over.unwrap_or_else(|| json!({"text": ""})));
            }
            Event::Message { .. } => {
                let over = self.over.take();
                out.json(&over.unwrap_or_else(|| json!({"partial": text(&self.said)})));
            }
            Event::Speech { .. } | Event::Interim { .. } | Event::Quiet { .. } => {}
        }
    }

    fn goodbye(&mut self, _heard_ms: u64, out: &mut Out) {
        out.close(NORMAL, "");
    }

    fn refused(&self, _refusal: Refusal) -> Option<Answer> {
        None
    }

    fn fail(&mut self, out: &mut Out) {
        out.drop_line();
    }
}
