//! Section 7 of the contract: how a failed request is told to the client, and that the session goes on.

use std::time::Duration;

use serde_json::json;

use super::messages::{ErrorMessage, Message};
use super::registry::{Case, Site, Verdict, case};
use super::setup::FAULTS;

/// One row of the contract's table, and the fault that shows it.
#[derive(Clone, Copy)]
struct Row {
    id: &'static str,
    /// The simulator's name of the fault.
    fault: &'static str,
    stage: &'static str,
    kind: &'static str,
    retryable: bool,
    status: Option<u16>,
    when: &'static str,
}

const REQUEST: &str = "inference_request";
const PARSE: &str = "inference_response_parse";

#[rustfmt::skip]
const ROWS: [Row; 8] = [
    Row { id: "error-timeout", fault: "never", stage: REQUEST, kind: "timeout", retryable: true, status: None, when: "no answer within INFERENCE_TIMEOUT_MS" },
    Row { id: "error-connection-reset", fault: "reset", stage: REQUEST, kind: "connection_reset", retryable: true, status: None, when: "a reset" },
    Row { id: "error-http-429", fault: "http_429", stage: REQUEST, kind: "http_429", retryable: true, status: Some(429), when: "an answer 429" },
    Row { id: "error-http-5xx", fault: "http_503", stage: REQUEST, kind: "http_5xx", retryable: true, status: Some(503), when: "an answer 503" },
    Row { id: "error-http-4xx", fault: "http_404", stage: REQUEST, kind: "http_4xx", retryable: false, status: Some(404), when: "an answer 404" },
    Row { id: "error-parse-garbage", fault: "garbage", stage: PARSE, kind: "parse_error", retryable: false, status: Some(200), when: "an answer that is not JSON" },
    Row { id: "error-parse-unknown-field", fault: "unknown_field", stage: PARSE, kind: "parse_error", retryable: false, status: Some(200), when: "an answer with an unknown field" },
    Row { id: "error-parse-missing-field", fault: "missing_field", stage: PARSE, kind: "parse_error", retryable: false, status: Some(200), when: "an answer with a field missing" },
];

pub(super) fn cases() -> Vec<Case> {
    let row_case = |row: Row| {
        let expected = format!(
            "error with exactly its fields: stage {}, kind {}, retryable {}, inference_status {}; then a partial",
            row.stage,
            row.kind,
            row.retryable,
            row.status
                .map_or("null".to_owned(), |status| status.to_string())
        );
        case(
            row.id,
            format!("{} is told as an error, and the session goes on", row.when),
            expected,
            move |site| told_as_error(site, row),
        )
        .in_setup(&FAULTS)
    };
    ROWS.map(row_case).into()
}

fn told_as_error(site: &Site<'_>, row: Row) -> Verdict {
    let simulator = site.simulator()?;
    let mut session = site.session()?;
    simulator.set_faults(&json!({ row.fault: 1.0 }))?;
    let failed = session
        .send_audio(3)
        .and_then(|()| session.until_all_named(site.patience()));
    // Whatever came of it, the next case must find no fault.
    simulator.set_faults(&json!({}))?;
    let mut seen = Vec::new();
    for (_, message) in failed? {
        let Message::Error(error) = &message else {
            return Err(format!("{} instead of an error", message.summary()));
        };
        agreeing(site, row, error)?;
        seen.push(message.summary());
    }
    session.send_audio(3)?;
    for (_, message) in session.until_all_named(site.patience())? {
        if matches!(message, Message::Error(_)) {
            return Err(format!("{}, after the fault was over", message.summary()));
        }
        seen.push(message.summary());
    }
    Ok(seen.join(", "))
}

/// Checks every field of an error against its row and against the others.
fn agreeing(site: &Site<'_>, row: Row, error: &ErrorMessage) -> Result<(), String> {
    let timeout_ms = site.millis("INFERENCE_TIMEOUT_MS", 5000).as_secs_f64() * 1e3;
    let elapsed_ms = error.inference_elapsed_ms.unwrap_or(-1.0);
    // Ages are counted to the moment of the error, so that a batch is as old as its request took, at least.
    let patience_ms = (site.patience() + Duration::from_secs(1)).as_secs_f64() * 1e3;
    let rules = [
        ("stage", error.stage == row.stage),
        ("kind", error.kind == row.kind),
        ("retryable", error.retryable == row.retryable),
        ("inference_status", error.inference_status == row.status),
        ("message", !error.message.is_empty()),
        ("audio_bytes", error.audio_bytes == error.frames * 640),
        ("newest_age_ms", error.newest_age_ms >= 0.0),
        (
            "oldest_age_ms",
            error.oldest_age_ms >= error.newest_age_ms && error.oldest_age_ms <= patience_ms,
        ),
        ("flush_lateness_ms", error.flush_lateness_ms >= 0.0),
        (
            "inference_elapsed_ms",
            (0.0..=patience_ms).contains(&elapsed_ms),
        ),
        (
            "inference_elapsed_ms of a timeout",
            row.kind != "timeout" || elapsed_ms >= timeout_ms * 0.95,
        ),
        (
            "inflight_gateway_batches",
            error.inflight_gateway_batches == 0,
        ),
        ("gateway_buffer_frames", error.gateway_buffer_frames <= 3),
    ];
    match rules.iter().find(|(_, holds)| !holds) {
        None => Ok(()),
        Some((field, _)) => Err(format!("{field} is wrong in {error:?}")),
    }
}
