//! What a gateway says, read strictly.

use serde::Deserialize;

/// Which fields a gateway's messages must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fields {
    /// Those that the contract marks with `?` may be missing: a foreign gateway's.
    Required,
    /// All of them.
    All,
}

/// One message of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    Ready(Ready),
    Result(SttResult),
    Complete(Complete),
    Error(Failure),
    Audio(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Ready {
    pub(super) stream_id: String,
    protocol_version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct SttResult {
    pub(super) transcript: String,
    pub(super) is_final: bool,
    pub(super) is_speech_final: bool,
    pub(super) confidence: f64,
    pub(super) provider_ms: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Complete {
    pub(super) timestamp: u64,
    pub(super) speak: Option<u64>,
    pub(super) provider_ms: Option<f64>,
    pub(super) dropped_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) kind: Option<String>,
    pub(super) retryable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Text {
    Ready(Ready),
    SttResult(SttResult),
    TtsPlaybackComplete(Complete),
    Error(Failure),
}

impl Message {
    /// Reads a text message; the error says what is wrong with it.
    pub(super) fn parse(text: &str, fields: Fields) -> Result<Self, String> {
        let read: Text =
            serde_json::from_str(text).map_err(|error| format!("{error} in {text}"))?;
        let (message, missing) = match read {
            Text::Ready(ready) => {
                let missing = ready.protocol_version.is_none();
                (Self::Ready(ready), missing.then_some("protocol_version"))
            }
            Text::SttResult(result) => (Self::Result(result), None),
            Text::TtsPlaybackComplete(complete) => {
                let missing = complete.missing();
                (Self::Complete(complete), missing)
            }
            Text::Error(failure) => {
                let missing = failure.missing();
                (Self::Error(failure), missing)
            }
        };
        match missing {
            Some(field) if fields == Fields::All => Err(format!("no {field} in {text}")),
            _ => Ok(message),
        }
    }

    /// In a few words.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Ready(ready) => format!("`ready` of {:?}", ready.stream_id),
            Self::Result(result) => result.describe(),
            Self::Complete(complete) => match complete.speak {
                Some(speak) => format!("`tts_playback_complete` of speak {speak}"),
                None => "`tts_playback_complete`".to_owned(),
            },
            Self::Error(failure) => failure.describe(),
            Self::Audio(audio) => format!("{} bytes of audio", audio.len()),
        }
    }
}

impl SttResult {
    pub(super) fn describe(&self) -> String {
        format!(
            "`stt_result` {:?} with is_final {}, is_speech_final {}, confidence {}",
            self.transcript, self.is_final, self.is_speech_final, self.confidence
        )
    }
}

impl Complete {
    fn missing(&self) -> Option<&'static str> {
        [
            ("speak", self.speak.is_none()),
            ("provider_ms", self.provider_ms.is_none()),
            ("dropped_bytes", self.dropped_bytes.is_none()),
        ]
        .into_iter()
        .find_map(|(field, missing)| missing.then_some(field))
    }
}

impl Failure {
    fn missing(&self) -> Option<&'static str> {
        match (&self.kind, self.retryable) {
            (None, _) => Some("kind"),
            (_, None) => Some("retryable"),
            _ => None,
        }
    }

    /// Whether it is of this kind. One that does not say its kind may be of any.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind.as_deref().is_none_or(|own| own == kind)
    }

    pub(super) fn describe(&self) -> String {
        let kind = self.kind.as_deref().unwrap_or("without a kind");
        format!("`error` {kind} ({:?})", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str =
        r#"{"type":"error","message":"no","kind":"tts_failed","retryable":true,"more":1}"#;
    const COMPLETE: &str = r#"{"type":"tts_playback_complete","timestamp":1,"speak":2,"provider_ms":3.5,"dropped_bytes":0}"#;

    #[test]
    fn messages_are_read_and_unknown_fields_are_not() {
        let Ok(Message::Error(failure)) = Message::parse(ERROR, Fields::All) else {
            panic!("not read");
        };
        assert!(failure.is("tts_failed") && !failure.is("tts_timeout"));
        assert!(Message::parse(COMPLETE, Fields::All).is_ok());
        for text in ["hello", "{}", r#"{"type":"error"}"#, r#"{"type":"greet"}"#] {
            assert!(Message::parse(text, Fields::Required).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_foreign_gateway_may_leave_out_ours_must_say() {
        for (text, field) in [
            (ERROR, r#","kind":"tts_failed""#),
            (ERROR, r#","retryable":true"#),
            (COMPLETE, r#","speak":2"#),
            (COMPLETE, r#","provider_ms":3.5"#),
            (COMPLETE, r#","dropped_bytes":0"#),
        ] {
            assert!(text.contains(field));
            let less = text.replace(field, "");
            assert!(Message::parse(&less, Fields::All).is_err(), "{less}");
            assert!(Message::parse(&less, Fields::Required).is_ok(), "{less}");
        }
    }
}
