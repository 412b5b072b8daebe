//! The measuring thread waits for nobody, and no line that stays gets lost.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_core::latency::LatencySet;
use plimsoll_core::profile::Profile;
use plimsoll_core::record::{LiveCommand, LoadUnit, Phase, Second, Verdict};
use plimsoll_core::slo::Slo;
use plimsoll_lab::campaign::TrialBegins;
use plimsoll_report::{ResultFolder, read_live};

use super::outlets::{Output, write_file, write_terminal};
use super::screen::Emulated;
use super::shared::Shared;
use super::state::{Facts, LiveState, Measuring, ended};
use super::terminal::Size;

/// No test waits longer.
const PATIENCE: Duration = Duration::from_secs(20);

fn shared() -> Shared {
    let mut state = LiveState::new(Facts {
        command: LiveCommand::Find,
        targets: vec!["rust-axum".to_owned()],
        started_at: plimsoll_host::timestamp::now(),
        pid: std::process::id(),
    });
    state.measuring(Measuring {
        target: "rust-axum".to_owned(),
        slo: Slo::from_gates("stt", &[]),
        profile: Profile::quick(),
        vcpu: None,
        load_unit: LoadUnit::SESSIONS,
    });
    Shared::new(state)
}

fn begin_trial(shared: &Shared, sessions: u32) {
    let begins = TrialBegins {
        number: 1,
        sessions,
        target: "",
        letter: "",
        why: "probe",
        trials_left: 3,
        ..TrialBegins::default()
    };
    shared.tell(|state| state.trial_begins(&begins));
    shared.wake();
}

fn second(shared: &Shared, at_s: u64) {
    let row = Second {
        at_s,
        phase: Phase::Measured,
        ..Second::default()
    };
    shared.tell(|state| state.second(&row, &LatencySet::new()));
}

/// Ends the command when the test is over, even if it fails. Otherwise the test would wait for its threads.
struct Ends<'a>(&'a Shared);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A terminal that takes a frame only when it is allowed to.
struct Held {
    allowed: Receiver<()>,
    written: Sender<String>,
    size: Option<Size>,
}

impl Output for Held {
    fn size(&self) -> Option<Size> {
        self.size
    }

    fn write(&mut self, frame: &str, _: &str) {
        // Once the other end is gone, nobody holds it any more.
        let _ = self.allowed.recv();
        self.written
            .send(frame.to_owned())
            .expect("the test reads all");
    }
}

#[test]
fn a_held_terminal_delays_nobody_and_misses_frames_but_no_line() {
    let shared = shared();
    let (allow, allowed) = channel();
    let (written, frames) = channel();
    let mut output = Held {
        allowed,
        written,
        size: Some(Size {
            columns: 80,
            rows: 24,
        }),
    };
    std::thread::scope(|scope| {
        let _ends = Ends(&shared);
        let writer = scope.spawn(|| write_terminal(&shared, &mut output, false));
        begin_trial(&shared, 400);
        // The writer is stuck with its first frame now, or will be; meanwhile a soak goes by.
        let began = Instant::now();
        for at_s in 1..=300 {
            second(&shared, at_s);
            if at_s % 100 == 0 {
                shared.say(format!("line {at_s}"));
            }
        }
        assert!(began.elapsed() < PATIENCE, "it waited for the terminal");
        assert!(frames.try_recv().is_err(), "nothing was allowed yet");
        drop(allow);
        shared.end();
        writer.join().expect("no panic");
    });
    let frames: Vec<String> = frames.try_iter().collect();
    assert!(frames.len() < 20, "{} frames for 300 seconds", frames.len());
    let mut terminal = Emulated::default();
    for frame in &frames {
        terminal.feed(frame);
    }
    assert_eq!(terminal.lines(), ["line 100", "line 200", "line 300"]);
    assert!(terminal.is_whole());
}

