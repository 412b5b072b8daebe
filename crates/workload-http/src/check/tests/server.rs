//! A server of a thread per connection, with one defect at a time.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use plimsoll_conformance::subject::{Bench, Ended, Environment, Server};

use super::Defect;
use super::answers::{answer, now_s, refusal};
use super::request::{Request, Rules, Step, first};
use crate::check::offer::Offer;

/// Where the defect is that it closes idle connections: after this.
const SHORT_IDLE: Duration = Duration::from_millis(100);

/// A bench whose servers have one defect.
pub(super) struct FakeBench {
    pub(super) offer: Offer,
    pub(super) defect: Defect,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) open: AtomicU64,
}

pub(super) struct Shared {
    pub(super) rules: Rules,
    pub(super) offer: Offer,
    pub(super) counters: Counters,
    /// The last sum, for a server that mixes up its clients.
    pub(super) last_sum: Mutex<String>,
    pub(super) started_s: u64,
    over: AtomicBool,
}

impl Bench for FakeBench {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Server>, String> {
        let text = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
        let address = listener.local_addr().map_err(text)?;
        let limit = environment.get("MAX_BODY_BYTES");
        let limit = limit.map_or(Ok(1024 * 1024), |text| text.parse());
        let shared = Arc::new(Shared {
            rules: Rules {
                defect: self.defect,
                max_body_bytes: limit.map_err(|_| "MAX_BODY_BYTES".to_owned())?,
            },
            offer: self.offer.clone(),
            counters: Counters::default(),
            last_sum: Mutex::default(),
            started_s: now_s(),
            over: AtomicBool::new(false),
        });
        let served = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if served.over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&served);
                thread::spawn(move || {
                    shared.counters.accepted.fetch_add(1, Ordering::Relaxed);
                    shared.counters.open.fetch_add(1, Ordering::Relaxed);
                    // A client that went away needs no answer.
                    let _ = serve(stream, &shared);
                    if shared.rules.defect != Defect::GaugeNeverFalls {
                        shared.counters.open.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Box::new(FakeServer { address, shared }))
    }

    fn start_refused(&self, _: &Environment, _: Duration) -> Result<Ended, String> {
        Err("this server reads no variables but one".to_owned())
    }
}

/// One connection.
struct Connection<'a> {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The client that waits for 100 got it.
    continued: bool,
    answers: usize,
    /// What the defect holds back, to send it in another order.
    held: Vec<Vec<u8>>,
    shared: &'a Shared,
}

fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    if shared.rules.defect == Defect::ClosesIdle {
        stream.set_read_timeout(Some(SHORT_IDLE))?;
    }
    let mut connection = Connection {
        stream,
        buffer: Vec::new(),
        continued: false,
        answers: 0,
        held: Vec::new(),
        shared,
    };
    while connection.step()? {}
    Ok(())
}

