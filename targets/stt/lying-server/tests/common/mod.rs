//! The program as a child process, and a client of its sessions.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tungstenite::error::Error;
use tungstenite::{Message, WebSocket};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// An upgrade with the key of RFC 6455's example.
pub(crate) const UPGRADE: &[u8] =
    b"GET /ws/stt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) start_line: Value,
}

impl Server {
    /// The command with fast flushes and these variables.
    pub(crate) fn command(variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lying-server"));
        command
            .env_clear()
            .envs([
                ("PORT", "0"),
                ("FLUSH_INTERVAL_MS", "50"),
                ("FLUSH_PHASE_JITTER_MS", "0"),
                ("MODEL_DELAY_MS", "10"),
            ])
            .envs(variables.iter().copied());
        command
    }

    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        let mut child = Self::command(variables)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let start_line: Value = serde_json::from_str(&line).unwrap();
        let port = u16::try_from(start_line["port"].as_u64().unwrap()).unwrap();
        Self {
            child,
            port,
            start_line,
        }
    }

    /// The whole response to a GET.
    pub(crate) fn get(&self, path: &str) -> String {
        self.try_get(path).unwrap()
    }

    fn try_get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    }

    /// Waits until it answers again.
    pub(crate) fn await_ready(&self) {
        let began = Instant::now();
        while !self
            .try_get("/health")
            .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
        {
            assert!(began.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until its own counter shows that many frames.
    pub(crate) fn await_frames(&self, frames: u64) {
        self.await_line(&format!("stt_frames_total {frames}"));
    }

    /// Waits until its metrics have this line.
    pub(crate) fn await_line(&self, line: &str) {
        let began = Instant::now();
        while !self.get("/metrics").lines().any(|have| have == line) {
            assert!(began.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
    }

    pub(crate) fn exit_status(&mut self) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("still running");
    }

    /// `VmRSS` of the process.
    pub(crate) fn resident_kib(&self) -> u64 {
        let file = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(file).unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// User CPU time of the process, in clock ticks.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let file = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(file).unwrap();
        // utime is field 14; the name in parentheses, field 2, may hold anything.
        let after_name = text.rsplit(')').next().unwrap();
        after_name
            .split_whitespace()
            .nth(11)
            .unwrap()
            .parse()
            .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already: then there is nothing to end.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// One session that has started.
pub(crate) struct Client {
    socket: WebSocket<TcpStream>,
    spoken: u64,
}

impl Client {
    pub(crate) fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let address = format!("ws://127.0.0.1:{}/ws/stt", server.port);
        let (mut socket, _) = tungstenite::client(address, stream).unwrap();
        socket.send(Message::text(r#"{"type":"start"}"#)).unwrap();
        Self { socket, spoken: 0 }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        self.socket.get_mut()
    }

    /// Sends the next synthetic frames of session 0.
    pub(crate) fn speak(&mut self, frames: u64) {
        for _ in 0..frames {
            self.spoken += 1;
            self.socket
                .send(Message::binary(audio(self.spoken)))
                .unwrap();
        }
    }

    pub(crate) fn next_message(&mut self) -> Message {
        self.socket.read().unwrap()
    }

    pub(crate) fn next_partial(&mut self) -> Value {
        let Message::Text(text) = self.next_message() else {
            panic!("no text");
        };
        serde_json::from_str(&text).unwrap()
    }

    /// The next partial, if it comes in that time.
    pub(crate) fn partial_within(&mut self, time: Duration) -> Option<Value> {
        self.stream().set_read_timeout(Some(time)).unwrap();
        let read = self.socket.read();
        self.stream().set_read_timeout(Some(PATIENCE)).unwrap();
        match read {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
            Err(Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Every frame named by the partials up to the one that names `last`.
    pub(crate) fn named_until(&mut self, last: u64) -> Vec<u64> {
        let mut named = Vec::new();
        while named.last() < Some(&last) {
            let partial = self.next_partial();
            let seq = |key: &str| partial[key].as_u64().unwrap();
            named.extend(seq("oldest_frame_seq")..=seq("newest_frame_seq"));
        }
        named
    }

    /// Reads to the connection's end.
    pub(crate) fn end(&mut self) -> Error {
        loop {
            if let Err(error) = self.socket.read() {
                return error;
            }
        }
    }

    /// The code of the server's close frame, which is the next but for partials.
    pub(crate) fn close_code(&mut self) -> Option<u16> {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// One frame and its answer show that the session has started; after that time more, so has what begins then.
    pub(crate) fn outlast(&mut self, time: Duration) {
        self.speak(1);
        assert_eq!(self.next_partial()["newest_frame_seq"], 1);
        std::thread::sleep(time);
    }

    /// Whether the socket is full before that many bytes are sent.
    pub(crate) fn blocks_within_bytes(&mut self, bytes: usize) -> bool {
        self.stream()
            .set_write_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let chunk = [0; 64 << 10];
        let mut sent = 0;
        while sent < bytes {
            match self.stream().write(&chunk) {
                Ok(taken) => sent += taken,
                Err(error) => {
                    return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                }
            }
        }
        false
    }
}

/// The synthetic frame of the contract, session 0.
fn audio(seq: u64) -> Vec<u8> {
    (0..320)
        .map(|i| i16::try_from((seq * 320 + i) * 17 % 20_000).unwrap() - 10_000)
        .flat_map(i16::to_le_bytes)
        .collect()
}
