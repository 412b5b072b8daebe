//! The HTTP surface: health, voices, speech, metrics, and who is let in.

mod speak;
pub mod voices;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::upgrade::OnUpgrade;
use rust_axum::exposition;
use rust_axum::http::{UPGRADE_HEADERS, bears, handshake};
use rust_axum::websocket::WebSocket;
use serde_json::json;

use crate::admission::{Permit, Refusal};
use crate::gateway::Gateway;
use crate::session;

/// The routes of the contract.
pub fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/", get(health))
        .route("/voices", get(voices::list))
        .route("/speak", post(speak::speak))
        .route("/ws", get(open_session))
        .route("/metrics", get(metrics))
        .fallback(|| async { failure(StatusCode::NOT_FOUND, "not_found", "there is nothing at this path") })
        .method_not_allowed_fallback(|| async {
            failure(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path has another method")
        })
        .with_state(gateway)
}

/// An answer with the body of an error.
fn failure(status: StatusCode, cause: &str, error: &str) -> Response {
    json_answer(status, json!({"error": error, "cause": cause}).to_string())
}

fn json_answer(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn health(State(gateway): State<Arc<Gateway>>) -> Response {
    if gateway.drain.has_begun() {
        json_answer(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"DRAINING"}"#)
    } else {
        json_answer(StatusCode::OK, r#"{"status":"OK"}"#)
    }
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> impl IntoResponse {
    ([exposition::HEADER], gateway.metrics.render(gateway.admission.in_use()))
}

/// Answers 101 and hands the socket to a session, or refuses while it is still HTTP.
async fn open_session(
    State(gateway): State<Arc<Gateway>>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    mut request: Request,
) -> Response {
    let Some((switch, upgrade)) = handshake(&mut request) else {
        let answer = failure(StatusCode::UPGRADE_REQUIRED, "not_an_upgrade", "this path is a WebSocket");
        return (UPGRADE_HEADERS, answer).into_response();
    };
    match admit(&gateway, client, request.headers()) {
        Ok(permit) => {
            tokio::spawn(run_session(gateway, upgrade, permit));
            switch
        }
        Err(refusal) => refused(&gateway, refusal),
    }
}

async fn run_session(gateway: Arc<Gateway>, upgrade: OnUpgrade, permit: Permit) {
    let _socket_permit = gateway.sockets.acquire();
    // An error here is a client that left between its request and our 101.
    if let Ok(upgraded) = upgrade.await
        && let Some(socket) = WebSocket::from_upgraded(upgraded, session::LIMITS)
    {
        session::serve(socket, gateway, permit).await;
    }
}

/// Checks in this order: may this client come in, is the gateway staying, has the client asked too often, is there room.
fn admit(gateway: &Gateway, client: SocketAddr, headers: &HeaderMap) -> Result<Permit, Refusal> {
    authorize(gateway, headers)?;
    if gateway.drain.has_begun() {
        return Err(Refusal::Draining);
    }
    let permit = gateway.admission.admit(client.ip(), Instant::now())?;
    gateway.metrics.sessions.add(1);
    Ok(permit)
}

fn authorize(gateway: &Gateway, headers: &HeaderMap) -> Result<(), Refusal> {
    match &gateway.config.auth_token {
        Some(token) if !bears(headers, token) => Err(Refusal::Auth),
        _ => Ok(()),
    }
}

/// Refuses a client, and counts it.
fn refused(gateway: &Gateway, refusal: Refusal) -> Response {
    gateway.metrics.refused(refusal);
    let (status, told) = match refusal {
        Refusal::Capacity => (StatusCode::SERVICE_UNAVAILABLE, "all sessions are taken"),
        Refusal::Draining => (StatusCode::SERVICE_UNAVAILABLE, "the gateway is about to end"),
        Refusal::PerAddress => (StatusCode::TOO_MANY_REQUESTS, "your address has all the sessions that it may have"),
        Refusal::Rate => (StatusCode::TOO_MANY_REQUESTS, "your address asks too often"),
        Refusal::Auth => (StatusCode::UNAUTHORIZED, "the token is missing or wrong"),
    };
    let answer = failure(status, refusal.cause(), told);
    match refusal {
        Refusal::Auth => answer,
        _ => ([(RETRY_AFTER, "1")], answer).into_response(),
    }
}
