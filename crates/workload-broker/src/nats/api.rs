//! Requests to JetStream and its answers, which are JSON (ADR-1 of nats-io/nats-architecture-and-design). The names of
//! the fields are those of the server's `StreamConfig` and `ConsumerConfig`. It refuses unknown ones.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::setup::{Keeping, Reading, Setup};
use super::write;
use crate::decimal;
use crate::dialect::Shape;

/// After how long the server gives a pull request back unused, in nanoseconds: 30 s, the usual value of clients
/// (ADR-37).
const PULL_EXPIRES_NS: &str = "30000000000";

/// After how long without a pull request an ordered consumer is deleted, in nanoseconds: 5 min.
const ORDERED_INACTIVE_NS: u64 = 300_000_000_000;

#[derive(Serialize)]
struct StreamConfig<'a> {
    name: &'a str,
    subjects: [&'a str; 1],
    retention: &'a str,
    storage: &'a str,
    num_replicas: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    persist_mode: Option<&'a str>,
}

#[derive(Serialize)]
struct ConsumerRequest<'a> {
    stream_name: &'a str,
    config: ConsumerConfig<'a>,
    action: &'a str,
}

#[derive(Serialize, Default)]
struct ConsumerConfig<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    durable_name: Option<&'a str>,
    deliver_policy: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opt_start_seq: Option<u64>,
    ack_policy: &'a str,
    replay_policy: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_wait: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ack_pending: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inactive_threshold: Option<u64>,
    num_replicas: u8,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    mem_storage: bool,
}

/// Appends the request that creates the stream. If it exists with the same settings, the answer is the same.
pub(super) fn create_stream(out: &mut Vec<u8>, setup: &Setup, reply: &[u8]) {
    let config = StreamConfig {
        name: &setup.stream,
        subjects: [&setup.subject],
        retention: match setup.shape {
            Shape::Queue => "workqueue",
            Shape::Stream => "limits",
        },
        storage: match setup.keeping {
            Keeping::Memory => "memory",
            Keeping::File | Keeping::FileLater => "file",
        },
        num_replicas: 1,
        persist_mode: (setup.keeping == Keeping::FileLater).then_some("async"),
    };
    let subject = format!("$JS.API.STREAM.CREATE.{}", setup.stream);
    request(out, &subject, reply, &config);
}

/// Where an ordered consumer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the next message that the stream gets.
    Next,
    /// With this number of the stream.
    At(u64),
}

/// Appends the request that creates the consumer `name`. If it exists with the same settings, the answer is the same.
pub(super) fn create_consumer(
    out: &mut Vec<u8>,
    setup: &Setup,
    reading: &Reading,
    name: &str,
    begin: Begin,
    reply: &[u8],
) {
    let common = ConsumerConfig {
        name,
        replay_policy: "instant",
        num_replicas: 1,
        ..ConsumerConfig::default()
    };
    let config = match reading {
        Reading::Shared {
            unsettled_max,
            ack_wait_ns,
            ..
        } => ConsumerConfig {
            durable_name: Some(name),
            // A queue allows no other. On a stream, readers come before writers, so that it is the same as "new".
            deliver_policy: "all",
            ack_policy: "explicit",
            ack_wait: *ack_wait_ns,
            max_ack_pending: Some(*unsettled_max),
            ..common
        },
        Reading::Ordered => ConsumerConfig {
            deliver_policy: match begin {
                Begin::Next => "new",
                Begin::At(_) => "by_start_sequence",
            },
            opt_start_seq: match begin {
                Begin::Next => None,
                Begin::At(seq) => Some(seq),
            },
            ack_policy: "none",
            inactive_threshold: Some(ORDERED_INACTIVE_NS),
            mem_storage: true,
            ..common
        },
    };
    let request_body = ConsumerRequest {
        stream_name: &setup.stream,
        config,
        action: "create",
    };
    let subject = format!("$JS.API.CONSUMER.CREATE.{}.{name}", setup.stream);
    request(out, &subject, reply, &request_body);
}

