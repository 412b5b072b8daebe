//! What must not go wrong, whatever a target, a terminal or a crash does. A lost connection keeps what was measured. A
//! target that prints without end does not fill the disk, and one that sends without end does not fill memory. A killed
//! run leaves nothing to the next one.

use std::cell::Cell;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::time::Duration;

use crate::support::manifests::{Root, file, manifest_of_gateway};
use crate::support::{
    Plimsoll, ROOMY_SLO, amid_noise, built, cards_of, conclusive, disturbed_by, half_turn, judged,
    records, shared_turn, turn, undisturbed,
};
use plimsoll_host::signals::hangups_are_ignored;
use plimsoll_testing::{eventually, measures, skipped};

const PHASES: &str = "--ramp 0.2 --warm-up 1 --measured 4 --grace 2";

/// A root with one target: the lying server, started by this shell line.
fn behind(name: &str, line: &str) -> Root {
    let line = format!("{line} exec {}", built("stt/lying-server").display());
    let manifest = manifest_of_gateway(name, "the lying server, started by a shell", &line);
    Root::new().with("stt", name, &manifest)
}

#[test]
#[measures]
fn a_hangup_in_the_window_keeps_what_was_measured() {
    if hangups_are_ignored() {
        skipped!("hangups are ignored here, as under nohup");
        return;
    }
    let _turn = shared_turn();
    let line = "run lying-server --sessions 20 --ramp 0.5 --warm-up 1 --measured 30 --grace 2";
    let running = Plimsoll::measuring(line.split(' ')).start();
    running.wait_for_line(&[" 5 s ", "open 20"]);
    // The kernel and the shell both send it.
    running.hang_up();
    running.hang_up();
    let ended = running.wait();
    ended.expect_code(130);
    ended.expect_nothing_left_running();
    let trial = ended.trial();
    assert_eq!(trial.at("interrupted"), true);
    assert_eq!(trial.verdict(), "invalid");
    trial.expect_every_frame_accounted_for();
    assert!(trial.ledger("frames_answered") > 0);
    records::expect_valid(&trial.0, "trial.json");
}

/// As when an SSH connection breaks: the terminal is gone, so writing to it fails, and the processes on it receive
/// SIGHUP.
#[test]
#[measures]
fn a_terminal_that_vanishes_costs_nothing_of_what_was_measured() {
    if hangups_are_ignored() {
        skipped!("hangups are ignored here, as under nohup");
        return;
    }
    let _turn = shared_turn();
    let words = "run lying-server --sessions 20 --ramp 0.5 --warm-up 1 --measured 30 --grace 2";
    let words: Vec<&str> = words.split(' ').collect();
    // `script` (of util-linux) holds the other side of the terminal.
    let on_a_terminal = "exec script -q -e -c \"$*\" /dev/null";
    let running = Plimsoll::after(on_a_terminal, &words)
        .keeping_results()
        .start();
    let measuring = || {
        let files = running.result_files();
        files.iter().any(|name| name.contains("hlog"))
    };
    eventually("a second is measured", measuring);
    std::thread::sleep(Duration::from_secs(3));
    let holder = running.pid().to_string();
    let sent = Command::new("kill").args(["-KILL", &holder]).status();
    assert!(sent.expect("kill runs").success());
    eventually("it ends", || running.processes().is_empty());
    let trial = running.wait().trial();
    assert_eq!(trial.at("interrupted"), true);
    trial.expect_every_frame_accounted_for();
    assert!(trial.ledger("frames_answered") > 0);
}

