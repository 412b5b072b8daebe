//! A client of several processes, with the real command: more connections than one process has descriptors for, for
//! every workload, and what happens to a trial if one of the processes ends, or if all are asked to end.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::invocation::Running;
use crate::support::manifests::file;
use crate::support::records::Trial;
use crate::support::ws_server::{Manner, Server};
use crate::support::{Ended, Plimsoll, conclusive, records, shared_turn, undisturbed_beside_few};
use plimsoll_testing::measures;

/// Latencies that a machine under test load can hold.
const SLO: &str = "[gates]
newest_p50_ms = 100
newest_p95_ms = 500
error_rate = 0.00001
frames_lost = 0
sessions_failed = 0
sessions_died = 0
";

/// Descriptors per process: 44 connections, plus the 256 reserved for other things.
const FILES: u32 = 300;

/// 600 connections at 44 each.
const CONNECTIONS: u64 = 600;
const PROCESSES: u64 = 14;

/// A call of this load with few descriptors.
fn call_of(server: &Server, slo: &std::path::Path, load: &str) -> Plimsoll {
    let line = format!(
        "run --url {} {load} --warm-up 1.5 --measured 3 --grace 2 --slo {}",
        server.url,
        slo.display()
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    Plimsoll::after(&format!("ulimit -n {FILES}"), &words).keeping_results()
}

/// A call of this test of workload `ws`, with that many connections.
fn call(server: &Server, slo: &std::path::Path, test: &str) -> Plimsoll {
    let load =
        format!("--workload ws --test {test} --sessions {CONNECTIONS} --period-ms 1000 --ramp 2");
    call_of(server, slo, &load)
}

/// Runs `each` against a server that has enough descriptors.
fn against<T>(manner: Manner, each: impl Fn(&Server, &std::path::Path) -> T) -> T {
    // The server is in this process and needs two descriptors for each connection.
    plimsoll_host::machine::raise_fd_limit();
    let server = Server::start(manner);
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", SLO);
    each(&server, &slo)
}

/// The same with calls of tests of workload `ws`.
fn with_server<T>(each: impl Fn(&dyn Fn(&str) -> Plimsoll) -> T) -> T {
    against(Manner::Echo, |server, slo| {
        each(&|test| call(server, slo, test))
    })
}

/// A trial of this load, with its accounts closed. It took more than one process.
fn shared(manner: Manner, load: &str) -> Option<Trial> {
    let ended = against(manner, |server, slo| {
        undisturbed_beside_few(|| call_of(server, slo, load).run())
    })?;
    ended.expect_code(0);
    ended.expect_nothing_left_running();
    let trial = ended.trial();
    records::expect_valid(&trial.0, "trial.json");
    trial.expect_every_frame_accounted_for();
    assert_eq!(
        trial.ledger("frames_answered"),
        trial.ledger("frames_due"),
        "{load}"
    );
    assert!(trial.number("client.processes") > 1.0, "{load}");
    Some(trial)
}

/// Waits until the trial runs with all of its processes, and returns their process IDs.
fn while_it_runs(running: &Running) -> Vec<u32> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let engines = running.pids_of("plimsoll engine");
        let shown = running.result_files();
        // The row of a second is kept once all processes have reported it.
        if engines.len() as u64 == PROCESSES && shown.iter().any(|name| name.contains("hlog")) {
            return engines;
        }
        assert!(Instant::now() < deadline, "{engines:?} {shown:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn expect_no_result(ended: &Ended) {
    let names = ended.result_files();
    let half = |name: &&String| !["logs", "live.json"].contains(&name.as_str());
    assert_eq!(names.iter().find(half), None, "{names:?}");
    assert!(!names.contains(&"live.json".to_owned()), "{names:?}");
}

/// Nothing is left running of a call that ended, or was killed a moment ago.
#[track_caller]
fn expect_all_gone(left: impl Fn() -> Vec<String>) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !left().is_empty() {
        assert!(Instant::now() < deadline, "left behind: {:?}", left());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[measures]
fn more_connections_than_a_process_has_descriptors_for() {
    for test in ["limit", "hold"] {
        let ended = conclusive!(with_server(|call| undisturbed_beside_few(
            || call(test).run()
        )));
        ended.expect_code(0);
        ended.expect_nothing_left_running();
        let trial = ended.trial();
        records::expect_valid(&trial.0, "trial.json");
        trial.expect_every_frame_accounted_for();
        assert_eq!(trial.ledger("sessions_started"), CONNECTIONS);
        assert_eq!(trial.ledger("frames_due"), CONNECTIONS * 3);
        assert_eq!(trial.ledger("frames_answered"), CONNECTIONS * 3);
        assert_eq!(trial.at("client.processes"), PROCESSES);
        // Totals of all processes: at least one descriptor per connection, one thread per process, and a resident set
        // of some size.
        let used = |name: &str| trial.number(&format!("client.resources.{name}"));
        assert!(used("fds_peak") > 600.0, "{}", used("fds_peak"));
        assert!(used("threads_peak") > 2.0 * 14.0);
        assert!(used("rss_peak_bytes") > 14e6);
        assert!(trial.number("client.cpu_us_per_frame") > 0.0);
        assert!(!trial.caveats().contains(&"machine-bound"));
        // Every second's row has the totals of all processes.
        let rows = ended.text_of("trial-001.csv");
        assert!(rows.lines().any(|row| row.contains(",600,")), "{rows}");
    }
}

#[test]
#[measures]
fn echoes_take_several_processes() {
    let load = format!("--workload echo --sessions {CONNECTIONS} --period-ms 1000 --ramp 2");
    let trial = conclusive!(shared(Manner::Echo, &load));
    assert_eq!(trial.ledger("frames_due"), CONNECTIONS * 3);
    assert_eq!(
        trial.ledger("content_wrong"),
        0,
        "each message came back to its own session"
    );
}

#[test]
#[measures]
fn a_closed_loop_takes_as_many_processes_as_its_trial() {
    let load = "--workload ws --test ping --sessions 100 --ramp 1 --closed-loop";
    let trial = conclusive!(shared(Manner::Echo, load));
    assert_eq!(trial.ledger("frames_due"), 300);
    // At most 50 pings of each connection.
    let answered = trial.number("ws.closed_loop.pings_answered");
    assert!((100.0..=5_000.0).contains(&answered), "{answered}");
}

/// What each connection found out about the format is added up over all processes.
#[test]
#[measures]
fn a_rate_over_many_connections_takes_several_processes() {
    let load =
        "--workload ws --dialect wse --test throughput --connections 100 --sessions 400 --ramp 1";
    let trial = conclusive!(shared(Manner::Wse, load));
    assert_eq!(trial.ledger("frames_due"), 1_200);
    assert_eq!(trial.at("ws.decode.asked"), 100);
    assert_eq!(trial.at("ws.decode.proven"), true);
}

#[test]
#[measures]
fn a_storm_takes_several_processes() {
    let load = "--workload ws --test storm --sessions 100";
    let trial = conclusive!(shared(Manner::Echo, load));
    assert_eq!(trial.ledger("frames_due"), 300);
}

/// One process has the connection that publishes; receivers of all processes know what is due to them.
#[test]
#[measures]
fn a_fan_out_takes_several_processes() {
    let load = "--workload ws --test fanout --rate 5 --sessions 100 --ramp 1";
    let trial = conclusive!(shared(Manner::Hub, load));
    assert_eq!(trial.ledger("frames_due"), 1_500);
}

#[test]
#[measures]
fn a_process_that_is_killed_ends_the_trial_in_one_line() {
    let _turn = shared_turn();
    let ended = with_server(|call| {
        let running = call("limit").start();
        let engines = while_it_runs(&running);
        let killed = engines[3].to_string();
        let sent = Command::new("kill").args(["-KILL", &killed]).status();
        assert!(sent.expect("kill runs").success());
        running.wait()
    });
    ended.expect_code(3);
    let said = |line: &&str| line.starts_with("plimsoll: ");
    let said: Vec<&str> = ended.stderr.lines().filter(said).collect();
    assert_eq!(said.len(), 1, "{}", ended.stderr);
    for words in ["client process", "of 14", "SIGKILL"] {
        assert!(said[0].contains(words), "{}", said[0]);
    }
    assert_eq!(ended.stderr.lines().last(), Some(said[0]));
    ended.expect_nothing_left_running();
    expect_no_result(&ended);
}

#[test]
#[measures]
fn an_interruption_reaches_all_and_a_crash_leaves_none() {
    let _turn = shared_turn();
    let ended = with_server(|call| {
        let running = call("limit").start();
        while_it_runs(&running);
        running.ctrl_c();
        running.wait()
    });
    ended.expect_code(130);
    let trial = ended.trial();
    assert_eq!(trial.at("interrupted"), true);
    assert_eq!(trial.at("client.processes"), PROCESSES);
    trial.expect_every_frame_accounted_for();
    ended.expect_nothing_left_running();

    with_server(|call| {
        let running = call("limit").start();
        while_it_runs(&running);
        // Only the command's process group: each of its processes leads its own group.
        running.kill();
        expect_all_gone(|| running.processes());
    });
}

#[test]
#[measures]
fn nobody_calls_it_by_hand() {
    let ended = Plimsoll::plain(["engine"]).run();
    ended.expect_code(2);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("this subcommand is internal"));
    let help = Plimsoll::plain(["--help"]).run();
    assert!(!help.stdout.contains("engine"), "{}", help.stdout);
}
