//! Deepgram's live API, version 1: <https://developers.deepgram.com/reference/speech-to-text/listen-streaming>.

use plimsoll_mock_server::http::Answer;
use plimsoll_mock_server::request::Request;
use serde_json::{Value, json};

use super::{
    Ask, CONFIDENCE, Dialect, ID, INTERNAL_ERROR, Incoming, NORMAL, Out, Refusal, seconds,
};
use crate::audio::{Encoding, Format};
use crate::corpus::Word;
use crate::scribe::{Event, text};

/// How long a session may be without audio or a keep-alive, in ms.
const IDLE_MS: u64 = 10_000;

/// A session.
#[derive(Debug)]
pub struct Deepgram {
    format: Format,
    interim: bool,
    /// Whether it says when somebody begins to speak, and when an utterance is over.
    vad_events: bool,
    utterance_end: bool,
    /// Where the last final ended, in ms.
    final_ms: u64,
}

impl Deepgram {
    /// Reads the address.
    ///
    /// # Errors
    /// The answer to audio that is not understood.
    pub fn open(request: &Request) -> Result<Self, Answer> {
        let encoding = match request.parameter("encoding") {
            Some("linear16") => Some(Encoding::S16le),
            Some("mulaw") => Some(Encoding::MuLaw),
            _ => None,
        };
        let rate_hz = request.parameter("sample_rate").map(str::parse);
        let format = match (encoding, rate_hz) {
            (Some(encoding), Some(Ok(rate_hz))) => Some(Format { encoding, rate_hz }),
            _ => None,
        };
        let channels = request.parameter("channels").unwrap_or("1");
        let Some(format) = format.filter(|format| format.is_known() && channels == "1") else {
            return Err(refused(
                "400 Bad Request",
                "Bad Request",
                "give encoding=linear16&sample_rate=16000&channels=1 (or 8000, 24000; mulaw with 8000)",
            ));
        };
        Ok(Self {
            format,
            interim: request.parameter("interim_results") == Some("true"),
            vad_events: request.parameter("vad_events") == Some("true"),
            utterance_end: request.parameter("utterance_end_ms").is_some(),
            final_ms: 0,
        })
    }

    fn results(&mut self, to_ms: u64, words: &[Word], kind: Kind) -> Value {
        let from_ms = match kind {
            Kind::Final { from_ms, .. } => from_ms,
            _ => self.final_ms,
        };
        let is_final = kind != Kind::Interim;
        if is_final {
            self.final_ms = to_ms;
        }
        let list: Vec<Value> = words
            .iter()
            .map(|word| {
                json!({
                    "word": &*word.text, "start": seconds(word.start_ms), "end": seconds(word.end_ms),
                    "confidence": CONFIDENCE, "punctuated_word": &*word.text,
                })
            })
            .collect();
        let confidence = if words.is_empty() { 0.0 } else { CONFIDENCE };
        json!({
            "type": "Results", "channel_index": [0, 1],
            "start": seconds(from_ms), "duration": seconds(to_ms.saturating_sub(from_ms)),
            "is_final": is_final, "speech_final": matches!(kind, Kind::Final { .. }),
            "channel": {"alternatives": [
                {"transcript": text(words), "confidence": confidence, "languages": ["en"], "words": list},
            ]},
            "metadata": {"request_id": ID, "model_info": model(), "model_uuid": ID},
            "from_finalize": matches!(kind, Kind::Final { asked: true, .. }),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interim,
    /// Nobody spoke.
    Quiet,
    Final {
        from_ms: u64,
        asked: bool,
    },
}

fn model() -> Value {
    json!({"name": "mock", "version": env!("CARGO_PKG_VERSION"), "arch": "mock"})
}

fn refused(status: &'static str, code: &'static str, told: &'static str) -> Answer {
    let body = json!({"err_code": code, "err_msg": told, "request_id": ID});
    Answer {
        header: Some(("dg-error", told)),
        ..super::refused_with(status, &body)
    }
}

impl Dialect for Deepgram {
    fn format(&self) -> Format {
        self.format
    }

    fn idle_ms(&self) -> Option<u64> {
        Some(IDLE_MS)
    }

    fn idle(&mut self, out: &mut Out) {
        out.close(
            INTERNAL_ERROR,
            "NET-0001: no audio data or text message within the timeout window",
        );
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        let text = match incoming {
            Incoming::Binary([]) => {
                return out.close(1008, "DATA-0000: the payload cannot be decoded as audio");
            }
            Incoming::Binary(audio) | Incoming::Bytes(audio) => {
                return asks.push(Ask::Audio(audio.to_vec()));
            }
            Incoming::Text(text) => text,
        };
        let command: Value = serde_json::from_str(text).unwrap_or_default();
        match command["type"].as_str() {
            Some("Finalize") => asks.push(Ask::Flush),
            Some("CloseStream") => asks.push(Ask::End),
            Some("KeepAlive") => {}
            _ => {
                out.json(&json!({
                    "type": "Error", "description": "unknown message",
                    "message": "give KeepAlive, Finalize or CloseStream", "variant": "bad-message",
                }));
            }
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Speech { at_ms } if self.vad_events => {
                out.json(
                    &json!({"type": "SpeechStarted", "channel": [0], "timestamp": seconds(*at_ms)}),
                );
            }
            Event::Interim { upto_ms, words } if self.interim => {
                let results = self.results(*upto_ms, words, Kind::Interim);
                out.json(&results);
            }
            Event::Final(told) => {
                let (from_ms, asked) = (told.from_ms, told.asked);
                let kind = Kind::Final { from_ms, asked };
                let results = self.results(told.to_ms, &told.words, kind);
                out.json(&results);
                if self.utterance_end {
                    out.json(&json!({
                        "type": "UtteranceEnd", "channel": [0, 1], "last_word_end": seconds(told.end_ms),
                    }));
                }
            }
            Event::Quiet { to_ms, .. } => {
                let results = self.results(*to_ms, &[], Kind::Quiet);
                out.json(&results);
            }
            _ => {}
        }
    }

    fn goodbye(&mut self, heard_ms: u64, out: &mut Out) {
        out.json(&json!({
            "type": "Metadata", "transaction_key": "deprecated", "request_id": ID,
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "created": "2026-01-01T00:00:00.000Z", "duration": seconds(heard_ms), "channels": 1,
            "models": [ID], "model_info": {ID: model()},
        }));
        out.close(NORMAL, "");
    }

    fn refused(&self, refusal: Refusal) -> Option<Answer> {
        Some(match refusal {
            Refusal::Key => refused("401 Unauthorized", "INVALID_AUTH", "Invalid credentials."),
            Refusal::Rate => refused(
                "429 Too Many Requests",
                "TOO_MANY_REQUESTS",
                "Too many requests.",
            ),
            Refusal::Capacity => refused(
                "503 Service Unavailable",
                "SERVICE_UNAVAILABLE",
                "All places are taken.",
            ),
        })
    }
}
