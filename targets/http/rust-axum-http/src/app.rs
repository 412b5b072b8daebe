//! Routes and handlers.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{StatusCode, Version};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http_body_util::BodyExt;
use http_target::config::Config;
use http_target::metrics::Metrics;
use http_target::routes;
use serde::Serialize;

/// How long the next piece of a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// What handlers share.
struct App {
    metrics: Arc<Metrics>,
    body_bytes_max: usize,
    /// What `/bytes/N` is the beginning of.
    pattern: Bytes,
}

type Shared = State<Arc<App>>;

#[derive(Serialize)]
struct Item {
    id: u64,
    name: String,
    even: bool,
}

/// All routes. A route for GET takes HEAD, too.
pub(crate) fn router(config: &Config, metrics: &Arc<Metrics>) -> Router {
    let app = Arc::new(App {
        metrics: Arc::clone(metrics),
        body_bytes_max: config.body_bytes_max,
        pattern: routes::pattern().into(),
    });
    Router::new()
        .route("/", get(ok))
        .route("/bytes/{count}", get(bytes))
        .route("/json/{number}", get(item))
        .route("/sum", post(sum))
        .route("/healthz", get(ok))
        .route("/metrics", get(show_metrics))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), admit))
        .with_state(app)
}

/// Counts each request, and refuses what hyper leaves to the application: HTTP/1.1 without one `Host` (RFC 9112, section
/// 3.2).
async fn admit(State(app): Shared, request: Request, next: Next) -> Response {
    app.metrics.request();
    if request.version() == Version::HTTP_11 && request.headers().get_all(HOST).iter().count() != 1 {
        return StatusCode::BAD_REQUEST.into_response();
    }
    next.run(request).await
}

async fn ok() -> &'static str {
    "ok"
}

async fn bytes(State(app): Shared, Path(count): Path<String>) -> Result<Bytes, StatusCode> {
    let count = routes::byte_count(count.as_bytes()).ok_or(StatusCode::NOT_FOUND)?;
    Ok(app.pattern.slice(..count))
}

async fn item(Path(number): Path<String>) -> Result<Json<Item>, StatusCode> {
    let id = routes::item(number.as_bytes()).ok_or(StatusCode::NOT_FOUND)?;
    Ok(Json(Item { id, name: format!("item {id}"), even: id.is_multiple_of(2) }))
}

async fn show_metrics(State(app): Shared) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.sums().render())
}

/// Nothing of the body is kept.
async fn sum(State(app): Shared, mut body: Body) -> Result<String, StatusCode> {
    if body.size_hint().lower() > app.body_bytes_max as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let (mut sum, mut length) = (crc32fast::Hasher::new(), 0);
    loop {
        let frame = tokio::time::timeout(BODY_TIMEOUT, body.frame()).await.map_err(|_| StatusCode::REQUEST_TIMEOUT)?;
        let Some(frame) = frame else { return Ok(format!("{:08x} {length}", sum.finalize())) };
        // An error is a body that is cut off, or not in chunks as it should be.
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        // Trailers are none of the sum.
        let Some(data) = frame.data_ref() else { continue };
        length += data.len();
        if length > app.body_bytes_max {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        sum.update(data);
    }
}
