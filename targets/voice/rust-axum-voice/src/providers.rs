//! What each provider is asked, and how.

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::messages::{SttConfig, TTS_SAMPLE_RATE, TtsConfig};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtsProvider {
    /// Deepgram.
    Deepgram,
    /// `ElevenLabs`.
    Elevenlabs,
    /// `OpenAI`.
    Openai,
    /// Cartesia.
    Cartesia,
}

impl TtsProvider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Deepgram, Self::Elevenlabs, Self::Openai, Self::Cartesia];

    /// As clients name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deepgram => "deepgram",
            Self::Elevenlabs => "elevenlabs",
            Self::Openai => "openai",
            Self::Cartesia => "cartesia",
        }
    }

    /// The provider with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }

    /// Where `key` goes.
    fn key_header(self, key: &str) -> (HeaderName, String) {
        match self {
            Self::Deepgram => (AUTHORIZATION, format!("Token {key}")),
            Self::Elevenlabs => (HeaderName::from_static("xi-api-key"), key.to_owned()),
            Self::Openai | Self::Cartesia => (AUTHORIZATION, format!("Bearer {key}")),
        }
    }
}

/// A request without the server that it goes to. Cloning it copies nothing that is long.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Path and query.
    pub path: String,
    /// Beside those that every request has.
    pub headers: HeaderMap,
    /// The body; empty for a GET.
    pub body: Bytes,
}

impl Ask {
    /// The text as audio.
    pub fn speech(tts: &TtsConfig, key: Option<&str>, text: &str) -> Self {
        let TtsConfig { provider, model, voice_id } = tts;
        let (path, body) = match provider {
            TtsProvider::Deepgram => (
                format!("/v1/speak?model={}&encoding=linear16&sample_rate={TTS_SAMPLE_RATE}", escaped(model)),
                json!({"text": text}),
            ),
            TtsProvider::Elevenlabs => (
                format!("/v1/text-to-speech/{}/stream?output_format=pcm_24000", escaped(voice_id)),
                json!({"text": text, "model_id": model}),
            ),
            TtsProvider::Openai => (
                "/v1/audio/speech".to_owned(),
                json!({"model": model, "input": text, "voice": voice_id, "response_format": "pcm"}),
            ),
            TtsProvider::Cartesia => (
                "/tts/bytes".to_owned(),
                json!({
                    "model_id": model, "transcript": text, "voice": {"mode": "id", "id": voice_id},
                    "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": TTS_SAMPLE_RATE},
                }),
            ),
        };
        let mut headers = keyed(*provider, key);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { path, headers, body: body.to_string().into() }
    }

    /// A WebSocket for a caller's audio; the headers of the handshake are still to come.
    pub fn listening(stt: &SttConfig, key: Option<&str>) -> Self {
        let path = format!(
            "/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true&model={}&language={}&punctuate={}",
            escaped(&stt.model),
            escaped(&stt.language),
            stt.punctuation,
        );
        Self { path, headers: keyed(TtsProvider::Deepgram, key), body: Bytes::new() }
    }

    /// The voices of `ElevenLabs`, the one provider that lists its own.
    pub fn voices(key: Option<&str>) -> Self {
        let headers = keyed(TtsProvider::Elevenlabs, key);
        Self { path: "/v1/voices".to_owned(), headers, body: Bytes::new() }
    }
}

fn keyed(provider: TtsProvider, key: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    if let Some((name, value)) = key.map(|key| provider.key_header(key)) {
        // The configuration has seen to it that the key can stand in a header.
        if let Ok(mut value) = HeaderValue::try_from(value) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    headers
}

/// As a part of a path or a query. What needs no escape there (RFC 3986, section 2.3) gets none.
fn escaped(text: &str) -> impl std::fmt::Display {
    const UNRESERVED: &percent_encoding::AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, UNRESERVED)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn speech(provider: TtsProvider, model: &str, voice_id: &str) -> (Ask, Value) {
        let tts = TtsConfig { provider, model: model.to_owned(), voice_id: voice_id.to_owned() };
        let ask = Ask::speech(&tts, Some("KEY"), "say \"a\"");
        let body = serde_json::from_slice(&ask.body).expect("JSON");
        (ask, body)
    }

    #[test]
    fn each_provider_is_asked_in_its_way() {
        let (ask, body) = speech(TtsProvider::Deepgram, "aura-2", "v");
        assert_eq!(ask.path, "/v1/speak?model=aura-2&encoding=linear16&sample_rate=24000");
        assert_eq!(body, json!({"text": "say \"a\""}));
        assert_eq!(ask.headers[AUTHORIZATION], "Token KEY");

        let (ask, body) = speech(TtsProvider::Elevenlabs, "m", "a/b?");
        assert_eq!(ask.path, "/v1/text-to-speech/a%2Fb%3F/stream?output_format=pcm_24000");
        assert_eq!(body, json!({"text": "say \"a\"", "model_id": "m"}));
        assert_eq!(ask.headers["xi-api-key"], "KEY");

        let (ask, body) = speech(TtsProvider::Openai, "m", "v");
        assert_eq!(ask.path, "/v1/audio/speech");
        assert_eq!(body, json!({"model": "m", "input": "say \"a\"", "voice": "v", "response_format": "pcm"}));
        assert_eq!(ask.headers[AUTHORIZATION], "Bearer KEY");

        let (ask, body) = speech(TtsProvider::Cartesia, "m", "v");
        assert_eq!(ask.path, "/tts/bytes");
        let format = json!({"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000});
        let voice = json!({"mode": "id", "id": "v"});
        let expected = json!({"model_id": "m", "transcript": "say \"a\"", "voice": voice, "output_format": format});
        assert_eq!(body, expected);
        assert_eq!(ask.headers[AUTHORIZATION], "Bearer KEY");
    }

    #[test]
    fn speech_is_recognised_as_the_client_wants() {
        let stt = SttConfig { model: "nova 3".to_owned(), language: "en-US".to_owned(), punctuation: false };
        let ask = Ask::listening(&stt, None);
        let expected = "/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true&model=nova%203&language=en-US&punctuate=false";
        assert_eq!(ask.path, expected);
        assert!(ask.headers.is_empty());
    }
}
