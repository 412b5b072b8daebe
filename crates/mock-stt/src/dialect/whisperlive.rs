//! WhisperLive: <https://github.com/collabora/WhisperLive>, `whisper_live/server.py` and `whisper_live/backend/`.

use plimsoll_mock_server::http::Answer;
use serde_json::{Value, json};

use super::{Ask, Dialect, Incoming, NORMAL, Out, Refusal, refused_plainly, seconds};
use crate::audio::{Encoding, Format};
use crate::corpus::Word;
use crate::scribe::{Event, text};

/// So many completed segments come each time, and the open one after them.
const SEGMENTS_MAX: usize = 10;
/// How long a client that is refused should wait, in minutes.
const WAIT_MINUTES: f64 = 3.2;

/// A session.
#[derive(Debug)]
pub struct WhisperLive {
    /// What the client calls itself; empty until it has said so.
    uid: String,
    encoding: Encoding,
    completed: Vec<Value>,
}

impl Default for WhisperLive {
    fn default() -> Self {
        Self {
            uid: String::new(),
            encoding: Encoding::F32le,
            completed: Vec::new(),
        }
    }
}

fn segment(words: &[Word], completed: bool) -> Option<Value> {
    let (first, last) = (words.first()?, words.last()?);
    let time = |ms: u64| format!("{:.3}", seconds(ms));
    Some(json!({
        "start": time(first.start_ms), "end": time(last.end_ms),
        "text": format!(" {}", text(words)), "completed": completed,
    }))
}

impl WhisperLive {
    /// The client says what it wants.
    fn opened(&mut self, text: &str, out: &mut Out) {
        let options: Value = serde_json::from_str(text).unwrap_or_default();
        let encoding = match options["audio_format"].as_str() {
            Some("int16") => Some(Encoding::S16le),
            Some("float32") => Some(Encoding::F32le),
            Some(_) => None,
            None => Some(self.encoding),
        };
        let has_language = options.get("language").is_some();
        let (Some(uid), Some(encoding), true) = (options["uid"].as_str(), encoding, has_language)
        else {
            // The server says nothing of what was wrong.
            return out.close(NORMAL, "");
        };
        uid.clone_into(&mut self.uid);
        self.encoding = encoding;
        out.json(&json!({"uid": uid, "message": "SERVER_READY", "backend": "faster_whisper"}));
        if options["language"].is_null() {
            out.json(&json!({"uid": uid, "language": "en", "language_prob": 0.98}));
        }
    }

    fn tell_segments(&self, open: Option<Value>, out: &mut Out) {
        let skipped = self.completed.len().saturating_sub(SEGMENTS_MAX);
        let segments: Vec<&Value> = self.completed[skipped..].iter().chain(&open).collect();
        out.json(&json!({"uid": self.uid, "segments": segments}));
    }
}

impl Dialect for WhisperLive {
    fn format(&self) -> Format {
        Format {
            encoding: self.encoding,
            ..Format::USUAL
        }
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        match incoming {
            Incoming::Text(text) if self.uid.is_empty() => self.opened(text, out),
            // The server reads its options once, and only audio after that.
            Incoming::Text(_) => {}
            Incoming::Binary(b"END_OF_AUDIO") => asks.push(Ask::Leave),
            Incoming::Binary(_) | Incoming::Bytes(_) if self.uid.is_empty() => {
                out.close(NORMAL, "");
            }
            Incoming::Binary(audio) | Incoming::Bytes(audio) => {
                asks.push(Ask::Audio(audio.to_vec()));
            }
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Interim { words, .. } => self.tell_segments(segment(words, false), out),
            Event::Final(told) => {
                self.completed.extend(segment(&told.words, true));
                if !told.words.is_empty() {
                    self.tell_segments(None, out);
                }
            }
            _ => {}
        }
    }

    fn goodbye(&mut self, _heard_ms: u64, out: &mut Out) {
        out.close(NORMAL, "");
    }

    fn refused(&self, refusal: Refusal) -> Option<Answer> {
        (refusal != Refusal::Capacity).then(|| refused_plainly(refusal))
    }

    fn hears_before_it_refuses(&self) -> bool {
        true
    }

    fn refuse(&mut self, _refusal: Refusal, heard: &str, out: &mut Out) {
        let options: Value = serde_json::from_str(heard).unwrap_or_default();
        out.json(&json!({"uid": options["uid"], "status": "WAIT", "message": WAIT_MINUTES}));
        out.close(NORMAL, "");
    }
}
