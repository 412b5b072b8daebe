//! A gateway of a thread per session, good enough for most cases, with one defect at a time.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_conformance::subject::{Environment, Server};
use plimsoll_protocol::websocket::handshake::accept_for;

use super::Defect;
use super::bench::Model;
use super::hold::Hold;
use super::session::FakeSession;
use super::wire::Request;
use crate::simulator::CONTRACT_VARIABLES;

/// The variables that this gateway knows.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) inference_url: String,
    pub(super) inference_timeout: Duration,
    pub(super) interval: Duration,
    pub(super) jitter: Duration,
    pub(super) start_timeout: Duration,
    pub(super) passes: u32,
    pub(super) max_sessions: u64,
    pub(super) token: String,
}

impl Settings {
    pub(super) fn parse(environment: &Environment) -> Result<Self, String> {
        let number = |name: &str, default: u64| match environment.get(name) {
            None => Ok(default),
            Some(value) => value
                .parse::<u64>()
                .map_err(|_| format!("{name}={value} is not a number")),
        };
        for name in CONTRACT_VARIABLES.iter().chain(&["PORT", "WORKER_THREADS"]) {
            if !matches!(*name, "INFERENCE_URL" | "OVERFLOW_POLICY" | "AUTH_TOKEN") {
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
            max_sessions: number("MAX_SESSIONS", 0)?,
            token: text("AUTH_TOKEN"),
        })
    }
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) sessions: AtomicU64,
    pub(super) sessions_total: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) frames: AtomicU64,
    pub(super) partials: AtomicU64,
    pub(super) deferred: AtomicU64,
}

pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) model: Arc<Model>,
    pub(super) defect: Defect,
    pub(super) hold: Option<Arc<Hold>>,
    pub(super) counters: Counters,
}

struct FakeGateway {
    address: SocketAddr,
    hold: Option<Arc<Hold>>,
    stop: Arc<AtomicBool>,
}

/// Listens on a free port; a thread for each connection.
pub(super) fn start(
    settings: Settings,
    model: Arc<Model>,
    defect: Defect,
    hold: Option<Arc<Hold>>,
) -> Result<Box<dyn Server>, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let shared = Arc::new(Shared {
        settings,
        model,
        defect,
        hold: hold.clone(),
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
    Ok(Box::new(FakeGateway {
        address,
        hold,
        stop,
    }))
}

impl Server for FakeGateway {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn process(&self) -> Option<i32> {
        self.hold.as_ref().map(|hold| hold.process())
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
    let full = settings.max_sessions > 0
        && counters.sessions.load(Ordering::SeqCst) >= settings.max_sessions;
    let unasked = defect == Defect::RoomBeforeToken && full;
    if !settings.token.is_empty() && !allowed && !unasked {
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
    if let Some(hold) = &shared.hold {
        hold.on_upgrade();
    }
    FakeSession::new(stream, request.rest, shared).run();
    counters.sessions.fetch_sub(1, Ordering::SeqCst);
}
