//! Speechmatics' realtime API, version 2: <https://docs.speechmatics.com/api-ref/realtime-transcription-websocket>.

use plimsoll_mock_server::http::Answer;
use serde_json::{Value, json};

use super::{
    Ask, CONFIDENCE, Dialect, ID, INTERNAL_ERROR, Incoming, NORMAL, Out, Refusal, seconds,
};
use crate::audio::{Encoding, Format};
use crate::corpus::Word;
use crate::scribe::Event;

/// The version of the results' format.
const FORMAT: &str = "2.9";

/// A session.
#[derive(Debug, Default)]
pub struct Speechmatics {
    /// The audio; none before the session was started.
    format: Option<Format>,
    partials: bool,
    /// Whether the end of an utterance is told.
    ends: bool,
    /// How many messages of audio came.
    added: u64,
    /// Where the last final ended.
    final_ms: u64,
}

/// A transcript of this span. A sentence that ends has its full stop.
fn transcript(kind: &str, (from_ms, to_ms): (u64, u64), words: &[Word], ends: bool) -> Value {
    let results = words.iter().map(|word| {
        json!({
            "type": "word", "start_time": seconds(word.start_ms), "end_time": seconds(word.end_ms),
            "alternatives": [{"content": &*word.text, "confidence": CONFIDENCE, "language": "en", "speaker": "UU"}],
        })
    });
    let mut results: Vec<Value> = results.collect();
    let mut text = crate::scribe::text(words);
    if let Some(last) = words.last().filter(|_| ends) {
        let at = seconds(last.end_ms);
        results.push(json!({
            "type": "punctuation", "start_time": at, "end_time": at, "attaches_to": "previous", "is_eos": true,
            "alternatives": [{"content": ".", "confidence": CONFIDENCE, "language": "en", "speaker": "UU"}],
        }));
        text.push('.');
    }
    if !text.is_empty() {
        text.push(' ');
    }
    json!({
        "message": kind, "format": FORMAT,
        "metadata": {"start_time": seconds(from_ms), "end_time": seconds(to_ms), "transcript": text},
        "results": results,
    })
}

fn error(kind: &str, told: &str, out: &mut Out) {
    out.json(&json!({"message": "Error", "type": kind, "reason": told}));
}

impl Speechmatics {
    fn start(&mut self, message: &Value, out: &mut Out) {
        let audio = &message["audio_format"];
        let encoding = match audio["encoding"].as_str() {
            Some("pcm_s16le") => Some(Encoding::S16le),
            Some("pcm_f32le") => Some(Encoding::F32le),
            Some("mulaw") => Some(Encoding::MuLaw),
            _ => None,
        };
        let rate_hz = audio["sample_rate"]
            .as_u64()
            .and_then(|rate| u32::try_from(rate).ok());
        let format = encoding.zip(rate_hz);
        let format = format.map(|(encoding, rate_hz)| Format { encoding, rate_hz });
        self.format = format.filter(|format| audio["type"] == "raw" && format.is_known());
        if self.format.is_none() {
            error(
                "invalid_audio_type",
                "give raw audio, pcm_s16le at 16000",
                out,
            );
            return out.close(1003, "invalid_audio_type");
        }
        let config = &message["transcription_config"];
        self.partials = config["enable_partials"] == true;
        let silence = &config["conversation_config"]["end_of_utterance_silence_trigger"];
        self.ends = silence.as_f64().is_some_and(|trigger| trigger > 0.0);
        let pack = json!({
            "adapted": false, "itn": true, "language_description": "English", "word_delimiter": " ", "writing_direction": "left-to-right",
        });
        out.json(&json!({
            "message": "RecognitionStarted", "id": ID, "orchestrator_version": "mock", "language_pack_info": pack,
        }));
        out.json(&json!({
            "message": "Info", "type": "recognition_quality", "reason": "Running recognition using a broadband model quality.",
            "quality": "broadband",
        }));
    }
}

impl Dialect for Speechmatics {
    fn format(&self) -> Format {
        self.format.unwrap_or(Format::USUAL)
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        let text = match incoming {
            Incoming::Binary(_) | Incoming::Bytes(_) if self.format.is_none() => {
                error("protocol_error", "audio before StartRecognition", out);
                return out.close(1003, "protocol_error");
            }
            Incoming::Binary(audio) | Incoming::Bytes(audio) => {
                self.added += 1;
                out.json(&json!({"message": "AudioAdded", "seq_no": self.added}));
                return asks.push(Ask::Audio(audio.to_vec()));
            }
            Incoming::Text(text) => text,
        };
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        match message["message"].as_str() {
            Some("StartRecognition") if self.format.is_none() => self.start(&message, out),
            Some("ForceEndOfUtterance") => asks.push(Ask::Flush),
            Some("EndOfStream") if message["last_seq_no"] == self.added => asks.push(Ask::End),
            Some("EndOfStream") => {
                let told = "last_seq_no is not the number of AddAudio messages";
                error("protocol_error", told, out);
                out.close(1003, "protocol_error");
            }
            Some("SetRecognitionConfig") => {}
            _ => {
                error("invalid_message", "unknown message", out);
                out.close(1003, "invalid_message");
            }
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Interim { upto_ms, words } if self.partials => {
                let span = (self.final_ms, *upto_ms);
                out.json(&transcript("AddPartialTranscript", span, words, false));
            }
            Event::Final(told) => {
                self.final_ms = told.to_ms;
                let span = (told.from_ms, told.to_ms);
                out.json(&transcript("AddTranscript", span, &told.words, true));
                if self.ends || told.asked {
                    let at = seconds(told.end_ms);
                    out.json(&json!({"message": "EndOfUtterance", "metadata": {"start_time": at, "end_time": at}}));
                }
            }
            Event::Quiet { from_ms, to_ms } => {
                self.final_ms = *to_ms;
                out.json(&transcript("AddTranscript", (*from_ms, *to_ms), &[], false));
            }
            _ => {}
        }
    }

    fn goodbye(&mut self, _heard_ms: u64, out: &mut Out) {
        out.json(&json!({"message": "EndOfTranscript"}));
        out.close(NORMAL, "");
    }

    fn refused(&self, _refusal: Refusal) -> Option<Answer> {
        None
    }

    fn hears_before_it_refuses(&self) -> bool {
        true
    }

    fn refuse(&mut self, refusal: Refusal, _heard: &str, out: &mut Out) {
        let (kind, told, code) = match refusal {
            Refusal::Key => ("not_authorised", "Not Authorised", 4001),
            Refusal::Rate => ("quota_exceeded", "Concurrent Quota Exceeded", 4005),
            Refusal::Capacity => ("job_error", "no place is free", 4013),
        };
        error(kind, told, out);
        out.close(code, kind);
    }

    fn fail(&mut self, out: &mut Out) {
        error("internal_error", "failed on demand", out);
        out.close(INTERNAL_ERROR, "internal_error");
    }
}
