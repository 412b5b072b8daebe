//! Workload `voice`, with the real command over real sockets and the real mock providers. The gateway is
//! `targets/voice/lying-voice`, which is honest unless `LIE` names a lie, or `rust-axum-voice`. What needs no socket is in
//! the tests of `workload-voice`.

use std::sync::OnceLock;

use crate::support::conclusive;
use crate::support::manifests::slo_file;
use crate::support::records::{self, Trial};
use crate::support::{Ended, Plimsoll, built, built_lying_voice, undisturbed_but_for};

/// What no gateway may do, however busy the machine is.
const GATES: &str = "[gates]
shortfall = 0
frames_duplicated = 0
frames_out_of_order = 0
content_wrong = 0
sessions_failed = 0
sessions_died = 0
blocks_lost = 0
blocks_doubled = 0
blocks_out_of_order = 0
blocks_damaged = 0
";

/// Twelve callers have a turn each.
const PHASES: &str = "--sessions 12 --ramp 0.5 --warm-up 1.5 --measured 8 --grace 7";

/// A file with [`GATES`].
fn gates() -> &'static str {
    static WRITTEN: OnceLock<String> = OnceLock::new();
    WRITTEN.get_or_init(|| slo_file("voice-counts", GATES))
}

/// A trial of the lying gateway with this lie, `NAME VARIABLE=VALUE …`.
fn lying(lie: &str) -> Option<Ended> {
    lying_but_for(&[], lie)
}

/// The same for a lie that makes a trial invalid, by these caveats.
fn lying_but_for(expected: &[&str], lie: &str) -> Option<Ended> {
    built_lying_voice();
    undisturbed_but_for(expected, || {
        let slo = gates();
        let line = format!("run lying-voice --workload voice --slo {slo} {PHASES}");
        Plimsoll::measuring(line.split_whitespace()).lying("LIE", lie)
    })
}

/// The trial's record is complete, and so is its account.
#[track_caller]
fn expect_sound(ended: &Ended) -> Trial {
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_every_frame_accounted_for();
    ended.expect_nothing_left_running();
    trial
}

/// A lie that one of the gates shows. Others may show it as well: what never came is also a turn that fell short.
#[track_caller]
fn expect_gate(ended: &Ended, lie: &str, gate: &str) -> Trial {
    ended.expect_code(1);
    let trial = expect_sound(ended);
    let failed = trial.failed_gates();
    assert!(failed.contains(&gate), "{lie}: {failed:?}");
    trial
}

/// A lie by which a trial says nothing.
#[track_caller]
fn expect_doubt(ended: &Ended, caveat: &str) {
    ended.expect_code(3);
    assert_eq!(expect_sound(ended).blocking_caveats(), [caveat]);
}

#[test]
fn an_honest_gateway_passes() {
    let ended = conclusive!(lying("none"));
    ended.expect_code(0);
    let trial = expect_sound(&ended);
    assert_eq!(trial.verdict(), "pass");
    assert_eq!(trial.at("load_unit"), "callers");
    let turns = trial.at("voice.turns").as_u64().expect("a count");
    assert!((8..=16).contains(&turns), "{turns}");
    assert_eq!(trial.at("voice.complete").as_u64(), Some(turns));
    assert_eq!(
        trial.at("voice.result.overhead.samples").as_u64(),
        Some(turns)
    );
    // The provider takes its time, and nobody pays for it.
    assert!(trial.number("voice.result.provider.p50_ms") >= 30.0);
    let sanity = trial.at("sanity");
    let checks = sanity.as_array().expect("checks");
    let of_providers = |check: &&serde_json::Value| {
        let name = check["name"].as_str().unwrap_or_default();
        name.starts_with("provider_")
    };
    assert_eq!(checks.iter().filter(of_providers).count(), 6);
    assert!(
        checks.iter().all(|check| check["holds"] == true),
        "{sanity}"
    );
}

/// Fault of a report: nobody asked the mocks. Marks that look right do not help.
#[test]
fn a_gateway_that_asks_nobody_cannot_pass() {
    let ended = conclusive!(lying("ask_nobody"));
    expect_gate(&ended, "ask_nobody", "shortfall");
    let forged = conclusive!(lying_but_for(&["providers-disagree"], "forge_marks"));
    expect_doubt(&forged, "providers-disagree");
}

