//! The way of one inference request: read, noted, queued, delayed, answered.

use std::error::Error;
use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, StatusCode, Version};
use plimsoll_workload_stt::reference::{Answer, DEFAULT_PASSES};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::routes::{Answered, json, text};
use super::{AbortHandle, Shared};
use crate::compute::{AnswerSink, Job};
use crate::faults::Fault;
use crate::recent::SeenRequest;

/// The longest body taken: over two minutes of audio, far beyond any gateway's buffer.
const MAX_BODY_BYTES: usize = 4 << 20;

/// The most passes taken, so that one request cannot hold the loop for long.
const MAX_PASSES: u32 = 64;

/// How long before its deadline a computation starts at the latest: enough for a round of all lanes and the queue of
/// other things to do.
const COMPUTE_AHEAD: Duration = Duration::from_millis(5);

/// The fault `reset` was drawn. As an error of the service it makes hyper reset the stream (HTTP/2: RST_STREAM with
/// INTERNAL_ERROR) or close the connection (HTTP/1.1: by TCP reset, see `AbortableStream`).
#[derive(Debug)]
pub(super) struct ResetRequested;

impl Display for ResetRequested {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("reset on demand")
    }
}

impl Error for ResetRequested {}

/// Where a computed answer goes: to the request that waits for it, and into the list of recent requests.
#[derive(Debug)]
pub(super) struct AnswerTo {
    shared: Arc<Shared>,
    number: u64,
    request: oneshot::Sender<Answer>,
}

impl AnswerSink for AnswerTo {
    fn is_abandoned(&self) -> bool {
        self.request.is_closed()
    }

    fn accept(self, answer: Answer) {
        self.shared
            .book()
            .recent
            .set_checksum(self.number, answer.checksum);
        // The request may have gone meanwhile; then nobody wants it.
        let _ = self.request.send(answer);
    }
}

/// A request that was read, with the fate drawn for it. In flight until dropped, however it ends.
struct Ticket<'a> {
    shared: &'a Arc<Shared>,
    number: u64,
    latency: Duration,
    fault: Option<Fault>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.shared.book().stats.request_over();
    }
}

/// Answers `POST /infer`.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    abort: &AbortHandle,
    request: Request<Incoming>,
) -> Result<Answered, ResetRequested> {
    let (head, body) = request.into_parts();
    let pcm = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        // One piece comes without a copy, several are joined.
        Ok(pcm) => pcm.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Ok(text(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is over {MAX_BODY_BYTES} bytes\n"),
            ));
        }
        Err(_) => {
            return Ok(text(
                StatusCode::BAD_REQUEST,
                "the body did not arrive whole\n",
            ));
        }
    };
    let read_at = Instant::now();
    let passes = passes(&head.headers);
    let ticket = admit(
        shared,
        seen(
            shared,
            read_at,
            head.version,
            &head.headers,
            passes.as_ref().ok().copied(),
            &pcm,
        ),
    );
    let passes = match passes {
        Ok(passes) => passes,
        Err(line) => return Ok(text(StatusCode::BAD_REQUEST, line)),
    };
    if !pcm.len().is_multiple_of(2) {
        return Ok(text(
            StatusCode::BAD_REQUEST,
            format!(
                "the body has {} bytes: send whole 16-bit samples\n",
                pcm.len()
            ),
        ));
    }
    // An idle place is taken without a wait; asking twice keeps a wait of nothing at exactly nothing.
    let (_place, begin) = match shared.places.try_acquire() {
        Ok(place) => (place, read_at),
        Err(_) => (
            shared.places.acquire().await.expect("never closed"),
            Instant::now(),
        ),
    };
    shared.book().stats.queue_waited(begin - read_at);
    let deadline = begin + ticket.latency;
    let computed = compute(shared, ticket.number, pcm, passes, deadline);
    if ticket.fault == Some(Fault::Never) {
        shared.book().stats.fault(Fault::Never);
        // Ends when the client gives up and hyper drops this future. The computation is not abandoned by that time.
        let _held = computed;
        return std::future::pending().await;
    }
    sleep_until(deadline).await;
    let Ok(answer) = computed.await else {
        return Ok(text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the answer was not computed\n",
        ));
    };
    respond(&ticket, abort, deadline, &answer)
}

