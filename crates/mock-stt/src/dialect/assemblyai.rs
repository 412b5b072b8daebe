//! AssemblyAI's universal streaming, version 3: <https://www.assemblyai.com/docs/api-reference/streaming-api/universal-streaming>.

use plimsoll_mock_server::http::Answer;
use plimsoll_mock_server::request::Request;
use serde_json::{Value, json};

use super::{Ask, CONFIDENCE, Dialect, ID, Incoming, NORMAL, Out, Refusal, refused_with, seconds};
use crate::audio::{Encoding, Format};
use crate::corpus::Word;
use crate::scribe::Event;

/// The shortest message, in ms.
const MESSAGE_MIN_MS: usize = 50;
/// Audio between two heartbeats, in ms.
const HEARTBEAT_MS: u64 = 5_000;

/// A session.
#[derive(Debug)]
pub struct AssemblyAi {
    format: Format,
    /// Whether each turn comes again, formatted.
    formats: bool,
    heartbeat: bool,
    turn: u64,
    beat_ms: u64,
}

impl AssemblyAi {
    /// Reads the address.
    ///
    /// # Errors
    /// The answer to audio that is not understood.
    pub fn open(request: &Request) -> Result<Self, Answer> {
        let encoding = match request.parameter("encoding").unwrap_or("pcm_s16le") {
            "pcm_s16le" => Some(Encoding::S16le),
            "pcm_mulaw" => Some(Encoding::MuLaw),
            _ => None,
        };
        let rate_hz = request
            .parameter("sample_rate")
            .unwrap_or("16000")
            .parse()
            .ok();
        let format = encoding.zip(rate_hz);
        let format = format.map(|(encoding, rate_hz)| Format { encoding, rate_hz });
        let Some(format) = format.filter(|format| format.is_known()) else {
            let told = json!({"error": "give sample_rate=16000 and encoding=pcm_s16le"});
            return Err(refused_with("400 Bad Request", &told));
        };
        Ok(Self {
            format,
            formats: request.parameter("format_turns") == Some("true"),
            heartbeat: request.parameter("session_heartbeat") == Some("true"),
            turn: 0,
            beat_ms: 0,
        })
    }

    fn encoding(&self) -> &'static str {
        if self.format.encoding == Encoding::MuLaw {
            "pcm_mulaw"
        } else {
            "pcm_s16le"
        }
    }

    /// The last word of a turn that goes on may still change, and is not in its transcript.
    fn turn(&self, words: &[Word], ended: bool, formatted: bool) -> Value {
        let finals = if ended {
            words.len()
        } else {
            words.len().saturating_sub(1)
        };
        let list = words.iter().enumerate().map(|(number, word)| {
            json!({
                "text": &*word.text, "start": word.start_ms, "end": word.end_ms,
                "confidence": CONFIDENCE, "word_is_final": number < finals,
            })
        });
        let list: Vec<Value> = list.collect();
        let transcript = crate::scribe::text(&words[..finals]);
        let utterance = if ended { transcript.as_str() } else { "" };
        json!({
            "type": "Turn", "turn_order": self.turn, "turn_is_formatted": formatted, "end_of_turn": ended,
            "transcript": transcript, "utterance": utterance, "words": list,
            "end_of_turn_confidence": if ended { CONFIDENCE } else { 0.0 },
        })
    }
}

fn error(code: u16, told: &'static str, out: &mut Out) {
    out.json(&json!({"type": "Error", "error_code": code, "error": told}));
    out.close(code, told);
}

impl Dialect for AssemblyAi {
    fn format(&self) -> Format {
        self.format
    }

    fn greeting(&mut self, out: &mut Out) {
        out.json(&json!({
            "type": "Begin", "id": ID, "expires_at": 1_767_225_600,
            "configuration": {
                "model": "mock", "api_version": "v3", "sample_rate": self.format.rate_hz, "encoding": self.encoding(),
            },
        }));
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        let text = match incoming {
            Incoming::Binary(audio) | Incoming::Bytes(audio) => {
                let sample_bytes = if self.format.encoding == Encoding::MuLaw {
                    1
                } else {
                    2
                };
                let second = self.format.rate_hz as usize * sample_bytes;
                if audio.len() * 1_000 < second * MESSAGE_MIN_MS {
                    return error(3007, "Input duration violation: 50 to 1000 ms", out);
                }
                return asks.push(Ask::Audio(audio.to_vec()));
            }
            Incoming::Text(text) => text,
        };
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        match message["type"].as_str() {
            Some("ForceEndpoint") => asks.push(Ask::Flush),
            Some("Terminate") => asks.push(Ask::End),
            Some("UpdateConfiguration" | "KeepAlive") => {}
            _ => error(3006, "Invalid message type", out),
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Speech { at_ms } => {
                out.json(
                    &json!({"type": "SpeechStarted", "timestamp": at_ms, "confidence": CONFIDENCE}),
                );
            }
            Event::Interim { words, .. } => out.json(&self.turn(words, false, false)),
            Event::Final(told) if !told.words.is_empty() => {
                out.json(&self.turn(&told.words, true, false));
                if self.formats {
                    out.json(&self.turn(&told.words, true, true));
                }
                self.turn += 1;
            }
            Event::Message { heard_ms }
                if self.heartbeat && *heard_ms >= self.beat_ms + HEARTBEAT_MS =>
            {
                self.beat_ms = *heard_ms;
                out.json(&json!({
                    "type": "Heartbeat", "total_audio_received_ms": heard_ms, "total_duration_ms": heard_ms,
                    "realtime_factor": 1.0, "max_speech_probability": CONFIDENCE,
                }));
            }
            _ => {}
        }
    }

    fn goodbye(&mut self, heard_ms: u64, out: &mut Out) {
        let duration = seconds(heard_ms);
        out.json(&json!({
            "type": "Termination", "audio_duration_seconds": duration, "session_duration_seconds": duration,
        }));
        out.close(NORMAL, "");
    }

    fn refused(&self, _refusal: Refusal) -> Option<Answer> {
        None
    }

    fn refuse(&mut self, refusal: Refusal, _heard: &str, out: &mut Out) {
        match refusal {
            Refusal::Key => error(
                1008,
                "Unauthorized Connection: Missing Authorization header",
                out,
            ),
            Refusal::Rate => error(4102, "Too many requests", out),
            Refusal::Capacity => error(
                3009,
                "Unauthorized Connection: Too many concurrent sessions",
                out,
            ),
        }
    }

    fn fail(&mut self, out: &mut Out) {
        error(3005, "Server error: failed on demand", out);
    }
}
