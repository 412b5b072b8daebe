//! The messages between a caller and a gateway. Unknown fields are ignored, as the contract asks
//! of both sides.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

/// Providers that a session asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Providers {
    /// Who recognises speech.
    pub stt: String,
    /// Who speaks.
    pub tts: String,
}

/// How a caller names its session.
#[must_use]
pub fn stream_id(vu: u32) -> String {
    format!("vu-{vu}")
}

/// The message that opens a session.
#[must_use]
pub fn config(vu: u32, providers: &Providers) -> String {
    json!({
        "type": "config",
        "stream_id": stream_id(vu),
        "stt_config": {
            "provider": providers.stt, "language": "en-US", "sample_rate": 16_000, "channels": 1,
            "punctuation": true, "encoding": "linear16", "model": "nova-3",
        },
        "tts_config": tts_config(providers),
    })
    .to_string()
}

/// Who is to speak, and how.
pub(crate) fn tts_config(providers: &Providers) -> Value {
    json!({
        "provider": providers.tts, "model": "aura-2", "audio_format": "linear16", "sample_rate": 24_000,
    })
}

/// The message that asks for a reply. It takes the place of whatever plays or waits.
#[must_use]
pub fn speak(text: &str) -> String {
    json!({"type": "speak", "text": text, "flush": true, "allow_interruption": true}).to_string()
}

/// The message that interrupts a reply.
pub const CLEAR: &str = r#"{"type":"clear"}"#;

/// What a gateway says in text.
#[derive(Debug, Clone, PartialEq)]
pub enum GatewayMessage<'a> {
    /// The session is open.
    Ready {
        /// What `config` named, or a name that the gateway made.
        stream_id: Cow<'a, str>,
    },
    /// A transcript.
    SttResult {
        /// The words; a mock provider puts its mark before them.
        transcript: Cow<'a, str>,
        /// Whether they will not change any more.
        is_final: bool,
        /// Whether the utterance is over.
        is_speech_final: bool,
    },
    /// A reply is complete.
    PlaybackComplete {
        /// The number of its text in the session, from 1, if the gateway says it.
        speak: Option<u32>,
        /// Bytes of it that the gateway dropped, because the caller read too slowly, if it says so.
        dropped_bytes: Option<u64>,
    },
    /// Something went wrong.
    Error {
        /// What, if the gateway says it: `tts_failed`.
        kind: Cow<'a, str>,
    },
}

/// All fields of all messages that matter here.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind_of_message: Cow<'a, str>,
    #[serde(borrow, default)]
    stream_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    transcript: Option<Cow<'a, str>>,
    is_final: Option<bool>,
    is_speech_final: Option<bool>,
    confidence: Option<f64>,
    timestamp: Option<f64>,
    speak: Option<u32>,
    dropped_bytes: Option<u64>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

impl<'a> GatewayMessage<'a> {
    /// Reads a text message.
    ///
    /// # Errors
    /// Which rule of the contract it breaks.
    pub fn parse(text: &'a str) -> Result<Self, &'static str> {
        let fields: Fields<'a> =
            serde_json::from_str(text).map_err(|_| "message that is not JSON with a type")?;
        match &*fields.kind_of_message {
            "ready" => Some(Self::Ready {
                stream_id: fields.stream_id.ok_or("`ready` without its stream_id")?,
            }),
            "stt_result" => fields.stt_result(),
            "tts_playback_complete" => fields.timestamp.map(|_| Self::PlaybackComplete {
                speak: fields.speak,
                dropped_bytes: fields.dropped_bytes,
            }),
            "error" => fields.message.map(|_| Self::Error {
                kind: fields.kind.unwrap_or(Cow::Borrowed("error")),
            }),
            _ => return Err("message of a type that the contract does not have"),
        }
        .ok_or("message without a field that the contract requires")
    }
}

impl<'a> Fields<'a> {
    fn stt_result(self) -> Option<GatewayMessage<'a>> {
        self.confidence?;
        Some(GatewayMessage::SttResult {
            transcript: self.transcript?,
            is_final: self.is_final?,
            is_speech_final: self.is_speech_final?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_read() {
        let ready = r#"{"type":"ready","stream_id":"vu-7","protocol_version":"1.0","more":[1]}"#;
        let expected = GatewayMessage::Ready {
            stream_id: "vu-7".into(),
        };
        assert_eq!(GatewayMessage::parse(ready), Ok(expected));
        let result = r#"{"type":"stt_result","transcript":"a \"b\"","is_final":true,"is_speech_final":false,"confidence":0.9}"#;
        let expected = GatewayMessage::SttResult {
            transcript: "a \"b\"".into(),
            is_final: true,
            is_speech_final: false,
        };
        assert_eq!(GatewayMessage::parse(result), Ok(expected));
        let complete = r#"{"type":"tts_playback_complete","timestamp":1764000000000}"#;
        let expected = GatewayMessage::PlaybackComplete {
            speak: None,
            dropped_bytes: None,
        };
        assert_eq!(GatewayMessage::parse(complete), Ok(expected));
        let error = r#"{"type":"error","message":"no","kind":"tts_failed","retryable":true}"#;
        let expected = GatewayMessage::Error {
            kind: "tts_failed".into(),
        };
        assert_eq!(GatewayMessage::parse(error), Ok(expected));
    }

    #[test]
    fn what_lacks_a_field_breaks_the_contract() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"type":"ready"}"#,
            r#"{"type":"stt_result","transcript":"a","is_final":true,"is_speech_final":true}"#,
            r#"{"type":"stt_result","transcript":"a","is_final":1,"is_speech_final":true,"confidence":1}"#,
            r#"{"type":"tts_playback_complete"}"#,
            r#"{"type":"error"}"#,
            r#"{"type":"partial"}"#,
        ] {
            assert!(GatewayMessage::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_caller_says_is_json() {
        let providers = Providers {
            stt: "deepgram".to_owned(),
            tts: "deepgram".to_owned(),
        };
        let config: serde_json::Value = serde_json::from_str(&config(7, &providers)).expect("JSON");
        assert_eq!(config["stream_id"], "vu-7");
        assert_eq!(config["stt_config"]["sample_rate"], 16_000);
        let speak: serde_json::Value =
            serde_json::from_str(&speak("#7.0 \"hello\"")).expect("JSON");
        assert_eq!(speak["text"], "#7.0 \"hello\"");
    }
}
