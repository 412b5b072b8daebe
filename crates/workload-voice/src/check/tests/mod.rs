//! The checker against a gateway in this process: an honest one passes every case, and each defect fails the case that is about it.
//!
//! The real gateways are checked by `plimsoll check`; this shows that the cases can fail.

mod caller;
mod frames;
mod gateway;
mod settings;
mod talk;
mod upstream;

use std::collections::{BTreeMap, BTreeSet};

use gateway::FakeBench;
use plimsoll_conformance::subject::{Bench as _, Environment};
use plimsoll_conformance::{CaseResult, Check as _, CheckReport, Options, Subject};
use plimsoll_testing::side_by_side;

use super::VoiceSuite;

/// What is wrong with a gateway of these tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// `GET /` is text.
    RootText,
    /// `GET /` does not know of the drain.
    NotDraining,
    /// 200 for every path.
    AnyPath,
    /// Results count twice.
    Miscounts,
    VoicesWithoutSample,
    /// Asks for the voices each time.
    VoicesNotKept,
    /// Each part of a reply lacks its last byte.
    DropsByte,
    /// `POST /speak` answers when all is there.
    SpeakWaits,
    NoSpeakHeaders,
    /// An empty text is spoken.
    SpeaksNothing,
    /// A silent provider is a 502, too.
    OneFailure,
    /// A body that breaks off ends as if it were whole.
    EndsCutBody,
    NoUuid,
    RefusesUnknownFields,
    DiesOfBadConfig,
    TakesSecondConfig,
    NoConfigLimit,
    /// `ready` before STT is connected.
    ReadyAtOnce,
    /// STT is connected though no audio comes.
    OpensWithoutAudio,
    /// Each tenth message of audio goes on twice.
    DoublesAudio,
    IgnoresSmallAudio,
    /// A final result is a speech-final one.
    MixesFlags,
    /// Each fragment is a message.
    FragmentsApart,
    NoForcedFinal,
    CompleteFirst,
    AlwaysFlushes,
    NeverFlushes,
    WrongKey,
    /// A result goes to the caller that has the next.
    MixesCallers,
    /// All sessions take the first address.
    OneAddress,
    /// A `clear` takes 300 ms.
    StopsLate,
    /// A dropped reply's request goes on.
    KeepsRequest,
    /// The reply behind a `clear` lacks its beginning.
    ForgetsBeginning,
    AnswersClear,
    /// Drops replies that may not be interrupted.
    InterruptsAll,
    NotJsonCloses,
    /// Messages of an unknown type have no answer.
    IgnoresTypes,
    TakesOddAudio,
    /// What comes before `ready` has no answer.
    SilentTooEarly,
    WrongCloseCode,
    NoAudioBuffer,
    /// STT is tried again each 100 ms, for ever.
    TriesForever,
    NoRetry,
    NoTimeouts,
    /// A reply ends when STT is lost.
    SttLossEndsReply,
    NoAdmission,
    /// Two upgrades in the same moment see the same free place.
    RacyAdmission,
    NoRetryAfter,
    RefusesUncounted,
    /// A torn session keeps its place.
    LeaksSlot,
    NoIdle,
    NoFloodLimit,
    /// Everything waits for a slow reader.
    NeverDrops,
    /// A socket that takes nothing stays open.
    KeepsBlocked,
    /// A drain lets no reply end.
    DrainCuts,
}

fn check(defect: Defect, ids: &[&str]) -> CheckReport {
    let bench = FakeBench(defect);
    let subject = Subject::Target {
        name: "fake".to_owned(),
        bench: &bench,
    };
    let only = |id: &str| ids.is_empty() || ids.contains(&id);
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    VoiceSuite::of_ours().run(&subject, &options, &mut |_| ())
}

