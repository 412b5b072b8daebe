//! A server with a fault fails, and the record names it. A server that only closes idle connections does not.

use super::{
    DUE, PHASES, RATE, TIMED_OUT, at_url, count, expect_flawless, expect_sound, lying, outcome,
    outcomes,
};
use crate::support::conclusive;
use crate::support::http_server::closing_under_requests;
use crate::support::records::Trial;
use plimsoll_testing::measures;

/// The share that is struck is exact, but the window's first request is anywhere in it.
#[track_caller]
fn expect_one_in_fifty(trial: &Trial, name: &str) {
    let struck = outcome(trial, name);
    assert!(struck.abs_diff(DUE / 50) <= 1, "{name}: {struck}");
    assert_eq!(outcomes(trial), struck, "{:#}", trial.at("http.outcomes"));
    let answered = trial.ledger("frames_answered");
    assert_eq!(answered, DUE - struck);
}

/// Fault of the report: errors stayed unseen, because only the latencies of good answers were looked at. These are as
/// good as ever here.
#[test]
#[measures]
fn one_bad_answer_in_fifty_fails() {
    for (fault, test, name) in [
        ("fast_503", "rate", "http_status 503"),
        ("short_body", "rate", "closed_in_answer"),
    ] {
        let ended = conclusive!(lying(fault, &format!("{PHASES} --test {test}")));
        ended.expect_code(1);
        let trial = expect_sound(&ended);
        assert_eq!(trial.failed_gates(), ["error_rate", "shortfall"], "{fault}");
        expect_one_in_fifty(&trial, name);
        assert_eq!(trial.ledger("frames_lost"), 0);
        assert!(ended.stdout.contains(name), "{}", ended.stdout);
    }
}

/// Its length is right, and so is its status. Of JSON and of sums, it is the answer to another request.
#[test]
#[measures]
fn another_requests_answer_fails() {
    for test in ["rate", "json", "post"] {
        let ended = conclusive!(lying("wrong_body", &format!("{PHASES} --test {test}")));
        ended.expect_code(1);
        let trial = expect_sound(&ended);
        let gates = ["error_rate", "content_wrong", "shortfall"];
        assert_eq!(trial.failed_gates(), gates, "{test}");
        expect_one_in_fifty(&trial, "wrong_body");
    }
}

#[test]
#[measures]
fn an_answer_that_never_comes_is_lost() {
    let ended = conclusive!(lying("drop", TIMED_OUT));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    assert_eq!(trial.failed_gates(), ["error_rate", "shortfall"]);
    expect_one_in_fifty(&trial, "timeout");
    assert_eq!(trial.ledger("frames_lost"), outcomes(&trial));
    // It waited for 2 s, and the percentiles say so.
    let max_ms = trial.number("latency.newest.from_schedule.max_ms");
    assert!(max_ms >= 2_000.0, "{max_ms}");
}

#[test]
#[measures]
fn an_answer_that_nobody_asked_for_fails() {
    let ended = conclusive!(lying("extra_answer", PHASES));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    trial.expect_failed_by("error_rate");
    let unasked = count(&trial, "ledger.reasons.unasked_answer");
    assert_eq!(unasked, trial.ledger("protocol_faults"));
    assert_eq!(unasked, outcome(&trial, "unasked_answer"));
    assert!(unasked > 0);
}

/// Fault of the report: a warm-up that failed was ignored. This server is ready, and then answers nothing. The trial ends
/// with the warm-up. A window of a minute would show nothing more.
#[test]
#[measures]
fn a_warm_up_without_an_answer_ends_the_trial() {
    let phases = "--ramp 0.2 --warm-up 2 --measured 60 --grace 5";
    // It answers its first `GET /`, whoever asks.
    let ended = conclusive!(lying("dead", &format!("{phases} --test json")));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    assert_eq!(trial.verdict(), "fail");
    trial.expect_failed_by("warm_up_unanswered");
    assert_eq!(trial.ledger("frames_answered_in_all"), 0);
    // Seconds are whole: the third is the first that ends after the warm-up, 0.8 s into the window. On a busy machine the end
    // is later, and still far from that of the window.
    let due = trial.ledger("frames_due");
    assert!(due < 10 * RATE, "{due}");
    assert_eq!(trial.at("interrupted"), false);
    let bottleneck = trial.at("bottleneck").as_str().expect("text");
    let named = "no answer: no request of the warm-up was answered";
    assert!(bottleneck.starts_with(named), "{bottleneck}");
    assert!(
        ended.stdout.contains("warm_up_unanswered"),
        "{}",
        ended.stdout
    );
}

