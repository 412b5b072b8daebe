//! A broker as a process, and clients that speak to it over sockets.

#![allow(dead_code, unreachable_pub, reason = "each test program takes what it needs")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rust_log::answer::put_frame;
use rust_log::frame::{Name, REDELIVERED, cut, op};
use rust_log::wire::{Fields, put_bytes};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that is gone when the test is over.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(parent: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(parent).join(format!("data-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running broker. Dropped, it is killed.
pub struct Target {
    pub port: u16,
    pub http_port: u16,
    /// What it has printed on start.
    pub line: String,
    process: Child,
    _output: BufReader<ChildStdout>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port()
}

impl Target {
    /// Starts a program with `variables`; returns when it serves.
    pub fn start(program: &str, folder: &Folder, variables: &[(&str, &str)]) -> Self {
        let (port, http_port) = (free_port(), free_port());
        let mut process = Command::new(program)
            .env("PORT", port.to_string())
            .env("HTTP_PORT", http_port.to_string())
            .env("DATA_DIR", &folder.0)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut output = BufReader::new(process.stdout.take().expect("piped"));
        let mut line = String::new();
        // It listens before it prints.
        output.read_line(&mut line).expect("a line");
        Self { port, http_port, line, process, _output: output }
    }

    pub fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("its end");
    }

    /// Asks it to end; how it did.
    pub fn stop(mut self) -> ExitStatus {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        self.process.wait().expect("its end")
    }

    /// The answer to a request.
    pub fn http(port: u16, path: &str) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).expect("written");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a client got: its opcode, request, and what matters of its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Got {
    Answer(u16, u64),
    Confirmed(u64),
    Delivered { offset: u64, payload: Vec<u8>, again: bool },
}

/// A client that is logged in.
pub struct Client {
    socket: TcpStream,
    input: Vec<u8>,
}

impl Client {
    pub fn new(target: &Target) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", target.port)).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket.set_nodelay(true).expect("set");
        let mut client = Self { socket, input: Vec::new() };
        client.ask(op::HELLO, 1, b"FHL1\0\0\0\x01c\0\0\0\x01v\0\x01\0", op::HELLO_OK);
        client.ask(op::AUTH, 2, b"FAU1\0\0\0\x06fibril\0\0\0\x06fibril", op::AUTH_OK);
        client
    }

    pub fn send(&mut self, op: u16, request: u64, payload: &[u8]) {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, op, 0, request, |out| out.extend_from_slice(payload));
        self.socket.write_all(&bytes).expect("written");
    }

    fn ask(&mut self, op: u16, request: u64, payload: &[u8], answer: u16) {
        self.send(op, request, payload);
        assert_eq!(self.next(), Got::Answer(answer, request));
    }

    pub fn declare_queue(&mut self) {
        self.ask(op::DECLARE_QUEUE, 3, b"FDQ1\0\0\0\x01q\0\0\0\0\0", op::DECLARE_QUEUE_OK);
    }

    pub fn declare_stream(&mut self) {
        self.ask(op::DECLARE_PLEXUS, 3, b"FDP1\0\0\0\x01s\0\0\0\0\0\0", op::DECLARE_PLEXUS_OK);
    }

    /// Reads the queue with a prefetch of 1,024.
    pub fn subscribe(&mut self) {
        self.ask(op::SUBSCRIBE, 4, b"FSB1\0\0\0\x01q\0\0\0\0\0\0\0\x04\0\0\0\0\0", op::SUBSCRIBE_OK);
    }

    /// Reads the stream from its next message on, without settling.
    pub fn subscribe_stream(&mut self) {
        let payload = b"FSP1\0\0\0\x01s\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\x01";
        self.ask(op::SUBSCRIBE_STREAM, 4, payload, op::SUBSCRIBE_OK);
    }

    pub fn publish(&mut self, topic: &str, request: u64, payload: &[u8]) {
        let mut bytes = b"FPB1".to_vec();
        Name { topic, group: None, partition: 0 }.put(&mut bytes);
        bytes.push(1);
        bytes.extend_from_slice(&[0; 22]);
        put_bytes(&mut bytes, payload);
        bytes.push(0);
        self.send(op::PUBLISH, request, &bytes);
    }

    pub fn settle(&mut self, tags: &[u64]) {
        let mut bytes = b"FAK1\0\0\0\x01q\0\0\0\0\0".to_vec();
        bytes.extend_from_slice(&u32::try_from(tags.len()).expect("few").to_be_bytes());
        tags.iter().for_each(|tag| bytes.extend_from_slice(&tag.to_be_bytes()));
        self.send(op::ACK, 0, &bytes);
    }

    /// The next frame that comes.
    pub fn next(&mut self) -> Got {
        self.within(PATIENCE).expect("a frame")
    }

    /// The next frame that comes within this time.
    pub fn within(&mut self, patience: Duration) -> Option<Got> {
        self.socket.set_read_timeout(Some(patience)).expect("set");
        loop {
            if let Some((got, length)) = self.first() {
                self.input.drain(..length);
                return Some(got);
            }
            let mut buffer = [0; 64 * 1024];
            match self.socket.read(&mut buffer) {
                Ok(0) => panic!("the broker has closed the connection"),
                Ok(length) => self.input.extend_from_slice(&buffer[..length]),
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                    return None;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn first(&self) -> Option<(Got, usize)> {
        let (frame, length) = cut(&self.input, 1 << 24).expect("good")?;
        let mut fields = Fields::new(frame.payload);
        let got = match frame.op {
            op::PUBLISH_OK => Got::Confirmed(frame.request),
            op::DELIVER => {
                fields.take(4 + 8 + 5 + 5).expect("name");
                let offset = fields.u64().expect("offset");
                fields.take(8 + 8 + 8 + 5).expect("times");
                let payload = fields.bytes().expect("payload").to_vec();
                Got::Delivered { offset, payload, again: frame.flags == REDELIVERED }
            }
            op::ERROR => panic!("{:?}", String::from_utf8_lossy(frame.payload)),
            other => Got::Answer(other, frame.request),
        };
        Some((got, length))
    }

    /// The numbers and marks of the next so many messages.
    pub fn delivered(&mut self, count: usize) -> Vec<(u64, bool)> {
        let number = |got| match got {
            Got::Delivered { offset, again, .. } => (offset, again),
            other => panic!("{other:?}"),
        };
        (0..count).map(|_| number(self.next())).collect()
    }
}
