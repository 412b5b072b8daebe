//! A server of a thread per connection, with one defect at a time.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use plimsoll_conformance::case::poll;
use plimsoll_conformance::subject::{Bench, Ended, Environment, Server};

use super::Defect;
use super::answers::{answer, refusal};
use super::h2_server;
use super::lifecycle::{Life, refused};
use super::request::{Request, Rules, Step, first};
use crate::check::offer::{Offer, Protocol};

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
    /// Bytes of answers that are not written.
    held: AtomicU64,
}

pub(super) struct Shared {
    pub(super) rules: Rules,
    pub(super) offer: Offer,
    pub(super) counters: Counters,
    /// The last sum, for a server that mixes up its clients.
    pub(super) last_sum: Mutex<String>,
    pub(super) started: SystemTime,
    pub(super) life: Life,
    over: AtomicBool,
}

/// How many connections may wait to be accepted; the kernel's own limit is usually as high.
const BACKLOG: i32 = 4096;

impl Bench for FakeBench {
    fn start(&self, environment: &Environment) -> Result<Box<dyn Server>, String> {
        let text = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
        // The standard library listens for 128. Some cases open more before the thread below gets a core; the kernel then
        // drops what does not fit, and its client waits for a second or three.
        socket2::SockRef::from(&listener)
            .listen(BACKLOG)
            .map_err(text)?;
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
            started: SystemTime::now(),
            life: Life::new(self.defect, environment),
            over: AtomicBool::new(false),
        });
        let served = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if served.over.load(Ordering::Relaxed) || !served.life.accepts() {
                    return;
                }
                let busy = served.counters.open.load(Ordering::Relaxed);
                if served.rules.defect == Defect::OneClientPerWorker
                    && busy >= served.life.workers.into()
                {
                    continue;
                }
                served.counters.accepted.fetch_add(1, Ordering::Relaxed);
                served.counters.open.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(&served);
                thread::spawn(move || {
                    // A client that went away needs no answer.
                    let _ = serve_to_the_end(stream, &shared);
                    if shared.rules.defect != Defect::GaugeNeverFalls {
                        shared.counters.open.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Box::new(FakeServer { address, shared }))
    }

    fn start_refused(&self, environment: &Environment, _: Duration) -> Result<Ended, String> {
        refused(self.defect, environment)
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
    /// What the defect keeps, to write it once the client reads.
    later: Option<Sender<Vec<u8>>>,
    shared: &'a Shared,
}

fn serve_to_the_end(stream: TcpStream, shared: &Arc<Shared>) -> std::io::Result<()> {
    // Others hold the connection, too, so that it does not end when it is dropped.
    shared.life.keep(&stream)?;
    let end = stream.try_clone()?;
    let served = serve(stream, shared);
    end.shutdown(Shutdown::Both)?;
    served
}

fn serve(stream: TcpStream, shared: &Arc<Shared>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let keeps = shared.rules.defect == Defect::KeepsEveryAnswer;
    let later = keeps.then(|| write_later(&stream, shared)).transpose()?;
    let mut connection = Connection {
        stream,
        buffer: Vec::new(),
        continued: false,
        answers: 0,
        held: Vec::new(),
        later,
        shared,
    };
    while connection.step()? {
        let preface = connection.buffer.starts_with(b"PRI * HTTP/2.0");
        if preface && shared.offer.protocols.contains(&Protocol::H2c) {
            return h2_server::serve(connection.stream, connection.buffer, shared);
        }
    }
    Ok(())
}

/// A thread that writes what it is given, however much that is. The bytes count until then.
fn write_later(stream: &TcpStream, shared: &Arc<Shared>) -> std::io::Result<Sender<Vec<u8>>> {
    let mut stream = stream.try_clone()?;
    let shared = Arc::clone(shared);
    let (sender, answers) = channel::<Vec<u8>>();
    thread::spawn(move || {
        for answer in answers {
            // A client that went away needs no answer.
            let _ = stream.write_all(&answer);
            let len = answer.len() as u64;
            shared.counters.held.fetch_sub(len, Ordering::Relaxed);
        }
    });
    Ok(sender)
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
        self.shared.life.take_turn();
        self.send(answer(request, self.shared))?;
        let after = match defect {
            Defect::ClosesAfterHead => request.method == "HEAD",
            Defect::ClosesAfter404 => request.path.starts_with("/nothing"),
            Defect::ClosesAfter5000 => self.answers == 5000,
            _ => false,
        };
        let draining = self.shared.life.is_draining();
        let last = draining || (request.close && defect != Defect::AnswersBehindClose) || after;
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
            _ => match &self.later {
                Some(later) => {
                    let len = answer.len() as u64;
                    self.shared.counters.held.fetch_add(len, Ordering::Relaxed);
                    // The thread that writes outlives this one.
                    let _ = later.send(answer);
                }
                None => self.stream.write_all(&answer)?,
            },
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
        let in_request = !self.buffer.is_empty();
        let read = self
            .shared
            .life
            .read(&mut self.stream, &mut buffer, || in_request)?;
        let Some(n) = read else {
            return Ok(false);
        };
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
        match self.shared.rules.defect {
            Defect::SaysNoVersion => "{\"port\":3000}\n".to_owned(),
            _ => "{\"runtime\":\"rust 1.0\"}\n".to_owned(),
        }
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.shared.counters.held.load(Ordering::Relaxed))
    }

    fn terminate(&self) -> Result<(), String> {
        self.shared.life.begin_to_end();
        // Has the thread that accepts see it.
        drop(TcpStream::connect(self.address));
        Ok(())
    }

    fn wait(&self, limit: Duration) -> Result<Option<i32>, String> {
        let (code, _) = poll(limit, || {
            let open = self.shared.counters.open.load(Ordering::Relaxed);
            let code = self.shared.life.exit_code(open);
            Ok((code, code.is_some()))
        })?;
        Ok(code)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Has the thread that accepts see it.
        drop(TcpStream::connect(self.address));
    }
}
