//! What a trial of a good server shows, and what a call of the command shows of it.

use std::cell::Cell;

use serde_json::Value;

use super::{
    DUE, PHASES, RATE, at_url, call, count, expect_flawless, expect_sound, lying, with_fault,
};
use crate::support::built;
use crate::support::http_server::Lying;
use crate::support::manifests::file;
use crate::support::records::{self, Trial};
use crate::support::{
    Plimsoll, conclusive, shared_turn, turn_of_search, undisturbed_beside_another,
};
use plimsoll_testing::measures;

#[test]
#[measures]
fn an_honest_server_passes_each_test() {
    for test in ["rate --body-bytes 4096", "post", "json --headers browser"] {
        let ended = conclusive!(lying("none", &format!("{PHASES} --test {test}")));
        let trial = expect_flawless(&ended);
        assert_eq!(trial.ledger("frames_due"), DUE, "{test}");
        assert!(trial.ledger("content_checked") >= DUE, "{test}");
        assert!(!trial.caveats().contains(&"content-unchecked"), "{test}");
        assert_eq!(trial.number("http.offered_per_s") as u64, RATE, "{test}");
        assert_eq!(count(&trial, "http.connections.opened"), 100, "{test}");
        expect_start_and_memory(&trial);
        assert!(ended.stdout.contains("ready after"));
        assert!(ended.stdout.contains("after the last close: RSS"));
    }
}

/// How long the server took to start, and what memory it had at each moment.
#[track_caller]
fn expect_start_and_memory(trial: &Trial) {
    let start_ms = trial.number("start_ms");
    assert!(start_ms > 0.0 && start_ms < 60_000.0, "{start_ms}");
    let peak_bytes = trial.number("target_resources.rss_peak_bytes");
    for moment in ["idle", "loaded", "after"] {
        let at = |what: &str| trial.number(&format!("target_resources.memory.{moment}.{what}"));
        let (rss, pss) = (at("rss_bytes"), at("pss_bytes"));
        assert!(0.0 < pss && pss <= rss * 1.1, "{moment}: {pss} of {rss}");
        assert!(moment == "after" || rss <= peak_bytes, "{moment}: {rss}");
    }
}

/// Fault of the report: some connections were warmed up, and others were measured. Here the server says how many it
/// accepted. Beside the client's there are those with which the command looks at the server's counters, one for each
/// request, and some on which it asks nothing. Of these there are as many for 10 connections as for 60, and for a
/// connection per request.
#[test]
#[measures]
fn the_server_accepts_as_many_connections_as_the_client_opens() {
    let server = Lying::honest();
    let counters = || {
        let names = ["http_connections_accepted_total", "http_requests_total"];
        names.map(|name| server.metric(name))
    };
    let mut silent = Vec::new();
    for (line, connections) in [
        ("--connections 10", Some(10)),
        ("--connections 60", Some(60)),
        ("--test connect --connections 60", None),
    ] {
        let before = Cell::new([0; 2]);
        let ended = conclusive!(undisturbed_beside_another(|| {
            before.set(counters());
            let url = server.url();
            call(&format!(
                "run --url {url} --sessions {RATE} {PHASES} {line}"
            ))
        }));
        let [accepted, requests] = counters();
        let [accepted_before, requests_before] = before.get();
        let trial = expect_flawless(&ended);
        let opened = count(&trial, "http.connections.opened");
        let sent = trial.ledger("frames_sent_in_all");
        assert_eq!(opened, connections.unwrap_or(sent), "{line}");
        assert_eq!(count(&trial, "http.connections.failed"), 0, "{line}");
        // The server closes each connection of its own accord, as it was asked to.
        assert_eq!(count(&trial, "http.connections.left_open"), 0, "{line}");
        let looks = requests - requests_before - sent;
        silent.push(accepted - accepted_before - opened - looks);
    }
    assert!(silent.iter().all(|count| *count == silent[0]), "{silent:?}");
    assert!(silent[0] < 5, "{silent:?}");
}

#[test]
#[measures]
fn http_2_is_answered_as_http_1_is() {
    built("http/rust-epoll-http");
    // The bodies are longer than the window of 64 KiB - 1 that a connection of HTTP/2 begins with, and all of its
    // streams share it.
    for (test, rate) in [
        ("rate", 500),
        ("json", 500),
        ("post --body-bytes 100000", 100),
    ] {
        let line = format!(
            "run rust-epoll-http --sessions {rate} {PHASES} --protocol h2c --connections 4 --streams 5 --test {test}"
        );
        let ended = conclusive!(undisturbed_beside_another(|| call(&line)));
        let trial = expect_flawless(&ended);
        assert_eq!(trial.ledger("frames_due"), rate * 2, "{test}");
        assert!(trial.ledger("content_checked") >= rate * 2, "{test}");
        assert_eq!(count(&trial, "http.connections.opened"), 4, "{test}");
    }
}

