//! Servers of workload `http`: the lying one as a process of the test, whose counters can be read; and one that closes
//! connections under requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::built;

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(30);

/// An honest lying server on the loopback, which the test starts itself. It ends when this value is dropped.
pub(crate) struct Lying {
    child: Child,
    port: u16,
}

impl Lying {
    /// Starts it, and waits until it serves.
    pub(crate) fn honest() -> Self {
        let program = built("http/lying-http");
        let deadline = Instant::now() + START_WITHIN;
        loop {
            // Somebody else may take the port in between. Then the server ends, and another port is tried.
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = free.local_addr().expect("an address").port();
            drop(free);
            let child = Command::new(&program)
                .env("PORT", port.to_string())
                .env_remove("FAULT")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .expect("the lying server starts");
            let mut server = Self { child, port };
            while server
                .child
                .try_wait()
                .expect("it can be waited for")
                .is_none()
            {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return server;
                }
                assert!(Instant::now() < deadline, "the lying server never listens");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(Instant::now() < deadline, "the lying server never starts");
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// A counter of its `/metrics`. Asking for it takes one connection and one request, which are counted.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let asked = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(asked.as_bytes()).expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let value = answer.lines().find_map(|line| line.strip_prefix(name));
        let value = value.and_then(|value| value.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no `{name}` in {answer}"))
    }
}

impl Drop for Lying {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Starts a server that answers this many requests of each connection. It reads one more and closes the connection
/// instead of answering, as a server does whose idle limit ends just then. So a client can't but meet each close with a
/// request. It runs until the test program ends; returns its address.
pub(crate) fn closing_under_requests(answers: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream, answers));
        }
    });
    url
}

fn answer(stream: TcpStream, answers: u64) {
    stream.set_nodelay(true).expect("TCP_NODELAY");
    let mut writer = stream.try_clone().expect("a second handle");
    let mut reader = BufReader::new(stream);
    for number in 0..=answers {
        if take_request(&mut reader).is_none() || number == answers {
            return;
        }
        let written = writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        if written.is_err() {
            return;
        }
    }
}

/// Reads a request with its body; `None` when the client closes.
fn take_request(reader: &mut BufReader<TcpStream>) -> Option<()> {
    let mut body_bytes = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length:") {
            body_bytes = length.trim().parse().ok()?;
        }
        if line.is_empty() {
            let mut body = vec![0; body_bytes];
            return reader.read_exact(&mut body).ok();
        }
    }
}
