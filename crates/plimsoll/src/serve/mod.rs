//! The web pages of `plimsoll serve`: the history, any report, results side by side, and what is being measured now.
//!
//! Only `GET` is allowed, and nothing is changed except the index of the history. A folder that a request names is
//! looked up in that index and must lie below the folder of results. No path from a request ever reaches the file
//! system.
//!
//! - [`guard`] decides by method, host and token whether a request is answered at all, and puts the headers on every
//!   answer;
//! - [`pages`] builds the pages from values; its only I/O is reading the records;
//! - [`events`] shows a running command, as server-sent events;
//! - `assets/` holds the style and the script of the live page, served as they are.

mod events;
mod folder;
pub(crate) mod guard;
mod pages;
mod problem;
#[cfg(test)]
mod tests;
mod url;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use plimsoll_report::history::{History, Refreshed};

use crate::workloads::tellers;
use guard::Guard;
use problem::Problem;

/// Where the style is: the one thing that everyone may get, because a refusal is a page as well.
const STYLE: &str = "/assets/style.css";

/// What is served, and to whom.
#[derive(Debug)]
pub(crate) struct Site {
    /// The folder of results.
    pub(crate) results: PathBuf,
    pub(crate) guard: Guard,
}

/// The result of a handler.
type Answer = Result<Response, Problem>;

/// The parameters of a query, in their order.
type Parameters = Query<Vec<(String, String)>>;

impl Site {
    /// The history, up to date. Opened for each request, so that an index that was rebuilt meanwhile is seen at once.
    fn history(&self) -> Result<(History, Refreshed), Problem> {
        let mut history = History::open(&self.results, tellers())?;
        let refreshed = history.refresh()?;
        Ok((history, refreshed))
    }
}

/// All routes.
pub(crate) fn router(site: Site) -> Router {
    let site = Arc::new(site);
    Router::new()
        .route("/", get(history))
        .route("/result/{*name}", get(result))
        .route("/compare", get(compare))
        .route("/live/{*folder}", get(live))
        .route("/events/{*folder}", get(follow))
        .route(STYLE, get(style))
        .route("/assets/live.js", get(script))
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(
            Arc::clone(&site),
            guard::guard,
        ))
        .with_state(site)
}

/// Reads and renders on a thread where that blocks nobody else.
async fn answered(
    site: Arc<Site>,
    work: impl FnOnce(&Site) -> Answer + Send + 'static,
) -> Response {
    let done = tokio::task::spawn_blocking(move || work(&site)).await;
    let answer = done.unwrap_or_else(|_| Err(Problem::ours()));
    answer.unwrap_or_else(IntoResponse::into_response)
}

async fn history(State(site): State<Arc<Site>>, Query(query): Parameters) -> Response {
    answered(site, move |site| pages::history::answer(site, &query)).await
}

async fn result(State(site): State<Arc<Site>>, Path(name): Path<String>) -> Response {
    answered(site, move |site| pages::result::answer(site, &name)).await
}

async fn compare(State(site): State<Arc<Site>>, Query(query): Parameters) -> Response {
    answered(site, move |site| pages::compare::answer(site, &query)).await
}

async fn live(State(site): State<Arc<Site>>, Path(folder): Path<String>) -> Response {
    answered(site, move |site| pages::live::answer(site, &folder)).await
}

async fn follow(State(site): State<Arc<Site>>, Path(folder): Path<String>) -> Response {
    answered(site, move |site| {
        let known = folder::known(site, &folder)?;
        Ok(events::stream(known.path).into_response())
    })
    .await
}

async fn style() -> Response {
    reply("text/css; charset=utf-8", include_str!("assets/style.css"))
}

async fn script() -> Response {
    reply(
        "text/javascript; charset=utf-8",
        include_str!("assets/live.js"),
    )
}

async fn nothing() -> Response {
    Problem::not_found("there is no such page").into_response()
}

/// An answer of this content type.
fn reply(content_type: &'static str, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    let value = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

/// One of our own pages.
fn page(html: String) -> Response {
    reply("text/html; charset=utf-8", html)
}

/// What a browser may do with our own pages: use our own style and script, nothing else and nobody else's.
const OWN_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
                          base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Sets the headers of every answer. If the answer already has a policy, that is kept.
fn harden(response: &mut Response) {
    let headers = response.headers_mut();
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(OWN_POLICY));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    // What is measured now changes within a second, and the index may too.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}
