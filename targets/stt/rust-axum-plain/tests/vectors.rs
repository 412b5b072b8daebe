//! The golden vectors that all gateways share, against this gateway's codecs.

mod support;

use std::time::Duration;

use rust_axum_plain::failure::{Failure, FailureKind};
use rust_axum_plain::messages::{self, Circumstances, Inference, Span};
use serde_json::Value;
use support::vectors;
use tokio::time::Instant;

#[test]
fn start_messages() {
    for case in vectors("start.json") {
        let text = case["text"].as_str().expect("text");
        assert_eq!(messages::is_start(text), case["ok"], "{}", case["id"]);
    }
}

#[test]
fn inference_answers() {
    for case in vectors("inference_answers.json") {
        let parsed = Inference::parse(case["body"].as_str().expect("body").as_bytes());
        let kind = parsed.err().map(|failure| failure.kind.row().1);
        assert_eq!(kind, case["kind"].as_str(), "{}", case["id"]);
    }
}

#[test]
fn inference_failures() {
    for case in vectors("inference_failures.json") {
        let kind = match (case["status"].as_u64(), case["transport"].as_str()) {
            (Some(status), None) => FailureKind::of_status(u16::try_from(status).expect("a status")),
            (None, Some("reset")) => FailureKind::ConnectionReset,
            (None, Some("timeout")) => FailureKind::Timeout,
            other => panic!("{}: {other:?}", case["id"]),
        };
        let text = |field: &str| case[field].as_str().expect("text");
        let expected = (text("stage"), text("kind"), case["retryable"].as_bool().expect("bool"));
        assert_eq!(kind.row(), expected, "{}", case["id"]);
    }
}

#[test]
fn partials() {
    for case in vectors("partials.json") {
        let inference = Inference::parse(case["inference"].to_string().as_bytes()).expect("good");
        let now = Instant::now();
        let span = span(&case["batch"], now, now);
        let passes = u32::try_from(number(&case["config"]["cpu_passes"])).expect("passes");
        let lateness = milliseconds(&case["batch"]["flush_lateness_ms"]);
        let partial = messages::partial(&span, &inference, passes, lateness);
        assert_same(&partial, &case["expect"], &case["id"]);
    }
}

#[test]
fn errors() {
    for case in vectors("errors.json") {
        let (input, batch) = (&case["input"], &case["input"]["batch"]);
        let kind = FailureKind::ALL.into_iter().find(|kind| kind.row().1 == input["kind"]);
        let status = input["inference_status"].as_u64();
        let failure = Failure {
            kind: kind.expect("a kind"),
            message: input["message"].as_str().expect("message").to_owned(),
            status: status.map(|status| u16::try_from(status).expect("a status")),
        };
        // Far enough from the clock's own zero to subtract any age from.
        let now = Instant::now() + Duration::from_secs(3600);
        let received = |field: &str| now - milliseconds(&batch[field]);
        let span = span(batch, received("oldest_age_ms"), received("newest_age_ms"));
        let count = |field: &str| usize::try_from(number(&input[field])).expect("a count");
        let circumstances = Circumstances {
            flush_lateness: milliseconds(&batch["flush_lateness_ms"]),
            inference_elapsed: input["inference_elapsed_ms"].as_f64().map(|ms| Duration::from_secs_f64(ms / 1e3)),
            inflight_gateway_batches: count("inflight_gateway_batches"),
            gateway_buffer_frames: count("gateway_buffer_frames"),
        };
        let error = messages::error(&failure, &span, now, &circumstances);
        assert_same(&error, &case["expect"], &case["id"]);
    }
}

fn span(batch: &Value, oldest_at: Instant, newest_at: Instant) -> Span {
    let seq = |field: &str| number(&batch[field]);
    Span { oldest_seq: seq("oldest_frame_seq"), newest_seq: seq("newest_frame_seq"), oldest_at, newest_at }
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
    let (seen, expected) = (seen.as_object().expect("object"), expected.as_object().expect("object"));
    assert!(seen.keys().eq(expected.keys()), "{id}: {text}");
    for (name, expected) in expected {
        match (seen[name].as_f64(), expected.as_f64()) {
            (Some(seen), Some(expected)) => {
                assert_eq!(seen.to_bits(), expected.to_bits(), "{id}: {name}");
            }
            _ => assert_eq!(&seen[name], expected, "{id}: {name}"),
        }
    }
}