impl Connection<'_> {
    /// Does the next thing; false when it was the last.
    fn step(&mut self) -> std::io::Result<bool> {
        let defect = self.shared.rules.defect;
        match first(&self.buffer, self.shared.rules) {
            Step::More { expects } => {
                self.send_held()?;
                if expects && !self.continued && defect != Defect::NeverContinues {
                    self.continued = true;
                    if defect == Defect::RefusesExpectations {
                        return self.refuse(417);
                    }
                    self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
                }
                self.read()
            }
            Step::Bad(status) => self.refuse(status),
            Step::Whole(request, _)
                if request.expects && !self.continued && defect == Defect::DropsUnawaited =>
            {
                self.continued = true;
                self.buffer.truncate(request.head_len);
                self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
                Ok(true)
            }
            Step::Whole(request, len) => self.answer(&request, len),
        }
    }

    fn answer(&mut self, request: &Request, len: usize) -> std::io::Result<bool> {
        let defect = self.shared.rules.defect;
        let read = match defect {
            Defect::ForgetsBody if request.path != "/sum" => request.head_len,
            Defect::ReadsOneTooFew if len > request.head_len => len - 1,
            Defect::OnePerRead => self.buffer.len(),
            _ => len,
        };
        self.buffer.drain(..read);
        self.continued = false;
        self.answers += 1;
        let counts = match defect {
            Defect::CountsNoRequest => false,
            Defect::CountsByConnection => self.answers == 1,
            _ => true,
        };
        if counts {
            self.shared
                .counters
                .requests
                .fetch_add(1, Ordering::Relaxed);
        }
        self.send(answer(request, self.shared))?;
        let after = match defect {
            Defect::ClosesAfterHead => request.method == "HEAD",
            Defect::ClosesAfter404 => request.path.starts_with("/nothing"),
            Defect::ClosesAfter5000 => self.answers == 5000,
            _ => false,
        };
        let last = (request.close && defect != Defect::AnswersBehindClose) || after;
        if last {
            self.send_held()?;
            self.stream.shutdown(Shutdown::Both)?;
        }
        Ok(!last)
    }

    fn send(&mut self, answer: Vec<u8>) -> std::io::Result<()> {
        match self.shared.rules.defect {
            Defect::LastFirst => self.held.insert(0, answer),
            Defect::Stalls => {
                thread::sleep(Duration::from_millis(40));
                self.stream.write_all(&answer)?;
            }
            Defect::Twice => {
                self.stream.write_all(&answer)?;
                self.stream.write_all(&answer)?;
            }
            _ => self.stream.write_all(&answer)?,
        }
        Ok(())
    }

    fn send_held(&mut self) -> std::io::Result<()> {
        let held: Vec<u8> = self.held.drain(..).flatten().collect();
        self.stream.write_all(&held)
    }

    /// Takes in what comes; false at the end.
    fn read(&mut self) -> std::io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        let n = self.stream.read(&mut buffer)?;
        if n == 0 && !self.buffer.is_empty() {
            if self.shared.rules.defect == Defect::SumsWhatCame {
                let cut_off = Request {
                    method: "POST".to_owned(),
                    path: "/sum".to_owned(),
                    body: b"hello".to_vec(),
                    head_len: 0,
                    close: true,
                    expects: false,
                };
                self.stream.write_all(&answer(&cut_off, self.shared))?;
                return Ok(false);
            }
            return self.refuse(400);
        }
        self.buffer.extend_from_slice(&buffer[..n]);
        Ok(n > 0)
    }

    fn refuse(&mut self, status: u16) -> std::io::Result<bool> {
        let refusal = refusal(status, self.shared);
        self.stream.write_all(&refusal)?;
        if self.shared.rules.defect == Defect::ReadsOnAfterRefusal {
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            self.buffer
                .drain(..end.map_or(self.buffer.len(), |end| end + 4));
            // Of chunks, the last ends in an empty line, too.
            let chunks = self.buffer.starts_with(b"0\r\n\r\n");
            self.buffer.drain(..if chunks { 5 } else { 0 });
            return Ok(!self.buffer.is_empty());
        }
        self.stream.shutdown(Shutdown::Write)?;
        // What the client still sends would otherwise reset the connection, and the answer with it.
        self.stream
            .set_read_timeout(Some(Duration::from_millis(500)))?;
        let mut buffer = [0; 64 * 1024];
        while self.stream.read(&mut buffer)? > 0 {}
        Ok(false)
    }
}

struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server for FakeServer {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn output(&self) -> String {
        "{\"runtime\":\"rust 1.0\"}\n".to_owned()
    }

    fn terminate(&self) -> Result<(), String> {
        Err("this server has no process".to_owned())
    }

    fn wait(&self, _: Duration) -> Result<Option<i32>, String> {
        Err("this server has no process".to_owned())
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Has the thread that accepts see it.
        drop(TcpStream::connect(self.address));
    }
}
