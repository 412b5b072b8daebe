//! The golden vectors that all gateways share, against this gateway's codecs. (`frames.json` needs a socket and is in
//! `protocol.rs`.)

mod support;

use std::time::{Duration, Instant};

use rust_axum::failure::{Failure, FailureKind};
use rust_axum::messages::{self, ErrorContext, Inference, Span};
use serde_json::Value;
use support::vectors;

#[test]
fn start_messages() {
    for case in vectors("start.json") {
        let text = case["text"].as_str().expect("text");
        assert_eq!(messages::is_start(text.as_bytes()), case["ok"], "{}", case["id"]);
    }
}

#[test]
fn inference_answers() {
    for case in vectors("inference_answers.json") {
        let parsed = Inference::parse(case["body"].as_str().expect("body").as_bytes());
        let kind = parsed.err().map(|failure| failure.kind.name());
        assert_eq!(kind, case["kind"].as_str(), "{}", case["id"]);
    }
}

#[test]
fn inference_failures() {
    for case in vectors("inference_failures.json") {
        let failure = match (case["status"].as_u64(), case["transport"].as_str()) {
            (Some(status), None) => Failure::status(u16::try_from(status).expect("a status")),
            (None, Some("reset")) => Failure::connection("reset"),
            (None, Some("timeout")) => Failure::timeout(),
            other => panic!("{}: {other:?}", case["id"]),
        };
        let kind = failure.kind;
        assert_eq!(
            (kind.name(), kind.stage(), kind.retryable()),
            (
                case["kind"].as_str().expect("kind"),
                case["stage"].as_str().expect("stage"),
                case["retryable"].as_bool().expect("retryable"),
            ),
            "{}",
            case["id"]
        );
        assert_eq!(failure.status.map(u64::from), case["status"].as_u64(), "{}", case["id"]);
    }
}

#[test]
fn partials() {
    for case in vectors("partials.json") {
        let inference = Inference::parse(case["inference"].to_string().as_bytes()).expect("a good answer");
        let cpu_passes = u32::try_from(number(&case["config"]["cpu_passes"])).expect("passes");
        let lateness = milliseconds(&case["batch"]["flush_lateness_ms"]);
        let now = Instant::now();
        let partial = messages::partial(&span(&case["batch"], now, now), &inference, cpu_passes, lateness);
        assert_same(&partial, &case["expect"], &case["id"]);
    }
}

#[test]
fn errors() {
    for case in vectors("errors.json") {
        let (input, batch) = (&case["input"], &case["input"]["batch"]);
        let kind = FailureKind::ALL.into_iter().find(|kind| kind.name() == input["kind"]).expect("a kind");
        let failure = Failure {
            kind,
            message: input["message"].as_str().expect("message").to_owned(),
            status: input["inference_status"].as_u64().map(|status| u16::try_from(status).expect("a status")),
        };
        // Far enough from the clock's own zero to subtract any age from.
        let now = Instant::now() + Duration::from_secs(3600);
        let received = |field: &str| now - milliseconds(&batch[field]);
        let context = ErrorContext {
            span: span(batch, received("oldest_age_ms"), received("newest_age_ms")),
            now,
            flush_lateness: milliseconds(&batch["flush_lateness_ms"]),
            inference_elapsed: input["inference_elapsed_ms"].as_f64().map(|ms| Duration::from_secs_f64(ms / 1e3)),
            inflight_batches: number(&input["inflight_gateway_batches"]),
            buffered_frames: number(&input["gateway_buffer_frames"]),
        };
        assert_same(&messages::error(&failure, &context), &case["expect"], &case["id"]);
    }
}

fn span(batch: &Value, oldest_at: Instant, newest_at: Instant) -> Span {
    let (oldest_seq, newest_seq) = (number(&batch["oldest_frame_seq"]), number(&batch["newest_frame_seq"]));
    Span { oldest_seq, newest_seq, oldest_at, newest_at }
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn milliseconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().expect("a number") / 1e3)
}

/// Compares parsed JSON: the same fields, numbers by value.
fn assert_same(text: &str, expected: &Value, id: &Value) {
    let seen: Value = serde_json::from_str(text).expect("JSON");
    let (seen, expected) = (seen.as_object().expect("an object"), expected.as_object().expect("an object"));
    let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(seen), names(expected), "{id}");
    for (name, expected) in expected {
        match (seen[name].as_f64(), expected.as_f64()) {
            (Some(seen), Some(expected)) => assert_eq!(seen.to_bits(), expected.to_bits(), "{id}: {name}"),
            _ => assert_eq!(&seen[name], expected, "{id}: {name}"),
        }
    }
}
