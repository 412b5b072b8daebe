//! The mock as a program: settings, signals, and what it writes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/stt-real/corpus");

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-mock-stt"));
    command
        .env_clear()
        .env("CORPUS", CORPUS)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A program that serves, and its first line.
fn serving(command: &mut Command) -> (Child, serde_json::Value) {
    let mut child = command.env("PORT", "0").spawn().expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    (child, serde_json::from_str(&line).expect("JSON"))
}

#[test]
fn a_bad_setting_is_one_line_and_exit_code_2() {
    for (name, value, named) in [
        ("PORT", "many", "PORT=\"many\""),
        ("DIALECT", "riva", "DIALECT=\"riva\""),
        ("FAULT", "slow", "FAULT=\"slow\""),
        ("CORPUS", "/nowhere", "/nowhere"),
    ] {
        let output = program().env(name, value).output().expect("it starts");
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{name}={value}: {told}");
        assert!(told.contains(named) && told.lines().count() == 1, "{told}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn it_tells_its_settings_without_the_key_and_ends_by_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut command = program();
        command.args(["--fault", "stall:0.5", "--key", "sk-very-secret"]);
        let (mut child, line) = serving(&mut command);
        assert_eq!(line["name"], "plimsoll-mock-stt");
        assert_eq!(line["config"]["fault"], serde_json::json!([["stall", 0.5]]));
        assert!(!line.to_string().contains("sk-very-secret"), "{line}");
        let address = line["address"].as_str().expect("an address");
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream
            .write_all(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
            .expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.ends_with("ok\n"), "{answer}");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn help_names_dialects_and_faults() {
    let output = program().arg("--help").output().expect("it starts");
    let told = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success());
    for part in [
        "--cpu-ms-per-s",
        "speechmatics",
        "huge-message",
        "ENDPOINTING_MS",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}
