//! A caller of the gateway.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{BINARY, Client, TEXT};
use super::providers::{Link, Providers};

/// A good `config`.
pub fn config() -> Value {
    json!({
        "type": "config",
        "stt_config": {
            "provider": "deepgram", "language": "en-US", "sample_rate": 16_000, "channels": 1, "punctuation": true,
            "encoding": "linear16", "model": "nova-3",
        },
        "tts_config": {"provider": "deepgram", "model": "aura-2"},
    })
}

pub struct Caller {
    pub client: Client,
}

impl Caller {
    /// A session that is open and without a `config`.
    pub async fn open(port: u16) -> Self {
        Self { client: Client::open(port).await }
    }

    /// A session that is ready, and its connection for speech-to-text.
    pub async fn ready(port: u16, providers: &mut Providers) -> (Self, Link) {
        let mut caller = Self::open(port).await;
        let link = caller.configure(&config(), providers).await;
        (caller, link)
    }

    /// Sends a `config` and waits for `ready`.
    pub async fn configure(&mut self, config: &Value, providers: &mut Providers) -> Link {
        self.say(config).await;
        let link = providers.link().await;
        assert_eq!(self.hear().await["type"], "ready");
        link
    }

    pub async fn say(&mut self, message: &Value) {
        self.client.send(TEXT, message.to_string().as_bytes()).await;
    }

    pub async fn speak(&mut self, text: &str) {
        self.say(&json!({"type": "speak", "text": text})).await;
    }

    /// A text that waits for what plays.
    pub async fn queue(&mut self, text: &str) {
        self.say(&json!({"type": "speak", "text": text, "flush": false})).await;
    }

    pub async fn clear(&mut self) {
        self.say(&json!({"type": "clear"})).await;
    }

    pub async fn send_audio(&mut self, audio: &[u8]) {
        self.client.send(BINARY, audio).await;
    }

    /// The next message, which must be a text.
    pub async fn hear(&mut self) -> Value {
        self.client.receive_json().await
    }

    /// The kind of the next message, which must be an error.
    pub async fn hear_error(&mut self) -> String {
        let message = self.hear().await;
        assert_eq!(message["type"], "error", "{message}");
        message["kind"].as_str().expect("a kind").to_owned()
    }

    /// That so many milliseconds of audio were dropped.
    pub async fn hear_dropped(&mut self, ms: u32) {
        let told = self.hear().await;
        assert_eq!((&told["kind"], &told["retryable"]), (&"audio_dropped".into(), &false.into()), "{told}");
        let expected = format!("{ms} ms ");
        assert!(told["message"].as_str().is_some_and(|message| message.starts_with(&expected)), "{told}");
    }

    /// Audio up to the next text, and that text.
    pub async fn hear_reply(&mut self) -> (Vec<u8>, Value) {
        let mut audio = Vec::new();
        loop {
            match self.client.receive().await {
                (BINARY, piece) => audio.extend(piece),
                (TEXT, text) => return (audio, serde_json::from_slice(&text).expect("JSON")),
                other => panic!("{other:?}"),
            }
        }
    }

    /// So many bytes of audio, and nothing else.
    pub async fn hear_audio(&mut self, bytes: usize) -> Vec<u8> {
        let mut audio = Vec::new();
        while audio.len() < bytes {
            let (opcode, piece) = self.client.receive().await;
            assert_eq!(opcode, BINARY, "{:?}", String::from_utf8_lossy(&piece));
            audio.extend(piece);
        }
        assert_eq!(audio.len(), bytes);
        audio
    }

    /// That nothing comes for a while.
    pub async fn hear_nothing(&mut self, duration: Duration) {
        let mut byte = [0];
        let heard = tokio::time::timeout(duration, self.client.socket.peek(&mut byte)).await;
        assert!(heard.is_err(), "{heard:?}: {byte:?}");
    }
}
