//! The checker against a gateway in this process: an honest one passes, and each defect fails the cases that are about it.
//!
//! The real gateways are checked by `plimsoll check`; this shows that the cases can fail.

mod bench;
mod disturbed;
mod gateway;
mod hold;
mod session;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use bench::FakeBench;
use plimsoll_conformance::subject::{Bench as _, Environment};
use plimsoll_conformance::{CaseResult, Check as _, CheckReport, Options, Subject};
use plimsoll_testing::side_by_side;

use super::{Simulators, SpeechSuite};
use crate::InferenceTransport;

/// What is wrong with a gateway of these tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// Closes with 1000 where 1002 is due.
    WrongCloseCode,
    /// Answers violations after 700 ms.
    LateClose,
    /// Lets several requests of a session be in flight.
    TwoInFlight,
    /// Swallows every second batch.
    DroppedFlush,
    /// Flushes when the answer comes, not at the next tick.
    FlushOnAnswer,
    /// Sleeps for the interval after each flush.
    RelativeSchedule,
    /// All sessions flush in the same phase.
    NoJitter,
    /// Partials have one field more.
    ExtraField,
    /// Partials lack a field.
    MissingField,
    /// Numbers frames from 0.
    NumbersFromZero,
    /// Adds one to each checksum.
    WrongContent,
    /// Sends text/plain to the inference server.
    WrongContentType,
    /// Speaks HTTP/1.1 though h2c is declared.
    OtherTransport,
    /// Does not say when a request failed.
    SilentFailure,
    /// Says that a parse error may be tried again.
    RetryableParseError,
    /// Takes frames of any size.
    AnySize,
    /// Waits for a body of any declared length.
    WaitsForBody,
    /// Takes frames without a mask.
    TakesUnmasked,
    /// Pongs are empty.
    EmptyPong,
    /// Takes any start message that has the word in it.
    LooseStart,
    /// Never ends a session without a start.
    NoStartTimeout,
    /// Accepts every session.
    NoAdmission,
    /// 503 without Retry-After.
    NoRetryAfter,
    /// Looks for room before it looks at the token.
    RoomBeforeToken,
    /// A prefix of the token is enough.
    PrefixToken,
    /// 200 for every path.
    AnyPath,
    /// stt_partials_total counts each twice.
    Miscounts,
    /// Starts with bad values.
    TakesBadValues,
}

/// The cases, with simulators of this bench.
fn suite(transport: Option<InferenceTransport>, bench: &Arc<FakeBench>) -> SpeechSuite {
    SpeechSuite::new(transport, Arc::clone(bench))
}

fn check(defect: Defect, ids: &[&str]) -> CheckReport {
    let bench = Arc::new(FakeBench::new(defect));
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &*bench,
    };
    let only = |id: &str| ids.contains(&id);
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    let mut told = 0;
    let suite = suite(Some(InferenceTransport::H2c), &bench);
    let report = suite.run(&subject, &options, &mut |_| told += 1);
    assert_eq!(told, ids.len(), "each case is told once: {report:#?}");
    assert_eq!(report.cases.len(), ids.len());
    report
}

#[track_caller]
fn assert_all_pass(report: &CheckReport) {
    let (disturbed, failed): (Vec<_>, Vec<_>) = report
        .cases
        .iter()
        .filter(|case| !case.pass)
        .partition(|case| case.disturbed.is_some());
    assert!(failed.is_empty(), "{failed:#?}");
    // These gateways are threads of this process: a machine that is busy enough keeps them from the core, and says so.
    eprintln!("disturbed: {disturbed:#?}");
    assert_eq!(report.passed + disturbed.len(), report.cases.len());
    assert_eq!((report.disturbed, report.skipped), (disturbed.len(), 0));
    assert!(report.passed * 2 > report.cases.len(), "mostly disturbed");
}

/// A gateway with the defect fails every one of `ids` and still passes `others`.
fn assert_shown_by(defect: Defect, ids: &[&str], others: &[&str]) {
    let all: Vec<&str> = ids.iter().chain(others).copied().collect();
    let report = check(defect, &all);
    let cases: BTreeMap<&str, &CaseResult> =
        report.cases.iter().map(|case| (&*case.id, case)).collect();
    for id in ids {
        assert!(!cases[id].pass, "with {defect:?}: {:#?}", cases[id]);
    }
    for id in others {
        let kept = cases[id].pass || cases[id].disturbed.is_some();
        assert!(kept, "with {defect:?}: {:#?}", cases[id]);
    }
    assert!(report.failed <= ids.len());
}

