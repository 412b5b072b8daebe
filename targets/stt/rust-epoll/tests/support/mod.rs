//! The gateway as a process, a client that sends the bytes it is told to, and an inference server made of the `h2` crate.

#![allow(dead_code, unreachable_pub, reason = "each test program takes what it needs")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Notify;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running gateway. Dropped, it is killed.
pub struct Gateway {
    pub port: u16,
    process: Child,
}

impl Gateway {
    /// A gateway with fast flushes, and with `variables`; returns when it is ready.
    pub fn start(inference_port: u16, variables: &[(&str, &str)]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port();
        let process = Command::new(env!("CARGO_BIN_EXE_rust-epoll"))
            .envs([("FLUSH_INTERVAL_MS", "50"), ("FLUSH_PHASE_JITTER_MS", "0"), ("WORKER_THREADS", "2")])
            .env("PORT", port.to_string())
            .env("INFERENCE_URL", format!("http://localhost:{inference_port}"))
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let gateway = Self { port, process };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the gateway does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        gateway
    }

    /// One request on a connection of its own; the whole answer.
    pub fn http(&self, request: &str) -> String {
        let mut socket = connect(self.port);
        socket.write_all(request.as_bytes()).expect("written");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    }

    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a process");
    }

    /// Its exit code and what it printed.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.process.wait().expect("an end");
        let mut output = String::new();
        self.process.stdout.take().expect("piped").read_to_string(&mut output).expect("text");
        (status, output)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    socket.set_nodelay(true).expect("set");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    socket
}

pub const UPGRADE: &str = "GET /ws/stt HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A started session.
pub struct Session {
    pub socket: TcpStream,
}

impl Session {
    pub fn start(port: u16) -> Self {
        let mut session = Self { socket: connect(port) };
        session.write(UPGRADE.as_bytes());
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(session.read::<1>());
        }
        let head = String::from_utf8(head).expect("text");
        assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        session.write(&frame(0x81, br#"{"type":"start"}"#));
        session
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("written");
    }

    fn read<const LENGTH: usize>(&mut self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        self.socket.read_exact(&mut bytes).expect("bytes in time");
        bytes
    }

    /// The next frame from the gateway: opcode and payload.
    pub fn receive(&mut self) -> (u8, Vec<u8>) {
        let [first, short] = self.read();
        let length = match short {
            126 => usize::from(u16::from_be_bytes(self.read())),
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        self.socket.read_exact(&mut payload).expect("a payload in time");
        (first & 0x0F, payload)
    }

    pub fn receive_json(&mut self) -> Value {
        let (opcode, payload) = self.receive();
        assert_eq!(opcode, 1, "a text");
        serde_json::from_slice(&payload).expect("JSON")
    }

    /// The code of the close that must come next, and the orderly end behind it.
    pub fn receive_close(&mut self) -> u16 {
        let (opcode, payload) = self.receive();
        assert_eq!(opcode, 8, "a close");
        assert_eq!(self.socket.read(&mut [0]).expect("an end, not a reset"), 0);
        u16::from_be_bytes([payload[0], payload[1]])
    }
}

/// A masked frame with any first byte.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const KEY: [u8; 4] = [9, 8, 7, 6];
    let mut bytes = vec![first];
    match payload.len() {
        short @ ..126 => bytes.push(0x80 | u8::try_from(short).expect("short")),
        medium => {
            bytes.push(0x80 | 126);
            bytes.extend(u16::try_from(medium).expect("medium").to_be_bytes());
        }
    }
    bytes.extend(KEY);
    bytes.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
    bytes
}

/// What an inference server does with requests.
#[derive(Debug, Clone)]
pub enum Behaviour {
    Answer,
    Status(u16),
    Never,
    /// Breaks the connection.
    HangUp,
}

/// An inference server on a thread of its own, until the test program ends.
pub struct Inference {
    pub port: u16,
    pub behaviour: Arc<Mutex<Behaviour>>,
}

impl Inference {
    /// A server that is configured by `configure`.
    pub fn start(configure: fn(&mut h2::server::Builder)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        listener.set_nonblocking(true).expect("set");
        let behaviour = Arc::new(Mutex::new(Behaviour::Answer));
        let shared = Arc::clone(&behaviour);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                loop {
                    let (socket, _) = listener.accept().await.expect("accepted");
                    tokio::spawn(serve(socket, configure, Arc::clone(&shared)));
                }
            });
        });
        Self { port, behaviour }
    }

    pub fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("unpoisoned") = behaviour;
    }
}

async fn serve(
    socket: tokio::net::TcpStream,
    configure: fn(&mut h2::server::Builder),
    behaviour: Arc<Mutex<Behaviour>>,
) {
    let mut builder = h2::server::Builder::new();
    configure(&mut builder);
    let mut connection = builder.handshake::<_, Bytes>(socket).await.expect("a handshake");
    let hang_up = Arc::new(Notify::new());
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = hang_up.notified() => return,
        };
        // The client may go away at any time.
        let Some(Ok((request, respond))) = accepted else { return };
        let (behaviour, hang_up) = (Arc::clone(&behaviour), Arc::clone(&hang_up));
        tokio::spawn(async move {
            // A request that is given up is none of the server's business.
            let _ = answer(request, respond, &behaviour, &hang_up).await;
        });
    }
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    behaviour: &Mutex<Behaviour>,
    hang_up: &Notify,
) -> Result<(), h2::Error> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/infer"));
    let length: usize = request.headers()["content-length"].to_str().expect("text").parse().expect("a number");
    let (mut body, mut bytes) = (request.into_body(), 0);
    while let Some(data) = body.data().await {
        let data = data?;
        bytes += data.len();
        body.flow_control().release_capacity(data.len())?;
    }
    assert_eq!(bytes, length);
    let behaviour = behaviour.lock().expect("unpoisoned").clone();
    let mut head = http::Response::new(());
    // Something for the dynamic table and for Huffman's code.
    head.headers_mut().insert("x-server", http::HeaderValue::from_static("of the tests, v1.2.3"));
    match behaviour {
        Behaviour::Answer => {
            let mut stream = respond.send_response(head, false)?;
            let body = format!(
                r#"{{"rms":1.5,"zero_crossings":2,"checksum":3,"samples":4,"transcript":"a \"word\"","audio_bytes":{bytes}}}"#
            );
            stream.send_data(body.into(), true)
        }
        Behaviour::Status(status) => {
            *head.status_mut() = http::StatusCode::from_u16(status).expect("a status");
            let mut stream = respond.send_response(head, false)?;
            stream.send_data("no".into(), true)
        }
        Behaviour::Never => std::future::pending().await,
        Behaviour::HangUp => {
            hang_up.notify_one();
            Ok(())
        }
    }
}
