//! The echo workload against a server on a third-party WebSocket library: `run --url`, and a check of such a server.

use std::time::Duration;

use crate::support::echo_server::{Manner, start};
use crate::support::{
    Ended, Plimsoll, ROOMY_SLO, conclusive, manifests, short_phases, undisturbed_beside_another,
};
use plimsoll_testing::measures;

const SESSIONS: u64 = 20;
const MESSAGES_PER_S: u64 = 10;
const WINDOW_S: u64 = 3;

fn trial_of(manner: Manner) -> Option<Ended> {
    let url = start(manner);
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = manifests::file(files.path(), "roomy.toml", ROOMY_SLO);
    undisturbed_beside_another(|| {
        let sessions = SESSIONS.to_string();
        let mut call = Plimsoll::measuring(["run", "--workload", "echo", "--url", &url]);
        call = call.arg("--sessions").arg(sessions).arg("--slo").arg(&slo);
        for argument in short_phases(3) {
            call = call.arg(argument);
        }
        call
    })
}

#[test]
#[measures]
fn an_honest_echo_server_passes() {
    let ended = conclusive!(trial_of(Manner::Honest));
    ended.expect_code(0);
    let trial = ended.trial();
    trial.expect_flawless_ledger();
    assert_eq!(
        trial.ledger("frames_due"),
        SESSIONS * MESSAGES_PER_S * WINDOW_S
    );
    assert_eq!(trial.ledger("partials"), trial.ledger("frames_due"));
    assert!(trial.ledger("content_checked") >= trial.ledger("partials"));
    assert_eq!(trial.at("workload"), "echo");
    assert_eq!(trial.at("slo"), "roomy");
    // We did not start it, and say so; that alone is no reason to doubt the verdict.
    assert!(trial.caveats().contains(&"no-resources"));
    assert!(trial.at("target_resources").is_null());
}

#[test]
#[measures]
fn a_swallowed_message_is_a_lost_frame() {
    let ended = conclusive!(trial_of(Manner::SwallowsEveryTenth));
    ended.expect_code(1);
    let trial = ended.trial();
    trial.expect_failed_by("frames_lost");
    trial.expect_every_frame_accounted_for();
    // Any thirty messages in a row include three multiples of ten.
    assert_eq!(
        trial.ledger("frames_lost"),
        SESSIONS * MESSAGES_PER_S * WINDOW_S / 10
    );
    assert_eq!(trial.ledger("sessions_died"), 0);
}

#[test]
#[measures]
fn a_late_echo_fails_by_its_latency_and_nothing_else() {
    let ended = conclusive!(trial_of(Manner::Late(Duration::from_millis(300))));
    ended.expect_code(1);
    let trial = ended.trial();
    trial.expect_failed_by("newest_p95_ms");
    assert_eq!(trial.failed_gates(), ["newest_p50_ms", "newest_p95_ms"]);
    trial.expect_flawless_ledger();
    let p50_ms = trial.number("latency.newest.from_schedule.p50_ms");
    assert!((300.0..500.0).contains(&p50_ms), "{p50_ms}");
}

#[test]
#[measures]
fn a_server_is_checked_by_the_dialect_that_it_is_said_to_speak() {
    let url = start(Manner::Honest);
    let check = |line: &str| {
        let words = format!("check --workload ws --url {url} --only {line}");
        Plimsoll::measuring(words.split_whitespace()).run()
    };
    check("echo-text").expect_code(0);
    let ended = check("server-ready-first --dialect wse");
    ended.expect_code(1);
    let report = ended.json_of("check.json");
    assert_eq!(report["cases"][0]["id"], "server-ready-first");
    assert_eq!(report["failed"], 1, "an echo says nothing at first");
    // The dialect implies the workload.
    let line = format!("check --url {url} --only server-ready-first --dialect wse");
    let implied = Plimsoll::measuring(line.split(' ')).run();
    implied.expect_code(1);
    assert_eq!(implied.json_of("check.json")["failed"], 1);
}
