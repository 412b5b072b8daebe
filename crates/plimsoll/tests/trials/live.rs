//! What a command shows while it measures: `live.json` for others, a view on a terminal, and neither of them
//! afterwards.

#[path = "../support/screen.rs"]
mod screen;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use crate::support;
use crate::support::echo_server::{Manner, start};
use crate::support::{Plimsoll, records, shared_turn};
use plimsoll_core::record::{Live, LiveCommand, Phase};
use plimsoll_report::read_live;
use plimsoll_testing::measures;
use screen::Emulated;

const SESSIONS: u32 = 20;
/// Long enough to look at, short enough to wait for.
const PHASES: &str = "--ramp 0.5 --warm-up 1 --measured 8 --grace 2";
const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until `live.json` is as wanted.
#[track_caller]
fn wait_for_live(folder: &Path, what: &str, is_so: impl Fn(&Live) -> bool) -> Live {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let live = read_live(folder, SystemTime::now());
        if let Some(live) = live.filter(|live| is_so(live)) {
            return live;
        }
        assert!(Instant::now() < deadline, "never live: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ')
}

#[test]
#[measures]
fn a_run_is_live_until_it_ends() {
    let _turn = shared_turn();
    let place = tempfile::tempdir().expect("a scratch folder");
    let folder = place.path().join("out");
    let url = start(Manner::Honest);
    let line = format!("run --workload echo --url {url} --sessions {SESSIONS} {PHASES} --out");
    let running = Plimsoll::plain(words(&line)).arg(&folder).start();

    let live = wait_for_live(&folder, "three seconds of the window", |live| {
        let seconds = live.seconds.iter();
        let measured = seconds.filter(|second| second.phase == Phase::Measured);
        measured.count() >= 3
    });
    assert_eq!(live.command, LiveCommand::Run);
    assert_eq!(live.pid, running.pid());
    assert_eq!((live.target.as_str(), live.vcpu), (url.as_str(), None));
    assert_eq!((live.trials_left, live.ended), (1, false));
    assert!((1.0..9.0).contains(&live.time_left_s), "{live:?}");
    let trial = live.trial.as_ref().expect("one runs");
    assert_eq!((trial.number, trial.sessions), (1, SESSIONS));
    let last = live.seconds.last().expect("three at least");
    assert_eq!(last.sessions_open, u64::from(SESSIONS));
    let p95 = live.gates.iter().find(|gate| gate.name == "newest_p95_ms");
    assert_eq!(p95.expect("a gate of echo").observed, last.newest_p95_ms);
    // It is rewritten each second.
    let later = wait_for_live(&folder, "the next second", |later| {
        later.seconds.len() > live.seconds.len()
    });
    assert!(later.updated_at >= live.updated_at);
    let text = std::fs::read_to_string(folder.join("live.json")).expect("it is there");
    let record = serde_json::from_str(&text).expect("JSON, and all of it");
    records::expect_valid(&record, "live.json");

    let ended = running.wait();
    assert!(ended.code() != Some(2), "{}", ended.stderr);
    assert!(!folder.join("live.json").exists());
    assert!(folder.join("trial-001.json").exists());
}

#[test]
#[measures]
fn nothing_is_live_after_ctrl_c_or_a_target_that_does_not_start() {
    let _turn = shared_turn();
    let place = tempfile::tempdir().expect("a scratch folder");
    let folder = place.path().join("out");
    let url = start(Manner::Honest);
    let line = format!("find --workload echo --url {url} --start 20 {PHASES} --out");
    let running = Plimsoll::plain(words(&line)).arg(&folder).start();
    let live = wait_for_live(&folder, "a second of the first trial", |live| {
        !live.seconds.is_empty()
    });
    assert_eq!(live.command, LiveCommand::Find);
    assert!(live.trial.is_some_and(|trial| trial.why == "probe"));
    running.ctrl_c();
    running.wait().expect_code(130);
    assert!(!folder.join("live.json").exists());

    let root = support::manifests::Root::new().with_shell("quitter", "exit 7");
    let ended = Plimsoll::measuring(words("run quitter --workload echo --sessions 5 --root"))
        .arg(root.path())
        .run();
    ended.expect_code(3);
    assert!(!ended.folder().join("live.json").exists());
}

#[test]
#[measures]
fn without_live_there_are_lines_only() {
    let _turn = shared_turn();
    let place = tempfile::tempdir().expect("a scratch folder");
    let folder = place.path().join("out");
    let url = start(Manner::Honest);
    let line = format!("run --workload echo --url {url} --sessions {SESSIONS} {PHASES} --no-live");
    let mut terminal = OnATerminal::start(&line, &folder, "");
    terminal.wait_for("5 s");
    assert!(!folder.join("live.json").exists());
    let (_, written, _) = terminal.wait();
    assert!(!written.contains('━'), "{written}");
}

/// The command on a terminal of 100 columns, which `script` (of util-linux) makes. The terminal's settings are printed
/// before and after it.
struct OnATerminal {
    script: std::process::Child,
    output: Receiver<String>,
    seen: String,
}

impl OnATerminal {
    fn start(arguments: &str, out: &Path, no_color: &str) -> Self {
        let line = format!(
            "trap : INT; stty cols 100 rows 40; stty -g; {} {arguments} --out {}; code=$?; stty -g; exit $code",
            env!("CARGO_BIN_EXE_plimsoll"),
            out.display()
        );
        let mut script = Command::new("script")
            .args(["-q", "-e", "-c", &line, "/dev/null"])
            .env("PLIMSOLL_ROOT", support::root())
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env("NO_COLOR", no_color)
            .env_remove("COLUMNS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("script (util-linux) is installed");
        let mut stdout = script.stdout.take().expect("piped");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let (mut bytes, mut held) = ([0; 4096], Vec::new());
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                held.extend_from_slice(&bytes[..count]);
                // A character may arrive in two pieces.
                let whole = match std::str::from_utf8(&held) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text = String::from_utf8_lossy(&held[..whole]).into_owned();
                held.drain(..whole);
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
        Self {
            script,
            output,
            seen: String::new(),
        }
    }

    #[track_caller]
    fn wait_for(&mut self, words: &str) {
        while !self.seen.contains(words) {
            let more = self.output.recv_timeout(PATIENCE);
            self.seen += &more.unwrap_or_else(|_| panic!("no {words:?} in {}", self.seen));
        }
    }

    fn press(&mut self, key: u8) {
        let stdin = self.script.stdin.as_mut().expect("piped");
        stdin.write_all(&[key]).expect("it is read");
        stdin.flush().expect("it is read");
    }

    /// Waits for the end. Returns the exit code, all that was written, and what the terminal then shows.
    fn wait(mut self) -> (Option<i32>, String, Emulated) {
        while let Ok(more) = self.output.recv_timeout(PATIENCE) {
            self.seen += &more;
        }
        let status = self.script.wait().expect("it can be waited for");
        let mut terminal = Emulated::default();
        terminal.feed(&self.seen);
        assert!(terminal.is_whole(), "{:?}", terminal.lines());
        (status.code(), self.seen, terminal)
    }
}

#[track_caller]
fn assert_terminal_is_as_it_was(lines: &[String]) {
    // `stty -g` prints a long line of numbers with colons.
    let settings = |line: &&String| line.matches(':').count() > 10;
    let told: Vec<&String> = lines.iter().filter(settings).collect();
    assert_eq!(told.len(), 2, "{lines:#?}");
    assert_eq!(told[0], told[1]);
}

#[test]
#[measures]
fn on_a_terminal_there_is_a_view_and_at_the_end_it_is_gone() {
    let _turn = shared_turn();
    let place = tempfile::tempdir().expect("a scratch folder");
    let folder = place.path().join("out");
    let url = start(Manner::Honest);
    let line = format!("run --workload echo --url {url} --sessions {SESSIONS} {PHASES}");
    let mut terminal = OnATerminal::start(&line, &folder, "1");
    terminal.wait_for("measured   4 s");
    let (_, written, terminal) = terminal.wait();
    for words in [
        "trial 1: 20 sessions",
        "newest_p95_ms",
        "of 50",
        "sessions 20 of 20",
        "CPU  target",
        "about 0:0",
    ] {
        assert!(written.contains(words), "{words} is not in {written}");
    }
    assert!(!terminal.was_painted(), "NO_COLOR is set");
    // The cursor is never hidden, and the terminal is never queried.
    assert!(!written.contains("\u{1b}[?") && !written.contains("\u{1b}[6n"));
    let lines = terminal.lines();
    let left = lines.join("\n");
    assert!(left.contains("result: "), "{left}");
    assert!(!left.contains("about 0:") && !left.contains('━'), "{left}");
    assert_terminal_is_as_it_was(&lines);
}

#[test]
#[measures]
fn ctrl_c_leaves_the_terminal_whole() {
    let _turn = shared_turn();
    let place = tempfile::tempdir().expect("a scratch folder");
    let folder = place.path().join("out");
    let url = start(Manner::Honest);
    let line = format!("run --workload echo --url {url} --sessions {SESSIONS} {PHASES}");
    let mut terminal = OnATerminal::start(&line, &folder, "");
    terminal.wait_for("measured ");
    let ctrl_c = 3;
    terminal.press(ctrl_c);
    let (code, written, terminal) = terminal.wait();
    assert_eq!(code, Some(130), "{written}");
    assert!(terminal.was_painted(), "NO_COLOR is empty");
    let lines = terminal.lines();
    let left = lines.join("\n");
    assert!(left.contains("result: ") && !left.contains('━'), "{left}");
    assert_terminal_is_as_it_was(&lines);
    assert!(!folder.join("live.json").exists());
}
