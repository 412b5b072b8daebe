//! The JSON that crosses a client's WebSocket.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::json::{Object, object};
use crate::problem::{Kind, Problem};
use crate::providers::TtsProvider;

/// Most bytes of a text that is to be spoken.
pub const TEXT_BYTES_MAX: usize = 102_400;
/// Most bytes of a `stream_id`.
const STREAM_ID_BYTES_MAX: usize = 256;

const STT_SAMPLE_RATE: u32 = 16_000;
/// Samples a second of a reply.
pub const TTS_SAMPLE_RATE: u32 = 24_000;
/// The one encoding of audio, both ways.
pub const LINEAR16: &str = "linear16";

/// What a client says.
#[derive(Debug)]
pub enum ClientMessage {
    /// How the session is to be.
    Config(Config),
    /// Something to be spoken.
    Speak(Speak),
    /// Stop speaking.
    Clear,
}

/// How a session is to be.
#[derive(Debug)]
pub struct Config {
    /// Its name.
    pub stream_id: Option<String>,
    /// Its audio; none with `"audio":false`.
    pub audio: Option<Audio>,
}

/// The providers of a session.
#[derive(Debug)]
pub struct Audio {
    /// Who recognises speech.
    pub stt: SttConfig,
    /// Who speaks.
    pub tts: TtsConfig,
}

/// What Deepgram is asked for. It is the one provider that recognises speech.
#[derive(Debug, Clone)]
pub struct SttConfig {
    /// The model.
    pub model: String,
    /// The language.
    pub language: String,
    /// Whether transcripts have punctuation.
    pub punctuation: bool,
}

/// Who speaks, and how.
#[derive(Debug, Clone)]
pub struct TtsConfig {
    /// The provider.
    pub provider: TtsProvider,
    /// Its model.
    pub model: String,
    /// Its voice.
    pub voice_id: String,
}

/// A text to be spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speak {
    /// The text.
    pub text: String,
    /// Whether it takes the place of what plays and waits.
    pub flush: bool,
    /// Whether it may be interrupted.
    pub allow_interruption: bool,
}

impl ClientMessage {
    /// Reads a text message.
    ///
    /// # Errors
    /// Which row of the contract's table it is.
    pub fn parse(text: &[u8]) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            r#type: Cow<'a, str>,
        }
        let bad = |error| Problem::new(Kind::BadMessage, error);
        let head: Head<'_> = object(text).map_err(bad)?;
        match &*head.r#type {
            "config" => Config::parse(text).map(Self::Config),
            "speak" => Speak::parse(text).map(Self::Speak),
            "clear" => Ok(Self::Clear),
            other => Err(Problem::new(Kind::BadMessage, format_args!("unknown type {other:?}"))),
        }
    }
}

impl Config {
    fn parse(text: &[u8]) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Fields {
            stream_id: Option<String>,
            #[serde(default = "yes")]
            audio: bool,
            stt_config: Option<Object<SttFields>>,
            tts_config: Option<Object<TtsFields>>,
        }
        let bad = |error| Problem::new(Kind::BadConfig, error);
        let fields: Fields = object(text).map_err(bad)?;
        if fields.stream_id.as_ref().is_some_and(|id| id.len() > STREAM_ID_BYTES_MAX) {
            let told = format!("stream_id is longer than {STREAM_ID_BYTES_MAX} bytes");
            return Err(Problem::new(Kind::BadConfig, told));
        }
        let missing = |name| Problem::new(Kind::BadConfig, format_args!("missing field {name}"));
        let audio = if fields.audio {
            let Object(stt) = fields.stt_config.ok_or_else(|| missing("stt_config"))?;
            let Object(tts) = fields.tts_config.ok_or_else(|| missing("tts_config"))?;
            Some(Audio { stt: stt.check()?, tts: tts.check()? })
        } else {
            None
        };
        Ok(Self { stream_id: fields.stream_id, audio })
    }
}

#[derive(Deserialize)]
struct SttFields {
    provider: String,
    language: String,
    sample_rate: u32,
    channels: u32,
    punctuation: bool,
    encoding: String,
    model: String,
}

