//! The HTTP surface: health, metrics, and who is let in.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::upgrade::OnUpgrade;
use subtle::ConstantTimeEq;
use tungstenite::handshake::server::create_response_with_body;

use crate::connection;
use crate::exposition;
use crate::gateway::Gateway;
use crate::limit::Permit;
use crate::websocket::WebSocket;

/// The routes of the contract; everything else is 404.
pub fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/ws/stt", get(open_session))
        .method_not_allowed_fallback(|| async { StatusCode::NOT_FOUND })
        .with_state(gateway)
}

async fn health(State(gateway): State<Arc<Gateway>>) -> StatusCode {
    if gateway.drain.has_begun() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> impl IntoResponse {
    let text = gateway.metrics.render(gateway.sessions.in_use(), gateway.jobs.in_use());
    ([exposition::HEADER], text)
}

/// Answers 101 and hands the socket to a session, or refuses while it is still HTTP.
async fn open_session(State(gateway): State<Arc<Gateway>>, mut request: Request) -> Response {
    match admit(&gateway, &mut request) {
        Ok(admitted) => {
            let (switch, upgrade, permit) = admitted;
            let socket_permit = gateway.sockets.acquire();
            tokio::spawn(async move {
                // An error here is a client that left between its request and our 101.
                if let Ok(upgraded) = upgrade.await
                    && let Some(socket) = WebSocket::from_upgraded(upgraded, connection::LIMITS)
                {
                    connection::serve(socket, &gateway, permit).await;
                }
                drop(socket_permit);
            });
            switch
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Why `/ws/stt` was not upgraded.
enum Refusal {
    NotAnUpgrade,
    Unauthorized,
    Full,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::NotAnUpgrade => (StatusCode::UPGRADE_REQUIRED, UPGRADE_HEADERS).into_response(),
            Self::Unauthorized => StatusCode::UNAUTHORIZED.into_response(),
            Self::Full => (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")]).into_response(),
        }
    }
}

/// Checks in this order: is it a WebSocket handshake, may this client come in, is there room. What was taken on the way
/// is given back when a later check fails.
fn admit(gateway: &Gateway, request: &mut Request) -> Result<(Response, OnUpgrade, Permit), Refusal> {
    let (switch, upgrade) = handshake(request).ok_or(Refusal::NotAnUpgrade)?;
    if let Some(token) = &gateway.config.auth_token
        && !bears(request.headers(), token)
    {
        return Err(Refusal::Unauthorized);
    }
    let permit = if gateway.drain.has_begun() { None } else { gateway.sessions.acquire() };
    let Some(permit) = permit else {
        gateway.metrics.sessions_rejected.add(1);
        return Err(Refusal::Full);
    };
    gateway.metrics.sessions.add(1);
    Ok((switch, upgrade, permit))
}

/// What an answer with status 426 says beside that.
pub const UPGRADE_HEADERS: [(HeaderName, &str); 2] = [(UPGRADE, "websocket"), (SEC_WEBSOCKET_VERSION, "13")];

/// The answer to a WebSocket handshake, and what becomes the socket after it; `None` if the request is none.
pub fn handshake(request: &mut Request) -> Option<(Response, OnUpgrade)> {
    let switch = create_response_with_body(request, Body::empty).ok()?;
    let upgrade = request.extensions_mut().remove::<OnUpgrade>()?;
    Some((switch, upgrade))
}

/// Whether the request carries `Authorization: Bearer <token>`, in a time that does not tell how much of it is right.
pub fn bears(headers: &HeaderMap, token: &str) -> bool {
    const SCHEME: &[u8] = b"Bearer ";
    let Some(value) = headers.get(AUTHORIZATION).map(|value| value.as_bytes()) else { return false };
    // The scheme is no secret, and its case does not matter (RFC 9110, section 11.1).
    match value.split_at_checked(SCHEME.len()) {
        Some((scheme, given)) => scheme.eq_ignore_ascii_case(SCHEME) && bool::from(given.ct_eq(token.as_bytes())),
        None => false,
    }
}
