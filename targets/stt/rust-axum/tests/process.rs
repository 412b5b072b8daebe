//! The program itself: how it starts, refuses to start, and ends.

mod support;

use std::process::Stdio;
use std::sync::atomic::Ordering;

use serde_json::Value;
use support::client::{BINARY, Client, http, patiently, upgrade};
use support::free_port;
use support::inference::{Inference, synthetic_frame};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rust-axum"));
    command.env_clear().stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Starts the program and waits for its line.
async fn started(inference_port: u16, variables: &[(&str, &str)]) -> (Child, u16, Value) {
    let port = free_port();
    let mut command = program();
    command.env("PORT", port.to_string()).env("INFERENCE_URL", format!("http://127.0.0.1:{inference_port}"));
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
    for (name, value) in [("PORT", "http"), ("OVERFLOW_POLICY", "drop"), ("WORKER_THREADS", "0")] {
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
    assert!(line["libraries"]["tokio"].is_string(), "{line}");
    assert!(http(port, "GET /health", "").await.starts_with("HTTP/1.1 200 "));
    terminate(&child).await;
    assert_eq!(patiently(child.wait()).await.expect("ended").code(), Some(0));
}

#[tokio::test]
async fn draining_answers_what_is_in_flight_then_closes() {
    let inference = Inference::start().await;
    let held = inference.gate.acquire_many(1000).await.expect("open");
    let variables = [("WORKER_THREADS", "1"), ("FLUSH_INTERVAL_MS", "20"), ("FLUSH_PHASE_JITTER_MS", "0")];
    let (mut child, port, _) = started(inference.port, &variables).await;
    let mut idle = Client::started(port).await;
    let mut client = Client::started(port).await;
    client.send(BINARY, &synthetic_frame(0, 1)).await;
    patiently(async {
        while inference.requests.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    terminate(&child).await;
    assert_eq!(idle.receive_close().await, 1001);
    assert!(http(port, "GET /health", "").await.starts_with("HTTP/1.1 503 "));
    assert!(upgrade(port, "").await.0.starts_with("HTTP/1.1 503 "));
    drop(held);
    assert_eq!(client.receive_json().await["checksum"], 1_745_339_397);
    assert_eq!(client.receive_close().await, 1001);
    drop((idle, client));
    assert_eq!(patiently(child.wait()).await.expect("ended").code(), Some(0));
}

#[tokio::test]
async fn draining_ends_although_an_answer_does_not_come() {
    let inference = Inference::start().await;
    inference.set(support::inference::Behaviour::Never);
    let variables = [("DRAIN_TIMEOUT_MS", "300"), ("FLUSH_INTERVAL_MS", "20"), ("FLUSH_PHASE_JITTER_MS", "0")];
    let (mut child, port, _) = started(inference.port, &variables).await;
    let mut client = Client::started(port).await;
    client.send(BINARY, &synthetic_frame(0, 1)).await;
    terminate(&child).await;
    assert_eq!(patiently(child.wait()).await.expect("ended").code(), Some(0));
}