#[test]
fn a_gateway_that_asks_twice_is_doubted() {
    let ended = conclusive!(lying_but_for(
        &["providers-disagree"],
        "ask_twice LIE_EVERY=2"
    ));
    expect_doubt(&ended, "providers-disagree");
}

/// Fault of a report: a 101 counts as success.
#[test]
fn a_gateway_that_only_upgrades_fails() {
    let ended = conclusive!(lying("only_upgrade"));
    expect_gate(&ended, "only_upgrade", "sessions_failed");
}

#[test]
fn results_that_never_come_or_come_twice_are_seen() {
    for (lie, gate) in [
        ("skip_result LIE_EVERY=3", "shortfall"),
        ("double_result LIE_EVERY=3", "frames_duplicated"),
    ] {
        let ended = conclusive!(lying(lie));
        expect_gate(&ended, lie, gate);
    }
}

#[test]
fn callers_audio_that_is_not_whole_is_seen() {
    for (lie, gate) in [
        ("drop_block LIE_EVERY=200", "blocks_lost"),
        ("double_block LIE_EVERY=200", "blocks_doubled"),
        ("change_block LIE_EVERY=200", "blocks_damaged"),
    ] {
        let ended = conclusive!(lying(lie));
        expect_gate(&ended, lie, gate);
    }
}

#[test]
fn replies_that_are_not_whole_are_seen() {
    for (lie, gate) in [
        ("drop_reply_block LIE_EVERY=200", "content_wrong"),
        ("change_reply_block LIE_EVERY=200", "content_wrong"),
        ("others_reply LIE_EVERY=3", "content_wrong"),
    ] {
        let ended = conclusive!(lying(lie));
        expect_gate(&ended, lie, gate);
    }
}

/// Fault of a report: a freeze of three seconds is not in its P99.
#[test]
fn a_stall_is_in_the_tail_and_a_delay_is_known() {
    let ended = conclusive!(lying("stall LIE_AFTER_MS=4000 LIE_MS=3000"));
    let trial = expect_sound(&ended);
    let longest_ms = trial.number("voice.result.overhead.max_ms");
    assert!(longest_ms > 500.0, "{longest_ms} ms");
    let ended = conclusive!(lying("late_results LIE_MS=400"));
    let trial = expect_sound(&ended);
    let p50_ms = trial.number("voice.result.overhead.p50_ms");
    assert!((400.0..460.0).contains(&p50_ms), "{p50_ms} ms");
    assert_eq!(trial.at("voice.good").as_u64(), Some(0), "no turn is good");
}

#[test]
fn a_wrong_claim_changes_nothing() {
    let ended = conclusive!(lying("wrong_provider_ms LIE_MS=1000"));
    ended.expect_code(0);
}

#[test]
fn a_limit_of_the_gateways_own_is_no_limit_of_its_speed() {
    let lie = "refuse LIE_STATUS=429 LIE_SHARE=0.5";
    let ended = conclusive!(lying_but_for(&["admission-limited"], lie));
    expect_doubt(&ended, "admission-limited");
}

/// What no gateway may do to a REST client.
const REST_GATES: &str = "[gates]
shortfall = 0
requests_failed = 0
frames_duplicated = 0
frames_out_of_order = 0
content_wrong = 0
";

/// A small load of a test with REST clients. In `mixed` a dozen callers talk at once.
fn phases(test: &str) -> &'static str {
    match test {
        "rest" => "--sessions 50 --ramp 0.5 --warm-up 1 --measured 4 --grace 3",
        "speak" => "--sessions 4 --ramp 0.5 --warm-up 1 --measured 4 --grace 8",
        _ => "--sessions 4 --call-s 14 --ramp 0 --warm-up 14 --measured 8 --grace 14",
    }
}

/// A trial of such a test.
fn of_rest(target: &str, test: &str) -> String {
    let slo = slo_file("voice-rest-counts", REST_GATES);
    format!(
        "run {target} --workload voice --test {test} --slo {slo} {}",
        phases(test)
    )
}

