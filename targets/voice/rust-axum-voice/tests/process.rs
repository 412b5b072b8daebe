//! The program itself: how it starts, refuses to start, and ends.

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::caller::Caller;
use support::client::{http, patiently, upgrade};
use support::providers::Providers;
use support::{audio, free_port};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rust-axum-voice"));
    command.env_clear().stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Starts the program and waits for its line.
async fn started(providers_port: u16, variables: &[(&str, &str)]) -> (Child, u16, Value) {
    let port = free_port();
    let mut command = program();
    command.env("PORT", port.to_string()).env("PROVIDER_URLS", format!("http://127.0.0.1:{providers_port}"));
    let mut child = command.envs(variables.iter().copied()).spawn().expect("spawned");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    patiently(stdout.read_line(&mut line)).await.expect("a line");
    let line = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    (child, port, line)
}

async fn terminate(child: &Child) {
    let pid = child.id().expect("running").to_string();
    let status = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill runs");
    assert!(status.success());
}

#[tokio::test]
async fn a_bad_value_is_one_line_and_exit_code_2() {
    for (name, value) in [("PORT", "http"), ("PROVIDER_URLS", "nowhere"), ("OUT_BUFFER_BYTES", "many")] {
        let output = patiently(program().env(name, value).output()).await.expect("run");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(name), "{stderr}");
        assert_eq!(output.stdout, b"");
    }
}

#[tokio::test]
async fn an_idle_gateway_ends_at_once() {
    let (mut child, port, line) = started(1, &[("WORKER_THREADS", "2")]).await;
    assert_eq!(line["gateway"], "rust-axum-voice");
    assert!(line["libraries"]["hyper"].is_string() && !line.to_string().contains("unknown"), "{line}");
    assert!(http(port, "GET /", "").await.starts_with("HTTP/1.1 200 "));
    terminate(&child).await;
    assert_eq!(patiently(child.wait()).await.expect("ended").code(), Some(0));
}

#[tokio::test]
async fn draining_lets_replies_end() {
    let mut providers = Providers::start().await;
    let (mut child, port, _) = started(providers.port, &[("WORKER_THREADS", "1")]).await;
    let (mut idle, _idle_link) = Caller::ready(port, &mut providers).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    caller.speak("hello").await;
    let mut speech = providers.speech().await;
    speech.begin("").await;
    speech.send(&audio(1, 960)).await;
    caller.hear_audio(960).await;
    terminate(&child).await;
    assert_eq!(idle.client.receive_close().await, 1001);
    assert!(http(port, "GET /", "").await.ends_with(r#"{"status":"DRAINING"}"#));
    assert!(upgrade(port, "").await.0.starts_with("HTTP/1.1 503 "));
    speech.send(&audio(2, 960)).await;
    speech.end().await;
    let (heard, complete) = caller.hear_reply().await;
    assert_eq!((heard, &complete["type"]), (audio(2, 960), &"tts_playback_complete".into()));
    assert_eq!(caller.client.receive_close().await, 1001);
    drop((idle, caller));
    assert_eq!(patiently(child.wait()).await.expect("ended").code(), Some(0));
}

#[tokio::test]
async fn draining_ends_although_a_reply_does_not() {
    let mut providers = Providers::start().await;
    let (mut child, port, _) = started(providers.port, &[("DRAIN_TIMEOUT_MS", "500")]).await;
    let (mut caller, _link) = Caller::ready(port, &mut providers).await;
    caller.speak("hello").await;
    let _silent = providers.speech().await;
    let start = Instant::now();
    terminate(&child).await;
    assert_eq!(caller.client.receive_close().await, 1001);
    drop(caller);
    assert_eq!(patiently(child.wait()).await.expect("ended").code(), Some(0));
    assert!(start.elapsed() < Duration::from_millis(600), "{:?}", start.elapsed());
}
