//! Tests with REST clients.

use super::expect_gate;
use crate::support::conclusive;
use crate::support::manifests::slo_file;
use crate::support::records::Trial;
use crate::support::{Ended, Plimsoll, built, undisturbed_but_for};
use plimsoll_testing::measures;

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
    built("voice/lying-voice");
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
#[measures]
fn each_test_with_rest_clients_has_whole_requests_and_no_fault_of_its_own() {
    built("voice/lying-voice");
    rest_clients_are_served("lying-voice");
}

#[test]
#[ignore = "long; make test-all runs it"]
#[measures]
fn a_real_gateway_serves_rest_clients() {
    built("voice/rust-axum-voice");
    rest_clients_are_served("rust-axum-voice");
}

/// Each test with REST clients finds all requests whole.
fn rest_clients_are_served(target: &str) {
    for (test, unit, kinds) in [
        ("rest", "requests_per_second", &["GET /"][..]),
        ("speak", "requests_per_second", &["POST /speak"]),
        (
            "mixed",
            "arrivals_per_second",
            &["GET /", "GET /voices", "POST /speak"],
        ),
    ] {
        let line = of_rest(target, test);
        let ended = conclusive!(undisturbed_but_for(&[], || {
            Plimsoll::measuring(line.split_whitespace())
        }));
        ended.expect_code(0);
        let trial = ended.sound_trial();
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
#[measures]
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
#[measures]
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
#[measures]
fn a_delay_of_replies_over_http_is_known() {
    let ended = conclusive!(lying_to_rest("speak", "late_replies LIE_MS=400"));
    let trial = ended.sound_trial();
    let p50_ms = trial.number("voice.first_audio.overhead.p50_ms");
    assert!((400.0..460.0).contains(&p50_ms), "{p50_ms} ms");
    assert_eq!(requests(&trial, "POST /speak")["good"], 0);
}
