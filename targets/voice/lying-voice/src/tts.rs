//! Requests to the providers that speak.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::escape::escaped;
use crate::gateway::Gateway;
use crate::messages::TtsConfig;
use crate::metrics;
use crate::pool::Connection;

const FAILED: &str = "tts_failed";
const TIMEOUT: &str = "tts_timeout";
const RATE_LIMITED: &str = "tts_rate_limited";

/// What is to be spoken, by whom.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) text: String,
    pub(crate) voice: TtsConfig,
    /// `host:port` of the providers.
    pub(crate) place: String,
}

impl Order {
    pub(crate) fn label(&self) -> &'static str {
        match self.voice.provider.as_str() {
            "elevenlabs" => "elevenlabs_tts",
            "openai" => "openai_tts",
            "cartesia" => "cartesia_tts",
            _ => "deepgram_tts",
        }
    }

    fn request(&self, key: &str) -> Option<Request<Full<Bytes>>> {
        let TtsConfig { provider, model, voice_id, .. } = &self.voice;
        let text = &self.text;
        let (path, body, header) = match provider.as_str() {
            "elevenlabs" => (
                format!("/v1/text-to-speech/{}/stream?output_format=pcm_24000", escaped(voice_id)),
                json!({"text": text, "model_id": model}),
                ("xi-api-key", key.to_owned()),
            ),
            "openai" => (
                "/v1/audio/speech".to_owned(),
                json!({"model": model, "input": text, "voice": voice_id, "response_format": "pcm"}),
                (AUTHORIZATION.as_str(), format!("Bearer {key}")),
            ),
            "cartesia" => (
                "/tts/bytes".to_owned(),
                cartesia(model, text, voice_id),
                (AUTHORIZATION.as_str(), format!("Bearer {key}")),
            ),
            _ => (
                format!("/v1/speak?model={}&encoding=linear16&sample_rate=24000", escaped(model)),
                json!({"text": text}),
                (AUTHORIZATION.as_str(), format!("Token {key}")),
            ),
        };
        let request = Request::post(path).header(HOST, &self.place).header(CONTENT_TYPE, "application/json");
        let request = if key.is_empty() { request } else { request.header(header.0, header.1) };
        request.body(Full::new(body.to_string().into())).ok()
    }
}

fn cartesia(model: &str, text: &str, voice_id: &str) -> Value {
    json!({
        "model_id": model, "transcript": text, "voice": {"mode": "id", "id": voice_id},
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
    })
}

/// A request that was made. However it ends, that is counted.
#[derive(Debug)]
struct Asked {
    gateway: Arc<Gateway>,
    label: &'static str,
    outcome: &'static str,
    counts: bool,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.counts {
            self.gateway.metrics.add(metrics::REQUESTS, &[self.label, self.outcome], 1);
        }
    }
}

/// A reply that has begun.
#[derive(Debug)]
pub(crate) struct Answer {
    asked: Asked,
    first: Option<Bytes>,
    body: Incoming,
    connection: Option<Connection>,
    gap: Duration,
    pub(crate) provider_ms: f64,
}

/// Why there is no reply, and whether asking again may help.
struct Failure {
    kind: &'static str,
    again: bool,
}

/// Asks, and once more if that may help. Counted in the metrics, or not.
pub(crate) async fn ask(gateway: &Arc<Gateway>, order: &Order, counts: bool) -> Result<Answer, &'static str> {
    for last in [false, true] {
        let (label, outcome) = (order.label(), "cancelled");
        let mut asked = Asked { gateway: Arc::clone(gateway), label, outcome, counts };
        let attempt = timeout(gateway.config.tts_first, attempt(gateway, order)).await;
        match attempt.unwrap_or(Err(Failure { kind: TIMEOUT, again: false })) {
            Ok((response, connection, first, provider_ms)) => {
                let gap = gateway.config.tts_gap;
                let body = response.into_body();
                return Ok(Answer { asked, first: Some(first), body, connection: Some(connection), gap, provider_ms });
            }
            Err(failure) => {
                asked.outcome = "failed";
                if last || !failure.again {
                    return Err(failure.kind);
                }
            }
        }
    }
    Err(FAILED)
}

type Begun = (Response<Incoming>, Connection, Bytes, f64);

async fn attempt(gateway: &Gateway, order: &Order) -> Result<Begun, Failure> {
    let failed = |again| Failure { kind: FAILED, again };
    let request = order.request(&gateway.config.provider_key).ok_or(failed(false))?;
    let asked = Instant::now();
    let answered = gateway.pool.ask(&order.place, request).await;
    let (mut response, connection) = answered.ok_or(failed(true))?;
    match response.status() {
        status if status.is_success() => {}
        StatusCode::TOO_MANY_REQUESTS => return Err(Failure { kind: RATE_LIMITED, again: false }),
        status => return Err(failed(status.is_server_error())),
    }
    let first = loop {
        match response.body_mut().frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => break data,
                _ => {}
            },
            Some(Err(_)) => return Err(failed(true)),
            None => return Err(failed(false)),
        }
    };
    let told = response.headers().get("x-mock-provider-ms");
    let told = told.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let provider_ms = told.unwrap_or_else(|| asked.elapsed().as_secs_f64() * 1e3);
    Ok((response, connection, first, provider_ms))
}

impl Answer {
    /// The next piece of audio; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, &'static str>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        loop {
            let frame = match timeout(self.gap, self.body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) => return Some(Err(self.fail(FAILED))),
                Err(_) => return Some(Err(self.fail(TIMEOUT))),
                Ok(None) => {
                    self.asked.outcome = "complete";
                    if let Some(connection) = self.connection.take() {
                        self.asked.gateway.pool.put(connection);
                    }
                    return None;
                }
            };
            if let Ok(data) = frame.into_data() {
                return Some(Ok(data));
            }
        }
    }

    fn fail(&mut self, kind: &'static str) -> &'static str {
        self.asked.outcome = "failed";
        self.connection = None;
        kind
    }
}