/// The same against the lying gateway with this lie.
fn lying_to_rest(test: &str, lie: &str) -> Option<Ended> {
    built_lying_voice();
    let line = of_rest("lying-voice", test);
    undisturbed_but_for(&[], || {
        Plimsoll::measuring(line.split_whitespace()).lying("LIE", lie)
    })
}

/// The records of requests in a trial, by what they ask.
fn requests(trial: &Trial, kind: &str) -> serde_json::Value {
    let all = trial.at("voice.requests");
    let mut all = all.as_array().expect("records").iter();
    let found = all.find(|record| record["request"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}")).clone()
}

#[test]
fn each_test_with_rest_clients_has_whole_requests_and_no_fault_of_its_own() {
    built("voice/rust-axum-voice");
    for (test, unit, kinds) in [
        ("rest", "requests_per_second", &["GET /"][..]),
        ("speak", "requests_per_second", &["POST /speak"]),
        (
            "mixed",
            "arrivals_per_second",
            &["GET /", "GET /voices", "POST /speak"],
        ),
    ] {
        let line = of_rest("rust-axum-voice", test);
        let ended = conclusive!(undisturbed_but_for(&[], || {
            Plimsoll::measuring(line.split_whitespace())
        }));
        ended.expect_code(0);
        let trial = expect_sound(&ended);
        assert_eq!(trial.at("load_unit"), unit);
        for kind in kinds {
            let record = requests(&trial, kind);
            let due = record["due"].as_u64().expect("a count");
            assert!(due > 0 && record["right"] == due, "{test}: {record}");
            let end_to_end = &record["answer"]["end_to_end"];
            assert_eq!(end_to_end["samples"], due, "{test}: {record}");
        }
        assert_eq!(
            trial.at("voice.requests").as_array().map(Vec::len),
            Some(kinds.len())
        );
        // No request is a turn, and no turn a request.
        let turns = trial.at("voice.turns").as_u64().expect("a count");
        assert_eq!(turns > 0, test == "mixed", "{turns} turns");
        let frames = trial.at("ledger.frames_due").as_u64().expect("a count");
        let expected = match test {
            "rest" => 200,
            "speak" => 16,
            _ => turns,
        };
        assert_eq!(frames, expected, "{test}");
        let lonely = trial.caveats().contains(&"no-conversation");
        assert_eq!(lonely, test == "rest");
        for page in ["summary.md", "report.html"] {
            let text = ended.text_of(page);
            assert!(
                kinds.iter().all(|kind| text.contains(kind)),
                "{test}: {page}"
            );
            assert_eq!(text.contains("asks no provider"), test == "rest", "{page}");
        }
    }
}

/// Faults of a report: a status below 500 was a success, and bodies without required fields were.
#[test]
fn a_wrong_body_is_no_success() {
    for (test, gate) in [("rest", "content_wrong"), ("speak", "content_wrong")] {
        let ended = conclusive!(lying_to_rest(test, "bare_200"));
        let trial = expect_gate(&ended, test, gate);
        let kind = if test == "rest" {
            "GET /"
        } else {
            "POST /speak"
        };
        assert_eq!(requests(&trial, kind)["right"], 0);
    }
}

#[test]
fn replies_over_http_that_are_not_whole_are_seen() {
    for (lie, gate) in [
        ("cut_reply LIE_EVERY=3", "content_wrong"),
        ("drop_reply_block LIE_EVERY=200", "content_wrong"),
        ("change_reply_block LIE_EVERY=200", "content_wrong"),
        ("double_reply_block LIE_EVERY=200", "frames_duplicated"),
    ] {
        let ended = conclusive!(lying_to_rest("speak", lie));
        let trial = expect_gate(&ended, lie, gate);
        let record = requests(&trial, "POST /speak");
        assert!(
            record["right"].as_u64() < record["due"].as_u64(),
            "{lie}: {record}"
        );
    }
}

#[test]
fn a_delay_of_replies_over_http_is_known() {
    let ended = conclusive!(lying_to_rest("speak", "late_replies LIE_MS=400"));
    let trial = expect_sound(&ended);
    let p50_ms = trial.number("voice.first_audio.overhead.p50_ms");
    assert!((400.0..460.0).contains(&p50_ms), "{p50_ms} ms");
    assert_eq!(requests(&trial, "POST /speak")["good"], 0);
}
