//! The HTTP surface.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, UPGRADE};
use hyper::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::json;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::gateway::Gateway;
use crate::lies::Lie;
use crate::{metrics, session, speak, voices};

/// Audio broke off: the body is cut.
#[derive(Debug)]
pub(crate) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the audio broke off")
    }
}

impl std::error::Error for Cut {}

pub(crate) type Body = UnsyncBoxBody<Bytes, Cut>;

/// Answers a request.
pub(crate) async fn answer(
    gateway: Arc<Gateway>,
    address: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let lies = &gateway.lies;
    if lies.is(Lie::Silent) {
        // Whoever waits for the gateway to come up may see that it is up, and its counters may be read.
        let is_answered = path == "/metrics" || (path == "/" && lies.first());
        if !is_answered {
            return pending().await;
        }
    }
    if lies.is(Lie::Bare200) && ["/", "/voices", "/speak"].contains(&path.as_str()) {
        return Ok(with_body(StatusCode::OK, "application/json", "{}"));
    }
    Ok(match (path.as_str(), request.method()) {
        ("/", &Method::GET) => root(&gateway),
        ("/voices", &Method::GET) => match voices::list(&gateway).await {
            Some(list) => with_body(StatusCode::OK, "application/json", list),
            None => error(502, "provider_failed", "the provider gave no list of voices"),
        },
        ("/metrics", &Method::GET) => {
            let text = gateway.metrics.render(gateway.admission.sessions(), lies);
            with_body(StatusCode::OK, "text/plain; version=0.0.4", text)
        }
        ("/ws", &Method::GET) => upgrade(&gateway, address, request),
        ("/speak", &Method::POST) => match unwelcome(&gateway, request.headers()) {
            Some(refused) => refused,
            None => speak::answer(&gateway, request).await,
        },
        ("/" | "/voices" | "/metrics" | "/ws" | "/speak", _) => error(405, "method", "no such method for this path"),
        _ => error(404, "path", "no such path"),
    })
}

fn root(gateway: &Gateway) -> Response<Body> {
    if gateway.admission.is_draining() {
        with_body(StatusCode::SERVICE_UNAVAILABLE, "application/json", r#"{"status":"DRAINING"}"#)
    } else {
        with_body(StatusCode::OK, "application/json", r#"{"status":"OK"}"#)
    }
}

/// Opens a session, or says why not.
fn upgrade(gateway: &Arc<Gateway>, address: IpAddr, mut request: Request<Incoming>) -> Response<Body> {
    let headers = request.headers();
    let Some(accept) = accept_key(headers) else {
        let mut response = error(426, "upgrade", "this is a WebSocket");
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        return response;
    };
    if let Some(refused) = unwelcome(gateway, headers) {
        return refused;
    }
    let slot = match gateway.admission.admit(address, Instant::now()) {
        Ok(slot) => slot,
        Err((status, cause)) => return refused(gateway, status, cause),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        // A client that leaves in the handshake gives its place back.
        if let Ok(upgraded) = upgrade.await {
            session::serve(gateway, slot, upgraded).await;
        }
    });
    let mut response = with_body(StatusCode::SWITCHING_PROTOCOLS, "", "");
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// The answer to the client's key; `None` if it asks for no WebSocket.
fn accept_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let names = |name, word: &str| {
        let value = headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or("");
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let is_upgrade = names(UPGRADE, "websocket") && names(CONNECTION, "upgrade") && names(SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_upgrade)?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()
}

/// Why a request is refused before its content matters, if it is.
fn unwelcome(gateway: &Gateway, headers: &HeaderMap) -> Option<Response<Body>> {
    if gateway.lies.strikes(Lie::Refuse) {
        let (status, cause) = match gateway.lies.plan.numbers.status {
            Some(429) => (429, "rate"),
            _ => (503, "capacity"),
        };
        return Some(refused(gateway, status, cause));
    }
    let token = &gateway.config.auth_token;
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let is_known = token.is_empty() || given == Some(format!("Bearer {token}").as_bytes());
    (!is_known).then(|| refused(gateway, 401, "auth"))
}

fn refused(gateway: &Gateway, status: u16, cause: &'static str) -> Response<Body> {
    gateway.metrics.add(metrics::REFUSED, &[cause], 1);
    let mut response = error(status, cause, "not now");
    if status != 401 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// An error as the contract has it.
pub(crate) fn error(status: u16, cause: &str, message: &str) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_body(status, "application/json", json!({"error": message, "cause": cause}).to_string())
}

fn with_body(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
