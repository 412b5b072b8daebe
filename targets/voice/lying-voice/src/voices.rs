//! `GET /voices`: those of the provider that lists them, kept for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::header::HOST;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::gateway::Gateway;

const KEPT: Duration = Duration::from_secs(60);
const LIST_MAX_BYTES: usize = 1 << 20;

/// The list, and when it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Voices(Mutex<Option<(Instant, Bytes)>>);

impl Voices {
    fn kept(&self) -> Option<Bytes> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(asked, _)| asked.elapsed() < KEPT).map(|(_, list)| list.clone())
    }
}

/// The list; `None` if the provider does not give it.
pub(crate) async fn list(gateway: &Gateway) -> Option<Bytes> {
    if let Some(list) = gateway.voices.kept() {
        return Some(list);
    }
    let asked = Instant::now();
    let list = timeout(gateway.config.tts_first, ask(gateway)).await.ok()??;
    let list = Bytes::from(listed(&list)?.to_string());
    *gateway.voices.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((asked, list.clone()));
    Some(list)
}

async fn ask(gateway: &Gateway) -> Option<Value> {
    let place = gateway.place();
    let mut request = Request::get("/v1/voices").header(HOST, &place);
    if !gateway.config.provider_key.is_empty() {
        request = request.header("xi-api-key", &gateway.config.provider_key);
    }
    let (response, connection) = gateway.pool.ask(&place, request.body(Full::default()).ok()?).await?;
    if !response.status().is_success() {
        return None;
    }
    let body = Limited::new(response.into_body(), LIST_MAX_BYTES).collect().await.ok()?.to_bytes();
    gateway.pool.put(connection);
    serde_json::from_slice(&body).ok()
}

/// ElevenLabs' list in the contract's words.
fn listed(list: &Value) -> Option<Value> {
    let voice = |voice: &Value| {
        let labels = &voice["labels"];
        let word = |value: &Value| value.as_str().unwrap_or("").to_owned();
        json!({
            "id": word(&voice["voice_id"]), "name": word(&voice["name"]), "language": word(&labels["language"]),
            "gender": word(&labels["gender"]), "accent": word(&labels["accent"]), "sample": word(&voice["preview_url"]),
        })
    };
    let voices: Vec<Value> = list["voices"].as_array()?.iter().map(voice).collect();
    serde_json::to_value(BTreeMap::from([("elevenlabs", voices)])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_put_in_the_contracts_words() {
        let list =
            json!({"voices": [{"voice_id": "v", "name": "V", "labels": {"accent": "none"}, "preview_url": "u"}]});
        let voice = json!({"id": "v", "name": "V", "language": "", "gender": "", "accent": "none", "sample": "u"});
        assert_eq!(listed(&list), Some(json!({"elevenlabs": [voice]})));
        assert_eq!(listed(&json!({})), None);
    }
}
