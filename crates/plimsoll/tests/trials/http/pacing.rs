//! What the clock of the client shows, and what a client shows that is at its limit.

use super::{PHASES, call, count, expect_sound, with_fault};
use crate::support::built;
use crate::support::burners::expect_starved_client;
use crate::support::{Ended, conclusive, half_turn, inconclusive, shared_turn, undisturbed};
use plimsoll_testing::measures;

/// One trial at a time; the caller has the turn.
fn alone(fault: &str, line: &str) -> Option<Ended> {
    undisturbed(|| with_fault(call(&format!("run lying-http {line}")), fault))
}

/// Fault of the report: a timer of 1 ms, by which every median was 0.9 to 1.2 ms, whatever the server.
#[test]
#[measures]
fn a_server_that_takes_300_us_is_seen_to_unless_the_client_has_a_tick() {
    built("http/lying-http");
    let _turn = half_turn();
    // At 730/s no request is due at the same point of a tick as the one before.
    let p50_ms = |fault: &str, tick_us: Option<u64>| {
        let tick = tick_us.map_or_else(String::new, |us| format!("--tick-us {us}"));
        let line = format!("--sessions 730 --connections 50 {PHASES} {tick}");
        let ended = conclusive!(alone(fault, &line));
        ended.expect_code(0);
        let trial = expect_sound(&ended);
        assert_eq!(
            count(&trial, "environment.engine_tick_us"),
            tick_us.unwrap_or(0)
        );
        Some(trial.number("latency.newest.from_schedule.p50_ms"))
    };
    let late = "delay DELAY_US=300";
    let floor_ms = conclusive!(p50_ms("none", None));
    let exact_ms = conclusive!(p50_ms(late, None));
    let ticking_ms = conclusive!(p50_ms(late, Some(1000)));
    // Nothing can make these less than they are.
    assert!(exact_ms >= 0.3, "{exact_ms} ms");
    // Half a tick on average, and what the server takes.
    assert!(ticking_ms > 0.6, "{ticking_ms} ms");
    // A busy machine can make it more.
    if floor_ms > 0.3 {
        return inconclusive(&[format!("a floor of {floor_ms} ms")]);
    }
    let more_ms = exact_ms - floor_ms;
    assert!(more_ms < 0.5, "{more_ms} ms above {floor_ms} ms");
}

/// Fault of the report: at most 100 requests are asked of a server that stands still, so the worst second looks like
/// the best. Here it stands still for 300 ms of each 1.5 s, while 1,000 a second are due.
#[test]
#[measures]
fn a_server_that_stops_is_asked_all_the_same() {
    const STOP_MS: f64 = 300.0;
    const EVERY_MS: f64 = 1_500.0;
    const CONNECTIONS: u64 = 100;
    built("http/lying-http");
    let _turn = half_turn();
    // The window is two periods. So it has two stops, wherever it begins, even if one of them is cut in two.
    let line = format!(
        "--sessions 1000 --connections {CONNECTIONS} --ramp 0.2 --warm-up 0.5 --measured 3 --grace 1"
    );
    let ended = conclusive!(alone("stop STOP_MS=300 EVERY_MS=1500", &line));
    let trial = expect_sound(&ended);
    assert_eq!(trial.ledger("frames_due"), 3_000);
    assert_eq!(trial.ledger("frames_answered"), 3_000);

    // What is due `t` after a stop's beginning waits for the rest of it. So a share of 1 - q of all requests waits for
    // longer than STOP - (1 - q) EVERY.
    let waits_ms = |q: f64| STOP_MS - (1.0 - q) * EVERY_MS;
    let longest_ms = trial.number("latency.newest.from_schedule.max_ms");
    for (name, q) in [("p90_ms", 0.9), ("p95_ms", 0.95), ("p99_ms", 0.99)] {
        let seen_ms = trial.number(&format!("latency.newest.from_schedule.{name}"));
        let least_ms = waits_ms(q) - 5.0;
        // A busy machine wakes the server late. However late that is, it is no later than the longest wait.
        let most_ms = longest_ms - (STOP_MS - waits_ms(q)) / 2.0;
        assert!(
            (least_ms..=most_ms).contains(&seen_ms),
            "{name}: {seen_ms} of {longest_ms}"
        );
    }
    // The first of them are written, one on each connection; the others wait in the client.
    let per_stop = STOP_MS as u64 - CONNECTIONS;
    let busy = count(&trial, "http.found_all_busy");
    assert!(busy >= 2 * per_stop * 9 / 10, "{busy}");
    // That is the server's doing, and the client's lateness has nothing of it.
    let wait_ms = trial.number("client.send_wait.max_us") / 1e3;
    let most_ms = STOP_MS - CONNECTIONS as f64;
    assert!(wait_ms > most_ms * 0.9, "{wait_ms}");
    let lag_ms = trial.number("client.send_lag.p99_us") / 1e3;
    assert!(lag_ms < most_ms / 4.0, "{lag_ms}");
}

#[test]
#[measures]
fn a_starved_client_is_invalid() {
    built("http/lying-http");
    let line = "run lying-http --sessions 12000 --client-cpus 0 --target-cpus 1 --ramp 0.2 --warm-up 0.5 --measured 4.6 --grace 1";
    conclusive!(expect_starved_client(|| call(line)));
}

/// Fault of the report: client and server ran on other cores than they were pinned to.
#[test]
#[measures]
fn shared_cores_are_invalid() {
    built("http/lying-http");
    let _turn = shared_turn();
    let line = format!("run lying-http --sessions 200 --client-cpus 0 --target-cpus 0 {PHASES}");
    let ended = call(&line).run();
    ended.expect_code(3);
    let trial = ended.trial();
    assert_eq!(trial.verdict(), "invalid");
    let blocking = trial.blocking_caveats();
    assert!(
        blocking.iter().any(|id| id == "shared-cores"),
        "{blocking:?}"
    );
}