/// The target prints some 80 MB a second, from one second after its start.
#[test]
#[measures]
fn a_target_that_prints_without_end_fills_no_disk() {
    let _turn = half_turn();
    let prints =
        "(sleep 1; while :; do head -c 8000000 /dev/zero | tr '\\0' x; echo; sleep 0.1; done) &";
    let targets = behind("chatty", prints);
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
    let ended = conclusive!(undisturbed(|| {
        let line = format!("run chatty --sessions 60 {PHASES} --slo");
        let call = Plimsoll::measuring(line.split(' ')).arg(&slo);
        call.arg("--root").arg(targets.path())
    }));
    ended.expect_code(0);
    ended.expect_nothing_left_running();
    let trial = ended.trial();
    trial.expect_flawless_ledger();
    // What it said at its start was read, and is still there.
    let versions = trial.at("target.versions").as_object().expect("names");
    assert!(!versions.is_empty());
    // Each trial has its own folder.
    let trials = std::fs::read_dir(ended.folder().join("logs")).expect("logs");
    let log = &trials
        .flatten()
        .map(|trial| trial.path().join("chatty.log"))
        .find(|log| log.is_file())
        .expect("the target's log");
    let text = std::fs::read_to_string(log).expect("text");
    assert!(text.len() <= 16 << 20, "{} bytes", text.len());
    assert!(text.starts_with('{'), "{}", &text[..80]);
    let said = text
        .lines()
        .find(|line| line.starts_with("[plimsoll: "))
        .unwrap_or_else(|| panic!("{} says nothing of {} bytes", log.display(), text.len()));
    assert!(said.contains("exceeded 16 MiB"), "{said}");
    let dropped = said.split("about ").nth(1).and_then(|rest| {
        let mib = rest.split(' ').next()?;
        mib.parse::<u64>().ok()
    });
    assert!(dropped.is_some_and(|mib| mib >= 32), "{said}");
}

/// Answers an upgrade, then begins a message of 1 MiB, the longest that a target may send, and never sends its last
/// byte.
fn hoard(stream: TcpStream) {
    const LENGTH: usize = 1 << 20;
    let Ok(mut socket) = tungstenite::accept(stream) else {
        return;
    };
    let mut bytes = vec![0x82, 127];
    bytes.extend((LENGTH as u64).to_be_bytes());
    bytes.resize(bytes.len() + LENGTH - 1, 7);
    let stream = socket.get_mut();
    if stream.write_all(&bytes).is_ok() {
        // Holds the connection until the client closes it.
        let _ = std::io::copy(stream, &mut std::io::sink());
    }
}

/// 400 sessions would hold 400 MiB between them.
#[test]
#[measures]
fn a_target_that_never_ends_its_messages_does_not_take_the_clients_memory() {
    let _turn = half_turn();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("ws://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || hoard(stream));
        }
    });
    let files = tempfile::tempdir().expect("a scratch folder");
    let slo = file(files.path(), "roomy.toml", ROOMY_SLO);
    let ended = conclusive!(undisturbed(|| {
        let line = format!(
            "run --workload echo --url {url} --sessions 400 --ramp 2 --warm-up 2 --measured 2 --grace 1 --slo"
        );
        Plimsoll::measuring(line.split(' ')).arg(&slo)
    }));
    ended.expect_code(1);
    let trial = ended.trial();
    trial.expect_failed_by("sessions_died");
    trial.expect_every_frame_accounted_for();
    let reasons = trial.at("ledger.reasons").as_object().expect("by name");
    let named = reasons
        .iter()
        .find(|(reason, _)| reason.contains("more than 256 MiB of the client's memory"));
    let ended_for_it = named.and_then(|(_, count)| count.as_u64());
    let ended_for_it = ended_for_it.unwrap_or_else(|| panic!("{reasons:#?}"));
    // Each takes a buffer of 1 MiB, so 256 fit.
    assert!((140..=200).contains(&ended_for_it), "{ended_for_it}");
    assert_eq!(trial.ledger("sessions_died"), ended_for_it);
    assert_eq!(trial.ledger("protocol_faults"), ended_for_it);
    let peak = trial.number("client.resources.rss_peak_bytes");
    assert!((200e6..400e6).contains(&peak), "{peak}");
}