/// What wrk would say stands beside the result, and is in no account of it. The same server is too slow for the load,
/// which a closed loop can't show.
#[test]
#[measures]
fn a_closed_loop_decides_nothing() {
    let line = format!("{PHASES} --connections 10 --closed-loop");
    let ended = conclusive!(lying("none", &line));
    let trial = expect_flawless(&ended);
    assert_eq!(trial.ledger("frames_due"), DUE);
    assert!(trial.number("http.closed_loop.completed_per_s") > 2.0 * RATE as f64);
    assert!(trial.number("http.closed_loop.p50_ms") > 0.0);
    assert!(
        ended.text_of("summary.md").contains("losed loop"),
        "{}",
        ended.text_of("summary.md")
    );

    // 10 connections with an answer in 50 ms carry 200 requests a second.
    let ended = conclusive!(lying("delay DELAY_US=50000", &line));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    assert_eq!(trial.verdict(), "fail");
    let open_ms = trial.number("latency.newest.from_schedule.p50_ms");
    let closed_ms = trial.number("http.closed_loop.p50_ms");
    assert!(
        (50.0..open_ms / 4.0).contains(&closed_ms),
        "{closed_ms} against {open_ms}"
    );
}

#[test]
#[measures]
fn the_content_of_any_server_is_checked_if_it_is_said() {
    let server = Lying::honest();
    let files = tempfile::tempdir().expect("a scratch folder");
    let right = file(files.path(), "right", "ok");
    let wrong = file(files.path(), "wrong", "no");
    let url = server.url();
    let checked = |line: &str| at_url(&url, &format!("{PHASES} {line}"));

    let ended = conclusive!(checked(""));
    let trial = expect_flawless(&ended);
    assert!(trial.caveats().contains(&"content-unchecked"));
    assert_eq!(trial.ledger("content_checked"), 0);

    let ended = conclusive!(checked(&format!("--expect-body {}", right.display())));
    let trial = expect_flawless(&ended);
    assert!(!trial.caveats().contains(&"content-unchecked"));
    assert!(trial.ledger("content_checked") >= DUE);

    let ended = conclusive!(checked(&format!("--expect-body {}", wrong.display())));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    trial.expect_failed_by("content_wrong");
    assert_eq!(super::outcome(&trial, "wrong_body"), DUE);
}

/// Each answer takes 15 ms: more than `http-strict` allows, and less than `http-tolerant` does.
#[test]
#[measures]
fn both_slos_come_from_one_set_of_trials() {
    built("http/lying-http");
    let phases = "--workload http --ramp 0.2 --warm-up 0.5 --measured 2 --grace 1";
    let late = |line: &str| {
        let line = format!("{line} {phases}");
        with_fault(Plimsoll::measuring(line.split(' ')), "delay DELAY_US=15000")
    };
    let run = || late("run lying-http --sessions 600");
    if let Some(ended) = undisturbed_beside_another(run) {
        ended.expect_code(1);
        let trial = expect_sound(&ended);
        assert_eq!(trial.at("slo"), "http-strict");
        assert_eq!(trial.failed_gates(), ["newest_p99_ms"]);
        let tolerant = &trial.at("further_slos")[0];
        assert_eq!(tolerant["slo"], "http-tolerant");
        assert_eq!(tolerant["verdict"], "pass");
        for slo in ["http-strict", "http-tolerant"] {
            assert!(ended.stdout.contains(slo), "{}", ended.stdout);
        }
    }

    let find = "find lying-http --start 600 --max 600 --repeats 1 --time-budget 0.2";
    let _turn = turn_of_search();
    let ended = late(find).run();
    let bracket = ended.json_of("bracket.json");
    let tolerant = ended.json_of("bracket-http-tolerant.json");
    for bracket in [&bracket, &tolerant] {
        records::expect_valid(bracket, "bracket.json");
        assert_eq!(bracket["load_unit"], "requests_per_second");
    }
    let files = |bracket: &Value| {
        let trials = bracket["trials"].as_array().expect("a list");
        trials.iter().map(|t| t["file"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(files(&bracket), files(&tolerant), "one set of trials");
    assert!(bracket["confirmed"].is_null(), "{bracket:#}");
    assert!(tolerant["first_fail"].is_null(), "{tolerant:#}");
    assert_eq!(tolerant["confirmed"], 600, "{tolerant:#}");
    assert_eq!(tolerant["lower_bound_only"], true);
}

#[test]
#[measures]
fn a_matrix_has_a_trial_for_each_size() {
    built("http/lying-http");
    let _turn = shared_turn();
    let line = "run lying-http --sessions 100 --test sizes --connections 10 --ramp 0.1 --warm-up 0.2 --measured 1 --grace 1";
    let ended = call(line).run();
    for (number, bytes) in (1..).zip([2, 64, 1_024, 16_384, 65_536, 1_048_576]) {
        let trial = Trial(ended.json_of(&format!("trial-{number:03}.json")));
        assert_eq!(count(&trial, "parameters.body_bytes"), bytes);
        assert_eq!(trial.ledger("frames_due"), 100);
    }
}
