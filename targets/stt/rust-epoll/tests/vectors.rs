//! The golden vectors that all gateways share, against this one's codecs. (`frames.json` needs a session and is at the
//! end.)

use std::time::{Duration, Instant};

use rust_epoll::failure::{Failure, Kind};
use rust_epoll::messages::{self, Circumstances, Inference, Span};
use rust_epoll::session::audio::OverflowPolicy;
use rust_epoll::session::{CloseReason, Rules, Session};
use serde_json::Value;

fn vectors(file: &str) -> Vec<Value> {
    let path = format!("{}/../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut file: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let cases = file["cases"].as_array_mut().map(std::mem::take).unwrap_or_default();
    assert!(!cases.is_empty(), "{path} has no cases");
    cases
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn milliseconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().expect("a number") / 1e3)
}

fn span(batch: &Value, oldest_at: Instant, newest_at: Instant) -> Span {
    let seq = |field: &str| number(&batch[field]);
    Span { oldest_seq: seq("oldest_frame_seq"), newest_seq: seq("newest_frame_seq"), oldest_at, newest_at }
}

/// The same fields, numbers by value.
fn assert_same(text: &[u8], expected: &Value, id: &Value) {
    let seen: Value = serde_json::from_slice(text).expect("JSON");
    let names = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&seen), names(expected), "{id}");
    for name in names(expected) {
        match (seen[&name].as_f64(), expected[&name].as_f64()) {
            (Some(seen), Some(expected)) => assert_eq!(seen.to_bits(), expected.to_bits(), "{id}: {name}"),
            _ => assert_eq!(seen[&name], expected[&name], "{id}: {name}"),
        }
    }
}

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
        let kind = parsed.err().map(|failure| failure.kind.row().1);
        assert_eq!(kind, case["kind"].as_str(), "{}", case["id"]);
    }
}

#[test]
fn inference_failures() {
    for case in vectors("inference_failures.json") {
        let failure = match (case["status"].as_u64(), case["transport"].as_str()) {
            (Some(status), None) => Failure::status(u16::try_from(status).expect("a status")),
            (None, Some("reset")) => Failure::RESET,
            (None, Some("timeout")) => Failure::TIMEOUT,
            other => panic!("{}: {other:?}", case["id"]),
        };
        let (stage, kind, retryable) = failure.kind.row();
        assert_eq!((&stage.into(), &kind.into()), (&case["stage"], &case["kind"]), "{}", case["id"]);
        assert_eq!(retryable, case["retryable"], "{}", case["id"]);
        assert_eq!(failure.status.map(u64::from), case["status"].as_u64(), "{}", case["id"]);
    }
}

#[test]
fn partials() {
    for case in vectors("partials.json") {
        let answer = case["inference"].to_string();
        let inference = Inference::parse(answer.as_bytes()).expect("a good answer");
        let cpu_passes = u32::try_from(number(&case["config"]["cpu_passes"])).expect("passes");
        let lateness = milliseconds(&case["batch"]["flush_lateness_ms"]);
        let now = Instant::now();
        let mut text = Vec::new();
        messages::partial(&mut text, &span(&case["batch"], now, now), &inference, cpu_passes, lateness);
        assert_same(&text, &case["expect"], &case["id"]);
    }
}

#[test]
fn errors() {
    for case in vectors("errors.json") {
        let (input, batch) = (&case["input"], &case["input"]["batch"]);
        let failure = Failure {
            kind: Kind::ALL.into_iter().find(|kind| kind.row().1 == input["kind"]).expect("a kind"),
            message: input["message"].as_str().expect("message").to_owned().into(),
            status: input["inference_status"].as_u64().map(|status| u16::try_from(status).expect("a status")),
        };
        // Far enough from the clock's own zero to take any age from it.
        let now = Instant::now() + Duration::from_secs(3600);
        let received = |field: &str| now - milliseconds(&batch[field]);
        let circumstances = Circumstances {
            span: span(batch, received("oldest_age_ms"), received("newest_age_ms")),
            now,
            flush_lateness: milliseconds(&batch["flush_lateness_ms"]),
            inference_elapsed: input["inference_elapsed_ms"].as_f64().map(|ms| Duration::from_secs_f64(ms / 1e3)),
            inflight_batches: number(&input["inflight_gateway_batches"]),
            buffered_frames: number(&input["gateway_buffer_frames"]),
        };
        let mut text = Vec::new();
        messages::error(&mut text, &failure, &circumstances);
        assert_same(&text, &case["expect"], &case["id"]);
    }
}

/// What the session says to each declared length. Over 64 KiB the decoder does not even ask it.
#[test]
fn frames() {
    let second = Duration::from_secs(1);
    let rules = Rules {
        flush_interval: second,
        start_timeout: second,
        inference_timeout: second,
        buffer_frames_max: 500,
        overflow_policy: OverflowPolicy::DropOldest,
        outbox_messages_max: 4,
        cpu_passes: 4,
    };
    let now = Instant::now();
    let mut session = Session::<()>::new(&rules, Duration::ZERO, now);
    session.on_start(&rules, now, br#"{"type":"start"}"#).expect("a good start");
    for case in vectors("frames.json") {
        let length = number(&case["length"]);
        let announced = match length {
            65_537.. => Err(CloseReason::TooLarge),
            _ => session.on_announced(case["opcode"] == "text", length, true),
        };
        assert_eq!(announced.err().map(|reason| u64::from(reason.code())), case["close"].as_u64(), "{}", case["id"]);
    }
}