impl SttFields {
    fn check(self) -> Result<SttConfig, Problem> {
        known("provider for speech-to-text", self.provider.as_str(), "deepgram")?;
        known("encoding", self.encoding.as_str(), LINEAR16)?;
        known("sample rate of the caller", &self.sample_rate, &STT_SAMPLE_RATE)?;
        known("number of channels", &self.channels, &1)?;
        Ok(SttConfig { model: self.model, language: self.language, punctuation: self.punctuation })
    }
}

/// `tts_config`, of a session or of a request.
#[derive(Debug, Deserialize)]
pub struct TtsFields {
    provider: String,
    model: String,
    voice_id: Option<String>,
    /// Checked and not passed on: what a provider is asked has no place for it.
    #[serde(default = "usual_rate", rename = "speaking_rate")]
    _speaking_rate: f64,
    #[serde(default = "linear16")]
    audio_format: String,
    #[serde(default = "tts_sample_rate")]
    sample_rate: u32,
}

impl TtsFields {
    /// # Errors
    /// A provider or a format that is not known here.
    pub fn check(self) -> Result<TtsConfig, Problem> {
        let unknown = || Problem::new(Kind::Unsupported, format_args!("unknown provider {:?}", self.provider));
        let provider = TtsProvider::by_name(&self.provider).ok_or_else(unknown)?;
        known("audio format", self.audio_format.as_str(), LINEAR16)?;
        known("sample rate of the reply", &self.sample_rate, &TTS_SAMPLE_RATE)?;
        let voice_id = self.voice_id.unwrap_or_else(|| "default".to_owned());
        Ok(TtsConfig { provider, model: self.model, voice_id })
    }
}

fn known<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, given: &T, known: &T) -> Result<(), Problem> {
    if given == known {
        return Ok(());
    }
    Err(Problem::new(Kind::Unsupported, format_args!("unknown {what} {given:?}; known is {known:?}")))
}

impl Speak {
    fn parse(text: &[u8]) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Fields {
            text: String,
            #[serde(default = "yes")]
            flush: bool,
            #[serde(default = "yes")]
            allow_interruption: bool,
        }
        let bad = |error| Problem::new(Kind::BadMessage, error);
        let fields: Fields = object(text).map_err(bad)?;
        if fields.text.is_empty() {
            return Err(Problem::new(Kind::BadMessage, "text is empty"));
        }
        if fields.text.len() > TEXT_BYTES_MAX {
            return Err(Problem::new(Kind::TooLarge, format_args!("text is longer than {TEXT_BYTES_MAX} bytes")));
        }
        Ok(Self { text: fields.text, flush: fields.flush, allow_interruption: fields.allow_interruption })
    }
}

fn yes() -> bool {
    true
}

fn usual_rate() -> f64 {
    1.0
}

fn linear16() -> String {
    LINEAR16.to_owned()
}

fn tts_sample_rate() -> u32 {
    TTS_SAMPLE_RATE
}

/// The `ready` message.
pub fn ready(stream_id: &str) -> String {
    #[derive(Serialize)]
    struct Ready<'a> {
        r#type: &'static str,
        stream_id: &'a str,
        protocol_version: &'static str,
    }
    to_json(&Ready { r#type: "ready", stream_id, protocol_version: "1.0" })
}

/// A transcript.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "stt_result")]
pub struct SttResult<'a> {
    /// The words.
    pub transcript: Cow<'a, str>,
    /// Whether they will not change any more.
    pub is_final: bool,
    /// Whether the utterance is over.
    pub is_speech_final: bool,
    /// From 0 to 1.
    pub confidence: f64,
    /// From the audio to the result.
    pub provider_ms: f64,
}

impl SttResult<'_> {
    /// The end of an utterance, where the provider does not say it.
    pub const FORCED: Self = Self {
        transcript: Cow::Borrowed(""),
        is_final: true,
        is_speech_final: true,
        confidence: 0.0,
        provider_ms: 0.0,
    };

    /// The `stt_result` message.
    pub fn to_message(&self) -> String {
        to_json(self)
    }
}

