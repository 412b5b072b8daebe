//! How commands start and end: what `--json` promises, targets that do not start, Ctrl-C, and a starved client.

use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_testing::{eventually, measures};

use crate::support::burners::Burners;
use crate::support::manifests::{Root, manifest_of};
use crate::support::{
    Plimsoll, Trial, built, conclusive, median_slo, records, shared_turn, turn,
    undisturbed_beside_another,
};

/// Phases of a trial that is in its measured window when the line of its fifth second is written.
const LONG: &str = "--ramp 0.5 --warm-up 1 --measured 30 --grace 2";

#[test]
#[measures]
fn ctrl_c_in_the_window_keeps_what_was_measured_and_leaves_nobody_behind() {
    built("stt/rust-epoll");
    let _turn = shared_turn();
    let line = format!("run rust-epoll --sessions 20 {LONG}");
    let running = Plimsoll::measuring(line.split(' ')).start();
    let said = running.wait_for_line(&[" 5 s ", "open 20"]);
    assert!(said.contains("measured"), "{said}");
    let processes = running.processes();
    for program in ["plimsoll run", "plimsoll-inference", "release/rust-epoll"] {
        assert!(
            processes.iter().any(|line| line.contains(program)),
            "{program} is not among {processes:?}"
        );
    }
    running.ctrl_c();
    let ended = running.wait();
    ended.expect_code(130);
    ended.expect_nothing_left_running();
    let trial = ended.trial();
    assert_eq!(trial.at("interrupted"), true);
    assert_eq!(trial.verdict(), "invalid");
    assert!(trial.blocking_caveats().contains(&"interrupted".to_owned()));
    trial.expect_every_frame_accounted_for();
    // About three and a half seconds of the window were over: those frames are due, and no others.
    let due = trial.ledger("frames_due");
    assert!((20 * 50 * 2..20 * 50 * 15).contains(&due), "{due}");
    assert!(trial.ledger("content_checked") > 0);
    records::expect_valid(&trial.0, "trial.json");
    let again = Plimsoll::plain(["report"]).arg(ended.folder()).run();
    again.expect_code(0);
    assert!(again.stdout.contains("INVALID"), "{}", again.stdout);
    // What the target used until then is kept as well.
    assert!(trial.number("target_resources.cpu_us_per_session_second") > 0.0);
    assert!(!trial.caveats().contains(&"no-resources"));
}

#[test]
#[measures]
fn ctrl_c_in_a_search_keeps_its_trials_and_its_bracket() {
    let _turn = shared_turn();
    let line = "find lying-server --start 60 --ramp 0.2 --warm-up 1 --measured 2 --grace 1.5 --slo";
    let running = Plimsoll::measuring(line.split(' '))
        .arg(median_slo())
        .start();
    running.wait_for_two_seconds_of(2);
    running.ctrl_c();
    let ended = running.wait();
    ended.expect_code(130);
    ended.expect_nothing_left_running();
    let bracket = ended.json_of("bracket.json");
    records::expect_valid(&bracket, "bracket.json");
    assert_eq!(bracket["interrupted"], true);
    assert_eq!(bracket["trials"].as_array().expect("a list").len(), 2);
    let conclusion = bracket["conclusion"].as_str().expect("a sentence");
    assert!(conclusion.starts_with("Interrupted"), "{conclusion}");
    assert!(!conclusion.contains("budget"), "{conclusion}");
    let first = ended.trial();
    assert_eq!(first.at("interrupted"), false);
    let second = Trial(ended.json_of("trial-002.json"));
    assert_eq!(second.at("interrupted"), true);
    assert_eq!(second.verdict(), "invalid");
    assert!(ended.text_of("summary.md").contains("interrupted"));
}

#[test]
#[measures]
fn json_is_one_document_on_stdout_and_progress_is_on_stderr() {
    let ended = conclusive!(undisturbed_beside_another(|| {
        let line = "run lying-server --sessions 60 --json --ramp 0.2 --warm-up 1 --measured 4";
        Plimsoll::measuring(line.split(' '))
    }));
    ended.expect_code(0);
    let document: serde_json::Value =
        serde_json::from_str(&ended.stdout).expect("stdout is one JSON document");
    assert_eq!(document, ended.json_of("trial-001.json"));
    assert!(ended.stderr.contains("60 sessions"), "{}", ended.stderr);
    for stream in [&ended.stdout, &ended.stderr] {
        assert!(!stream.contains('\u{1b}'), "escape codes: {stream:?}");
        assert!(!stream.contains('\r'), "a live line: {stream:?}");
    }
    // People get text. It has no escape codes either, because a pipe is not a terminal. The result folder can be
    // rendered again.
    let text = Plimsoll::plain(["report"]).arg(ended.folder()).run();
    text.expect_code(0);
    let verdict = document["verdict"].as_str().expect("a word").to_uppercase();
    assert!(text.stdout.contains(&verdict) && !text.stdout.contains('\u{1b}'));
}