/// What `x-cpu-passes` asks for, or a line that says what is wrong with it.
fn passes(headers: &HeaderMap) -> Result<u32, String> {
    let Some(value) = headers.get("x-cpu-passes") else {
        return Ok(DEFAULT_PASSES);
    };
    value
        .to_str()
        .ok()
        .and_then(|value| value.trim().parse().ok())
        .filter(|passes| *passes <= MAX_PASSES)
        .ok_or_else(|| format!("x-cpu-passes: give a whole number from 0 to {MAX_PASSES}\n"))
}

fn seen(
    shared: &Shared,
    read_at: Instant,
    version: Version,
    headers: &HeaderMap,
    cpu_passes: Option<u32>,
    pcm: &Bytes,
) -> SeenRequest {
    let cpu_passes = cpu_passes.filter(|_| headers.contains_key("x-cpu-passes"));
    let content_type = headers
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    SeenRequest {
        at_us: u64::try_from((read_at - shared.started).as_micros()).unwrap_or(u64::MAX),
        http_version: format!("{version:?}"),
        content_type,
        cpu_passes,
        audio_bytes: pcm.len() as u64,
        checksum: None,
        inflight: 0,
    }
}

/// Counts and notes a request and draws its fate, in the order in which requests were read.
fn admit(shared: &Arc<Shared>, mut seen: SeenRequest) -> Ticket<'_> {
    let mut book = shared.book();
    let book = &mut *book;
    seen.inflight = book.stats.request_read(seen.audio_bytes);
    Ticket {
        shared,
        number: book.recent.push(seen),
        latency: shared.model.draw(&mut book.latency_rng) + book.faults.delay(),
        fault: book.faults.draw(&mut book.fault_rng),
    }
}

/// Hands the batch to be computed in time for the deadline.
fn compute(
    shared: &Arc<Shared>,
    number: u64,
    pcm: Bytes,
    passes: u32,
    deadline: Instant,
) -> oneshot::Receiver<Answer> {
    let (request, computed) = oneshot::channel();
    let start_by = deadline.checked_sub(COMPUTE_AHEAD).unwrap_or(deadline);
    let sink = AnswerTo {
        shared: Arc::clone(shared),
        number,
        request,
    };
    let mut batcher = shared.batcher();
    let due_before = batcher.due();
    batcher.push(Job {
        pcm,
        passes,
        start_by,
        sink,
    });
    let sooner = match (due_before, batcher.due()) {
        (Some(before), Some(after)) => after < before,
        (None, Some(_)) => true,
        (_, None) => false,
    };
    if sooner {
        shared.compute_sooner.notify_one();
    }
    computed
}

/// The end of a request that has waited its latency.
fn respond(
    ticket: &Ticket<'_>,
    abort: &AbortHandle,
    deadline: Instant,
    answer: &Answer,
) -> Result<Answered, ResetRequested> {
    {
        let stats = &mut ticket.shared.book().stats;
        stats.answered_late(Instant::now() - deadline);
        if let Some(fault) = ticket.fault {
            stats.fault(fault);
        }
    }
    let status = |status: StatusCode| text(status, format!("{} on demand\n", status.as_u16()));
    Ok(match ticket.fault {
        None => json(answer),
        Some(Fault::Http429) => status(StatusCode::TOO_MANY_REQUESTS),
        Some(Fault::Http503) => status(StatusCode::SERVICE_UNAVAILABLE),
        Some(Fault::Http404) => status(StatusCode::NOT_FOUND),
        Some(Fault::Garbage) => {
            let mut garbage = json(&()).map(|_| "{\"rms\": garbage on demand".into());
            *garbage.status_mut() = StatusCode::OK;
            garbage
        }
        Some(Fault::UnknownField) => json(&WithUnknownField {
            answer,
            on_demand: true,
        }),
        Some(Fault::MissingField) => json(&WithoutChecksum::of(answer)),
        Some(Fault::Reset) => {
            abort.abort();
            return Err(ResetRequested);
        }
        Some(Fault::Never) => unreachable!("a request that is never answered does not come here"),
    })
}

/// The fault `unknown_field`.
#[derive(Serialize)]
struct WithUnknownField<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    on_demand: bool,
}

/// The fault `missing_field`.
#[derive(Serialize)]
struct WithoutChecksum<'a> {
    rms: f64,
    zero_crossings: u64,
    samples: u64,
    transcript: &'a str,
    audio_bytes: u64,
}

impl<'a> WithoutChecksum<'a> {
    fn of(answer: &'a Answer) -> Self {
        Self {
            rms: answer.rms,
            zero_crossings: answer.zero_crossings,
            samples: answer.samples,
            transcript: &answer.transcript,
            audio_bytes: answer.audio_bytes,
        }
    }
}