/// A grandchild that left its process group and lost its parent: when Plimsoll is killed, no signal from the kernel
/// reaches it.
#[test]
#[measures]
fn what_a_killed_run_left_behind_is_gone_after_the_next_start() {
    let _turn = turn();
    let targets = behind("with-a-daemon", "setsid sleep 987 &");
    let line = format!("run with-a-daemon --sessions 5 {PHASES} --root");
    let running = Plimsoll::measuring(line.split(' '))
        .arg(targets.path())
        .start();
    running.wait_for_two_seconds_of(1);
    // The line of the shell that starts it has more words.
    let daemons = || {
        let mut found = running.pids_of("sleep 987");
        found.retain(|pid| line_of(*pid) == "sleep 987");
        found
    };
    eventually("the daemon runs", || !daemons().is_empty());
    let daemon = daemons()[0];
    let groups = std::fs::read_to_string(format!("/proc/{daemon}/cgroup")).expect("alive");
    let group = groups
        .lines()
        .filter_map(|line| line.rsplit('/').next())
        .find(|name| name.starts_with("plimsoll-"))
        .map(str::to_owned);
    let kept_awake = cpus_kept_awake();
    if kept_awake == 0 {
        skipped!("no CPU can be kept awake here, so none is left awake");
    }
    running.kill();
    eventually("the others die with it", || running.processes().len() <= 1);
    eventually("its CPUs may halt again", || cpus_kept_awake() == 0);
    let Some(group) = group else {
        let _ = Command::new("kill").arg(daemon.to_string()).status();
        skipped!("no control group can be made here");
        return;
    };
    assert_eq!(daemons(), [daemon], "it outlives a kill");
    assert!(!folders_of(&group).is_empty());
    let (maker, _) = group.rsplit_once('-').expect("its number is last");
    // The daemon lives on in the namespace, so the pair of cards lives on too.
    let had_cards = !cards_of(maker).is_empty();
    if !had_cards {
        skipped!("no network of the target's own can be made here, so none is left behind");
    }

    let line = "run lying-server --sessions 5 --ramp 0 --warm-up 1 --measured 1 --grace 1";
    let next = Plimsoll::measuring(line.split(' ')).run();
    assert!(
        next.stderr.contains("killed a process left behind"),
        "{}",
        next.stderr
    );
    assert_eq!(running.processes(), Vec::<String>::new());
    assert_eq!(folders_of(&group), "");
    assert_eq!(cards_of(maker), Vec::<String>::new());
}

/// The command line of a process; empty once it has ended.
fn line_of(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    line.trim().to_owned()
}

/// How many CPUs have the mark of one that is kept awake.
fn cpus_kept_awake() -> usize {
    let files = std::fs::read_dir("/run").into_iter().flatten().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let marks = names.filter(|name| name.starts_with("plimsoll-awake-cpu"));
    marks.count()
}

/// The control groups with this name.
fn folders_of(group: &str) -> String {
    let found = Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-name", group])
        .output()
        .expect("find runs");
    String::from_utf8_lossy(&found.stdout).into_owned()
}

/// What `#[measures]` does with a test that fails.
#[test]
fn a_failure_is_the_machines_only_if_it_disturbed_the_last_attempt() {
    let fails = |disturbed: [bool; 2]| {
        let attempt = Cell::new(0);
        let test = || {
            if disturbed[attempt.replace(attempt.get() + 1)] {
                disturbed_by(vec!["steal".to_owned()]);
            }
            panic!("seven is no eight");
        };
        std::panic::catch_unwind(AssertUnwindSafe(|| judged(test)))
    };
    assert!(
        fails([false, false]).is_err(),
        "it failed, and stays failed"
    );
    assert!(fails([true, false]).is_err() || amid_noise());
    let why = fails([true, true])
        .expect("not failed")
        .expect_err("inconclusive");
    assert_eq!(
        why,
        "this machine disturbed it (steal), and it said: seven is no eight"
    );
    judged(|| disturbed_by(vec!["steal".to_owned()])).expect("one that holds is as good as any");
}