#[test]
fn an_honest_gateway_passes_every_case() {
    let report = check(Defect::None, &[]);
    let (disturbed, failed): (Vec<_>, Vec<_>) = report
        .cases
        .iter()
        .filter(|case| !case.pass)
        .partition(|case| case.disturbed.is_some());
    assert!(failed.is_empty(), "{failed:#?}");
    // This gateway is made of threads of this process: a machine that is busy enough keeps them from the core, and says so.
    eprintln!("disturbed: {disturbed:#?}");
    assert_eq!(report.cases.len(), 50);
    assert_eq!((report.disturbed, report.skipped), (disturbed.len(), 0));
    assert!(report.passed > 40, "mostly disturbed");
}

/// Each defect, the cases that must show it, and a case that is not about it.
#[rustfmt::skip]
const SHOWN_BY: &[(Defect, &[&str], &str)] = &[
    (Defect::RootText, &["http-root"], "http-not-found"),
    (Defect::NotDraining, &["http-draining"], "http-root"),
    (Defect::AnyPath, &["http-not-found"], "http-root"),
    (Defect::Miscounts, &["http-metrics"], "http-voices"),
    (Defect::VoicesWithoutSample, &["http-voices"], "http-root"),
    (Defect::VoicesNotKept, &["http-voices"], "http-root"),
    (Defect::DropsByte, &["speak-bytes", "tts-bytes"], "speak-headers"),
    (Defect::SpeakWaits, &["speak-first-byte"], "speak-bytes"),
    (Defect::NoSpeakHeaders, &["speak-headers"], "speak-bytes"),
    (Defect::SpeaksNothing, &["speak-bad-request"], "speak-bytes"),
    (Defect::OneFailure, &["speak-provider-errors"], "speak-cut-body"),
    (Defect::EndsCutBody, &["speak-cut-body"], "speak-bytes"),
    (Defect::NoUuid, &["config-stream-id"], "config-good"),
    (Defect::RefusesUnknownFields, &["config-good"], "config-bad-then-good"),
    (Defect::DiesOfBadConfig, &["config-bad-then-good"], "config-good"),
    (Defect::TakesSecondConfig, &["config-second"], "config-good"),
    (Defect::NoConfigLimit, &["config-too-late"], "config-good"),
    (Defect::ReadyAtOnce, &["config-stt-refused"], "config-without-audio"),
    (Defect::OpensWithoutAudio, &["config-without-audio"], "config-good"),
    (Defect::DoublesAudio, &["stt-blocks-once"], "stt-flags"),
    (Defect::IgnoresSmallAudio, &["stt-chunks"], "stt-blocks-once"),
    (Defect::MixesFlags, &["stt-flags"], "stt-blocks-once"),
    (Defect::FragmentsApart, &["stt-fragments"], "stt-blocks-once"),
    (Defect::NoForcedFinal, &["stt-forced-final"], "stt-flags"),
    (Defect::CompleteFirst, &["tts-complete-last"], "stt-flags"),
    (Defect::AlwaysFlushes, &["tts-queue"], "tts-flush"),
    (Defect::NeverFlushes, &["tts-flush"], "tts-queue"),
    (Defect::WrongKey, &["tts-requests"], "tts-bytes"),
    (Defect::MixesCallers, &["tts-no-crosstalk"], "tts-bytes"),
    (Defect::OneAddress, &["tts-no-crosstalk"], "tts-bytes"),
    (Defect::StopsLate, &["barge-in-stops"], "barge-in-nothing-playing"),
    (Defect::KeepsRequest, &["barge-in-cancels-upstream"], "barge-in-nothing-playing"),
    (Defect::ForgetsBeginning, &["barge-in-next-reply-whole"], "tts-queue"),
    (Defect::AnswersClear, &["barge-in-nothing-playing"], "barge-in-next-reply-whole"),
    (Defect::InterruptsAll, &["barge-in-uninterruptible"], "tts-flush"),
    (Defect::NotJsonCloses, &["bad-not-json"], "bad-type"),
    (Defect::IgnoresTypes, &["bad-type"], "bad-not-json"),
    (Defect::TakesOddAudio, &["bad-field"], "bad-type"),
    (Defect::SilentTooEarly, &["bad-too-early"], "bad-type"),
    (Defect::WrongCloseCode, &["bad-close-codes"], "bad-type"),
    (Defect::NoAudioBuffer, &["failure-stt-back"], "failure-stt-gone"),
    (Defect::TriesForever, &["failure-stt-gone"], "failure-retry"),
    (Defect::NoRetry, &["failure-retry", "speak-provider-errors"], "tts-bytes"),
    (Defect::NoTimeouts, &["failure-stall"], "failure-retry"),
    (Defect::SttLossEndsReply, &["failure-spares-the-other"], "failure-retry"),
    (Defect::NoAdmission, &["admission-burst", "admission-causes"], "http-root"),
    (Defect::RacyAdmission, &["admission-burst"], "http-root"),
    (Defect::NoRetryAfter, &["admission-causes", "admission-burst"], "http-root"),
    (Defect::RefusesUncounted, &["admission-causes"], "admission-burst"),
    (Defect::LeaksSlot, &["admission-slot-back"], "http-root"),
    (Defect::NoIdle, &["limits-idle-and-flood"], "http-root"),
    (Defect::NoFloodLimit, &["limits-idle-and-flood"], "http-root"),
    (Defect::NeverDrops, &["limits-slow-reader"], "http-root"),
    (Defect::KeepsBlocked, &["limits-slow-reader"], "http-root"),
    (Defect::DrainCuts, &["limits-drain"], "http-root"),
];

