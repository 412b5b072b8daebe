//! `POST /speak`: a text in, its audio out.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response};
use serde_json::Value;

use crate::exact::Timer;
use crate::gateway::Gateway;
use crate::http::{Body, Cut, error};
use crate::messages::{TEXT_MAX_BYTES, TtsConfig};
use crate::reply::{Reply, Said};
use crate::tts::Order;

const BODY_MAX_BYTES: usize = 1 << 20;

/// Answers when the provider has begun, or has failed.
pub(crate) async fn answer(gateway: &Arc<Gateway>, request: Request<Incoming>) -> Response<Body> {
    let order = match order(gateway, request).await {
        Ok(order) => order,
        Err((status, cause, message)) => return error(status, cause, &message),
    };
    let mut reply = Reply::begin(gateway, order, None);
    let provider_ms = loop {
        match reply.next().await.said {
            Said::Begins(provider_ms) => break gateway.lies.claimed_ms(provider_ms),
            Said::Failed("tts_timeout") => return error(504, "provider_timeout", "the provider is silent"),
            Said::Failed(_) | Said::Complete => return error(502, "provider_failed", "the provider gave no audio"),
            Said::Audio(_) => {}
        }
    };
    let mut response = Response::new(body(reply));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("audio/pcm"));
    headers.insert("x-audio-format", HeaderValue::from_static("linear16"));
    headers.insert("x-sample-rate", HeaderValue::from_static("24000"));
    if let Ok(value) = HeaderValue::from_str(&format!("{provider_ms:.3}")) {
        headers.insert("x-provider-ms", value);
    }
    response
}

type Refusal = (u16, &'static str, String);

async fn order(gateway: &Gateway, request: Request<Incoming>) -> Result<Order, Refusal> {
    let body = Limited::new(request.into_body(), BODY_MAX_BYTES).collect().await;
    let body = body.map_err(|error| (413, "too_large", format!("the body: {error}")))?.to_bytes();
    let value: Value =
        serde_json::from_slice(&body).map_err(|error| (400, "bad_json", format!("the body: {error}")))?;
    let bad = |what: String| (400, "bad_field", what);
    let text = value["text"].as_str().ok_or_else(|| bad("text: give a string".to_owned()))?;
    if text.is_empty() {
        return Err((400, "empty_text", "text: it is empty".to_owned()));
    }
    if text.len() > TEXT_MAX_BYTES {
        return Err((413, "too_large", format!("text: over {TEXT_MAX_BYTES} bytes")));
    }
    let voice: TtsConfig =
        serde_json::from_value(value["tts_config"].clone()).map_err(|error| bad(format!("tts_config: {error}")))?;
    voice.supported().map_err(|complaint| bad(complaint.1))?;
    Ok(Order { text: text.to_owned(), voice, place: gateway.place() })
}

fn body(reply: Reply) -> Body {
    let pieces = stream::unfold(Some((reply, Timer::default())), async |state| {
        let (mut reply, mut timer) = state?;
        let event = reply.next().await;
        timer.until(event.due).await;
        match event.said {
            Said::Audio(audio) => Some((Ok(Frame::data(audio)), Some((reply, timer)))),
            Said::Failed(_) => Some((Err(Cut), None)),
            Said::Complete => None,
            Said::Begins(_) => Some((Ok(Frame::data(Bytes::new())), Some((reply, timer)))),
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}
