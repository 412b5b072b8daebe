//! The mock providers as a program: settings, signals, and what it writes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-providers"));
    command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A program that must end by itself.
fn ended(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

/// A program that serves, and the address of its line.
fn serving() -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = program().env("PORT", "0").spawn().expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["name"], "plimsoll-providers");
    let address = line["address"].as_str().expect("an address").to_owned();
    (child, stdout, address)
}

#[test]
fn a_bad_setting_is_one_line_and_exit_code_2() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    for (name, value, named) in [
        ("PORT", "many", "PORT=\"many\""),
        ("PROFILE", "late", "PROFILE=\"late\""),
        ("TTS_PACE", "fast", "TTS_PACE=\"fast\""),
        ("PORT", port.as_str(), port.as_str()),
    ] {
        let output = ended(program().env(name, value));
        let told = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{name}={value}: {told}");
        assert!(told.contains(named) && told.lines().count() == 1, "{told}");
        assert!(output.stdout.is_empty());
    }
    let output = ended(program().args(["--loud", "1"]));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn help_names_settings_with_their_defaults() {
    let output = ended(program().arg("--help"));
    let told = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success());
    for part in [
        "--port",
        "PORT",
        "9100",
        "--tts-pace",
        "--profile",
        "usual, slow or zero",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn signals_end_it_with_exit_code_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut child, _stdout, _) = serving();
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
    }
}

/// Any key is taken, and none is written anywhere.
#[test]
fn keys_are_taken_and_never_shown() {
    const KEY: &str = "sk-very-secret-4711";
    let (mut child, mut stdout, address) = serving();
    let body = r##"{"text": "#1.1 a"}"##;
    let length = body.len();
    let keys = format!("Authorization: Token {KEY}\r\nxi-api-key: {KEY}\r\nConnection: close\r\n");
    let ask = |request: String| {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("written");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    };
    let spoken = ask(format!(
        "POST /v1/speak?encoding=linear16&sample_rate=24000 HTTP/1.1\r\n{keys}Content-Length: {length}\r\n\r\n{body}"
    ));
    assert!(spoken.starts_with("HTTP/1.1 200 "), "{spoken}");
    let mut answers = vec![
        spoken,
        ask(format!(
            "POST /v1/speak HTTP/1.1\r\n{keys}Content-Length: {length}\r\n\r\n{body}"
        )),
        ask(format!("GET /v1/listen HTTP/1.1\r\n{keys}\r\n")),
        ask(format!("{KEY}\r\n\r\n")),
        ask(format!("GET /stats HTTP/1.1\r\n{keys}\r\n")),
        ask(format!("GET /faults HTTP/1.1\r\n{keys}\r\n")),
    ];
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let mut written = String::new();
    stdout.read_to_string(&mut written).expect("text");
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut written).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    answers.push(written);
    assert!(
        answers.iter().all(|text| !text.contains(KEY)),
        "{answers:?}"
    );
}
