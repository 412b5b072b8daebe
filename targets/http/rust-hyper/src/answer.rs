//! Requests and their answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use http_target::config::Config;
use http_target::metrics::Metrics;
use http_target::routes;
use hyper::body::{Body, Incoming};
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use serde::Serialize;

/// How long the next piece of a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

type Answer = Response<Full<Bytes>>;

/// What requests share.
pub(crate) struct App {
    /// The counters.
    pub(crate) metrics: Arc<Metrics>,
    body_bytes_max: usize,
    /// What `/bytes/N` is the beginning of.
    pattern: Bytes,
}

#[derive(Serialize)]
struct Item {
    id: u64,
    name: String,
    even: bool,
}

impl App {
    pub(crate) fn new(config: Config) -> Self {
        let pattern = routes::pattern().into();
        Self { metrics: Arc::default(), body_bytes_max: config.body_bytes_max, pattern }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Answer {
        self.metrics.request();
        // hyper leaves this to the application, and RFC 9112 (section 3.2) to nobody.
        if request.version() == Version::HTTP_11 && request.headers().get_all(HOST).iter().count() != 1 {
            return status(StatusCode::BAD_REQUEST);
        }
        match (request.method(), request.uri().path()) {
            (&Method::POST, "/sum") => self.sum(request.into_body()).await,
            (_, "/sum") => not_allowed("POST"),
            (&Method::GET, path) => self.get(path),
            (&Method::HEAD, path) => without_body(self.get(path)),
            _ => not_allowed("GET, HEAD"),
        }
    }

    fn get(&self, path: &str) -> Answer {
        let found = match path {
            "/" | "/healthz" => Some(answer(TEXT, Bytes::from_static(b"ok"))),
            "/metrics" => Some(answer(PROMETHEUS, self.metrics.sums().render().into())),
            _ => self.bytes(path).or_else(|| item(path)),
        };
        found.unwrap_or_else(|| status(StatusCode::NOT_FOUND))
    }

    /// `/bytes/N`.
    fn bytes(&self, path: &str) -> Option<Answer> {
        let count = routes::byte_count(path.strip_prefix("/bytes/")?.as_bytes())?;
        Some(answer(BINARY, self.pattern.slice(..count)))
    }

    /// `/sum`: nothing of the body is kept.
    async fn sum(&self, mut body: Incoming) -> Answer {
        if body.size_hint().lower() > self.body_bytes_max as u64 {
            return status(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let (mut sum, mut length) = (crc32fast::Hasher::new(), 0);
        while let Ok(frame) = tokio::time::timeout(BODY_TIMEOUT, body.frame()).await {
            let Some(frame) = frame else {
                return answer(TEXT, format!("{:08x} {length}", sum.finalize()).into());
            };
            // Cut off, or not in chunks as it should be.
            let Ok(frame) = frame else { return status(StatusCode::BAD_REQUEST) };
            // Trailers are none of the sum.
            let Some(data) = frame.data_ref() else { continue };
            length += data.len();
            if length > self.body_bytes_max {
                return status(StatusCode::PAYLOAD_TOO_LARGE);
            }
            sum.update(data);
        }
        status(StatusCode::REQUEST_TIMEOUT)
    }
}

/// `/json/K`.
fn item(path: &str) -> Option<Answer> {
    let id = routes::item(path.strip_prefix("/json/")?.as_bytes())?;
    let item = Item { id, name: format!("item {id}"), even: id.is_multiple_of(2) };
    let text = serde_json::to_vec(&item).expect("numbers and text");
    Some(answer(JSON, text.into()))
}

fn answer(content_type: HeaderValue, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

fn status(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = status(StatusCode::METHOD_NOT_ALLOWED);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// An answer to HEAD: the length stays. hyper would send the body of an answer to HTTP/2.
fn without_body(answer: Answer) -> Answer {
    let (mut head, body) = answer.into_parts();
    let length = body.size_hint().exact().unwrap_or_default();
    head.headers.insert(CONTENT_LENGTH, length.into());
    Response::from_parts(head, Full::default())
}
