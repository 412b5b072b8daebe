//! Workload `ws`, with the real command over real sockets: every test of it against a target of this project, and
//! against servers with the faults by which measurements of this kind went wrong. What needs no socket is in
//! `workload-ws/src/faults.rs`; a full port range is in `engine/tests/full_port_range.rs`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use crate::support::manifests::file;
use crate::support::records::{self, Trial};
use crate::support::ws_server::{Manner, Server};
use crate::support::{
    Ended, Plimsoll, ROOMY_SLO, conclusive, half_turn, root, shared_turn, short_phases,
    undisturbed_beside_another,
};
use plimsoll_testing::measures;
use serde_json::Value;

/// An echo target of this project, which is also the machine's own limit.
const TARGET: &str = "rust-epoll-echo";

/// `plimsoll VERB …` of this workload with short phases and roomy gates.
fn call(slo: &Path, line: &str) -> Plimsoll {
    let mut call = Plimsoll::measuring(line.split_whitespace());
    call = call.arg("--workload").arg("ws").arg("--slo").arg(slo);
    for argument in phases(line) {
        call = call.arg(argument);
    }
    call
}

/// Short phases; a storm has no ramp, and refuses one.
fn phases(line: &str) -> impl Iterator<Item = String> {
    let without = if line.contains("--test storm") { 2 } else { 0 };
    short_phases(3).into_iter().skip(without)
}

fn run(line: &str) -> Option<Ended> {
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
    undisturbed_beside_another(|| call(&slo, &format!("run {line}")))
}

/// Each attempt has its own server, because what a server does may depend on when it was started.
fn run_url(manner: Manner, line: &str) -> Option<Ended> {
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
    undisturbed_beside_another(|| {
        let server = Server::start(manner);
        call(&slo, &format!("run --url {} {line}", server.url))
    })
}

/// How many arrivals had this outcome.
fn outcome(trial: &Trial, name: &str) -> u64 {
    let outcomes = trial.at("ws.outcomes").as_array().expect("a list");
    let found = outcomes.iter().find(|outcome| outcome["name"] == name);
    found.map_or(0, |outcome| outcome["count"].as_u64().expect("a count"))
}

fn count(trial: &Trial, path: &str) -> u64 {
    let value = trial.at(path);
    value
        .as_u64()
        .unwrap_or_else(|| panic!("`{path}` is no count: {value}"))
}

/// The application was handed everything that was answered. What was written last may still have been on its way.
#[track_caller]
fn expect_processed(trial: &Trial) {
    let processed = count(trial, "ws.delivered.processed");
    let least = trial.ledger("frames_answered");
    let most = count(trial, "ws.delivered.written_in_all");
    assert!(
        (least..=most).contains(&processed),
        "{processed} of {least} to {most}"
    );
}

/// Brings the target up to date, as Plimsoll would do during the test.
fn build_target() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--locked"])
            .current_dir(root().join("targets/ws").join(TARGET))
            .env_remove("CARGO_TARGET_DIR")
            .status()
            .expect("cargo runs");
        assert!(built.success(), "{TARGET} does not build, see above");
    });
}

/// A trial of a target in which nothing went wrong.
fn honest(line: &str, test: &str, unit: &str) -> Option<Trial> {
    build_target();
    let ended = conclusive!(run(&format!("{TARGET} --test {test} {line}")));
    ended.expect_code(0);
    ended.expect_nothing_left_running();
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_every_frame_accounted_for();
    assert_eq!(trial.ledger("frames_answered"), trial.ledger("frames_due"));
    for name in records::FAULTS {
        assert_eq!(trial.ledger(name), 0, "{name}");
    }
    assert_eq!(trial.at("load_unit"), unit);
    assert_eq!(trial.at("ws.test"), test);
    assert_eq!(trial.at("ws.dialect"), "echo");
    assert_eq!(
        count(&trial, "ws.delivered.read"),
        trial.ledger("frames_answered")
    );
    assert!(!trial.caveats().contains(&"unprocessed"));
    Some(trial)
}