#[test]
fn resting_takes_the_view_away_before_it_returns() {
    let shared = shared();
    let (allow, allowed) = channel();
    let (written, frames) = channel();
    drop(allow);
    let mut output = Held {
        allowed,
        written,
        size: Some(Size {
            columns: 80,
            rows: 24,
        }),
    };
    let mut terminal = Emulated::default();
    std::thread::scope(|scope| {
        let _ends = Ends(&shared);
        shared.shown(Some(0));
        scope.spawn(|| write_terminal(&shared, &mut output, true));
        begin_trial(&shared, 400);
        let first = frames.recv_timeout(PATIENCE).expect("a frame");
        assert!(first.contains("400 sessions"), "{first}");
        terminal.feed(&first);
        shared.tell(|state| state.trial_ends(ended(1, 400, Verdict::Pass), false));
        shared.say("400 pass".to_owned());
        shared.rest();
        for frame in frames.try_iter() {
            terminal.feed(&frame);
        }
        assert_eq!(terminal.lines(), ["400 pass"]);
        terminal.feed("the result\n");
        // Nothing is drawn while it rests, whatever happens.
        shared.tell(|_| ());
        begin_trial(&shared, 800);
        let next = frames.recv_timeout(PATIENCE).expect("a frame");
        assert!(next.contains("800 sessions"), "{next}");
        terminal.feed(&next);
        shared.end();
    });
    for frame in frames.try_iter() {
        terminal.feed(&frame);
    }
    assert_eq!(terminal.lines(), ["400 pass", "the result"]);
    // Nobody writes any more, so this does not wait.
    shared.rest();
}

#[test]
fn without_a_view_there_are_lines_alone() {
    let shared = shared();
    let (allow, allowed) = channel();
    let (written, frames) = channel();
    drop(allow);
    let mut output = Held {
        allowed,
        written,
        size: None,
    };
    shared.say("trial 1: 400 sessions".to_owned());
    begin_trial(&shared, 400);
    shared.say("400 pass".to_owned());
    shared.end();
    write_terminal(&shared, &mut output, true);
    let written: String = frames.try_iter().collect();
    assert_eq!(written, "trial 1: 400 sessions\n400 pass\n");
}

#[test]
fn the_file_follows_and_goes_with_the_command() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let folder = ResultFolder::create(place.path()).expect("it is empty");
    let shared = shared();
    let seen = |at_s: u64| {
        let live = read_live(place.path(), SystemTime::now());
        live.and_then(|live| live.trial)
            .is_some_and(|trial| trial.at_s == at_s)
    };
    std::thread::scope(|scope| {
        let _ends = Ends(&shared);
        scope.spawn(|| write_file(&shared, &folder, plimsoll_host::timestamp::now));
        begin_trial(&shared, 400);
        for at_s in [1, 2] {
            second(&shared, at_s);
            let deadline = Instant::now() + PATIENCE;
            while !seen(at_s) {
                assert!(Instant::now() < deadline, "second {at_s} is not shown");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        shared.end();
    });
    let left = std::fs::read_dir(place.path())
        .expect("it is there")
        .count();
    assert_eq!(left, 0);
}

#[test]
fn a_file_that_cannot_be_written_is_told_once() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let folder = ResultFolder::create(place.path().join("gone")).expect("it can be made");
    std::fs::remove_dir(folder.path()).expect("it is empty");
    let shared = shared();
    let mut lines = Vec::new();
    std::thread::scope(|scope| {
        let _ends = Ends(&shared);
        scope.spawn(|| write_file(&shared, &folder, plimsoll_host::timestamp::now));
        begin_trial(&shared, 400);
        let (mut version, deadline) = (0, Instant::now() + PATIENCE);
        while lines.is_empty() {
            assert!(Instant::now() < deadline, "nothing is told");
            let (news, said) = shared.news_and_lines(version);
            version = news.version;
            lines.extend(said);
        }
        for at_s in 1..=3 {
            second(&shared, at_s);
            std::thread::sleep(Duration::from_millis(20));
        }
        shared.end();
    });
    lines.extend(shared.news_and_lines(0).1);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("live.json") && lines[0].contains("goes on"));
}