fn request(out: &mut Vec<u8>, subject: &str, reply: &[u8], body: &impl Serialize) {
    // Texts and numbers: nothing in it can fail to become JSON.
    let body = serde_json::to_vec(body).unwrap_or_default();
    write::publish(out, subject.as_bytes(), reply, &body);
}

/// Appends a request without a body.
pub(super) fn ask(out: &mut Vec<u8>, subject: &str, reply: &[u8]) {
    write::publish(out, subject.as_bytes(), reply, b"");
}

/// Appends a pull request for `batch` messages. `head` is the command up to the reply's last dot, and the batch is its
/// last word: an answer that ends the request then says how large it was.
pub(super) fn pull(out: &mut Vec<u8>, head: &[u8], batch: u32) {
    let batch = u64::from(batch);
    let body_bytes = br#"{"batch":,"expires":}"#.len() as u64
        + decimal::digits(batch)
        + PULL_EXPIRES_NS.len() as u64;
    out.extend_from_slice(head);
    decimal::write(out, batch);
    out.push(b' ');
    decimal::write(out, body_bytes);
    out.extend_from_slice(b"\r\n{\"batch\":");
    decimal::write(out, batch);
    out.extend_from_slice(b",\"expires\":");
    out.extend_from_slice(PULL_EXPIRES_NS.as_bytes());
    out.extend_from_slice(b"}\r\n");
}

/// What JetStream says is wrong.
#[derive(Deserialize)]
struct ApiError<'a> {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    err_code: u32,
    #[serde(borrow, default)]
    description: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Failure<'a> {
    #[serde(borrow)]
    error: Option<ApiError<'a>>,
}

/// The answer to a request, or what is wrong: not JSON, or an error of the server.
pub(super) fn answer<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, String> {
    let failure: Failure<'_> = serde_json::from_slice(payload)
        .map_err(|error| format!("an answer of JetStream is not what it must be: {error}"))?;
    if let Some(error) = failure.error {
        return Err(format!(
            "JetStream answers with error {} ({}): {}",
            error.code, error.err_code, error.description
        ));
    }
    serde_json::from_slice(payload)
        .map_err(|error| format!("an answer of JetStream is not what it must be: {error}"))
}

/// Answers whose content does not matter, only that they are no error.
#[derive(Deserialize)]
pub(super) struct Done {}

/// What the creation of a consumer says of it.
#[derive(Deserialize)]
pub(super) struct ConsumerCreated {
    pub(super) delivered: Sequences,
}

/// The last delivery of a consumer.
#[derive(Deserialize)]
pub(super) struct Sequences {
    pub(super) stream_seq: u64,
}

/// The answer to a message that was published with a reply subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PubAck<'a> {
    /// The stream has it.
    Stored,
    /// It has not, and this is why.
    Refused(Cow<'a, str>),
}

#[derive(Deserialize)]
struct PubAckBody<'a> {
    #[serde(borrow)]
    error: Option<ApiError<'a>>,
    seq: Option<u64>,
}

/// How the server begins the `PubAck`s of a stream: it makes this once and adds the number and a brace.
pub(super) fn pub_ack_begin(stream: &str) -> Vec<u8> {
    format!("{{\"stream\":\"{stream}\", \"seq\":").into_bytes()
}

/// Reads a `PubAck`. `begin` is that of [`pub_ack_begin`]; any other JSON takes the long way. `None` if it is neither
/// a number nor an error.
pub(super) fn pub_ack<'a>(begin: &[u8], payload: &'a [u8]) -> Option<PubAck<'a>> {
    let number = payload
        .strip_prefix(begin)
        .and_then(|rest| rest.strip_suffix(b"}"));
    if number.is_some_and(|digits| decimal::read(digits).is_some()) {
        return Some(PubAck::Stored);
    }
    let body: PubAckBody<'a> = serde_json::from_slice(payload).ok()?;
    match body {
        PubAckBody {
            error: Some(error), ..
        } => Some(PubAck::Refused(error.description)),
        PubAckBody { seq: Some(_), .. } => Some(PubAck::Stored),
        PubAckBody { .. } => None,
    }
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