/// `script` (of util-linux) gives the command a terminal.
fn on_a_terminal(folder: &std::path::Path, no_color: Option<&str>) -> String {
    let line = format!(
        "{} report {}",
        env!("CARGO_BIN_EXE_plimsoll"),
        folder.display()
    );
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &line, "/dev/null"]);
    script.env_remove("NO_COLOR").stdin(Stdio::null());
    if let Some(value) = no_color {
        script.env("NO_COLOR", value);
    }
    let output = script.output().expect("script (util-linux) is installed");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
#[measures]
fn colour_is_for_terminals_and_no_color_is_obeyed() {
    let _turn = shared_turn();
    let line = "run lying-server --sessions 5 --ramp 0 --warm-up 1 --measured 1 --grace 1";
    let ended = Plimsoll::measuring(line.split(' ')).run();
    assert!(!ended.stdout.contains('\u{1b}'));
    let folder = ended.folder();
    assert!(on_a_terminal(&folder, None).contains("\u{1b}["));
    assert!(!on_a_terminal(&folder, Some("1")).contains("\u{1b}["));
    // According to https://no-color.org, an empty value counts as unset.
    assert!(on_a_terminal(&folder, Some("")).contains("\u{1b}["));
}

#[test]
#[measures]
fn a_target_that_ends_at_once_is_told_with_its_last_words() {
    let _turn = shared_turn();
    let root = Root::new().with_shell("quitter", "echo cannot bind: port taken; exit 7");
    let line = "run quitter --workload echo --sessions 5 --root";
    let ended = Plimsoll::measuring(line.split(' ')).arg(root.path()).run();
    ended.expect_code(3);
    for words in ["quitter", "exit code 7", "cannot bind: port taken", "log"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    ended.expect_nothing_left_running();
}

/// It has the time that its manifest asks for, and no more.
#[test]
#[measures]
fn a_target_that_never_becomes_ready_is_told_with_its_last_words() {
    let manifest = manifest_of("sleeper", "echo warming up; exec sleep 600");
    let manifest = format!("start_timeout_s = 2\n{manifest}");
    let root = Root::new().with("echo", "sleeper", &manifest);
    let line = "run sleeper --workload echo --sessions 5 --network loopback --root";
    let turn = shared_turn();
    let running = Plimsoll::measuring(line.split(' '))
        .arg(root.path())
        .start();
    eventually("the target was started", || {
        !running.pids_of("sleep 600").is_empty()
    });
    drop(turn);
    let ended = running.wait();
    ended.expect_code(3);
    for words in ["sleeper", "not ready within 2s", "/health", "warming up"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    ended.expect_nothing_left_running();
}

/// Six busy loops run on the client's core for three of six seconds of the window, each at least as urgent as the
/// engine's thread. The engine gets a seventh of its core at best and must wait for its turn, some milliseconds each
/// time. Its frames are late through its own fault, so the trial says nothing about the target.
#[test]
#[measures]
fn a_starved_client_makes_a_trial_invalid_and_never_a_failure() {
    let _turn = turn();
    let line = "run lying-server --sessions 60 --client-cpus 0 --ramp 0.5 --warm-up 3 --measured 6 --grace 3";
    let running = Plimsoll::measuring(line.split(' ')).start();
    let said = running.wait_for_line(&[" 5 s ", "open 60"]);
    assert!(said.contains("measured"), "{said}");
    let burners = Burners::start(6, "taskset -c 0 nice -n -20");
    std::thread::sleep(Duration::from_secs(3));
    drop(burners);
    let ended = running.wait();
    let trial = ended.trial();
    ended.expect_code(3);
    assert_eq!(trial.verdict(), "invalid");
    let blocking = trial.blocking_caveats();
    let own = |id: &String| ["send-lag", "client-busy", "client-starved"].contains(&id.as_str());
    assert!(blocking.iter().any(own), "{blocking:?}");
    // Late or not, every frame is accounted for.
    trial.expect_every_frame_accounted_for();
}
