//! A client that sends the bytes that it is given, and reads answers strictly.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
#[derive(Debug)]
pub struct Client {
    /// Its socket.
    pub socket: TcpStream,
    /// What came behind the last answer.
    ahead: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its header fields; the names in lower case.
    pub fields: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a field; no field may come twice.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let first = values.next();
        assert_eq!(values.next(), None, "{name} comes twice");
        first
    }

    /// Whether the server says that it closes.
    pub fn closes(&self) -> bool {
        self.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The head as it must be, whatever the body.
    fn check(&self) {
        assert_eq!(self.field("transfer-encoding"), None, "{self:?}");
        let date = self.field("date").expect("a date");
        assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
    }
}

impl Client {
    /// Connects to a port of this machine.
    pub fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        socket.set_nodelay(true).expect("set");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        socket.set_write_timeout(Some(PATIENCE)).expect("set");
        Self { socket, ahead: Vec::new() }
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).expect("written");
    }

    /// Asks for a path.
    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        self.receive()
    }

    /// Posts a body of known length.
    pub fn post(&mut self, path: &str, body: &[u8]) -> Answer {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        self.send([head.as_bytes(), body].concat());
        self.receive()
    }

    /// The next answer.
    pub fn receive(&mut self) -> Answer {
        self.try_receive(true).expect("an answer")
    }

    /// The next answer, to a HEAD.
    pub fn receive_head(&mut self) -> Answer {
        self.try_receive(false).expect("an answer")
    }

    /// The next answer; `None` if the connection ends before it begins.
    pub fn try_receive(&mut self, has_body: bool) -> Option<Answer> {
        let head_bytes = loop {
            if let Some(at) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.read_more() {
                assert_eq!(String::from_utf8_lossy(&self.ahead), "", "an answer cut off");
                return None;
            }
        };
        let head = String::from_utf8(self.ahead.drain(..head_bytes).collect()).expect("a head of text");
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().expect("a line");
        let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest[..3].parse().ok()).expect(status_line);
        let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let fields = lines.map(|line| field(line).unwrap_or_else(|| panic!("{line:?}"))).collect();
        let mut answer = Answer { status, fields, body: Vec::new() };
        if status == 100 {
            return Some(answer);
        }
        answer.check();
        if has_body {
            let length = answer.field("content-length").expect("a length").parse::<usize>().expect("a number");
            while self.ahead.len() < length {
                assert!(self.read_more(), "a body cut off: {} of {length} bytes", self.ahead.len());
            }
            answer.body = self.ahead.drain(..length).collect();
        }
        Some(answer)
    }

    /// Reads what there is; false at the end of the connection, orderly or not.
    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        match self.socket.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => self.read_more(),
            Ok(length) => {
                self.ahead.extend_from_slice(&buffer[..length]);
                length > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer in time: {error}"),
        }
    }

    /// Reads exactly so many bytes.
    pub fn read(&mut self, length: usize) -> Vec<u8> {
        while self.ahead.len() < length {
            assert!(self.read_more(), "the connection ended");
        }
        self.ahead.drain(..length).collect()
    }

    /// How many bytes there are to be read, one at most; 0 at the end of the connection.
    pub(super) fn socket_peek(&mut self, buffer: &mut [u8; 1]) -> usize {
        if !self.ahead.is_empty() {
            return 1;
        }
        match self.socket.peek(buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("nothing in time: {error}"),
        }
    }

    /// Puts bytes back, as if they had not been read.
    pub(super) fn unread(&mut self, bytes: &[u8]) {
        self.ahead.splice(..0, bytes.iter().copied());
    }

    /// Expects that the server ends the connection without saying more.
    pub fn expect_end(&mut self) {
        assert_eq!(self.try_receive(true), None);
    }
}

/// CRC-32 bit by bit, so that it is not the code that is tested.
pub fn crc32(bytes: &[u8]) -> u32 {
    let rest = bytes.iter().fold(u32::MAX, |rest, byte| {
        (0..8).fold(rest ^ u32::from(*byte), |rest, _| if rest & 1 == 1 { rest >> 1 ^ 0xEDB8_8320 } else { rest >> 1 })
    });
    !rest
}