/// Cases that the gateway of these tests can pass. Overflow, jobs, outbox and drain it does not have.
const COVERED: &[&str] = &[
    "health-ready",
    "metrics-names",
    "metrics-text",
    "upgrade-accepted",
    "upgrade-demanded",
    "path-unknown",
    "upgrade-path-unknown",
    "start-line",
    "start-accepted",
    "start-not-json",
    "start-not-an-object",
    "start-other-type",
    "start-unknown-field",
    "start-duplicate-field",
    "start-other-texts",
    "start-binary",
    "start-fragmented",
    "start-with-audio",
    "start-timeout",
    "numbering",
    "fragments",
    "ping",
    "ping-between-fragments",
    "pong-unasked",
    "byte-by-byte",
    "one-segment",
    "close-normal",
    "close-private-code",
    "close-without-code",
    "close-before-start",
    "close-owes-no-partial",
    "message-empty",
    "message-one-byte-short",
    "message-one-byte-long",
    "message-two-frames",
    "message-at-the-limit",
    "message-over-the-limit",
    "message-text-small",
    "fragments-of-wrong-size",
    "fragments-without-end",
    "unmasked",
    "bad-opcode",
    "reserved-bit-1",
    "control-oversize",
    "continuation-orphaned",
    "message-interleaved",
    "text-not-utf8",
    "violation-hurts-nobody-else",
    "golden-vector",
    "partial-fields",
    "content",
    "whole-buffer",
    "empty-buffer",
    "first-flush",
    "cadence",
    "jitter",
    "buffered-between-flushes",
    "request-body",
    "request-content-type",
    "request-transport",
];

const COVERED_WITH_SLOW_MODEL: &[&str] = &[
    "one-in-flight",
    "audio-waits",
    "deferred-counted",
    "request-passes",
    "close-with-request-in-flight",
    "deferred-keeps-schedule",
    "partial-configuration",
];

const COVERED_WITH_FAULTS_AND_LIMITS: &[&str] = &[
    "error-timeout",
    "error-http-5xx",
    "error-http-4xx",
    "error-parse-missing-field",
    "sessions-limited",
    "token-absent",
    "token-wrong",
    "token-right",
    "token-before-room",
    "metrics-frames-and-partials",
    "bad-value-port",
    "bad-value-overflow-policy-capitals",
];

#[test]
fn an_honest_gateway_passes() {
    thread::scope(|scope| {
        for ids in [
            COVERED,
            COVERED_WITH_SLOW_MODEL,
            COVERED_WITH_FAULTS_AND_LIMITS,
        ] {
            scope.spawn(|| assert_all_pass(&check(Defect::None, ids)));
        }
    });
}

/// Each defect, the cases that must show it, and cases that are not about it.
#[rustfmt::skip]
const SHOWN_BY: &[(Defect, &[&str], &[&str])] = &[
    (Defect::WrongCloseCode, &["start-binary", "message-text-small", "bad-opcode", "reserved-bit-2"], &["message-one-byte-long", "close-normal"]),
    (Defect::LateClose, &["start-not-json", "message-empty"], &["ping"]),
    (Defect::TwoInFlight, &["one-in-flight", "deferred-counted"], &["request-passes"]),
    (Defect::FlushOnAnswer, &["deferred-keeps-schedule"], &["one-in-flight"]),
    (Defect::RelativeSchedule, &["cadence"], &["numbering"]),
    (Defect::NoJitter, &["jitter"], &["cadence"]),
    (Defect::DroppedFlush, &["numbering", "content"], &["golden-vector"]),
    (Defect::ExtraField, &["partial-fields", "golden-vector"], &["ping"]),
    (Defect::MissingField, &["partial-fields"], &["ping"]),
    (Defect::NumbersFromZero, &["numbering"], &["ping"]),
    (Defect::WrongContent, &["content", "golden-vector", "request-body"], &["ping"]),
    (Defect::WrongContentType, &["request-content-type"], &["request-transport"]),
    (Defect::OtherTransport, &["request-transport"], &["request-body"]),
    (Defect::SilentFailure, &["error-http-5xx"], &["metrics-frames-and-partials"]),
    (Defect::RetryableParseError, &["error-parse-garbage"], &["error-http-5xx"]),
    (Defect::AnySize, &["message-one-byte-long", "fragments-of-wrong-size"], &["unmasked"]),
    (Defect::WaitsForBody, &["message-one-mebibyte"], &["message-over-the-limit"]),
    (Defect::TakesUnmasked, &["unmasked"], &["bad-opcode"]),
    (Defect::EmptyPong, &["ping", "ping-between-fragments"], &["numbering"]),
    (Defect::LooseStart, &["start-unknown-field", "start-duplicate-field", "start-other-texts"], &["start-accepted"]),
    (Defect::NoStartTimeout, &["start-timeout"], &["start-binary"]),
    (Defect::AnyPath, &["path-unknown", "upgrade-path-unknown"], &["health-ready"]),
    (Defect::TakesBadValues, &["bad-value-flush-interval-ms"], &["health-ready"]),
    (Defect::NoAdmission, &["sessions-limited"], &["token-wrong"]),
    (Defect::NoRetryAfter, &["sessions-limited"], &["token-absent"]),
    (Defect::RoomBeforeToken, &["token-before-room"], &["token-absent", "sessions-limited"]),
    (Defect::PrefixToken, &["token-wrong"], &["token-absent", "token-right"]),
    (Defect::Miscounts, &["metrics-frames-and-partials"], &["metrics-sessions"]),
];

