//! A gateway of a thread per session, good enough for most cases, with one defect at a time.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_workloads::websocket::handshake::accept_for;
use plimsoll_workloads::websocket::{Opcode, RawFrame, close};
use serde_json::json;

use super::Defect;
use super::bench::{Model, Outcome};
use super::wire::{ClientFrame, Request, Strictness, take_frame};
use crate::check::laboratory::VARIABLES;
use crate::check::subject::{Environment, Gateway};

/// The variables that this gateway knows.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) inference_url: String,
    inference_timeout: Duration,
    interval: Duration,
    jitter: Duration,
    start_timeout: Duration,
    passes: u32,
    model_delay_ms: u64,
    max_sessions: u64,
    token: String,
}

impl Settings {
    pub(super) fn parse(environment: &Environment) -> Result<Self, String> {
        let number = |name: &str, default: u64| match environment.get(name) {
            None => Ok(default),
            Some(value) => value
                .parse::<u64>()
                .map_err(|_| format!("{name}={value} is not a number")),
        };
        for name in VARIABLES {
            if !matches!(name, "INFERENCE_URL" | "OVERFLOW_POLICY" | "AUTH_TOKEN") {
                number(name, 0)?;
            }
        }
        if number("PORT", 0)? > 65_535 {
            return Err("PORT is over 65535".to_owned());
        }
        let policy = environment
            .get("OVERFLOW_POLICY")
            .map_or("drop_oldest", String::as_str);
        if !["drop_oldest", "drop_newest", "close"].contains(&policy) {
            return Err(format!("OVERFLOW_POLICY={policy} is unknown"));
        }
        let text = |name: &str| environment.get(name).cloned().unwrap_or_default();
        Ok(Self {
            inference_url: text("INFERENCE_URL"),
            inference_timeout: Duration::from_millis(number("INFERENCE_TIMEOUT_MS", 5000)?),
            interval: Duration::from_millis(number("FLUSH_INTERVAL_MS", 1000)?),
            jitter: Duration::from_millis(number("FLUSH_PHASE_JITTER_MS", 1000)?),
            start_timeout: Duration::from_millis(number("START_TIMEOUT_MS", 10_000)?),
            passes: u32::try_from(number("CPU_PASSES", 4)?)
                .map_err(|_| "CPU_PASSES is too large")?,
            model_delay_ms: number("MODEL_DELAY_MS", 75)?,
            max_sessions: number("MAX_SESSIONS", 0)?,
            token: text("AUTH_TOKEN"),
        })
    }
}

#[derive(Default)]
struct Counters {
    sessions: AtomicU64,
    sessions_total: AtomicU64,
    rejected: AtomicU64,
    frames: AtomicU64,
    partials: AtomicU64,
    deferred: AtomicU64,
}

struct Shared {
    settings: Settings,
    model: Arc<Model>,
    defect: Defect,
    counters: Counters,
}

struct FakeGateway {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

/// Listens on a free port; a thread for each connection.
pub(super) fn start(
    settings: Settings,
    model: Arc<Model>,
    defect: Defect,
) -> Result<Box<dyn Gateway>, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let shared = Arc::new(Shared {
        settings,
        model,
        defect,
        counters: Counters::default(),
    });
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            let shared = Arc::clone(&shared);
            thread::spawn(move || serve(stream, &shared));
        }
    });
    Ok(Box::new(FakeGateway { address, stop }))
}

impl Gateway for FakeGateway {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn output(&self) -> String {
        "{\"runtime\":\"rust 1.0\"}\n".to_owned()
    }

    fn terminate(&self) -> Result<(), String> {
        Err("a thread takes no signals".to_owned())
    }

    fn wait(&self, _limit: Duration) -> Result<Option<i32>, String> {
        Ok(None)
    }
}

impl Drop for FakeGateway {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    // An error means that the client has gone: there is nobody to tell.
    let _ = stream.set_nodelay(true);
    let Some(request) = Request::read(&mut stream) else {
        return;
    };
    let upgrade = request.headers.contains_key("upgrade");
    let (status, body) = match request.path.as_str() {
        "/ws/stt" if upgrade => return upgrade_or_refuse(stream, request, shared),
        "/ws/stt" => ("426 Upgrade Required", String::new()),
        "/health" => ("200 OK", String::new()),
        "/metrics" => ("200 OK", metrics(&shared.counters)),
        _ if shared.defect == Defect::AnyPath => ("200 OK", String::new()),
        _ => ("404 Not Found", String::new()),
    };
    answer(&mut stream, status, "", &body);
}

fn answer(stream: &mut TcpStream, status: &str, header: &str, body: &str) {
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n{header}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
}

