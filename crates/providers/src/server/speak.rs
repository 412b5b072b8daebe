//! Text in, audio out.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use plimsoll_workload_voice::marks::{ReplyMark, SpeakMark};
use plimsoll_workload_voice::script::BLOCKS_PER_CHAR;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::reply::{Answer, Course, Reply, timer};
use super::socket::{Reset, Socket};
use super::{Fate, SILENT, Shared, line};
use crate::faults::{Fault, Outage};
use crate::profile::{Of, Provider, What};
use crate::stats::End;

/// The longest text that is spoken.
const MAX_BODY_BYTES: usize = 256 << 10;

/// What the provider says that it took, for gateways that tell it on.
const PROVIDER_MS: HeaderName = HeaderName::from_static("x-mock-provider-ms");

/// A request that was read. It is in flight until it ends, however it does.
struct Ticket<'a> {
    shared: &'a Arc<Shared>,
    provider: Provider,
    ended: bool,
}

impl<'a> Ticket<'a> {
    fn new(shared: &'a Arc<Shared>, provider: Provider) -> Self {
        shared.book().stats.request(provider);
        Self {
            shared,
            provider,
            ended: false,
        }
    }

    fn end(mut self, end: End) {
        self.ended = true;
        self.shared.book().stats.end(self.provider, end);
    }

    /// Somebody else ends it.
    fn hand_over(mut self) {
        self.ended = true;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let mut book = self.shared.book();
            book.stats.end(self.provider, End::Cancelled);
        }
    }
}

/// Answers a request whose JSON has the text in this field.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    socket: &Socket,
    provider: Provider,
    field: &str,
    request: Request<Incoming>,
) -> Result<Response<Reply>, Reset> {
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES)
        .collect()
        .await;
    let (read, read_ns) = (Instant::now(), Shared::now_ns());
    let text = body
        .ok()
        .and_then(|body| serde_json::from_slice::<Value>(&body.to_bytes()).ok())
        .and_then(|body| Some(body.get(field)?.as_str()?.to_owned()));
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        let told = format!("give JSON with a field {field:?} that is not empty\n");
        return Ok(line(StatusCode::BAD_REQUEST, told));
    };
    let SpeakMark { vu, turn } = SpeakMark::read(&text).unwrap_or(SpeakMark { vu: 0, turn: 0 });
    let attempt = {
        let mut book = shared.book();
        let attempts = book.attempts.entry((provider, vu, turn)).or_default();
        *attempts += 1;
        *attempts
    };
    let of = Of {
        provider,
        vu,
        turn,
        attempt,
    };
    let ticket = Ticket::new(shared, provider);
    let fate = shared.fate(&of);
    if let Some(refused) = refusal(&fate) {
        sleep(fate.latency).await;
        let (end, response) = refused;
        ticket.end(end);
        return Ok(response);
    }
    let first = read + fate.latency;
    let silent = fate.fault == Some(Fault::Timeout) || fate.outage == Some(Outage::Hang);
    let breaks = fate.fault == Some(Fault::Drop);
    let breaks_at_once = breaks && of.draw(shared.config.seed, What::Break) < 0.5;
    if silent || breaks_at_once {
        sleep_until(if silent { read + SILENT } else { first }).await;
        ticket.end(if silent { End::TimedOut } else { End::Dropped });
        socket.reset_when_closed();
        return Err(Reset);
    }
    // The head waits for the first block, as with those who make the audio first.
    sleep_until(first).await;
    let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let mark = ReplyMark {
        vu,
        turn,
        request: attempt,
        block: 1,
        blocks: chars.saturating_mul(BLOCKS_PER_CHAR),
        read_ns,
        handed_ns: read_ns,
    };
    ticket.hand_over();
    let course = match fate.fault {
        Some(Fault::Stall) => Course::Stalls,
        _ if breaks => Course::Breaks,
        _ => Course::Whole,
    };
    let answer = Answer {
        shared: Arc::clone(shared),
        socket: socket.clone(),
        provider,
        mark,
        course,
        first,
        timer: timer(first),
        ended: false,
    };
    Ok(spoken(answer, fate.latency))
}

fn spoken(answer: Answer, latency: Duration) -> Response<Reply> {
    let mut response = Response::new(Reply::Spoken(Box::new(answer)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("audio/pcm"));
    let took = format!("{:.3}", latency.as_secs_f64() * 1e3);
    if let Ok(took) = HeaderValue::from_str(&took) {
        headers.insert(PROVIDER_MS, took);
    }
    response
}

/// The answer in place of audio, if the fate is one.
fn refusal(fate: &Fate) -> Option<(End, Response<Reply>)> {
    if fate.outage == Some(Outage::Refuse) {
        let response = line(StatusCode::SERVICE_UNAVAILABLE, "out on demand\n");
        return Some((End::Failed, response));
    }
    match fate.fault? {
        Fault::Fail => {
            let response = line(StatusCode::INTERNAL_SERVER_ERROR, "failed on demand\n");
            Some((End::Failed, response))
        }
        Fault::RateLimit => {
            let mut response = line(StatusCode::TOO_MANY_REQUESTS, "too many on demand\n");
            let minute = HeaderValue::from_static("60");
            response.headers_mut().insert(RETRY_AFTER, minute);
            Some((End::RateLimited, response))
        }
        Fault::Timeout | Fault::Drop | Fault::Slow | Fault::Stall => None,
    }
}