#[test]
#[measures]
fn ping_of_a_target_with_the_closed_loop_beside_it() {
    let trial = conclusive!(honest(
        "--sessions 40 --period-ms 100 --closed-loop",
        "ping",
        "connections",
    ));
    assert_eq!(trial.ledger("frames_due"), 40 * 10 * 3);
    expect_processed(&trial);
    // The closed loop ran afterwards, and is in no account but its own.
    assert_eq!(count(&trial, "ws.closed_loop.pings_answered"), 40 * 50);
    assert_eq!(count(&trial, "ws.closed_loop.pings_given_up"), 0);
}

#[test]
#[measures]
fn throughput_of_a_target_is_read_and_processed() {
    let line = "--sessions 2000 --connections 20";
    let trial = conclusive!(honest(line, "throughput", "messages_per_second"));
    assert_eq!(count(&trial, "ws.connections"), 20);
    assert_eq!(count(&trial, "ws.message_bytes"), 175);
    assert_eq!(count(&trial, "ws.delivered.offered"), 2_000 * 3);
    expect_processed(&trial);
}

#[test]
#[measures]
fn storm_of_a_target_is_an_arrival_rate() {
    let trial = conclusive!(honest("--sessions 100", "storm", "connections_per_second"));
    assert_eq!(trial.ledger("frames_due"), 100 * 3);
    assert!(
        trial
            .at("ws.outcomes")
            .as_array()
            .is_some_and(Vec::is_empty)
    );
    assert_eq!(trial.ledger("sessions_died"), 0);
}

#[test]
#[measures]
fn hold_and_limit_of_a_target_tell_the_memory_of_a_connection() {
    for test in ["hold", "limit"] {
        let trial = conclusive!(honest(
            "--sessions 100 --period-ms 250",
            test,
            "connections"
        ));
        assert_eq!(trial.ledger("frames_due"), 100 * 4 * 3);
        let rss = trial.at("target_resources.rss_bytes_per_session");
        assert!(rss.is_number(), "{rss}");
    }
}

#[test]
#[measures]
fn fanout_of_a_target_counts_every_delivery() {
    let trial = conclusive!(honest("--sessions 10 --rate 20", "fanout", "receivers"));
    assert_eq!(trial.ledger("frames_due"), 10 * 20 * 3);
}

#[test]
#[measures]
fn matrix_of_a_target_has_a_trial_for_each_size() {
    build_target();
    let ended = conclusive!(run(&format!(
        "{TARGET} --test matrix --sessions 200 --connections 10"
    )));
    for (number, bytes) in (1..).zip([64, 256, 1_024, 4_096, 16_384, 65_536]) {
        let trial = Trial(ended.json_of(&format!("trial-{number:03}.json")));
        assert_eq!(trial.at("ws.test"), "matrix");
        assert_eq!(count(&trial, "ws.message_bytes"), bytes);
        assert_eq!(count(&trial, "ws.delivered.offered"), 200 * 3);
        assert_eq!(trial.failed_gates(), Vec::<&str>::new(), "{bytes} bytes");
    }
    for words in ["65,536", "processed"] {
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
    }
    ended.text_of("summary.md");
}

/// Fault 1: what was written is taken for delivered. The closed loop reports thousands a second for a server that has
/// answered none.
#[test]
#[measures]
fn a_server_that_discards_has_delivered_nothing() {
    let ended = conclusive!(run_url(
        Manner::Discards,
        "--test throughput --sessions 200 --connections 10 --closed-loop",
    ));
    ended.expect_code(1);
    let trial = ended.trial();
    trial.expect_failed_by("frames_lost");
    trial.expect_every_frame_accounted_for();
    assert_eq!(count(&trial, "ws.delivered.offered"), 600);
    assert_eq!(count(&trial, "ws.delivered.written"), 600);
    assert_eq!(count(&trial, "ws.delivered.read"), 0);
    assert!(trial.number("ws.closed_loop.messages_per_second") > 1_000.0);
}

