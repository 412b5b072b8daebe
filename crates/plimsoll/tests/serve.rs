//! `plimsoll serve`: the real command, a real socket, and events of a running command.

#[path = "support/past_results.rs"]
mod past_results;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use past_results::{copy, on_day};
use plimsoll_core::record::{
    Live, LiveBracket, LiveCommand, LivePhases, LiveTrial, LoadUnit, Phase, SCHEMA_VERSION,
};
use plimsoll_report::ResultFolder;

const PATIENCE: Duration = Duration::from_secs(30);

/// The command, serving a folder of results; it ends when this is dropped.
struct Serving {
    child: Child,
    /// `127.0.0.1:PORT`.
    address: String,
    /// What was printed: the whole address, with the token if there is one.
    printed: String,
    place: tempfile::TempDir,
}

impl Serving {
    fn start(flags: &[&str]) -> Self {
        let place = tempfile::tempdir().expect("a scratch folder");
        copy(&place.path().join("results/a-find"), on_day(1));
        let mut child = command(place.path(), flags).spawn().expect("it starts");
        let stdout = child.stdout.take().expect("piped");
        let mut printed = String::new();
        BufReader::new(stdout)
            .read_line(&mut printed)
            .expect("a line");
        let printed = printed.trim().to_owned();
        let address = printed
            .strip_prefix("http://")
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_else(|| panic!("no address: {printed}"))
            .to_owned();
        Self {
            child,
            address,
            printed,
            place,
        }
    }

    fn results(&self) -> PathBuf {
        self.place.path().join("results")
    }

    /// Sends a request and leaves the connection open.
    fn ask(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let host = &self.address;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    }

    fn get(&self, path: &str, headers: &str) -> String {
        let mut answer = Vec::new();
        self.ask(path, headers)
            .read_to_end(&mut answer)
            .expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn interrupt(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.expect("kill runs").success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command
        .arg("serve")
        .args(flags)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Reads until these words appear; returns all that was read.
fn read_until(stream: &mut TcpStream, words: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut read = String::new();
    let mut buffer = [0; 4096];
    while !read.contains(words) {
        assert!(Instant::now() < deadline, "no {words:?} in {read}");
        let count = stream.read(&mut buffer).expect("more");
        assert!(count > 0, "it ended without {words:?}: {read}");
        read.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    read
}

fn live(sessions: u32) -> Live {
    let now = plimsoll_host::timestamp::now();
    Live {
        schema_version: SCHEMA_VERSION,
        command: LiveCommand::Find,
        target: "rust-axum".to_owned(),
        targets: vec!["rust-axum".to_owned()],
        slo: "stt".to_owned(),
        profile: "quick".to_owned(),
        started_at: now.clone(),
        updated_at: now,
        pid: 1,
        vcpu: Some(0.25),
        phases: LivePhases::default(),
        load_unit: LoadUnit::SESSIONS,
        trial: Some(LiveTrial {
            number: 1,
            sessions,
            why: "probe".to_owned(),
            phase: Phase::Ramp,
            at_s: 1,
            errors: 0,
            sessions_lost: 0,
        }),
        gates: Vec::new(),
        seconds: Vec::new(),
        trials: Vec::new(),
        bracket: LiveBracket::default(),
        trials_left: 5,
        time_left_s: 60.0,
        ended: false,
    }
}

#[test]
fn a_command_at_work_is_followed_to_its_end_and_ctrl_c_ends_it_at_once() {
    let mut serving = Serving::start(&["--listen", "127.0.0.1:0"]);
    let page = serving.get("/", "");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("1,400 sessions"), "{page}");
    let report = serving.get("/result/a-find/report.html", "");
    assert!(report.starts_with("HTTP/1.1 200"), "{report}");
    assert!(report.contains("rust-axum-plain carries"), "the claim");

    let folder = ResultFolder::create(serving.results().join("now")).expect("a folder");
    folder.write_live(&live(400)).expect("written");
    let mut events = serving.ask("/events/now", "");
    let seen = read_until(&mut events, "\"sessions\":400");
    assert!(seen.contains("text/event-stream"), "{seen}");
    assert!(seen.contains("event: live"), "{seen}");
    // Wait for another second.
    std::thread::sleep(Duration::from_millis(1100));
    folder.write_live(&live(800)).expect("written");
    read_until(&mut events, "\"sessions\":800");
    folder.remove_live().expect("removed");
    read_until(&mut events, "event: ended");

    folder.write_live(&live(900)).expect("written");
    let mut open = serving.ask("/events/now", "");
    read_until(&mut open, "\"sessions\":900");
    serving.interrupt();
    let asked = Instant::now();
    let status = loop {
        if let Some(status) = serving.child.try_wait().expect("it can be waited for") {
            break status;
        }
        assert!(asked.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0));
    assert!(
        asked.elapsed() < Duration::from_secs(1),
        "{:?}",
        asked.elapsed()
    );
}

#[test]
fn others_must_show_the_token_that_was_made_up() {
    let serving = Serving::start(&["--listen", "0.0.0.0:0"]);
    let (_, token) = serving.printed.split_once("?token=").expect("a token");
    assert_eq!(token.len(), 32, "{token}");
    assert!(serving.get("/", "").starts_with("HTTP/1.1 401"));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert!(serving.get("/", &bearer).contains("1,400 sessions"));
    let entered = serving.get(&format!("/?token={token}"), "");
    let cookie = entered
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .and_then(|cookie| cookie.split(';').next())
        .expect("a cookie");
    let page = serving.get("/", &format!("Cookie: {cookie}\r\n"));
    assert!(page.contains("1,400 sessions"), "{page}");
}

#[test]
fn what_cannot_be_served_is_one_line() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let listening = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listening.local_addr().expect("its address").to_string();
    let nothing = command(place.path(), &[]).output().expect("it runs");
    fs::create_dir(place.path().join("results")).expect("mkdir");
    let refused = |flags: &[&str]| command(place.path(), flags).output().expect("it runs");
    for (output, words) in [
        (nothing, &["no folder results", "--results"][..]),
        (refused(&["--listen", &taken]), &[&*taken, "taken"][..]),
        (
            refused(&["--listen", "7878"]),
            &["--listen 7878", "127.0.0.1:7878"][..],
        ),
        (
            refused(&["--token", "short"]),
            &["--token", "16 characters"][..],
        ),
    ] {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in words {
            assert!(said.contains(word), "no {word:?} in {said}");
        }
        assert!(output.stdout.is_empty());
    }
    drop(listening);
}
