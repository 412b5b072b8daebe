//! Workload `broker`, with the real command over real sockets. The broker is `targets/broker/lying-broker`, which is
//! honest unless `FAULT` names a fault. What needs no socket is in the tests of `workload-broker`.

mod crash;

use std::sync::OnceLock;

use crate::support::burners::expect_starved_client;
use crate::support::conclusive;
use crate::support::manifests::slo_file;
use crate::support::records::{self, Trial};
use crate::support::{
    Ended, Plimsoll, built, turn, turn_of_search, undisturbed, undisturbed_beside_another,
};
use plimsoll_testing::measures;

/// Latencies that a machine under test load can hold, and what no broker may do.
const GATES: &str = "[gates]
newest_p50_ms = 150
newest_p95_ms = 500
confirm_p95_ms = 500
error_rate = 0
frames_lost = 0
frames_duplicated = 0
frames_out_of_order = 0
";

/// The window begins 1 s after the trial, so message 1,000 of a rate of 1,000 is the last of the warm-up.
const PHASES: &str = "--ramp 0.4 --warm-up 0.6 --measured 3 --grace 2";
/// Messages per second, so few that trials side by side do not disturb one another.
const RATE: u64 = 1_000;
/// The messages of the window at that rate.
const DUE: u64 = RATE * 3;

/// A file with [`GATES`].
fn gates() -> &'static str {
    static WRITTEN: OnceLock<String> = OnceLock::new();
    WRITTEN.get_or_init(|| slo_file("roomy-broker", GATES))
}

/// A trial of the lying broker with this fault, `NAME VARIABLE=VALUE …`, at the usual load.
fn lying(fault: &str, line: &str) -> Option<Ended> {
    lying_at(RATE, fault, line)
}

/// The same at another load.
fn lying_at(rate: u64, fault: &str, line: &str) -> Option<Ended> {
    built("broker/lying-broker");
    undisturbed_beside_another(|| {
        // A closed loop has the SLO of its own: the latencies of what waits for its reader mean nothing.
        let is_closed = ["--test drain", "--test burst"]
            .iter()
            .any(|test| line.starts_with(test));
        let slo = if is_closed {
            String::new()
        } else {
            format!("--slo {}", gates())
        };
        let line = format!(
            "run lying-broker --workload broker --level ephemeral {slo} --sessions {rate} {PHASES} {line}"
        );
        Plimsoll::measuring(line.split_whitespace()).lying("FAULT", fault)
    })
}

/// What became of the messages.
fn count(trial: &Trial, path: &str) -> u64 {
    let value = trial.at(&format!("broker.messages.{path}"));
    value
        .as_u64()
        .unwrap_or_else(|| panic!("`{path}` is no count: {value}"))
}

/// The trial's record is complete, and so is its account.
#[track_caller]
fn expect_sound(ended: &Ended) -> Trial {
    let trial = ended.sound_trial();
    assert_eq!(count(&trial, "offered"), DUE, "none is skipped");
    trial
}

#[test]
#[measures]
fn an_honest_broker_passes() {
    let ended = conclusive!(lying("none", ""));
    ended.expect_code(0);
    let trial = expect_sound(&ended);
    assert_eq!(trial.verdict(), "pass");
    assert_eq!(trial.at("load_unit"), "messages_per_second");
    for path in ["published", "confirmed"] {
        assert_eq!(count(&trial, path), DUE, "{path}");
    }
    for path in ["missing", "lost", "duplicated", "reordered", "never_due"] {
        assert_eq!(count(&trial, &format!("delivery.{path}")), 0, "{path}");
    }
    assert_eq!(trial.at("broker.judged.word"), "clean");
    assert_eq!(trial.at("broker.guarantee.confirm"), "cache");
    assert!(trial.number("latency.confirm.from_schedule.p50_ms") > 0.0);
    assert!(
        trial.number("broker.compared") > 0.0,
        "some are compared whole"
    );
    assert!(
        ended.stdout.contains("ephemeral: at least once"),
        "{}",
        ended.stdout
    );
}

#[test]
#[measures]
fn every_reader_of_a_stream_gets_every_message() {
    let ended = conclusive!(lying("none", "--test fanout --readers 3"));
    ended.expect_code(0);
    let trial = expect_sound(&ended);
    assert_eq!(trial.ledger("frames_due"), 3 * DUE);
    assert_eq!(trial.ledger("frames_answered"), 3 * DUE);
}

#[test]
#[measures]
fn a_writer_needs_no_readers() {
    let ended = conclusive!(lying("none", "--test publish --confirm 64"));
    ended.expect_code(0);
    let trial = expect_sound(&ended);
    assert_eq!(trial.ledger("frames_answered"), DUE);
    assert!(trial.at("broker.messages.delivery").is_null());
}

