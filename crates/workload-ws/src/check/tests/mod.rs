//! The checker against a server of threads in this process: an honest one passes, and each defect fails the cases that
//! are about it.
//!
//! The real targets are checked by `plimsoll check`; this shows that the cases can fail.

mod connection;
mod http;
mod server;
mod wire;
mod wse;

use std::collections::BTreeSet;

use plimsoll_conformance::subject::{Bench as _, Environment};
use plimsoll_conformance::{CaseResult, Check as _, CheckReport, Options, Subject};
use plimsoll_testing::side_by_side;

use super::WebSocketSuite;
use crate::Dialect;
use server::FakeBench;

/// What is wrong with a server of these tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    // Section 1.
    TakesBadValues,
    LoopbackOnly,
    NoStartLine,
    // Section 2.
    HealthSaysNothing,
    MetricsAreJson,
    GaugeIsCounter,
    OkForEverything,
    // Upgrades.
    WrongAccept,
    OnePathOnly,
    TakesExtension,
    ReadsRequestAtOnce,
    ExactFieldNames,
    NoKeyNeeded,
    AnyVersion,
    AnyMethod,
    OneUpgradeAtATime,
    // Messages.
    EverythingIsText,
    LosesEmpty,
    CutsAt65535,
    Twice,
    EachFragmentIsAMessage,
    EachFragmentIsUtf8,
    LastFirst,
    ToEverybody,
    // Control frames.
    EmptyPong,
    PongAfterMessage,
    PingsItself,
    AnswersPongs,
    NoCloseAnswer,
    AlwaysCloses1000,
    StaysOpen,
    EchoesAfterClose,
    // Violations.
    TakesUnmasked,
    TakesReservedBits,
    TakesBadOpcodes,
    TakesOrphans,
    TakesInterleaved,
    TakesFragmentedControl,
    TakesLongControl,
    TakesAnyText,
    RefusesBinary,
    AnySize,
    FragmentsUncounted,
    LimitIsTooLong,
    WaitsForPayload,
    Closes1000ForAll,
    OneFallsAllFall,
    // Back-pressure, counters, the hub.
    ForgetsWhatItReads,
    CountsFragments,
    CountsNoBytes,
    CountsNoRefusal,
    GaugeNeverFalls,
    HubForgetsSender,
    HubChangesOpcode,
    HubIsEverywhere,
    // The end.
    Drains1000,
    DrainsForever,
    ExitsWith1,
    AcceptsWhileDraining,
    // Dialect wse.
    HelloFirst,
    ReadyWithoutVersion,
    OtherPingInterval,
    LimitsAreText,
    SameConnectionId,
    CookieOnly,
    AnyToken,
    AnySubject,
    NeverExpires,
    FailedForAbsent,
    Closes4400,
    RefusalWithoutMessage,
    PongOfItsOwnTime,
    PongIsUnsigned,
    AnyNameOfTimestamp,
    NoPrefixes,
    PongWithoutLatency,
    EchoesMessages,
    CountsPings,
    EngineCountsNoPings,
    HubOfAnotherClass,
}

fn check(dialect: Dialect, defect: Defect, ids: Option<&[&str]>) -> CheckReport {
    let bench = FakeBench::new(dialect, defect);
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &bench,
    };
    let only = |id: &str| ids.is_none_or(|ids| ids.contains(&id));
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    WebSocketSuite::new(dialect).run(&subject, &options, &mut |_| ())
}

#[test]
fn ids_are_unique_and_plain_and_there_are_enough() {
    for dialect in Dialect::ALL {
        let ids = WebSocketSuite::new(dialect).case_ids();
        let different: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert!(ids.len() >= 25, "{} cases", ids.len());
        for id in &ids {
            let plain = |letter: char| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
            };
            assert!(id.chars().all(plain), "{id}");
        }
    }
}

#[test]
fn an_honest_server_passes_every_case() {
    for dialect in Dialect::ALL {
        let report = check(dialect, Defect::None, None);
        let (disturbed, failed): (Vec<_>, Vec<_>) = report
            .cases
            .iter()
            .filter(|case| !case.pass)
            .partition(|case| case.disturbed.is_some());
        assert!(failed.is_empty(), "{failed:#?}");
        // These servers are threads of this process: a machine that is busy enough keeps them from the core, and says so.
        eprintln!("disturbed: {disturbed:#?}");
        assert!(report.passed * 2 > report.cases.len(), "mostly disturbed");
    }
}

