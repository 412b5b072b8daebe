//! The checker against a server of threads in this process: an honest one passes, and each defect fails the cases that
//! are about it.
//!
//! The real targets are checked by `plimsoll check`; this shows that the cases can fail.

mod answers;
mod further;
mod h2_server;
mod lifecycle;
mod request;
mod server;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_conformance::subject::{Bench as _, Environment};
use plimsoll_conformance::{CaseResult, Check as _, CheckReport, Options, Subject, Witnesses};
use plimsoll_testing::side_by_side;

use super::{FILES, HttpSuite, Offer, Protocol, Route, Sizes};
use server::FakeBench;

/// What is wrong with a server of these tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    // Routes.
    HealthIsUnavailable,
    RootSaysMore,
    RootIsHtml,
    OtherVersion,
    BytesAreShifted,
    BytesAreText,
    AnyNumber,
    JsonLosesBits,
    JsonHasSpaces,
    AnswersChunked,
    NoDate,
    FrozenDate,
    QueryIsPath,
    ExactFieldNames,
    BodyToHead,
    HeadWithoutLength,
    ClosesAfterHead,
    ClosesAfter404,
    ForgetsBody,
    ForgetsTheLast,
    EmptyIsNoBody,
    LimitIsShort,
    MixesClients,
    NoLimit,
    LimitIsFixed,
    ChunksUnlimited,
    // Keep-alive and pipelining.
    ClosesAfter5000,
    IgnoresClose,
    OldStaysOpen,
    ReadsOneTooFew,
    ClosesIdle,
    Stalls,
    Twice,
    OnePerRead,
    LastFirst,
    AnswersBehindClose,
    // Chunks and expectations.
    NoChunks,
    OneChunkOnly,
    DecimalSizes,
    NoExtensions,
    NoTrailers,
    TakesAnySize,
    WrapsSize,
    SkipsLineEnd,
    SumsWhatCame,
    NeverContinues,
    DropsUnawaited,
    RefusesExpectations,
    // Fragments.
    ReadsHeadAtOnce,
    ReadsBodyAtOnce,
    ReadsChunksAtOnce,
    // Framing.
    TakesBoth,
    TakesBothAndCloses,
    TakesFirstLength,
    TakesPlus,
    TakesMinus,
    TakesUnknownCoding,
    TakesSpaceBeforeColon,
    TakesNoHost,
    TakesAnyVersion,
    ReadsOnAfterRefusal,
    // Metrics.
    MetricsAreJson,
    CountsByConnection,
    GaugeIsCounter,
    CountsNoRequest,
    GaugeNeverFalls,
    // Limits and life.
    TakesLargeHeads,
    TakesManyFields,
    OneHoldsUpAll,
    NeverGivesUp,
    GivesUpSlowClients,
    KeepsEveryAnswer,
    SaysNoVersion,
    ReadyTooEarly,
    OneClientPerWorker,
    DropsInFlight,
    AnnouncesNoClose,
    KeepsIdle,
    ExitsWith1,
    KeepsAccepting,
    WaitsForEver,
    TakesAnyValue,
    // HTTP/2.
    H2BodyToHead,
    H2TenStreams,
    H2PongOfZeros,
    H2NoContinuation,
    H2KeepsTable,
    H2KnowsNoResize,
    H2PaddingIsData,
    H2OpensNoWindow,
    H2ResetEndsAll,
    H2IgnoresWindows,
    H2WaitsForRoom,
    H2NoGoaway,
}

/// The suite, with cases of idle connections and unfinished requests that take no 10 s.
fn suite(offer: Offer) -> HttpSuite {
    HttpSuite {
        idle: Duration::from_millis(400),
        unfinished: Duration::from_millis(2500),
        ..HttpSuite::new(offer)
    }
}

fn check(offer: Offer, defect: Defect, ids: Option<&[&str]>) -> CheckReport {
    let bench = FakeBench {
        offer: offer.clone(),
        defect,
    };
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &bench,
    };
    let only = |id: &str| ids.is_none_or(|ids| ids.contains(&id));
    let options = Options {
        only: Some(&only),
        // A server of threads has no process to be watched, and a defect is no disturbance.
        witnesses: match defect {
            Defect::None => Witnesses::WithChecker,
            _ => Witnesses::ProcessesOnly,
        },
        ..Options::default()
    };
    suite(offer).run(&subject, &options, &mut |_| ())
}

fn ids(offer: Offer) -> Vec<String> {
    HttpSuite::new(offer).case_ids()
}

