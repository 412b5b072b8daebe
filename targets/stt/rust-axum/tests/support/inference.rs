//! An inference server over h2c that computes the reference and fails on demand.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// What the server does with requests.
#[derive(Debug, Clone)]
pub enum Behaviour {
    Answer,
    Status(u16),
    Body(&'static str),
    Reset,
    Never,
}

#[derive(Debug)]
pub struct Inference {
    pub port: u16,
    behaviour: Mutex<Behaviour>,
    /// Requests wait here; a test may take all permits to hold them.
    pub gate: Semaphore,
    running: AtomicUsize,
    pub running_max: AtomicUsize,
    pub requests: AtomicUsize,
    connections: Mutex<JoinSet<()>>,
    pub connections_accepted: AtomicUsize,
}

impl Inference {
    pub async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let server = Arc::new(Self {
            port: listener.local_addr().expect("bound").port(),
            behaviour: Mutex::new(Behaviour::Answer),
            gate: Semaphore::new(1000),
            running: AtomicUsize::new(0),
            running_max: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            connections: Mutex::new(JoinSet::new()),
            connections_accepted: AtomicUsize::new(0),
        });
        let accepting = server.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("accepted");
                accepting.connections_accepted.fetch_add(1, Ordering::SeqCst);
                let server = accepting.clone();
                let connection = http2::Builder::new(TokioExecutor::new()).serve_connection(
                    TokioIo::new(socket),
                    service_fn(move |request| {
                        let server = server.clone();
                        async move { server.serve(request).await }
                    }),
                );
                accepting.connections.lock().expect("unpoisoned").spawn(async { drop(connection.await) });
            }
        });
        server
    }

    pub fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("unpoisoned") = behaviour;
    }

    /// Breaks all connections.
    pub async fn disconnect(&self) {
        let mut connections = std::mem::take(&mut *self.connections.lock().expect("unpoisoned"));
        connections.shutdown().await;
    }

    async fn serve(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.running_max.fetch_max(running, Ordering::SeqCst);
        let answer = self.answer(request).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
        assert_eq!((request.version(), request.uri().path()), (Version::HTTP_2, "/infer"));
        assert_eq!(request.method(), "POST");
        assert_eq!(request.headers()["content-type"], "application/octet-stream");
        let passes = request.headers()["x-cpu-passes"].to_str().expect("text").parse().expect("a number");
        let pcm = request.into_body().collect().await.map_err(|_| "the request was given up")?.to_bytes();
        drop(self.gate.acquire().await.expect("open"));
        let behaviour = self.behaviour.lock().expect("unpoisoned").clone();
        let respond = |status: u16, body: String| {
            let response = Response::builder().status(status).body(Full::from(body));
            Ok(response.expect("a good status"))
        };
        match behaviour {
            Behaviour::Answer => respond(200, reference(&pcm, passes)),
            Behaviour::Status(status) => respond(status, String::new()),
            Behaviour::Body(body) => respond(200, body.to_owned()),
            Behaviour::Reset => Err("reset"),
            Behaviour::Never => std::future::pending::<Result<_, Infallible>>().await.map_err(|never| match never {}),
        }
    }
}

/// The reference computation of the contract, as the body of an answer.
pub fn reference(pcm: &[u8], passes: u32) -> String {
    const WORDS: &str = "the quick brown fox jumps over lazy dog hello world yes no okay right left stop go wait ready done again now later never";
    let samples: Vec<i32> = pcm.chunks_exact(2).map(|pair| i32::from(i16::from_le_bytes([pair[0], pair[1]]))).collect();
    let (mut checksum, mut zero_crossings, mut squares) = (2_166_136_261_u32, 0_u64, 0.0_f64);
    let mut previous: Option<i32> = None;
    for pass in 0..passes {
        for sample in &samples {
            let shifted = u32::try_from(sample + 32_768).expect("not negative") + pass;
            checksum = (checksum ^ (shifted & 0xFFFF)).wrapping_mul(16_777_619);
            zero_crossings += u64::from(previous.is_some_and(|previous| (previous < 0) != (*sample < 0)));
            squares += f64::from(*sample) * f64::from(*sample);
            previous = Some(*sample);
        }
    }
    let count = samples.len() as u64 * u64::from(passes);
    let rms = if count == 0 { 0.0 } else { (squares / count as f64).sqrt() };
    let transcript = WORDS.split(' ').nth(checksum as usize % 24).expect("24 words");
    json!({
        "rms": rms, "zero_crossings": zero_crossings, "checksum": checksum,
        "samples": count, "transcript": transcript, "audio_bytes": pcm.len(),
    })
    .to_string()
}

/// The synthetic frame `seq` of a session.
pub fn synthetic_frame(session: u64, seq: u64) -> Vec<u8> {
    (0..320)
        .flat_map(|i| {
            let sample = i64::try_from((seq * 320 + session + i) * 17 % 20_000).expect("small") - 10_000;
            i16::try_from(sample).expect("in range").to_le_bytes()
        })
        .collect()
}