/// Fault of other benchmarks: loss by a difference of counts.
#[test]
#[measures]
fn seven_dropped_doubled_or_swapped_messages_are_seven() {
    for (fault, path, gate) in [
        ("drop", "delivery.lost", "frames_lost"),
        ("double", "delivery.duplicated", "frames_duplicated"),
        ("swap", "delivery.reordered", "frames_out_of_order"),
    ] {
        // From message 1,500 on, so all of them are measured.
        let fault_of = format!("{fault} AFTER=1500 EVERY=100 COUNT=7");
        let ended = conclusive!(lying(&fault_of, ""));
        ended.expect_code(1);
        let trial = expect_sound(&ended);
        assert_eq!(count(&trial, path), 7, "{fault}");
        assert_eq!(trial.failed_gates(), [gate], "{fault}");
    }
}

/// Fault of other benchmarks: after a stall, the schedule begins anew.
#[test]
#[measures]
fn a_stall_of_half_a_second_is_in_the_tail() {
    let ended = conclusive!(lying("stall STOP_MS=500 EVERY_MS=2000", ""));
    let trial = expect_sound(&ended);
    let p999_ms = trial.number("latency.newest.from_schedule.p999_ms");
    assert!(p999_ms >= 400.0, "{p999_ms}");
    assert_eq!(count(&trial, "published"), DUE, "as planned");
}

/// Fault of other benchmarks: a full window is in no latency.
#[test]
#[measures]
fn a_confirm_that_is_late_holds_the_window_and_is_seen() {
    // Each writer is due eight times a second and gets five answers.
    let ended = conclusive!(lying_at(16, "late_confirm DELAY_MS=200", "--confirm 1"));
    ended.expect_code(1);
    let trial = ended.trial();
    let waited = trial.at("broker.waits.window_messages");
    assert!(waited.as_u64() > Some(0), "{waited}");
    assert!(trial.number("latency.confirm.from_schedule.p50_ms") >= 200.0);
    assert_eq!(trial.at("broker.judged.word"), "broker_missed_target");
}

/// Fault of other benchmarks: streams without "missing".
#[test]
#[measures]
fn a_thinned_reader_is_counted_exactly() {
    let ended = conclusive!(lying(
        "thin READER=3 SHARE_PERCENT=50",
        "--test fanout --readers 4"
    ));
    ended.expect_code(1);
    let trial = expect_sound(&ended);
    let missing = count(&trial, "delivery.missing");
    assert_eq!(missing, count(&trial, "delivery.lost"));
    assert_eq!(missing, trial.ledger("frames_lost"));
    assert!(missing.abs_diff(DUE / 2) <= DUE / 50, "{missing}");
    let readers = trial.at("broker.messages.delivery.readers");
    let thinned = readers.as_array().expect("a list").iter();
    let thinned = thinned.filter(|reader| reader["missing"] != 0);
    assert_eq!(thinned.count(), 1, "{readers}");
}

/// Fault of other benchmarks: what was drained counts as received.
#[test]
#[measures]
fn a_broker_that_delivers_four_fifths_has_a_backlog() {
    let ended = conclusive!(lying("slow SHARE_PERCENT=80", ""));
    let trial = expect_sound(&ended);
    let grows = trial.number("broker.backlog_slope.per_s") / 1_000.0;
    assert!((grows - 0.2).abs() < 0.03, "{grows}");
    let arrived = count(&trial, "delivery.arrived_in_window");
    assert!(arrived.abs_diff(DUE * 4 / 5) < DUE / 20, "{arrived}");
}

/// Fault of other benchmarks: the pacer was the limit.
#[test]
#[measures]
fn a_sink_gets_exactly_what_is_offered() {
    let ended = conclusive!(lying("sink", "--test publish"));
    let trial = expect_sound(&ended);
    assert_eq!(count(&trial, "published"), DUE);
}

/// Fault of other benchmarks: the client's saturation is read as the broker's.
#[test]
#[ignore = "long; make test-all runs it"]
#[measures]
fn a_starved_client_is_invalid() {
    built("broker/lying-broker");
    let line = "run lying-broker --workload broker --level ephemeral --sessions 8000 --client-cpus 0 --target-cpus 1 --ramp 0.2 --warm-up 0.5 --measured 4.6 --grace 1";
    conclusive!(expect_starved_client(|| Plimsoll::measuring(
        line.split_whitespace()
    )
    .env("FAULT", "none")));
}

