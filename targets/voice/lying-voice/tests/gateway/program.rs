//! The gateway as a child process, asked over real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An upgrade with the key of RFC 6455's example.
pub(crate) const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A running gateway; killed when dropped.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) port: u16,
    pub(crate) start_line: Value,
}

/// The command with these variables and no others.
pub(crate) fn command(variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lying-voice"));
    command.env_clear().env("PORT", "0").envs(variables.iter().copied());
    command
}

impl Gateway {
    /// Started with providers at this address.
    pub(crate) fn start(providers: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = command(variables);
        let mut child =
            command.env("PROVIDER_URLS", providers).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let start_line: Value = serde_json::from_str(&line).expect("JSON");
        let port = start_line["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        Self { child, port, start_line }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.port)
    }

    /// What comes back for this request, until the end of the connection.
    pub(crate) fn ask(&self, request: &str) -> Answer {
        ask(self.port, request)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        get(self.port, path)
    }

    pub(crate) fn post_speak(&self, body: &str) -> Answer {
        let length = body.len();
        self.ask(&format!("POST /speak HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"))
    }

    /// The answer's head to an upgrade, which may be a refusal.
    pub(crate) fn upgrade(&self, more_headers: &str) -> (TcpStream, String) {
        let mut stream = self.connect();
        let request = UPGRADE.replacen("\r\n", &format!("\r\n{more_headers}"), 1);
        stream.write_all(request.as_bytes()).expect("written");
        let head = read_head(&mut stream);
        (stream, head)
    }

    /// One series of the metrics; 0 where it is missing.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let text = String::from_utf8(self.get("/metrics").body).expect("text");
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0, |number| number.parse().expect("a number"))
    }

    /// Waits until that series has that value.
    pub(crate) fn await_metric(&self, series: &str, value: u64) {
        await_that(|| self.metric(series) == value, &format!("{series} {value}, it is {}", self.metric(series)));
    }

    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("kill").success());
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("waited") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it still runs");
    }

    /// `VmRSS` of the process.
    pub(crate) fn resident_kib(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have exited already: then there is nothing to end.
        let _exited = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.set_nodelay(true).expect("set");
    stream
}

fn ask(port: u16, request: &str) -> Answer {
    let mut stream = connect(port);
    let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    stream.write_all(request.as_bytes()).expect("written");
    Answer::read(&mut stream)
}

/// The answer to a GET of this path at this port.
pub(crate) fn get(port: u16, path: &str) -> Answer {
    ask(port, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

/// Waits until something holds.
pub(crate) fn await_that(holds: impl Fn() -> bool, what: &str) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
    /// The body has its length, or its last chunk.
    pub(crate) is_whole: bool,
}

impl Answer {
    fn read(stream: &mut TcpStream) -> Self {
        let head = read_head(stream);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut rest = Vec::new();
        // A body that is cut may end in a reset.
        let _ = stream.read_to_end(&mut rest);
        let mut answer = Self { status, head, body: rest, is_whole: false };
        if answer.header("transfer-encoding").as_deref() == Some("chunked") {
            answer.unchunk();
        } else {
            let length = answer.header("content-length").and_then(|length| length.parse().ok());
            answer.is_whole = length == Some(answer.body.len());
        }
        answer
    }

    fn unchunk(&mut self) {
        let chunked = std::mem::take(&mut self.body);
        let mut rest = chunked.as_slice();
        while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
            let length = std::str::from_utf8(&rest[..end]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
            let length = length.expect("a chunk's length");
            if length == 0 {
                self.is_whole = true;
                return;
            }
            let Some(chunk) = rest.get(end + 2..end + 2 + length) else { return };
            self.body.extend_from_slice(chunk);
            rest = rest.get(end + 4 + length..).unwrap_or_default();
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.trim().to_owned())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// The head of a message, byte by byte, so that nothing behind it is taken.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&head)),
        }
    }
    String::from_utf8(head).expect("text")
}