#[test]
fn each_defect_fails_the_cases_that_are_about_it() {
    // Nearly all of their time the cases wait, so that many can at once.
    side_by_side(6, SHOWN_BY, |(defect, ids, other)| {
        assert_shown_by(*defect, ids, other);
    });
}

/// A gateway with the defect fails every one of `ids` and still passes the other.
fn assert_shown_by(defect: Defect, ids: &[&str], other: &str) {
    let all: Vec<&str> = ids.iter().copied().chain([other]).collect();
    let report = check(defect, &all);
    let cases: BTreeMap<&str, &CaseResult> =
        report.cases.iter().map(|case| (&*case.id, case)).collect();
    for id in ids {
        assert!(!cases[id].pass, "with {defect:?}: {:#?}", cases[id]);
    }
    let kept = cases[other].pass || cases[other].disturbed.is_some();
    assert!(kept, "with {defect:?}: {:#?}", cases[other]);
}

#[test]
fn each_case_can_fail() {
    let shown: BTreeSet<&str> = SHOWN_BY
        .iter()
        .flat_map(|(_, ids, _)| ids.iter().copied())
        .collect();
    let all = VoiceSuite::of_ours().case_ids();
    let never: Vec<&String> = all.iter().filter(|id| !shown.contains(&***id)).collect();
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn against_a_url_cases_that_need_providers_are_skipped_with_the_reason() {
    let gateway = FakeBench(Defect::None).start(&Environment::from([(
        "PROVIDER_URLS".to_owned(),
        "http://127.0.0.1:1".to_owned(),
    )]));
    let gateway = gateway.expect("starts");
    let subject = Subject::Url {
        url: format!("ws://{}", gateway.address()),
        token: None,
    };
    let ids = [
        "http-root",
        "config-stream-id",
        "tts-bytes",
        "admission-burst",
    ];
    let only = |id: &str| ids.contains(&id);
    let options = Options {
        only: Some(&only),
        ..Options::default()
    };
    let report = VoiceSuite::of_any().run(&subject, &options, &mut |_| ());
    assert_eq!(
        (report.passed, report.failed, report.skipped),
        (2, 0, 2),
        "{report:#?}"
    );
    let skipped = report
        .cases
        .iter()
        .filter_map(|case| case.skipped.as_deref());
    let reasons: Vec<&str> = skipped.collect();
    assert!(reasons[0].contains("mock providers"), "{reasons:?}");
    assert!(reasons[1].contains("MAX_SESSIONS=10"), "{reasons:?}");
}