/// Tests without a clock: the counts are all that can be wrong, and the record says how fast it was.
#[test]
#[measures]
fn a_closed_loop_shows_how_fast_the_broker_is() {
    let drain = "--test drain --preload 5000 --confirm 500";
    let ended = conclusive!(lying_at(3, "none", drain));
    ended.expect_code(0);
    let trial = closed_loop(&ended);
    assert_eq!(count(&trial, "offered"), 5_000);
    assert_eq!(trial.number("broker.closed_loop.preloaded"), 5_000.0);
    let (took_s, per_s) = (
        trial.number("broker.closed_loop.drain_s"),
        trial.number("broker.closed_loop.drained_per_s"),
    );
    assert!(took_s > 0.0 && took_s < 3.0, "{took_s}");
    assert!((took_s * per_s - 5_000.0).abs() < 1.0, "{per_s}");
    assert!(
        ended.stdout.contains("read, messages per second"),
        "{}",
        ended.stdout
    );

    let ended = conclusive!(lying_at(2, "none", "--test burst --confirm 50"));
    let trial = closed_loop(&ended);
    let published = count(&trial, "published");
    assert!(published > 1_000, "{published}");
    let peak = trial.number("broker.closed_loop.published_peak_per_s");
    assert!(peak >= trial.number("broker.published_per_s"), "{peak}");
}

/// A trial of a closed loop: everything that was published arrived.
fn closed_loop(ended: &Ended) -> Trial {
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_every_frame_accounted_for();
    assert_eq!(trial.verdict(), "pass");
    assert_eq!(trial.at("load_unit"), "receivers");
    assert_eq!(trial.at("broker.judged.word"), "clean");
    assert_eq!(count(&trial, "published"), count(&trial, "offered"));
    assert_eq!(count(&trial, "confirmed"), count(&trial, "offered"));
    assert_eq!(trial.ledger("frames_answered"), count(&trial, "offered"));
    ended.expect_nothing_left_running();
    trial
}

/// A broker that loses a message fails a closed loop as well; and readers that begin too early measure nothing.
#[test]
#[measures]
fn a_drain_counts_what_is_lost_and_needs_its_preload() {
    let drain = "--test drain --preload 5000";
    let ended = conclusive!(lying_at(2, "drop AFTER=1500 EVERY=100 COUNT=7", drain));
    ended.expect_code(1);
    let trial = ended.trial();
    assert_eq!(count(&trial, "delivery.lost"), 7);
    assert_eq!(trial.failed_gates(), ["frames_lost"]);
    // A window of one, and 100 ms for each message.
    let slow = "late_confirm DELAY_MS=100";
    let ended = conclusive!(lying_at(2, slow, "--test drain --preload 40 --confirm 1"));
    ended.expect_code(3);
    let trial = ended.trial();
    let caveats = trial.at("caveats").to_string();
    assert!(caveats.contains("preload-late"), "{caveats}");
}

#[test]
#[measures]
fn a_closed_loop_has_no_load_line() {
    for test in ["drain", "burst"] {
        let line = format!("find lying-broker --workload broker --level ephemeral --test {test}");
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        let told = format!("--test {test} is a closed loop");
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    }
}

/// Each load of a set three times, and one row for each of them.
#[test]
#[measures]
fn a_set_is_told_with_median_and_range() {
    built("broker/lying-broker");
    let slo = gates();
    let _turn = turn_of_search();
    let line = format!(
        "run lying-broker --workload broker --level ephemeral --slo {slo} --set smoke --ramp 0.4 --warm-up 0.6 --measured 2 --grace 1"
    );
    let ended = Plimsoll::measuring(line.split_whitespace())
        .env("FAULT", "none")
        .run();
    let told = &ended.stdout;
    assert!(
        told.contains("Test steady of lying-broker, ephemeral: median and range"),
        "{told}"
    );
    // One row for three trials: each of its figures has a range.
    let rows: Vec<&str> = told.lines().filter(|line| line.contains('–')).collect();
    assert_eq!(rows.len(), 1, "{told}");
    assert!(rows[0].contains("1,000"), "{told}");
}

/// At level `async` Fibril has a message in the page cache when it confirms it, NATS in memory.
#[test]
#[measures]
fn targets_with_unlike_guarantees_are_not_compared() {
    for command in ["compare", "find"] {
        let line = format!("{command} fibril nats --workload broker --level async");
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        let told = "fibril and nats: unlike guarantees (confirm cache, confirm memory)";
        assert!(ended.stderr.contains(told), "{line}: {}", ended.stderr);
    }
}

#[test]
#[measures]
fn bad_input_is_one_line_with_the_remedy() {
    for (line, told) in [
        ("--level speculative", "it has ephemeral, durable, memory"),
        ("--confirm 0", "--confirm"),
        ("--message-bytes 39", "--message-bytes"),
        ("--burst-on-ms 5", "give both"),
        ("--dialect nats", "--dialect"),
        ("--preload 5", "--preload"),
        ("--test burst --poisson", "--poisson"),
        ("--set backlog", "--load-line"),
    ] {
        let line = format!("run lying-broker --workload broker --sessions 10 {line}");
        let ended = Plimsoll::plain(line.split_whitespace()).run();
        ended.expect_code(2);
        assert!(ended.stderr.contains(told), "{line}: {}", ended.stderr);
    }
}