/// Each defect of an echo, the cases that must show it, and one that is not about it.
#[rustfmt::skip]
const SHOWN_BY: &[(Defect, &[&str], &str)] = &[
    (Defect::TakesBadValues, &["bad-value-port", "bad-value-worker-threads", "bad-value-drain-timeout-ms", "bad-value-max-message-bytes"], "ping"),
    (Defect::LoopbackOnly, &["any-address"], "ping"),
    (Defect::NoStartLine, &["start-line"], "ping"),
    (Defect::HealthSaysNothing, &["health-ready"], "metrics-text"),
    (Defect::MetricsAreJson, &["metrics-text"], "metrics-names"),
    (Defect::GaugeIsCounter, &["metrics-names"], "metrics-text"),
    (Defect::OkForEverything, &["http-anything-else"], "health-ready"),
    (Defect::WrongAccept, &["upgrade-accepted"], "http-anything-else"),
    (Defect::OnePathOnly, &["upgrade-any-path"], "upgrade-accepted"),
    (Defect::TakesExtension, &["upgrade-no-extension"], "upgrade-accepted"),
    (Defect::ReadsRequestAtOnce, &["upgrade-byte-by-byte", "echo-byte-by-byte"], "upgrade-accepted"),
    (Defect::ExactFieldNames, &["upgrade-field-names", "upgrade-connection-list"], "upgrade-accepted"),
    (Defect::NoKeyNeeded, &["upgrade-without-key"], "upgrade-other-version"),
    (Defect::AnyVersion, &["upgrade-other-version"], "upgrade-without-key"),
    (Defect::AnyMethod, &["upgrade-by-post"], "upgrade-without-key"),
    (Defect::OneUpgradeAtATime, &["slow-upgrade-delays-nobody"], "start-line"),
    (Defect::EverythingIsText, &["echo-binary", "echo-empty"], "echo-text"),
    (Defect::LosesEmpty, &["echo-empty"], "echo-text"),
    (Defect::CutsAt65535, &["echo-binary", "echo-text", "echo-longest"], "echo-empty"),
    (Defect::Twice, &["echo-never-twice", "echo-order"], "ping"),
    (Defect::EachFragmentIsAMessage, &["echo-fragments", "echo-many-fragments"], "echo-text"),
    (Defect::EachFragmentIsUtf8, &["echo-characters-in-fragments"], "echo-characters"),
    (Defect::LastFirst, &["echo-order"], "echo-text"),
    (Defect::ToEverybody, &["echo-apart"], "ping"),
    (Defect::EmptyPong, &["ping", "ping-between-fragments", "ping-between-messages"], "echo-text"),
    (Defect::PongAfterMessage, &["ping-between-fragments"], "ping"),
    (Defect::PingsItself, &["ping-none-of-its-own"], "upgrade-accepted"),
    (Defect::AnswersPongs, &["pong-unasked"], "ping"),
    (Defect::NoCloseAnswer, &["close-normal", "close-at-first", "close-without-code"], "echo-text"),
    (Defect::AlwaysCloses1000, &["close-private-code", "close-with-reason"], "close-normal"),
    (Defect::StaysOpen, &["close-normal", "unmasked"], "echo-text"),
    (Defect::EchoesAfterClose, &["close-ends-it"], "close-normal"),
    (Defect::TakesUnmasked, &["unmasked"], "bad-opcode"),
    (Defect::TakesReservedBits, &["reserved-bits", "reserved-bits-of-control"], "bad-opcode"),
    (Defect::TakesBadOpcodes, &["bad-opcode", "bad-opcode-of-control"], "reserved-bits"),
    (Defect::TakesOrphans, &["continuation-orphaned"], "message-interleaved"),
    (Defect::TakesInterleaved, &["message-interleaved"], "continuation-orphaned"),
    (Defect::TakesFragmentedControl, &["control-fragmented"], "control-oversize"),
    (Defect::TakesLongControl, &["control-oversize"], "control-fragmented"),
    (Defect::TakesAnyText, &["text-not-utf8", "text-not-utf8-in-fragments"], "unmasked"),
    (Defect::RefusesBinary, &["binary-not-utf8"], "echo-text"),
    (Defect::AnySize, &["message-over-the-limit", "fragments-over-the-limit"], "message-at-the-limit"),
    (Defect::FragmentsUncounted, &["fragments-over-the-limit"], "message-over-the-limit"),
    (Defect::LimitIsTooLong, &["message-at-the-limit"], "message-over-the-limit"),
    (Defect::WaitsForPayload, &["length-over-the-limit", "length-absurd"], "message-over-the-limit"),
    (Defect::Closes1000ForAll, &["unmasked", "text-not-utf8", "message-over-the-limit"], "close-normal"),
    (Defect::OneFallsAllFall, &["violation-hurts-nobody-else"], "start-line"),
    (Defect::ForgetsWhatItReads, &["deaf-client"], "ping"),
    (Defect::CountsFragments, &["metrics-whole-messages"], "metrics-messages"),
    (Defect::CountsNoBytes, &["metrics-messages", "metrics-whole-messages"], "metrics-refused"),
    (Defect::CountsNoRefusal, &["metrics-refused"], "metrics-messages"),
    (Defect::GaugeNeverFalls, &["metrics-connections", "vanished-clients"], "metrics-names"),
    (Defect::HubForgetsSender, &["fanout-everybody", "fanout-order", "fanout-workers"], "echo-text"),
    (Defect::HubChangesOpcode, &["fanout-everybody"], "fanout-order"),
    (Defect::HubIsEverywhere, &["fanout-echo-apart"], "fanout-everybody"),
    (Defect::Drains1000, &["drain-closes"], "drain-exit-idle"),
    (Defect::DrainsForever, &["drain-timeout"], "drain-closes"),
    (Defect::ExitsWith1, &["drain-exit", "drain-exit-idle"], "drain-closes"),
    (Defect::AcceptsWhileDraining, &["drain-refuses"], "drain-exit-idle"),
];

