//! Workload `voice`, with the real command over real sockets and the real mock providers. The gateway is
//! `targets/voice/lying-voice`, which is honest unless `LIE` names a lie; a long test has `rust-axum-voice`. What needs no
//! socket is in the tests of `workload-voice`.

mod beyond;
mod rest;
mod trouble;

use std::sync::OnceLock;

use crate::support::conclusive;
use crate::support::manifests::slo_file;
use crate::support::records::Trial;
use crate::support::{Ended, Plimsoll, built, undisturbed_but_for};
use plimsoll_testing::measures;

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
    built("voice/lying-voice");
    undisturbed_but_for(expected, || {
        let slo = gates();
        let line = format!("run lying-voice --workload voice --slo {slo} {PHASES}");
        Plimsoll::measuring(line.split_whitespace()).lying("LIE", lie)
    })
}

/// A lie that one of the gates shows. Others may show it as well: what never came is also a turn that fell short.
#[track_caller]
fn expect_gate(ended: &Ended, lie: &str, gate: &str) -> Trial {
    ended.expect_code(1);
    let trial = ended.sound_trial();
    let failed = trial.failed_gates();
    assert!(failed.contains(&gate), "{lie}: {failed:?}");
    trial
}

/// A lie by which a trial says nothing.
#[track_caller]
fn expect_doubt(ended: &Ended, caveat: &str) {
    ended.expect_code(3);
    assert_eq!(ended.sound_trial().blocking_caveats(), [caveat]);
}

#[test]
#[measures]
fn an_honest_gateway_passes() {
    let ended = conclusive!(lying("none"));
    ended.expect_code(0);
    let trial = ended.sound_trial();
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
    // The gateway's own count of its requests, of either provider.
    let of_gateway = |check: &&serde_json::Value| {
        let name = check["name"].as_str().unwrap_or_default();
        name.starts_with("gateway_requests_")
    };
    assert_eq!(checks.iter().filter(of_gateway).count(), 2);
    for leg in ["result", "first_audio"] {
        let p50_ms = |part: &str| trial.number(&format!("voice.{leg}.{part}.p50_ms"));
        let (to, from) = (p50_ms("to_provider"), p50_ms("from_provider"));
        assert!(to > 0.0 && from > 0.0, "in {to} ms, out {from} ms");
        // They are parts of the overhead of the same turns.
        let most = trial.number(&format!("voice.{leg}.overhead.max_ms"));
        assert!(to.max(from) <= most, "in {to}, out {from}, both {most} ms");
    }
    assert!(
        checks.iter().all(|check| check["holds"] == true),
        "{sanity}"
    );
}

/// Fault of a report: nobody asked the mocks. Marks that look right do not help, nor does a count of requests that nobody got.
#[test]
#[measures]
fn a_gateway_that_asks_nobody_cannot_pass() {
    for lie in ["ask_nobody", "forge_marks"] {
        let ended = conclusive!(lying_but_for(&["providers-disagree"], lie));
        expect_doubt(&ended, "providers-disagree");
    }
}

#[test]
#[measures]
fn a_gateway_that_asks_twice_is_doubted() {
    let ended = conclusive!(lying_but_for(
        &["providers-disagree"],
        "ask_twice LIE_EVERY=2"
    ));
    expect_doubt(&ended, "providers-disagree");
}

/// Fault of a report: a 101 counts as success.
#[test]
#[measures]
fn a_gateway_that_only_upgrades_fails() {
    let ended = conclusive!(lying("only_upgrade"));
    expect_gate(&ended, "only_upgrade", "sessions_failed");
}

#[test]
#[measures]
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
#[measures]
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
#[measures]
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
#[measures]
fn a_stall_is_in_the_tail_and_a_delay_is_known() {
    let ended = conclusive!(lying("stall LIE_AFTER_MS=4000 LIE_MS=3000"));
    let trial = ended.sound_trial();
    let longest_ms = trial.number("voice.result.overhead.max_ms");
    assert!(longest_ms > 500.0, "{longest_ms} ms");
    let ended = conclusive!(lying("late_results LIE_MS=400"));
    let trial = ended.sound_trial();
    let p50_ms = trial.number("voice.result.overhead.p50_ms");
    assert!((400.0..460.0).contains(&p50_ms), "{p50_ms} ms");
    assert_eq!(trial.at("voice.good").as_u64(), Some(0), "no turn is good");
}

#[test]
#[measures]
fn a_wrong_claim_changes_nothing() {
    let ended = conclusive!(lying("wrong_provider_ms LIE_MS=1000"));
    ended.expect_code(0);
}

#[test]
#[measures]
fn a_limit_of_the_gateways_own_is_no_limit_of_its_speed() {
    let lie = "refuse LIE_STATUS=429 LIE_SHARE=0.5";
    let ended = conclusive!(lying_but_for(&["admission-limited"], lie));
    expect_doubt(&ended, "admission-limited");
    let told = ended.trial().at("bottleneck").to_string();
    assert!(told.contains("admission: the target refused"), "{told}");
}