#[test]
fn ids_are_unique_and_plain_and_there_are_enough() {
    let ids = ids(Offer::default());
    let different: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
    assert!(ids.len() >= 60, "{} cases", ids.len());
    for id in &ids {
        let plain =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(id.chars().all(plain), "{id}");
    }
}

#[test]
fn a_target_has_the_cases_of_what_it_offers() {
    let all = ids(Offer::default());
    let of_files = ids(Offer::of_infrastructure());
    assert!(of_files.iter().all(|id| all.contains(id)));
    for id in [
        "routes-sum",
        "routes-json",
        "chunked-one",
        "fragments-length",
        "metrics-text",
    ] {
        assert!(all.iter().any(|known| known == id), "{id}");
        assert!(of_files.iter().all(|known| known != id), "{id}");
    }
    let root_only = ids(Offer {
        routes: vec![Route::Root],
        ..Offer::of_infrastructure()
    });
    assert!(
        root_only
            .iter()
            .all(|id| !id.contains("bytes") || id == "fragments-byte-by-byte")
    );
    assert!(root_only.len() < of_files.len());
}

/// A finished program that serves two sizes, by both protocols.
fn of_small_files() -> Offer {
    Offer {
        sizes: Sizes::Files(vec![64, 1024]),
        protocols: Protocol::ALL.to_vec(),
        ..Offer::of_infrastructure()
    }
}

#[test]
fn cases_of_large_answers_are_for_targets_that_have_such() {
    let of_files = ids(Offer {
        sizes: Sizes::Files(FILES.to_vec()),
        ..of_small_files()
    });
    let of_small = ids(of_small_files());
    let missing: Vec<&str> = of_files
        .iter()
        .filter(|id| !of_small.contains(id))
        .map(String::as_str)
        .collect();
    let expected = [
        "limits-deaf-clients",
        "h2c-window-of-the-connection",
        "h2c-reset-of-an-answer",
        "h2c-goaway",
        "life-drain-in-flight",
        "life-drain-refuses",
        "life-drain-timeout",
    ];
    assert_eq!(missing, expected);
}

/// A turn for a whole suite. The servers and clients of one are hundreds of threads of this process; several suites at once
/// keep each other from the cores for seconds, and a case cannot tell that from a server that does not answer.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn passes_every_case(offer: Offer) {
    let _turn = turn();
    let report = check(offer, Defect::None, None);
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

#[test]
fn an_honest_server_passes_every_case() {
    passes_every_case(Offer::default());
}

#[test]
fn an_honest_server_of_files_passes_every_case_that_it_has() {
    passes_every_case(Offer::of_infrastructure());
}

#[test]
fn an_honest_server_of_small_files_passes_every_case_that_it_has() {
    passes_every_case(of_small_files());
}