/// Fault 2: the server reads, but hands nothing to its application. What was read is still true, so this is reported,
/// and is no reason for `invalid`.
#[test]
#[measures]
fn a_server_whose_application_has_nothing_is_told_as_unprocessed() {
    let line = "--test throughput --dialect wse --sessions 400 --connections 20";
    let ended = conclusive!(run_url(Manner::WseWithoutApplication, line));
    ended.expect_code(0);
    let trial = ended.trial();
    assert_eq!(trial.ledger("frames_lost"), 0);
    assert_eq!(count(&trial, "ws.delivered.read"), 1_200);
    assert_eq!(count(&trial, "ws.delivered.processed"), 0);
    assert!(
        trial.caveats().contains(&"unprocessed"),
        "{:?}",
        trial.caveats()
    );

    let ended = conclusive!(run_url(Manner::Wse, line));
    ended.expect_code(0);
    let trial = ended.trial();
    expect_processed(&trial);
    let caveats = trial.caveats();
    assert!(!caveats.contains(&"unprocessed") && !caveats.contains(&"format-opaque"));
    assert_eq!(trial.at("ws.decode.proven"), true);
}

/// Fault 3: the formats compared are never decoded by the server. This one reads only JSON.
#[test]
#[measures]
fn formats_that_are_never_decoded_are_opaque() {
    let ended = conclusive!(run_url(
        Manner::Wse,
        "--test formats --dialect wse --sessions 400 --connections 20",
    ));
    for (number, format) in (1..).zip(["json", "msgpack", "zlib"]) {
        let trial = Trial(ended.json_of(&format!("trial-{number:03}.json")));
        assert_eq!(trial.at("ws.format"), format);
        assert_eq!(trial.failed_gates(), Vec::<&str>::new(), "{format}");
        let decoded = format == "json";
        assert_eq!(trial.at("ws.decode.proven"), decoded, "{format}");
        assert_eq!(count(&trial, "ws.decode.asked"), 20);
        assert_eq!(
            trial.caveats().contains(&"format-opaque"),
            !decoded,
            "{format}"
        );
    }
    assert!(ended.stdout.contains("opaque"), "{}", ended.stdout);
}

/// Fault 4: the next ping waits for the last answer. A server stands still for a second: every ping that was due then
/// has waited, and the closed loop has hardly sent any.
#[test]
#[measures]
fn a_server_that_stands_still_is_asked_all_the_same() {
    let ended = conclusive!(run_url(
        Manner::StandsStill,
        "--test ping --sessions 20 --period-ms 100 --closed-loop",
    ));
    ended.expect_code(1);
    let trial = ended.trial();
    assert_eq!(trial.failed_gates(), ["newest_p95_ms"]);
    assert_eq!(trial.ledger("frames_lost"), 0);
    // A third of the window's pings come while the server stands still, and wait for the rest of the second. The
    // window's 95th percentile is 850 ms if the server stands still for a second. However much longer a busy machine
    // makes it stand, that percentile is at most the longest wait.
    let longest_ms = trial.number("latency.newest.from_schedule.max_ms");
    assert!(longest_ms >= 950.0, "{longest_ms}");
    let open_ms = trial.number("latency.newest.from_schedule.p95_ms");
    assert!((700.0..longest_ms).contains(&open_ms), "{open_ms}");
    let closed_ms = trial.number("ws.closed_loop.p95_ms");
    assert!(closed_ms < open_ms / 5.0, "{closed_ms} against {open_ms}");
}