/// The `tts_playback_complete` message.
pub fn complete(speak: u64, provider_ms: f64, dropped_bytes: u64) -> String {
    #[derive(Serialize)]
    struct Complete {
        r#type: &'static str,
        timestamp: u64,
        speak: u64,
        provider_ms: f64,
        dropped_bytes: u64,
    }
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let timestamp = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    to_json(&Complete { r#type: "tts_playback_complete", timestamp, speak, provider_ms, dropped_bytes })
}

/// The `error` message.
pub fn error(problem: &Problem) -> String {
    #[derive(Serialize)]
    struct Error<'a> {
        r#type: &'static str,
        message: &'a str,
        kind: &'static str,
        retryable: bool,
    }
    let Problem { kind, message, retryable } = problem;
    to_json(&Error { r#type: "error", message, kind: kind.name(), retryable: *retryable })
}

fn to_json(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("a struct of numbers and strings always serializes")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config() -> Value {
        json!({
            "type": "config",
            "stt_config": {
                "provider": "deepgram", "language": "en-US", "sample_rate": 16_000, "channels": 1,
                "punctuation": true, "encoding": "linear16", "model": "nova-3",
            },
            "tts_config": {"provider": "cartesia", "model": "sonic", "speaking_rate": 1.5},
        })
    }

    fn kind(message: &Value) -> Option<Kind> {
        ClientMessage::parse(message.to_string().as_bytes()).err().map(|problem| problem.kind)
    }

    #[test]
    fn a_config_is_read() {
        let Ok(ClientMessage::Config(config)) = ClientMessage::parse(config().to_string().as_bytes()) else {
            panic!("a good config");
        };
        let audio = config.audio.expect("audio");
        assert_eq!((audio.stt.language.as_str(), audio.stt.punctuation), ("en-US", true));
        assert_eq!((audio.tts.provider, audio.tts.voice_id.as_str()), (TtsProvider::Cartesia, "default"));
    }

    #[test]
    fn what_is_wrong_with_a_config() {
        for (pointer, value, expected) in [
            ("/stt_config/language", json!(7), Kind::BadConfig),
            ("/stt_config", json!(["deepgram", "en-US", 16_000, 1, true, "linear16", "nova-3"]), Kind::BadConfig),
            ("/tts_config/speaking_rate", json!("fast"), Kind::BadConfig),
            ("/stt_config/sample_rate", json!(8_000), Kind::Unsupported),
            ("/stt_config/channels", json!(2), Kind::Unsupported),
        ] {
            let mut config = config();
            *config.pointer_mut(pointer).expect("there") = value;
            assert_eq!(kind(&config), Some(expected), "{pointer}");
        }
    }

    #[test]
    fn a_speak_is_read() {
        let text = br#"{"type":"speak","text":"a\"b","flush":false,"more":[1]}"#;
        let Ok(ClientMessage::Speak(speak)) = ClientMessage::parse(text) else { panic!("a good speak") };
        assert_eq!(speak, Speak { text: "a\"b".to_owned(), flush: false, allow_interruption: true });
        assert_eq!(kind(&json!({"type": "speak", "text": ""})), Some(Kind::BadMessage));
        assert_eq!(kind(&json!(["speak"])), Some(Kind::BadMessage));
    }

    #[test]
    fn what_the_gateway_says_is_json() {
        let problem = Problem::passing(Kind::SttLost, "a \"quote\"");
        let error: Value = serde_json::from_str(&error(&problem)).expect("JSON");
        let expected = json!({"type": "error", "message": "a \"quote\"", "kind": "stt_lost", "retryable": true});
        assert_eq!(error, expected);
        let result: Value = serde_json::from_str(&SttResult::FORCED.to_message()).expect("JSON");
        let expected = json!({
            "type": "stt_result", "transcript": "", "is_final": true, "is_speech_final": true, "confidence": 0.0,
            "provider_ms": 0.0,
        });
        assert_eq!(result, expected);
        let complete: Value = serde_json::from_str(&complete(3, 1.5, 960)).expect("JSON");
        assert!(complete["timestamp"].as_u64().is_some_and(|ms| ms > 1_700_000_000_000), "{complete}");
        assert_eq!((&complete["speak"], &complete["dropped_bytes"]), (&json!(3), &json!(960)));
    }
}
