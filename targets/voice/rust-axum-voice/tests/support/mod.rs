//! What the tests share: a gateway on a port of its own, a caller, and providers that do what they are told.

#![allow(dead_code, unreachable_pub, reason = "each test program takes what it needs")]

pub mod caller;
#[path = "../../../../stt/rust-axum/tests/support/client.rs"]
pub mod client;
pub mod providers;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rust_axum_voice::config::Config;
use rust_axum_voice::gateway::Gateway;
use rust_axum_voice::{SEND_BUFFER_BYTES, serve};
use serde_json::Value;
use tokio::net::TcpSocket;

/// Where sessions are opened.
pub const SESSION_PATH: &str = "/ws";

/// The cases of a file of the shared vectors.
pub fn vectors(file: &str) -> Vec<Value> {
    let path = format!("{}/../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    file["cases"].as_array().expect("cases").clone()
}

/// Starts a gateway; returns its port.
pub async fn gateway(providers_port: u16, variables: &[(&str, &str)]) -> (u16, Arc<Gateway>) {
    let url = format!("http://127.0.0.1:{providers_port}");
    let mut environment = HashMap::from([("PROVIDER_URLS", url.as_str())]);
    environment.extend(variables.iter().copied());
    let config = Config::from_lookup(|name| environment.get(name).map(Into::into)).expect("a good configuration");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_send_buffer_size(SEND_BUFFER_BYTES).expect("set");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let listener = socket.listen(1024).expect("listening");
    let port = listener.local_addr().expect("bound").port();
    let gateway = Gateway::new(config);
    tokio::spawn(serve(listener, gateway.clone()));
    (port, gateway)
}

/// A port that was free a moment ago, for a program that wants to be told one.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port()
}

/// Waits until a line is in the metrics.
pub async fn metric(port: u16, line: &str) {
    let mut text = String::new();
    for _ in 0..200 {
        text = client::http(port, "GET /metrics", "").await;
        if text.lines().any(|it| it == line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{line} is not in\n{text}");
}

/// Audio in which no two samples near each other are the same.
pub fn audio(seed: u32, bytes: usize) -> Vec<u8> {
    (0..).flat_map(|at: u32| (seed << 20 | at).to_le_bytes()).take(bytes).collect()
}