/// Each defect, the cases that must show it, and one that is not about it.
#[rustfmt::skip]
const SHOWN_BY: &[(Defect, &[&str], &str)] = &[
    (Defect::HealthIsUnavailable, &["routes-health"], "routes-root"),
    (Defect::RootSaysMore, &["routes-root"], "routes-bytes"),
    (Defect::RootIsHtml, &["routes-root"], "routes-query"),
    (Defect::OtherVersion, &["routes-root"], "routes-bytes"),
    (Defect::BytesAreShifted, &["routes-bytes", "pipelining-bytes"], "routes-root"),
    (Defect::BytesAreText, &["routes-bytes-type"], "routes-bytes"),
    (Defect::AnyNumber, &["routes-bytes-other-size"], "routes-bytes"),
    (Defect::JsonLosesBits, &["routes-json"], "fragments-json"),
    (Defect::JsonHasSpaces, &["routes-json", "fragments-json"], "routes-root"),
    (Defect::AnswersChunked, &["routes-length"], "routes-bytes"),
    (Defect::NoDate, &["routes-date"], "routes-length"),
    (Defect::FrozenDate, &["routes-date"], "routes-length"),
    (Defect::QueryIsPath, &["routes-query"], "routes-root"),
    (Defect::ExactFieldNames, &["routes-field-names"], "routes-sum"),
    (Defect::BodyToHead, &["routes-head", "routes-get-after-head", "fragments-head"], "routes-root"),
    (Defect::HeadWithoutLength, &["routes-head"], "routes-get-after-head"),
    (Defect::ClosesAfterHead, &["routes-get-after-head", "fragments-head"], "routes-unknown-path"),
    (Defect::ClosesAfter404, &["routes-unknown-path", "fragments-unknown-path", "pipelining-sixteen"], "routes-get-after-head"),
    (Defect::ForgetsBody, &["routes-wrong-method"], "routes-sum"),
    (Defect::ForgetsTheLast, &["routes-sum"], "routes-sum-empty"),
    (Defect::EmptyIsNoBody, &["routes-sum-empty", "chunked-empty"], "routes-sum"),
    (Defect::LimitIsShort, &["routes-sum-largest", "routes-sum-limit", "routes-sum-limit-chunked"], "routes-sum"),
    (Defect::MixesClients, &["routes-sum-apart"], "routes-root"),
    (Defect::NoLimit, &["routes-sum-over-the-limit", "routes-sum-limit", "routes-sum-limit-chunked"], "routes-sum-largest"),
    (Defect::LimitIsFixed, &["routes-sum-limit", "routes-sum-limit-chunked"], "routes-sum-over-the-limit"),
    (Defect::ChunksUnlimited, &["routes-sum-limit-chunked"], "routes-sum-limit"),
    (Defect::ClosesAfter5000, &["keep-alive-many"], "keep-alive-bodies"),
    (Defect::IgnoresClose, &["keep-alive-close", "pipelining-close"], "keep-alive-http-1-0"),
    (Defect::OldStaysOpen, &["keep-alive-http-1-0"], "keep-alive-close"),
    (Defect::ClosesIdle, &["keep-alive-idle"], "keep-alive-bodies"),
    (Defect::Stalls, &["keep-alive-no-stall"], "routes-root"),
    (Defect::ReadsOneTooFew, &["keep-alive-bodies", "pipelining-post", "chunked-one"], "routes-sum-empty"),
    (Defect::Twice, &["pipelining-sixteen", "pipelining-post", "routes-head"], "routes-root"),
    (Defect::OnePerRead, &["pipelining-sixteen", "pipelining-bytes", "pipelining-post", "pipelining-close", "fragments-pair"], "fragments-get"),
    (Defect::LastFirst, &["pipelining-sixteen", "pipelining-bytes", "pipelining-post"], "pipelining-close"),
    (Defect::AnswersBehindClose, &["pipelining-close"], "pipelining-sixteen"),
    (Defect::NoChunks, &["chunked-one", "chunked-many", "chunked-empty", "fragments-chunked"], "routes-sum"),
    (Defect::OneChunkOnly, &["chunked-many"], "chunked-one"),
    (Defect::DecimalSizes, &["chunked-size-digits", "chunked-many"], "routes-sum"),
    (Defect::NoExtensions, &["chunked-extension", "fragments-trailer"], "chunked-one"),
    (Defect::NoTrailers, &["chunked-trailer", "fragments-trailer"], "chunked-one"),
    (Defect::TakesAnySize, &["chunked-bad-size"], "chunked-many"),
    (Defect::WrapsSize, &["chunked-huge-size"], "chunked-many"),
    (Defect::SkipsLineEnd, &["chunked-no-line-end"], "chunked-many"),
    (Defect::SumsWhatCame, &["chunked-cut-off"], "chunked-one"),
    (Defect::NeverContinues, &["chunked-expect-continue"], "chunked-expect-unawaited"),
    (Defect::DropsUnawaited, &["chunked-expect-unawaited"], "chunked-expect-continue"),
    (Defect::RefusesExpectations, &["chunked-expect-continue"], "chunked-one"),
    (Defect::ReadsHeadAtOnce, &["fragments-get", "fragments-fields", "fragments-head", "fragments-unknown-path", "fragments-json", "fragments-byte-by-byte"], "routes-root"),
    (Defect::ReadsBodyAtOnce, &["fragments-length", "fragments-byte-by-byte"], "fragments-get"),
    (Defect::ReadsChunksAtOnce, &["fragments-chunked", "fragments-trailer", "fragments-byte-by-byte"], "fragments-length"),
    (Defect::TakesBoth, &["framing-length-and-chunked", "framing-length-and-chunked-once"], "framing-two-content-lengths"),
    (Defect::TakesBothAndCloses, &["framing-length-and-chunked"], "framing-length-and-chunked-once"),
    (Defect::TakesFirstLength, &["framing-two-content-lengths"], "framing-length-and-chunked"),
    (Defect::TakesPlus, &["framing-content-length-plus"], "framing-content-length-minus"),
    (Defect::TakesMinus, &["framing-content-length-minus"], "framing-content-length-plus"),
    (Defect::TakesUnknownCoding, &["framing-unknown-coding"], "framing-length-and-chunked"),
    (Defect::TakesSpaceBeforeColon, &["framing-space-before-colon"], "framing-no-host"),
    (Defect::TakesNoHost, &["framing-no-host"], "framing-unknown-version"),
    (Defect::TakesAnyVersion, &["framing-unknown-version"], "framing-no-host"),
    (Defect::ReadsOnAfterRefusal, &["framing-length-and-chunked", "framing-unknown-coding"], "routes-root"),
    (Defect::MetricsAreJson, &["metrics-text"], "routes-root"),
    (Defect::GaugeIsCounter, &["metrics-connections"], "metrics-requests"),
    (Defect::CountsNoRequest, &["metrics-requests"], "metrics-connections"),
    (Defect::CountsByConnection, &["metrics-requests"], "metrics-connections"),
    (Defect::GaugeNeverFalls, &["metrics-connections"], "metrics-requests"),
];