fn metrics(counters: &Counters) -> String {
    let get = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    let mut text = format!(
        "# TYPE stt_errors_total counter\n# TYPE stt_ticks_deferred_total counter\n\
         stt_ticks_deferred_total{{reason=\"inflight\"}} {}\n",
        get(&counters.deferred)
    );
    for (name, kind, value) in [
        ("stt_sessions", "gauge", get(&counters.sessions)),
        (
            "stt_sessions_total",
            "counter",
            get(&counters.sessions_total),
        ),
        (
            "stt_sessions_rejected_total",
            "counter",
            get(&counters.rejected),
        ),
        ("stt_frames_total", "counter", get(&counters.frames)),
        ("stt_frames_dropped_total", "counter", 0),
        ("stt_partials_total", "counter", get(&counters.partials)),
        ("stt_jobs_inflight", "gauge", 0),
    ] {
        text += &format!("# TYPE {name} {kind}\n{name} {value}\n");
    }
    for name in [
        "stt_buffer_frames",
        "stt_flush_lateness_seconds",
        "stt_inference_seconds",
    ] {
        text += &format!(
            "# TYPE {name} histogram\n{name}_bucket{{le=\"+Inf\"}} 0\n{name}_sum 0\n{name}_count 0\n"
        );
    }
    text
}

fn upgrade_or_refuse(mut stream: TcpStream, request: Request, shared: &Shared) {
    let (settings, counters, defect) = (&shared.settings, &shared.counters, shared.defect);
    let token = request
        .headers
        .get("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    let allowed = match token {
        Some(token) if defect == Defect::PrefixToken => token.starts_with(&settings.token),
        Some(token) => token == settings.token,
        None => false,
    };
    if !settings.token.is_empty() && !allowed {
        return answer(&mut stream, "401 Unauthorized", "", "");
    }
    let open = counters.sessions.fetch_add(1, Ordering::SeqCst) + 1;
    if settings.max_sessions > 0 && open > settings.max_sessions && defect != Defect::NoAdmission {
        counters.sessions.fetch_sub(1, Ordering::SeqCst);
        counters.rejected.fetch_add(1, Ordering::SeqCst);
        let header = if defect == Defect::NoRetryAfter {
            ""
        } else {
            "Retry-After: 1\r\n"
        };
        return answer(&mut stream, "503 Service Unavailable", header, "");
    }
    counters.sessions_total.fetch_add(1, Ordering::SeqCst);
    let key = request
        .headers
        .get("sec-websocket-key")
        .map_or("", String::as_str);
    let _ = write!(
        stream,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        accept_for(key)
    );
    FakeSession::new(stream, request.rest, shared).run();
    counters.sessions.fetch_sub(1, Ordering::SeqCst);
}

/// A batch on its way.
struct Batch {
    oldest: u64,
    frames: u64,
    due: Instant,
    sent: Instant,
    pcm: Vec<u8>,
}

type Done = (Batch, Outcome);

struct FakeSession<'a> {
    stream: TcpStream,
    bytes: Vec<u8>,
    shared: &'a Shared,
    started: bool,
    begun: Instant,
    next_tick: Instant,
    buffer: Vec<u8>,
    buffered_from: u64,
    received: u64,
    in_flight: u64,
    batches: u64,
    done: (Sender<Done>, Receiver<Done>),
    fragments: Option<(u8, Vec<u8>)>,
}

/// How a session ends: with a close code, or without a word because the client has gone.
type Ended = Option<u16>;

impl<'a> FakeSession<'a> {
    fn new(stream: TcpStream, bytes: Vec<u8>, shared: &'a Shared) -> Self {
        let now = Instant::now();
        Self {
            stream,
            bytes,
            shared,
            started: false,
            begun: now,
            next_tick: now,
            buffer: Vec::new(),
            buffered_from: 1,
            received: 0,
            in_flight: 0,
            batches: 0,
            done: channel(),
            fragments: None,
        }
    }

    fn run(mut self) {
        let ended = loop {
            if let Err(ended) = self.turn() {
                break ended;
            }
        };
        if let Some(code) = ended {
            if self.shared.defect == Defect::LateClose {
                thread::sleep(Duration::from_millis(700));
            }
            self.send(Opcode::Close, &close::payload(code, ""));
            self.linger();
        }
    }

    /// Ends as TCP should: otherwise bytes unread would reset the connection and take the close frame with them.
    fn linger(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let _ = self
            .stream
            .set_read_timeout(Some(Duration::from_millis(300)));
        let mut sink = [0; 4096];
        while matches!(self.stream.read(&mut sink), Ok(n) if n > 0) {}
    }

    fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        let _ = self
            .stream
            .write_all(&RawFrame::server(opcode, payload).to_vec());
    }

    /// One turn: frames, answers, the tick, and a short wait for bytes.
    fn turn(&mut self) -> Result<(), Ended> {
        let defect = self.shared.defect;
        let allowed = Strictness {
            unmasked: defect == Defect::TakesUnmasked,
            length_max: if defect == Defect::WaitsForBody {
                u64::MAX
            } else {
                65_536
            },
        };
        while let Some(frame) =
            take_frame(&mut self.bytes, allowed).map_err(|code| self.code(code))?
        {
            self.take(frame)?;
        }
        while let Ok((batch, outcome)) = self.done.1.try_recv() {
            self.finish(&batch, outcome);
        }
        let now = Instant::now();
        if self.started && now >= self.next_tick {
            self.tick(now);
        }
        let overdue = !self.started && self.begun.elapsed() > self.shared.settings.start_timeout;
        if overdue && defect != Defect::NoStartTimeout {
            return Err(self.code(1002));
        }
        self.read()
    }

    fn read(&mut self) -> Result<(), Ended> {
        let _ = self.stream.set_read_timeout(Some(Duration::from_millis(2)));
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(None),
            Ok(n) => {
                self.bytes.extend_from_slice(&buffer[..n]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(())
            }
            Err(_) => Err(None),
        }
    }

    fn code(&self, code: u16) -> Ended {
        Some(
            if self.shared.defect == Defect::WrongCloseCode && code == 1002 {
                1000
            } else {
                code
            },
        )
    }

    fn take(&mut self, frame: ClientFrame) -> Result<(), Ended> {
        match frame.opcode {
            8 => {
                let code = frame
                    .payload
                    .first_chunk::<2>()
                    .map_or(1000, |bytes| u16::from_be_bytes(*bytes));
                return Err(if close::may_be_sent(code) {
                    Some(code)
                } else {
                    self.code(1002)
                });
            }
            9 => {
                let payload: &[u8] = if self.shared.defect == Defect::EmptyPong {
                    &[]
                } else {
                    &frame.payload
                };
                self.send(Opcode::Pong, payload);
                return Ok(());
            }
            10 => return Ok(()),
            _ => {}
        }
        let (opcode, payload) = match (frame.opcode, self.fragments.take()) {
            (0, Some((opcode, mut message))) => {
                message.extend(frame.payload);
                (opcode, message)
            }
            (0, None) | (_, Some(_)) => return Err(self.code(1002)),
            (opcode, None) => (opcode, frame.payload),
        };
        if payload.len() > 65_536 {
            return Err(Some(1009));
        }
        if !frame.fin {
            self.fragments = Some((opcode, payload));
            return Ok(());
        }
        self.message(opcode, &payload)
    }

    fn message(&mut self, opcode: u8, payload: &[u8]) -> Result<(), Ended> {
        if !self.started {
            if opcode != 1 || !is_start(payload, self.shared.defect) {
                return Err(self.code(1002));
            }
            self.started = true;
            self.next_tick = Instant::now() + self.shared.settings.interval + self.phase();
            return Ok(());
        }
        if opcode == 1 {
            return Err(self.code(1002));
        }
        if payload.len() != 640 && self.shared.defect != Defect::AnySize {
            return Err(Some(1003));
        }
        self.received += 1;
        self.shared.counters.frames.fetch_add(1, Ordering::SeqCst);
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    /// A session's jitter, drawn from where its socket came from.
    fn phase(&self) -> Duration {
        static DRAWS: Mutex<VecDeque<u32>> = Mutex::new(VecDeque::new());
        if self.shared.defect == Defect::NoJitter {
            return Duration::ZERO;
        }
        let mut draws = DRAWS.lock().expect("sound");
        if draws.is_empty() {
            draws.extend([0, 7, 3, 9, 5, 1, 8, 4, 2, 6]);
        }
        self.shared.settings.jitter * draws.pop_front().unwrap_or(0) / 10
    }

    fn tick(&mut self, now: Instant) {
        let defect = self.shared.defect;
        let due = self.next_tick;
        if self.in_flight > 0 && defect != Defect::TwoInFlight {
            self.shared.counters.deferred.fetch_add(1, Ordering::SeqCst);
            // With this defect the tick stays due, and goes when the answer has come.
            if defect != Defect::FlushOnAnswer {
                self.next_tick += self.shared.settings.interval;
            }
            return;
        }
        self.next_tick = match defect {
            Defect::RelativeSchedule => {
                now + self.shared.settings.interval + Duration::from_millis(10)
            }
            Defect::FlushOnAnswer => now + self.shared.settings.interval,
            _ => due + self.shared.settings.interval,
        };
        if self.buffer.is_empty() {
            return;
        }
        self.flush(due, now);
    }

    fn flush(&mut self, due: Instant, now: Instant) {
        let frames = self.received - self.buffered_from + 1;
        let batch = Batch {
            oldest: self.buffered_from,
            frames,
            due,
            sent: now,
            pcm: std::mem::take(&mut self.buffer),
        };
        self.buffered_from = self.received + 1;
        self.batches += 1;
        if self.shared.defect == Defect::DroppedFlush && self.batches.is_multiple_of(2) {
            return;
        }
        self.in_flight += 1;
        let (model, done) = (Arc::clone(&self.shared.model), self.done.0.clone());
        let (passes, defect) = (self.shared.settings.passes, self.shared.defect);
        let timeout = self.shared.settings.inference_timeout;
        thread::spawn(move || {
            let version = if defect == Defect::OtherTransport {
                "HTTP/1.1"
            } else {
                "HTTP/2.0"
            };
            let kind = if defect == Defect::WrongContentType {
                "text/plain"
            } else {
                "application/octet-stream"
            };
            let outcome = model.infer(&batch.pcm, passes, version, kind);
            if matches!(outcome, Outcome::Never) {
                thread::sleep((batch.sent + timeout).saturating_duration_since(Instant::now()));
            }
            // The session may be over.
            let _ = done.send((batch, outcome));
        });
    }

    fn finish(&mut self, batch: &Batch, outcome: Outcome) {
        self.in_flight -= 1;
        let defect = self.shared.defect;
        let text = match outcome {
            Outcome::Answer(answer) => {
                let counted = if defect == Defect::Miscounts { 2 } else { 1 };
                self.shared
                    .counters
                    .partials
                    .fetch_add(counted, Ordering::SeqCst);
                self.partial(batch, &answer)
            }
            _ if defect == Defect::SilentFailure => return,
            Outcome::Never => self.error(batch, "inference_request", "timeout", None, true),
            Outcome::Status(status @ 500..) => {
                self.error(batch, "inference_request", "http_5xx", Some(status), true)
            }
            Outcome::Status(status) => {
                self.error(batch, "inference_request", "http_4xx", Some(status), false)
            }
            Outcome::Unreadable => {
                let retryable = defect == Defect::RetryableParseError;
                self.error(
                    batch,
                    "inference_response_parse",
                    "parse_error",
                    Some(200),
                    retryable,
                )
            }
        };
        self.send(Opcode::Text, text.to_string().as_bytes());
    }

    fn partial(
        &self,
        batch: &Batch,
        answer: &plimsoll_workloads::stt::reference::Answer,
    ) -> serde_json::Value {
        let defect = self.shared.defect;
        let shift = u64::from(defect == Defect::NumbersFromZero);
        let mut partial = json!({
            "type": "partial",
            "oldest_frame_seq": batch.oldest - shift,
            "newest_frame_seq": batch.oldest + batch.frames - 1 - shift,
            "frames": batch.frames,
            "rms": answer.rms,
            "zero_crossings": answer.zero_crossings,
            "checksum": answer.checksum.wrapping_add(u32::from(defect == Defect::WrongContent)),
            "samples": answer.samples,
            "transcript": answer.transcript,
            "audio_bytes": answer.audio_bytes,
            "cpu_passes": self.shared.settings.passes,
            "model_delay_ms": self.shared.settings.model_delay_ms,
            "flush_lateness_ms": batch.sent.saturating_duration_since(batch.due).as_secs_f64() * 1e3,
            "inflight_model_jobs": 0,
        });
        if let Some(fields) = partial.as_object_mut() {
            match defect {
                Defect::ExtraField => drop(fields.insert("language".to_owned(), json!("en"))),
                Defect::MissingField => drop(fields.remove("flush_lateness_ms")),
                _ => {}
            }
        }
        partial
    }

    fn error(
        &self,
        batch: &Batch,
        stage: &str,
        kind: &str,
        status: Option<u16>,
        retryable: bool,
    ) -> serde_json::Value {
        let age_ms = batch.sent.elapsed().as_secs_f64() * 1e3;
        json!({
            "type": "error", "stage": stage, "kind": kind, "message": "as told",
            "oldest_frame_seq": batch.oldest, "newest_frame_seq": batch.oldest + batch.frames - 1,
            "frames": batch.frames, "audio_bytes": batch.pcm.len(),
            "oldest_age_ms": age_ms, "newest_age_ms": age_ms, "flush_lateness_ms": 0,
            "inference_elapsed_ms": age_ms, "inflight_gateway_batches": 0, "gateway_buffer_frames": 0,
            "inference_status": status, "retryable": retryable,
        })
    }
}

fn is_start(text: &[u8], defect: Defect) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Start {
        r#type: String,
    }
    if defect == Defect::LooseStart {
        return String::from_utf8_lossy(text).contains("t");
    }
    // A derived reader also takes the fields as an array.
    let object = text.trim_ascii_start().starts_with(b"{");
    object && serde_json::from_slice::<Start>(text).is_ok_and(|start| start.r#type == "start")
}
