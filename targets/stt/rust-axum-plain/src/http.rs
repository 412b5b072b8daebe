//! The HTTP surface: health, metrics, and who is let in.

use std::sync::Arc;

use axum::Router;
use axum::extract::{State, WebSocketUpgrade};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use subtle::ConstantTimeEq;

use crate::connection;
use crate::gateway::Gateway;

/// Most that a message may declare as its length.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// What tungstenite's documentation advises for many connections with little data each.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Bounds the pongs that wait for a client that sends pings and does not read.
const WRITE_BUFFER_BYTES_MAX: usize = 256 * 1024;

/// The routes of the contract.
pub fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/ws/stt", get(open_session))
        .with_state(gateway)
}

async fn health(State(gateway): State<Arc<Gateway>>) -> StatusCode {
    if gateway.shutdown.is_cancelled() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> impl IntoResponse {
    let text = gateway.metrics.render(gateway.sessions.in_use(), gateway.jobs.in_use());
    let text = text.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()));
    text.map(|text| ([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text))
}

/// Upgrades, or refuses while it is still HTTP. axum itself refuses what is no upgrade, before this.
async fn open_session(State(gateway): State<Arc<Gateway>>, headers: HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    if !authorized(&headers, &gateway.config.auth_token) {
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response();
    }
    if gateway.shutdown.is_cancelled() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let Some(permit) = gateway.sessions.acquire() else {
        gateway.metrics.sessions_rejected.inc();
        return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")]).into_response();
    };
    gateway.metrics.sessions.inc();
    let connection = gateway.connections.token();
    upgrade
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| async move {
            connection::serve(socket, gateway, permit).await;
            drop(connection);
        })
}

/// Compares in a time that does not tell how much of the token is right.
fn authorized(headers: &HeaderMap, token: &str) -> bool {
    if token.is_empty() {
        return true;
    }
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    header.and_then(|value| value.split_once(' ')).is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case("Bearer") && given.as_bytes().ct_eq(token.as_bytes()).into()
    })
}
