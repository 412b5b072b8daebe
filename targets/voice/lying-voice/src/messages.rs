//! The messages between a client and the gateway.

use serde::Deserialize;
use serde_json::{Value, json};

/// The longest text to be spoken.
pub const TEXT_MAX_BYTES: usize = 102_400;
const STREAM_ID_MAX_BYTES: usize = 256;

/// What a client says in text.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// The first message.
    Config(Box<SessionConfig>),
    /// A text to be spoken.
    Speak(Speak),
    /// The reply is not wanted any more.
    Clear,
}

/// `config`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SessionConfig {
    /// The client's name for the session.
    pub stream_id: Option<String>,
    /// False: a session without providers.
    #[serde(default = "yes")]
    pub audio: bool,
    /// Who hears. There unless `audio` is false.
    pub stt_config: Option<SttConfig>,
    /// Who speaks. There unless `audio` is false.
    pub tts_config: Option<TtsConfig>,
}

/// `stt_config`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "the contract's names")]
pub struct SttConfig {
    pub provider: String,
    pub language: String,
    pub sample_rate: u32,
    pub channels: u32,
    pub punctuation: bool,
    pub encoding: String,
    pub model: String,
}

/// `tts_config`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(missing_docs, reason = "the contract's names")]
pub struct TtsConfig {
    pub provider: String,
    pub model: String,
    #[serde(default = "default_voice")]
    pub voice_id: String,
    pub speaking_rate: Option<f64>,
    #[serde(default = "linear16")]
    pub audio_format: String,
    pub sample_rate: Option<u32>,
}

/// `speak`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the contract's names")]
pub struct Speak {
    pub text: String,
    #[serde(default = "yes")]
    pub flush: bool,
    #[serde(default = "yes")]
    pub allow_interruption: bool,
}

fn yes() -> bool {
    true
}

fn default_voice() -> String {
    "default".to_owned()
}

fn linear16() -> String {
    "linear16".to_owned()
}

/// An `error`: its kind, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint(pub &'static str, pub String);

impl Complaint {
    fn new(kind: &'static str, what: impl Into<String>) -> Self {
        Self(kind, what.into())
    }
}

/// Reads a text message.
///
/// # Errors
/// What of the contract it breaks.
pub fn parse(text: &str) -> Result<Message, Complaint> {
    let bad = |what: String| Complaint::new("bad_message", what);
    let value: Value = serde_json::from_str(text).map_err(|error| bad(format!("not JSON: {error}")))?;
    match value["type"].as_str() {
        Some("config") => config(value),
        Some("clear") => Ok(Message::Clear),
        Some("speak") => {
            let speak: Speak = serde_json::from_value(value).map_err(|error| bad(format!("speak: {error}")))?;
            if speak.text.is_empty() {
                return Err(bad("speak: the text is empty".to_owned()));
            }
            if speak.text.len() > TEXT_MAX_BYTES {
                return Err(Complaint::new("too_large", format!("speak: the text is over {TEXT_MAX_BYTES} bytes")));
            }
            Ok(Message::Speak(speak))
        }
        Some(other) => Err(bad(format!("no such type: {other}"))),
        None => Err(bad("no type".to_owned())),
    }
}

fn config(value: Value) -> Result<Message, Complaint> {
    let bad = |what: String| Complaint::new("bad_config", what);
    let config: SessionConfig = serde_json::from_value(value).map_err(|error| bad(format!("config: {error}")))?;
    if config.stream_id.as_ref().is_some_and(|id| id.len() > STREAM_ID_MAX_BYTES) {
        return Err(bad(format!("config: stream_id is over {STREAM_ID_MAX_BYTES} bytes")));
    }
    if config.audio {
        let Some(stt) = &config.stt_config else { return Err(bad("config: no stt_config".to_owned())) };
        let Some(tts) = &config.tts_config else { return Err(bad("config: no tts_config".to_owned())) };
        supported("provider", &stt.provider, &["deepgram"])?;
        supported("encoding", &stt.encoding, &["linear16"])?;
        tts.supported()?;
    }
    Ok(Message::Config(Box::new(config)))
}

impl TtsConfig {
    /// Whether this gateway can ask for it.
    ///
    /// # Errors
    /// `unsupported`.
    pub fn supported(&self) -> Result<(), Complaint> {
        supported("provider", &self.provider, &["deepgram", "elevenlabs", "openai", "cartesia"])?;
        supported("audio_format", &self.audio_format, &["linear16"])
    }
}

fn supported(what: &str, value: &str, known: &[&str]) -> Result<(), Complaint> {
    if known.contains(&value) {
        return Ok(());
    }
    Err(Complaint::new("unsupported", format!("config: {what} {value:?}: give one of {}", known.join(", "))))
}

/// A result.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the contract's names")]
pub struct SttResult {
    pub transcript: String,
    pub is_final: bool,
    pub is_speech_final: bool,
    pub confidence: f64,
    pub provider_ms: f64,
}

/// `ready`.
#[must_use]
pub fn ready(stream_id: &str) -> String {
    json!({"type": "ready", "stream_id": stream_id, "protocol_version": "1.0"}).to_string()
}

/// `stt_result`.
#[must_use]
pub fn stt_result(result: &SttResult) -> String {
    json!({
        "type": "stt_result", "transcript": result.transcript, "is_final": result.is_final,
        "is_speech_final": result.is_speech_final, "confidence": result.confidence,
        "provider_ms": result.provider_ms,
    })
    .to_string()
}

/// `tts_playback_complete` of the caller's `speak` with this number.
#[must_use]
pub fn playback_complete(speak: u64, provider_ms: f64, unix_ms: u64) -> String {
    json!({
        "type": "tts_playback_complete", "timestamp": unix_ms, "speak": speak, "provider_ms": provider_ms,
        "dropped_bytes": 0,
    })
    .to_string()
}

/// `error`.
#[must_use]
pub fn error(kind: &str, message: &str, retryable: bool) -> String {
    json!({"type": "error", "message": message, "kind": kind, "retryable": retryable}).to_string()
}
