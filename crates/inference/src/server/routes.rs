//! Who answers what.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use super::infer::{self, ResetRequested};
use super::{AbortHandle, Shared};
use crate::faults::FaultShares;
use crate::recent;

/// The body of `PUT /faults` is a short object.
const MAX_CONTROL_BODY_BYTES: usize = 64 << 10;

pub(super) type Answered = Response<Full<Bytes>>;

/// Answers a request; an error resets its stream.
pub(super) async fn answer(
    shared: Arc<Shared>,
    abort: AbortHandle,
    request: Request<Incoming>,
) -> Result<Answered, ResetRequested> {
    let allowed = match (request.method(), request.uri().path()) {
        (&Method::POST, "/infer") => return infer::answer(&shared, &abort, request).await,
        (&Method::GET, "/health") => return Ok(text(StatusCode::OK, "ok\n")),
        (&Method::GET, "/stats") => {
            let clocks = shared.clocks();
            return Ok(json(&shared.book().stats.window(clocks)));
        }
        (&Method::POST, "/stats/reset") => {
            let clocks = shared.clocks();
            shared.book().stats.reset_window(clocks);
            return Ok(text(StatusCode::OK, "a new window has begun\n"));
        }
        (&Method::GET, "/metrics") => return Ok(metrics(&shared)),
        (&Method::GET, "/requests") => return Ok(requests(&shared, request.uri().query())),
        (&Method::GET, "/faults") => return Ok(json(&shared.book().faults)),
        (&Method::PUT, "/faults") => return Ok(put_faults(&shared, request).await),
        (_, "/infer" | "/stats/reset") => "POST",
        (_, "/health" | "/stats" | "/metrics" | "/requests") => "GET",
        (_, "/faults") => "GET, PUT",
        _ => return Ok(text(StatusCode::NOT_FOUND, "no such path\n")),
    };
    let mut refused = text(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("this path takes {allowed}\n"),
    );
    refused
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    Ok(refused)
}

fn metrics(shared: &Shared) -> Answered {
    let clocks = shared.clocks();
    let text = shared.book().stats.prometheus(clocks);
    with_type(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        text,
    )
}

/// `GET /requests?last=N`: the last N requests; without a number, all that are remembered.
fn requests(shared: &Shared, query: Option<&str>) -> Answered {
    let last = match query {
        None | Some("") => Some(recent::CAPACITY),
        Some(query) => query
            .strip_prefix("last=")
            .and_then(|count| count.parse().ok()),
    };
    match last {
        Some(last) => json(&shared.book().recent.last(last).collect::<Vec<_>>()),
        None => text(
            StatusCode::BAD_REQUEST,
            "requests: ask as /requests?last=N with N from 0\n",
        ),
    }
}

async fn put_faults(shared: &Shared, request: Request<Incoming>) -> Answered {
    let Ok(body) = Limited::new(request.into_body(), MAX_CONTROL_BODY_BYTES)
        .collect()
        .await
    else {
        return text(
            StatusCode::BAD_REQUEST,
            "faults: the body is too long or did not arrive whole\n",
        );
    };
    match FaultShares::from_json(&body.to_bytes()) {
        Ok(faults) => {
            shared.set_faults(faults);
            json(&faults)
        }
        Err(error) => text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

/// A 200 with a value as JSON.
pub(super) fn json(value: &impl Serialize) -> Answered {
    let body =
        serde_json::to_vec(value).expect("plain data, names as keys: nothing that JSON lacks");
    with_type(StatusCode::OK, "application/json", body)
}

/// A line for people.
pub(super) fn text(status: StatusCode, line: impl Into<Bytes>) -> Answered {
    with_type(status, "text/plain; charset=utf-8", line)
}

fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answered {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