#[test]
fn each_defect_fails_the_cases_that_are_about_it() {
    // Nearly all of their time the cases wait, so that many can at once.
    side_by_side(10, SHOWN_BY, |(defect, ids, others)| {
        assert_shown_by(*defect, ids, others);
    });
}

#[test]
fn against_a_url_cases_that_start_the_target_are_skipped_with_the_reason() {
    let bench = Arc::new(FakeBench::new(Defect::None));
    let simulator = Simulators::start(&bench, &Environment::new()).expect("starts");
    let environment = Environment::from([("INFERENCE_URL".to_owned(), simulator.url())]);
    let gateway = bench.as_ref().start(&environment).expect("starts");
    let subject = Subject::Url {
        url: format!("http://{}", gateway.address()),
        token: None,
    };
    let ids = [
        "health-ready",
        "sessions-limited",
        "start-timeout",
        "bad-value-port",
    ];
    let only = |id: &str| ids.contains(&id);
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    let report = suite(None, &bench).run(&subject, &options, &mut |_| ());
    assert_eq!((report.passed, report.failed, report.skipped), (1, 0, 3));
    let limited = report
        .cases
        .iter()
        .find(|case| case.id == "sessions-limited")
        .expect("reported");
    assert!(!limited.pass);
    assert!(
        limited
            .skipped
            .as_ref()
            .is_some_and(|reason| reason.contains("MAX_SESSIONS=2")),
        "{limited:?}"
    );
}

#[test]
fn a_gateway_that_does_not_start_fails_its_cases() {
    let bench = Arc::new(FakeBench::that_does_not_start());
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &*bench,
    };
    let only = |id: &str| id == "health-ready";
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    let report = suite(None, &bench).run(&subject, &options, &mut |_| ());
    assert_eq!((report.passed, report.failed, report.skipped), (0, 1, 0));
    assert!(
        report.cases[0].seen.contains("no such program"),
        "{:?}",
        report.cases[0]
    );
}

#[test]
fn an_interrupted_check_reports_the_rest_as_not_run() {
    let bench = Arc::new(FakeBench::new(Defect::None));
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &*bench,
    };
    let stop = plimsoll_host::signals::Stop::new();
    stop.request();
    let options = Options {
        stop: Some(&stop),
        ..Options::default()
    };
    let report = suite(None, &bench).run(&subject, &options, &mut |_| ());
    assert_eq!(report.skipped, report.cases.len());
    assert_eq!(report.cases[0].skipped.as_deref(), Some("interrupted"));
}

#[test]
fn the_report_is_written_as_the_design_says() {
    let report = check(Defect::None, &["health-ready"]);
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!({
            "target": "fake",
            "cases": [{
                "id": "health-ready",
                "title": "GET /health answers 200 when ready",
                "pass": true,
                "expected": "status 200",
                "seen": "status 200",
            }],
            "passed": 1, "failed": 0, "failed_should": 0, "deviations": 0, "skipped": 0, "disturbed": 0,
        })
    );
}