/// The same of a server of dialect `wse`.
#[rustfmt::skip]
const SHOWN_BY_WSE: &[(Defect, &[&str], &str)] = &[
    (Defect::HelloFirst, &["server-ready-first", "opening"], "start-line"),
    (Defect::ReadyWithoutVersion, &["server-ready-fields"], "server-hello-fields"),
    (Defect::OtherPingInterval, &["server-hello-fields"], "server-ready-fields"),
    (Defect::LimitsAreText, &["server-hello-limits"], "server-hello-fields"),
    (Defect::SameConnectionId, &["connection-ids"], "opening"),
    (Defect::CookieOnly, &["token-in-authorization"], "token-in-cookie"),
    (Defect::AnyToken, &["token-garbage", "token-changed", "token-other-secret"], "token-absent"),
    (Defect::AnySubject, &["token-without-subject"], "token-other-issuer"),
    (Defect::NeverExpires, &["token-expired"], "token-changed"),
    (Defect::FailedForAbsent, &["token-absent"], "token-garbage"),
    (Defect::Closes4400, &["token-absent", "token-garbage"], "token-in-cookie"),
    (Defect::RefusalWithoutMessage, &["token-refusal-fields"], "token-absent"),
    (Defect::PongOfItsOwnTime, &["app-ping", "app-ping-apart"], "opening"),
    (Defect::PongIsUnsigned, &["app-ping-any-i64"], "app-ping"),
    (Defect::AnyNameOfTimestamp, &["app-ping-other-name"], "app-ping"),
    (Defect::NoPrefixes, &["app-ping-prefixes"], "app-ping"),
    (Defect::PongWithoutLatency, &["app-ping-fields"], "app-ping"),
    (Defect::EchoesMessages, &["message-no-echo", "message-binary", "message-prefixes"], "app-ping"),
    (Defect::LastFirst, &["app-ping-order"], "app-ping"),
    (Defect::CountsPings, &["metrics-not-pings"], "metrics-text"),
    (Defect::EngineCountsNoPings, &["metrics-of-the-engine-count-all"], "metrics-not-pings"),
    (Defect::HubForgetsSender, &["fanout-everybody", "fanout-leaves"], "app-ping"),
    (Defect::HubOfAnotherClass, &["fanout-everybody", "fanout-order"], "app-ping"),
    (Defect::NoCloseAnswer, &["close-normal"], "app-ping"),
    (Defect::EmptyPong, &["ping-of-the-protocol"], "app-ping"),
    (Defect::Drains1000, &["drain-closes"], "drain-exit-idle"),
];

