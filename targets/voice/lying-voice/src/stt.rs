//! The connection to the provider that hears.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::header::{AUTHORIZATION, HeaderValue};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::escape::escaped;
use crate::gateway::Gateway;
use crate::lies::blocks::{self, Blocks};
use crate::messages::{SttConfig, SttResult};
use crate::metrics;
use crate::socket::buffers;

const LABEL: &str = "deepgram_stt";
/// After so long without audio the provider is told that the session lives.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Of so many messages it is known when they were sent.
const SENT_MAX: usize = 512;
/// Bytes of a caller's audio in a millisecond.
const BYTES_PER_MS: u64 = 32;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Stt {
    gateway: Arc<Gateway>,
    socket: WebSocketStream<TcpStream>,
    blocks: Blocks,
    /// Where messages ended in the audio, and when they were sent.
    sent: VecDeque<(u64, Instant)>,
    sent_bytes: u64,
    audio_at: Instant,
    outcome: &'static str,
}

impl Stt {
    /// Connects; `None` if that fails, or is not done in time.
    pub(crate) async fn open(gateway: Arc<Gateway>, place: String, config: SttConfig) -> Option<Self> {
        let socket = timeout(gateway.config.ready, connect(&gateway, &place, &config)).await.ok().flatten();
        let Some(socket) = socket else {
            gateway.metrics.add(metrics::REQUESTS, &[LABEL, "failed"], 1);
            return None;
        };
        Some(Self {
            gateway,
            socket,
            blocks: Blocks::new(blocks::OF_CALLER),
            sent: VecDeque::new(),
            sent_bytes: 0,
            audio_at: Instant::now(),
            outcome: "complete",
        })
    }

    /// Hands audio over.
    pub(crate) async fn hear(&mut self, audio: Bytes) {
        self.audio_at = Instant::now();
        self.sent_bytes += audio.len() as u64;
        if self.sent.len() == SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((self.sent_bytes / BYTES_PER_MS, self.audio_at));
        for piece in self.blocks.pass(&self.gateway.lies, audio) {
            self.send(Message::Binary(piece)).await;
        }
    }

    /// The next result; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<SttResult> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    if let Some(result) = self.result(&text) {
                        return Some(result);
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => {
                    self.outcome = "failed";
                    return None;
                }
                Some(Ok(_)) => {}
            }
        }
    }

    /// When it is to be kept alive.
    pub(crate) fn keep_alive_at(&self) -> Instant {
        self.audio_at + KEEP_ALIVE
    }

    /// Keeps it alive, if it is time.
    pub(crate) async fn keep_alive(&mut self) {
        if self.keep_alive_at() <= Instant::now() {
            self.audio_at = Instant::now();
            self.send(Message::text(r#"{"type":"KeepAlive"}"#)).await;
        }
    }

    /// The session is over.
    pub(crate) async fn close(&mut self) {
        for piece in self.blocks.end() {
            self.send(Message::Binary(piece)).await;
        }
        self.send(Message::text(r#"{"type":"CloseStream"}"#)).await;
    }

    async fn send(&mut self, message: Message) {
        // A connection that is gone shows where it is read.
        let _ = self.socket.send(message).await;
    }

    fn result(&mut self, text: &str) -> Option<SttResult> {
        let value: Value = serde_json::from_str(text).ok()?;
        if value["type"] != "Results" {
            return None;
        }
        let best = &value["channel"]["alternatives"][0];
        let seconds = value["start"].as_f64()? + value["duration"].as_f64()?;
        Some(SttResult {
            transcript: best["transcript"].as_str()?.to_owned(),
            is_final: value["is_final"].as_bool()?,
            is_speech_final: value["speech_final"].as_bool().unwrap_or(false),
            confidence: best["confidence"].as_f64().unwrap_or(0.0),
            provider_ms: self.provider_ms(seconds * 1e3),
        })
    }

    /// How long ago the audio was sent that a result covers up to `until_ms`.
    fn provider_ms(&mut self, until_ms: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a session")]
        let covers = |(end_ms, _): &(u64, Instant)| *end_ms as f64 + 0.5 > until_ms;
        while self.sent.len() > 1 && !self.sent.front().is_some_and(covers) {
            self.sent.pop_front();
        }
        self.sent.front().map_or(0.0, |(_, at)| at.elapsed().as_secs_f64() * 1e3)
    }
}

impl Drop for Stt {
    fn drop(&mut self) {
        self.gateway.metrics.add(metrics::REQUESTS, &[LABEL, self.outcome], 1);
    }
}

async fn connect(gateway: &Gateway, place: &str, config: &SttConfig) -> Option<WebSocketStream<TcpStream>> {
    let SttConfig { language, model, punctuation, .. } = config;
    let url = format!(
        "ws://{place}/v1/listen?encoding=linear16&sample_rate=16000&channels=1&interim_results=true\
         &model={}&language={}&punctuate={punctuation}",
        escaped(model),
        escaped(language)
    );
    let mut request = url.into_client_request().ok()?;
    if !gateway.config.provider_key.is_empty() {
        let token = HeaderValue::from_str(&format!("Token {}", gateway.config.provider_key)).ok()?;
        request.headers_mut().insert(AUTHORIZATION, token);
    }
    let stream = TcpStream::connect(place).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let (socket, _) = client_async_with_config(request, stream, Some(buffers())).await.ok()?;
    Some(socket)
}
