//! What the tests share: a gateway on a port of its own, a WebSocket client that can misbehave, and an inference server
//! that can too.

#![allow(dead_code, unreachable_pub, reason = "each test program takes what it needs")]

pub mod client;
pub mod inference;

use std::collections::HashMap;
use std::sync::Arc;

use rust_axum::config::Config;
use rust_axum::gateway::Gateway;
use serde_json::Value;
use tokio::net::TcpListener;

/// Where sessions are opened.
pub const SESSION_PATH: &str = "/ws/stt";

/// The cases of a file of the shared vectors.
pub fn vectors(file: &str) -> Vec<Value> {
    let path = format!("{}/../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    file["cases"].as_array().expect("cases").clone()
}

/// Starts a gateway with short intervals, and with `variables` over them; returns its port.
pub async fn gateway(inference_port: u16, variables: &[(&str, &str)]) -> (u16, Arc<Gateway>) {
    let url = format!("http://127.0.0.1:{inference_port}");
    let mut environment =
        HashMap::from([("INFERENCE_URL", url.as_str()), ("FLUSH_INTERVAL_MS", "50"), ("FLUSH_PHASE_JITTER_MS", "0")]);
    environment.extend(variables.iter().copied());
    let config = Config::from_lookup(|name| environment.get(name).map(Into::into)).expect("a good configuration");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let gateway = Gateway::new(config);
    tokio::spawn(rust_axum::serve(listener, gateway.clone()));
    (port, gateway)
}

/// A port that was free a moment ago, for a program that wants to be told one.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port()
}
