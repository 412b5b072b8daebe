//! An inference server over h2c that fails on demand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Version};
use axum::routing::post;
use axum::serve::ListenerExt;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// What the server answers.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    Good,
    Status(u16),
    Body(&'static str),
}

pub struct Inference {
    pub port: u16,
    pub answer: Mutex<Answer>,
    /// Requests wait here; a test may take all permits to hold them.
    pub gate: Semaphore,
    pub connections: AtomicUsize,
    pub requests: AtomicUsize,
}

impl Inference {
    pub async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let server = Arc::new(Self {
            port: listener.local_addr().expect("bound").port(),
            answer: Mutex::new(Answer::Good),
            gate: Semaphore::new(1000),
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        });
        let counting = server.clone();
        let listener = listener.tap_io(move |_| {
            counting.connections.fetch_add(1, Ordering::SeqCst);
        });
        let router = Router::new().route("/infer", post(infer)).with_state(server.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        server
    }

    pub fn set(&self, answer: Answer) {
        *self.answer.lock().expect("unpoisoned") = answer;
    }
}

async fn infer(
    State(server): State<Arc<Inference>>,
    version: Version,
    headers: HeaderMap,
    pcm: Bytes,
) -> (StatusCode, String) {
    assert_eq!(version, Version::HTTP_2);
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(headers["x-cpu-passes"], "4");
    server.requests.fetch_add(1, Ordering::SeqCst);
    drop(server.gate.acquire().await.expect("open"));
    let answer = *server.answer.lock().expect("unpoisoned");
    match answer {
        // Not the reference computation: the conformance check does that.
        Answer::Good => (
            StatusCode::OK,
            json!({
                "rms": 0, "zero_crossings": 1, "checksum": pcm[0], "samples": pcm.len() * 2,
                "transcript": "now", "audio_bytes": pcm.len(),
            })
            .to_string(),
        ),
        Answer::Status(status) => (StatusCode::from_u16(status).expect("a status"), String::new()),
        Answer::Body(body) => (StatusCode::OK, body.to_owned()),
    }
}