fn assert_shown_by(dialect: Dialect, defect: Defect, ids: &[&str], other: &str) {
    let all: Vec<&str> = ids.iter().copied().chain([other]).collect();
    let report = check(dialect, defect, Some(&all));
    let case = |id: &str| -> &CaseResult {
        let found = report.cases.iter().find(|case| case.id == id);
        found.unwrap_or_else(|| panic!("there is no case {id}"))
    };
    for id in ids {
        assert!(!case(id).pass, "with {defect:?}: {:#?}", case(id));
    }
    let kept = case(other).pass || case(other).disturbed.is_some();
    assert!(kept, "with {defect:?}: {:#?}", case(other));
}

fn each_is_shown(dialect: Dialect, defects: &[(Defect, &[&str], &str)]) {
    // Nearly all of their time the cases wait, so that many can at once.
    side_by_side(10, defects, |(defect, ids, other)| {
        assert_shown_by(dialect, *defect, ids, other);
    });
}

#[test]
fn each_defect_of_an_echo_fails_the_cases_that_are_about_it() {
    each_is_shown(Dialect::Echo, SHOWN_BY);
}

#[test]
fn each_defect_of_a_wse_server_fails_the_cases_that_are_about_it() {
    each_is_shown(Dialect::Wse, SHOWN_BY_WSE);
}

#[test]
fn against_a_url_cases_that_need_a_start_are_skipped_with_the_reason() {
    let bench = FakeBench::new(Dialect::Echo, Defect::OnePathOnly);
    let server = bench.start(&Environment::new()).expect("starts");
    let subject = Subject::Url {
        url: format!("ws://{}/", server.address()),
        token: None,
    };
    let ids = [
        "health-ready",
        "echo-text",
        "message-at-the-limit",
        "bad-value-port",
    ];
    let only = |id: &str| ids.contains(&id);
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    let report = WebSocketSuite::new(Dialect::Echo).run(&subject, &options, &mut |_| ());
    assert_eq!((report.passed, report.failed, report.skipped), (1, 0, 3));
    let skipped = report
        .cases
        .iter()
        .find(|case| case.id == "message-at-the-limit");
    let reason = skipped.and_then(|case| case.skipped.as_deref());
    assert!(
        reason.is_some_and(|reason| reason.contains("MAX_MESSAGE_BYTES=4096")),
        "{reason:?}"
    );
}

#[test]
fn a_deviation_has_its_reason_beside_it_and_does_not_fail_a_check() {
    let bench = FakeBench::new(Dialect::Echo, Defect::NoCloseAnswer);
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &bench,
    };
    let ids = ["close-normal", "ping-of-the-protocol", "echo-text"];
    let why = |id: &str| (id.to_owned(), format!("why {id}"));
    let deviations = ids[..2].iter().copied().map(why).collect();
    let only = |id: &str| ids.contains(&id);
    let options = Options {
        only: Some(&only),
        deviations: Some(&deviations),
        ..Options::default()
    };
    let report = WebSocketSuite::new(Dialect::Echo).run(&subject, &options, &mut |_| ());
    for case in &report.cases {
        let why = deviations.get(&case.id);
        assert_eq!(case.deviation.as_ref(), why, "{}", case.id);
    }
    let passes = |id: &str| report.cases.iter().any(|case| case.id == id && case.pass);
    assert!(!passes("close-normal") && passes("echo-text"));
    assert!(report.failed == 0 && report.deviations <= 1, "{report:#?}");
}

#[test]
fn a_url_has_its_path() {
    let bench = FakeBench::new(Dialect::Echo, Defect::OnePathOnly);
    let server = bench.start(&Environment::new()).expect("starts");
    let report = |path: &str| {
        let subject = Subject::Url {
            url: format!("ws://{}{path}", server.address()),
            token: None,
        };
        let only = |id: &str| id == "echo-text";
        let options = Options {
            only: Some(&only),
            ..Options::default()
        };
        WebSocketSuite::new(Dialect::Echo).run(&subject, &options, &mut |_| ())
    };
    assert_eq!(report("/").passed, 1);
    assert_eq!(report("/elsewhere").failed, 1, "the server's one path is /");
}
