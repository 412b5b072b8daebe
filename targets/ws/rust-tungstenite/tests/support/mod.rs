//! The target as a process, and a client that sends the bytes that it is told to.

#![allow(dead_code, unreachable_pub, reason = "each test program takes what it needs")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8A;

/// A running target. Dropped, it is killed.
pub struct Target {
    pub port: u16,
    /// What it has printed on start.
    pub line: String,
    process: Child,
    _output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts it with `variables`; returns when it serves.
    pub fn start(variables: &[(&str, &str)]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port();
        let mut process = program()
            .env("PORT", port.to_string())
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut output = BufReader::new(process.stdout.take().expect("piped"));
        let mut line = String::new();
        // It listens before it prints.
        output.read_line(&mut line).expect("a line");
        Self { port, line, process, _output: output }
    }

    /// One request on a connection of its own; the whole answer.
    pub fn http(&self, request: &str) -> String {
        let mut socket = connect(self.port);
        socket
            .write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
            .expect("written");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// A line of the metrics.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.http("GET /metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().expect("a number")
    }

    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a process");
    }

    pub fn wait(mut self) -> ExitStatus {
        self.process.wait().expect("an end")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program, yet to be started.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rust-tungstenite"))
}

pub fn connect(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    socket.set_nodelay(true).expect("set");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    socket.set_write_timeout(Some(PATIENCE)).expect("set");
    socket
}

/// An upgrade's head, up to the empty line.
pub fn upgrade(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// The client's end of a WebSocket.
pub struct Client {
    pub socket: TcpStream,
}

impl Client {
    pub fn open(port: u16, path: &str) -> Self {
        Self::open_with(port, path, &[])
    }

    /// Sends `more` with the request.
    pub fn open_with(port: u16, path: &str, more: &[u8]) -> Self {
        let mut client = Self { socket: connect(port) };
        client.write(&[upgrade(path).as_bytes(), more].concat());
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(client.read::<1>());
        }
        let head = String::from_utf8(head).expect("text").to_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        // The example of RFC 6455, section 1.3.
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"), "{head}");
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
        client
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("written");
    }

    pub fn send(&mut self, first: u8, payload: &[u8]) {
        self.write(&frame(first, payload));
    }

    fn read<const LENGTH: usize>(&mut self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        self.socket.read_exact(&mut bytes).expect("bytes in time");
        bytes
    }

    /// The next frame: its first byte and its payload.
    pub fn receive(&mut self) -> (u8, Vec<u8>) {
        let [first, short] = self.read();
        let length = match short {
            126 => u64::from(u16::from_be_bytes(self.read())),
            127 => u64::from_be_bytes(self.read()),
            short @ ..126 => u64::from(short),
            masked => panic!("masked: {masked:#x}"),
        };
        let mut payload = vec![0; usize::try_from(length).expect("short enough")];
        self.socket.read_exact(&mut payload).expect("a payload in time");
        (first, payload)
    }

    pub fn expect(&mut self, first: u8, payload: &[u8]) {
        let (seen_first, seen) = self.receive();
        assert_eq!((seen_first, seen.len()), (first, payload.len()));
        assert!(seen == payload, "another payload");
    }

    /// What the next frame, which must be a close, says, and the orderly end behind it.
    pub fn receive_close(&mut self) -> Option<u16> {
        let (first, payload) = self.receive();
        assert_eq!(first, CLOSE, "{:?}", String::from_utf8_lossy(&payload));
        assert_eq!(self.socket.read(&mut [0]).expect("an end, not a reset"), 0);
        payload.first_chunk().map(|code| u16::from_be_bytes(*code))
    }

    /// Returns when all that was sent before has been answered, and nothing but that.
    pub fn barrier(&mut self) {
        self.send(PING, b"barrier");
        self.expect(PONG, b"barrier");
    }
}

/// A client's header with any first byte.
pub fn header(first: u8, length: usize) -> Vec<u8> {
    let bytes = (length as u64).to_be_bytes();
    match length {
        0..126 => vec![first, 0x80 | bytes[7]],
        126..65_536 => [&[first, 0x80 | 126][..], &bytes[6..]].concat(),
        _ => [&[first, 0x80 | 127][..], &bytes[..]].concat(),
    }
}

/// A masked frame with any first byte.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [9, 8, 7, 6];
    let mut bytes = header(first, payload.len());
    bytes.extend(MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}
