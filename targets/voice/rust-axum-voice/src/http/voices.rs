//! `GET /voices`: the voices of each provider.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::json_answer;
use crate::gateway::Gateway;
use crate::json::object;
use crate::providers::{Ask, TtsProvider};

/// How long the list is kept.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// For the provider to answer. Without its voices the list is shorter, which is better than late.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes of the provider's answer that are read.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// The list, once somebody has asked for it. The lock is held while a provider is asked, so that one asks for all.
#[derive(Debug, Default)]
pub struct Voices(Mutex<Option<(Instant, Bytes)>>);

pub(super) async fn list(State(gateway): State<Arc<Gateway>>) -> Response {
    let mut kept = gateway.voices.0.lock().await;
    if let Some((since, list)) = &*kept
        && since.elapsed() < KEPT_FOR
    {
        return json_answer(StatusCode::OK, list.clone());
    }
    let named = tokio::time::timeout(TIMEOUT, of_elevenlabs(&gateway)).await.ok().flatten();
    let list = Bytes::from(listed(named.unwrap_or_default()).to_string());
    *kept = Some((Instant::now(), list.clone()));
    json_answer(StatusCode::OK, list)
}

/// What a client may send as `voice_id`, and what is known about it.
#[derive(Debug, Serialize)]
struct Voice {
    id: String,
    name: String,
    language: String,
    gender: String,
    accent: String,
    sample: String,
}

/// Every provider with the voice that a session has unless it names one, and behind it those that `ElevenLabs` names.
fn listed(named: Vec<Voice>) -> Value {
    let mut list: Map<String, Value> = TtsProvider::ALL
        .into_iter()
        .map(|provider| {
            let default = json!({
                "id": "default", "name": "default", "language": "", "gender": "", "accent": "", "sample": "",
            });
            (provider.name().to_owned(), json!([default]))
        })
        .collect();
    if let Some(voices) = list.get_mut(TtsProvider::Elevenlabs.name()).and_then(Value::as_array_mut) {
        voices.extend(named.into_iter().map(|voice| json!(voice)));
    }
    list.into()
}

/// The voices that `ElevenLabs` has; none if it does not say.
async fn of_elevenlabs(gateway: &Gateway) -> Option<Vec<Voice>> {
    let ask = Ask::voices(gateway.config.provider_key.as_deref());
    let mut answer = gateway.upstream().send(ask).await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(data) = std::future::poll_fn(|context| answer.poll_data(context)).await {
        body.extend_from_slice(&data.ok()?);
        if body.len() > ANSWER_BYTES_MAX {
            return None;
        }
    }
    parse(&body)
}

fn parse(body: &[u8]) -> Option<Vec<Voice>> {
    #[derive(Deserialize)]
    struct Answer {
        voices: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        voice_id: String,
        name: String,
        #[serde(default)]
        labels: Map<String, Value>,
        preview_url: Option<String>,
    }
    let answer: Answer = object(body).ok()?;
    let voice = |named: Named| {
        let label = |name| named.labels.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Voice {
            language: label("language"),
            gender: label("gender"),
            accent: label("accent"),
            id: named.voice_id,
            name: named.name,
            sample: named.preview_url.unwrap_or_default(),
        }
    };
    Some(answer.voices.into_iter().map(voice).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_provider_and_the_named_voices() {
        let body = br#"{"voices":[{"voice_id":"v1","name":"Vera","labels":{"accent":"none","age":7},"preview_url":null,"more":1}]}"#;
        let list = listed(parse(body).expect("voices"));
        for provider in TtsProvider::ALL {
            assert_eq!(list[provider.name()][0]["id"], "default");
        }
        let expected =
            json!({"id": "v1", "name": "Vera", "language": "", "gender": "", "accent": "none", "sample": ""});
        assert_eq!(list["elevenlabs"][1], expected);
        assert_eq!(list["deepgram"].as_array().map(Vec::len), Some(1));
        assert!(parse(b"[]").is_none() && parse(b"{}").is_none());
    }
}