/// The same with a warm-up that is too short to tell, so the window is measured. The first requests time out; the others,
/// which are those of the window, never find a free connection.
#[test]
#[measures]
fn a_server_that_is_dead_fails() {
    let ended = conclusive!(lying("dead", TIMED_OUT));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    trial.expect_failed_by("error_rate");
    trial.expect_failed_by("shortfall");
    assert_eq!(trial.ledger("frames_answered"), 0);
    assert_eq!(trial.ledger("frames_lost"), DUE);
    let never = outcome(&trial, "never_written");
    assert!(never > DUE / 2, "{:#}", trial.at("http.outcomes"));
    assert!(count(&trial, "http.found_all_busy") >= never);
    assert!(ended.stdout.contains("never_written"), "{}", ended.stdout);
}

/// It ends 3 s after it was started, which is in the window. What waits for a connection from then on is lost.
#[test]
#[measures]
fn a_server_that_dies_fails() {
    let later = TIMED_OUT.replace("--warm-up 0.5", "--warm-up 1.5");
    let ended = conclusive!(lying("dies DIE_AFTER_S=3", &later));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    trial.expect_failed_by("shortfall");
    let answered = trial.ledger("frames_answered");
    assert!(answered < DUE, "{answered}");
    assert!(
        outcome(&trial, "never_written") > 0,
        "{:#}",
        trial.at("http")
    );
    assert!(count(&trial, "http.connections.failed") > 0);
    let reasons = trial.at("ledger.reasons").as_object().expect("by name");
    let died = "the target ended during the trial: exit status: 1";
    assert!(reasons.contains_key(died), "{reasons:?}");
    trial.expect_failed_by("target_died");
    assert_eq!(trial.at("bottleneck"), &format!("target died: {died}"));
    assert!(ended.stdout.contains("target_died"), "{}", ended.stdout);
}

/// Idle connections may be closed at any time. The client opens them again.
#[test]
#[measures]
fn a_server_that_closes_idle_connections_is_not_charged() {
    let ended = conclusive!(lying("close_early CLOSE_AFTER=10", PHASES));
    let trial = expect_flawless(&ended);
    let connections = |name: &str| count(&trial, &format!("http.connections.{name}"));
    // A connection ends with its tenth answer. What has less than ten of them is still open.
    let ended = connections("closed_idle") + connections("asked_again");
    let answers = trial.ledger("frames_answered_in_all");
    assert!(ended > 0 && ended <= answers / 10, "{ended} of {answers}");
    assert_eq!(connections("opened"), 100 + ended);
}

/// If a request meets the close, a GET is asked once more. A POST may have been done, so that would be wrong.
#[test]
#[measures]
fn what_meets_a_close_is_asked_again_if_it_may_be() {
    let url = closing_under_requests(10);
    let ended = conclusive!(at_url(&url, &format!("{PHASES} --connections 20")));
    let trial = expect_flawless(&ended);
    let again = count(&trial, "http.connections.asked_again");
    // Each connection has ten answers, and is met by one more request.
    let answers = trial.ledger("frames_answered_in_all");
    assert!(again > 0 && again <= answers / 10, "{again} of {answers}");
    assert_eq!(count(&trial, "http.connections.opened"), 20 + again);
    assert_eq!(trial.ledger("frames_sent"), DUE);

    // A path of the server's own: nobody says what it answers.
    let line = format!("{PHASES} --connections 20 --test post");
    let ended = conclusive!(at_url(&format!("{url}take"), &line));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    trial.expect_failed_by("error_rate");
    assert_eq!(count(&trial, "http.connections.asked_again"), 0);
    let met = outcome(&trial, "closed_before_answer");
    // One request in eleven; at the window's ends a connection is anywhere in its eleven.
    assert!(met.abs_diff(RATE * 2 / 11) <= 20, "{met}");
    assert_eq!(outcomes(&trial), met);
}