/// What is wrong with what the cases show of this defect.
fn wrong(offer: Offer, defect: Defect, ids: &[&str], other: &str) -> Option<String> {
    let all: Vec<&str> = ids.iter().copied().chain([other]).collect();
    let report = check(offer, defect, Some(&all));
    let case = |id: &str| -> &CaseResult {
        let found = report.cases.iter().find(|case| case.id == id);
        found.unwrap_or_else(|| panic!("there is no case {id}"))
    };
    let shown = ids.iter().find(|id| case(id).pass);
    let unshown = Some(other).filter(|other| !case(other).pass);
    let id = shown.copied().or(unshown)?;
    Some(format!("with {defect:?}: {:#?}", case(id)))
}

/// Passes when each defect fails the cases that are about it.
fn each_is_shown(offer: &Offer, defects: &[(Defect, &[&str], &str)]) {
    let _turn = turn();
    // Nearly all of their time the cases wait, so that many can at once.
    let again = Mutex::new(Vec::new());
    side_by_side(10, defects, |(defect, ids, other)| {
        if wrong(offer.clone(), *defect, ids, other).is_some() {
            again.lock().expect("sound").push((*defect, *ids, *other));
        }
    });
    // Some defects last for a moment only, and a checker that did not get its core comes too late to see them.
    let mut left = again.into_inner().expect("sound");
    let mut all = Vec::new();
    for _ in 0..3 {
        all.clear();
        left.retain(|(defect, ids, other)| {
            let wrong = wrong(offer.clone(), *defect, ids, other);
            all.extend(wrong.clone());
            wrong.is_some()
        });
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn each_defect_fails_the_cases_that_are_about_it() {
    each_is_shown(&Offer::default(), SHOWN_BY);
}

#[test]
fn each_case_has_a_defect_that_fails_it() {
    let shown: BTreeSet<&str> = SHOWN_BY
        .iter()
        .chain(further::SHOWN_BY)
        .flat_map(|(_, ids, _)| *ids)
        .copied()
        .collect();
    for id in ids(Offer::default()) {
        assert!(shown.contains(id.as_str()), "no defect fails {id}");
    }
}

#[test]
fn a_server_of_files_can_fail_the_cases_of_framing() {
    for (defect, ids) in [
        (
            Defect::TakesBoth,
            &[
                "framing-length-and-chunked",
                "framing-length-and-chunked-once",
            ][..],
        ),
        (Defect::TakesFirstLength, &["framing-two-content-lengths"]),
        (Defect::TakesPlus, &["framing-content-length-plus"]),
        (Defect::TakesMinus, &["framing-content-length-minus"]),
        (Defect::TakesUnknownCoding, &["framing-unknown-coding"]),
        (
            Defect::TakesSpaceBeforeColon,
            &["framing-space-before-colon"],
        ),
        (Defect::LastFirst, &["pipelining-bytes"]),
    ] {
        let wrong = wrong(Offer::of_infrastructure(), defect, ids, "routes-root");
        assert_eq!(wrong, None);
    }
}

#[test]
fn against_a_url_cases_that_need_a_start_are_skipped_with_the_reason() {
    let bench = FakeBench {
        offer: Offer::default(),
        defect: Defect::None,
    };
    let server = bench.start(&Environment::new()).expect("starts");
    let subject = Subject::Url {
        url: format!("http://{}/", server.address()),
        token: None,
    };
    let ids = ["routes-root", "routes-sum-limit", "metrics-text"];
    let only = |id: &str| ids.contains(&id);
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    let report = suite(Offer::default()).run(&subject, &options, &mut |_| ());
    assert_eq!((report.passed, report.failed, report.skipped), (1, 0, 2));
    let limit = report
        .cases
        .iter()
        .find(|case| case.id == "routes-sum-limit");
    let reason = limit.and_then(|case| case.skipped.as_deref());
    assert!(
        reason.is_some_and(|reason| reason.contains("MAX_BODY_BYTES=4096")),
        "{reason:?}"
    );
}