#[test]
#[measures]
fn a_late_server_fails_by_its_latency_and_nothing_else() {
    let ended = conclusive!(run_url(
        Manner::Late(Duration::from_millis(300)),
        "--test ping --sessions 20 --period-ms 100",
    ));
    ended.expect_code(1);
    let trial = ended.trial();
    assert_eq!(trial.failed_gates(), ["newest_p50_ms", "newest_p95_ms"]);
    let p50_ms = trial.number("latency.newest.from_schedule.p50_ms");
    assert!((300.0..500.0).contains(&p50_ms), "{p50_ms}");
    // There are no metrics, so what was processed is not known, and not made up.
    assert!(trial.at("ws.delivered.processed").is_null());
}

/// Faults 6 and 9: arrivals come by the clock, so a server that accepts ten a second while thirty arrive falls further
/// and further behind.
#[test]
#[measures]
fn a_server_that_accepts_slowly_is_seen_to() {
    let ended = conclusive!(run_url(
        Manner::AcceptsOneIn(Duration::from_millis(100)),
        "--test storm --sessions 30",
    ));
    ended.expect_code(1);
    let trial = ended.trial();
    trial.expect_failed_by("newest_p50_ms");
    trial.expect_every_frame_accounted_for();
    assert_eq!(trial.ledger("frames_due"), 30 * 3);
    let lost = trial.ledger("frames_lost");
    assert!(lost > 0 && outcome(&trial, "timeout") >= lost);
    assert!(trial.number("latency.newest.from_schedule.p50_ms") > 1_000.0);
}

/// Fault 7: failures are only counted. Here each has its own name.
#[test]
#[measures]
fn every_arrival_that_fails_is_classified() {
    let ended = conclusive!(run_url(
        Manner::RefusesByTurns,
        "--test storm --sessions 60"
    ));
    ended.expect_code(1);
    let trial = ended.trial();
    trial.expect_failed_by("sessions_failed");
    trial.expect_every_frame_accounted_for();
    // A third each of all arrivals. The clock alone decides their number: 60 a second over 1 s of warm-up and 3 s of
    // window.
    let arrivals = trial.ledger("sessions_started") + trial.ledger("sessions_failed");
    assert!((238..=242).contains(&arrivals), "{arrivals}");
    for name in ["http_status 503", "closed_before_http"] {
        let count = outcome(&trial, name);
        assert!(
            count.abs_diff(arrivals / 3) <= 1,
            "{name}: {count} of {arrivals}"
        );
    }
    assert_eq!(trial.ledger("frames_lost"), 0);

    let ended = conclusive!(run_url(
        Manner::WseRefusesByTurns,
        "--test storm --dialect wse --sessions 60",
    ));
    ended.expect_code(1);
    let trial = ended.trial();
    trial.expect_every_frame_accounted_for();
    for name in ["auth_4401", "no_server_ready"] {
        assert!(outcome(&trial, name) >= 50, "{name}: {:#}", trial.at("ws"));
    }
}

#[test]
#[measures]
fn a_hub_that_skips_receivers_has_lost_deliveries() {
    let line = "--test fanout --sessions 10 --rate 20";
    let ended = conclusive!(run_url(Manner::HubThatSkips, line));
    ended.expect_code(1);
    let trial = ended.trial();
    assert_eq!(trial.failed_gates(), ["frames_lost"]);
    // Five receivers miss six of the 60 messages of the window.
    assert_eq!(trial.ledger("frames_lost"), 5 * 6);
    conclusive!(run_url(Manner::Hub, line)).expect_code(0);
}

#[test]
#[measures]
fn connections_come_from_the_addresses_that_were_asked_for() {
    let server = Server::start(Manner::Echo);
    let ended = conclusive!(run(&format!(
        "--url {} --test ping --sessions 20 --period-ms 100 --source-addresses 127.0.0.2,127.0.0.3",
        server.url
    )));
    ended.expect_code(0);
    let expected: BTreeSet<IpAddr> = ["127.0.0.2", "127.0.0.3"]
        .map(|text| text.parse::<IpAddr>().expect("an address"))
        .into();
    assert_eq!(server.peers(), expected);
}

/// Fault 7 again: if descriptors run out, the machine is the limit. A storm that not even several client processes have
/// descriptors for is refused before it begins. A rate of messages needs no more connections than it has. And the test
/// that looks for the end says what ended it: not the client, which takes as many processes as it needs, but the one
/// process of the target.
#[test]
#[measures]
fn descriptors_that_run_out_are_the_machines() {
    build_target();
    let _turn = half_turn();
    let server = Server::start(Manner::Echo);
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
    let limited = |line: &str| {
        let phases: Vec<String> = phases(line).collect();
        let line = format!("run --workload ws --slo {} {line}", slo.display());
        let words = line.split_whitespace();
        let words: Vec<&str> = words.chain(phases.iter().map(String::as_str)).collect();
        Plimsoll::after("ulimit -n 300", &words)
            .keeping_results()
            .run()
    };
    let url = &server.url;
    let refused = limited(&format!("--url {url} --test storm --sessions 3000"));
    refused.expect_code(2);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("open files"), "{}", refused.stderr);

    let rate = "--test throughput --sessions 400 --connections 20";
    let rate = limited(&format!("--url {url} {rate}"));
    assert_eq!(rate.trial().failed_gates(), Vec::<&str>::new());

    let end = limited(&format!(
        "{TARGET} --test limit --sessions 500 --period-ms 200"
    ));
    end.expect_code(3);
    let trial = end.trial();
    assert_eq!(trial.at("client.processes"), 12);
    let caveats = trial.at("caveats").as_array().expect("a list");
    let bound = caveats
        .iter()
        .find(|caveat| caveat["id"] == "machine-bound");
    let bound = bound.unwrap_or_else(|| panic!("{caveats:#?}"));
    let text = bound["text"].as_str().expect("a text");
    assert!(text.contains("open files of the target"), "{text}");
    assert!((1..500).contains(&trial.ledger("sessions_started")));
}

#[test]
#[measures]
fn a_search_of_a_rate_says_at_least() {
    let _turn = shared_turn();
    let server = Server::start(Manner::Echo);
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
    let line = format!(
        "find --url {} --test throughput --connections 10 --start 200 --max 300 --repeats 1",
        server.url
    );
    let ended = call(&slo, &line).run();
    let bracket: Value = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    assert_eq!(bracket["load_unit"], "messages_per_second");
    assert_eq!(bracket["lower_bound_only"], true);
    assert!(bracket["first_fail"].is_null());
    assert!(
        ended.stdout.contains("messages per second"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stderr.contains("trial 1: 200 messages per second"),
        "{}",
        ended.stderr
    );
}

/// The one line that a refused call prints, before anything is created.
#[track_caller]
fn refused(line: &str, names: &[&str]) {
    let ended = Plimsoll::measuring(line.split_whitespace()).run();
    ended.expect_code(2);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for name in names {
        assert!(ended.stderr.contains(name), "no {name:?}: {}", ended.stderr);
    }
    let left = std::fs::read_dir(ended.scratch()).expect("the scratch folder");
    assert_eq!(left.count(), 0);
}

#[test]
#[measures]
fn what_makes_no_sense_is_refused_with_what_does() {
    let _turn = shared_turn();
    let ws = format!("run {TARGET} --workload ws --sessions 5");
    refused(&format!("{ws} --test nonsense"), &["nonsense", "storm"]);
    refused(&format!("{ws} --rate 5"), &["--rate", "fanout"]);
    refused(
        &format!("{ws} --dialect wse"),
        &["--dialect wse", "target.toml"],
    );
    refused(
        "run rust-axum --sessions 5 --test storm",
        &["--test", "--workload ws"],
    );
    refused(
        &format!("find {TARGET} --workload ws --test matrix"),
        &["--test throughput --message-bytes N"],
    );
    refused(
        &format!("compare {TARGET} {TARGET} --workload ws --test formats"),
        &["--test throughput --format F"],
    );
    refused(
        &format!("find {TARGET} wse-server --workload ws"),
        &["wse-server speaks wse", "by itself"],
    );
}
