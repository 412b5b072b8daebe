//! Sockets: listening, and who answers what.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};

use crate::config::Config;
use crate::faults::{Fault, Faults, Outage};
use crate::profile::{Of, Provider, What};
use crate::stats::{Clocks, Stats};

mod listen;
mod reply;
mod socket;
mod speak;

use reply::Reply;
use socket::Socket;

/// Connections that the kernel holds ready.
const BACKLOG: u32 = 4096;
/// The body of `PUT /faults` is a short object.
const MAX_CONTROL_BODY_BYTES: usize = 64 << 10;
/// How long a silent request is held.
const SILENT: Duration = Duration::from_secs(30);

/// Mock providers that listen.
#[derive(Debug)]
pub struct Mocks {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Mocks {
    /// Listens at the configured address; connections wait until [`Mocks::run`]. Needs a current-thread tokio runtime: the
    /// busy time that they report is that of the runtime's first worker.
    ///
    /// # Errors
    /// What the operating system says to creating, binding or listening.
    pub fn bind(config: Config) -> io::Result<Self> {
        let wanted = SocketAddr::new(config.bind, config.port);
        let socket = if wanted.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(wanted)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            config,
            book: Mutex::default(),
        });
        Ok(Self {
            listener,
            address,
            shared,
        })
    }

    /// The address that they listen at, with the port that was free where port 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until dropped.
    pub async fn run(self) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _peer)) => {
                    tokio::spawn(serve(stream, Arc::clone(&self.shared)));
                }
                Err(error) => {
                    // Out of descriptors, most likely: they come back when connections close.
                    eprintln!("plimsoll-providers: cannot accept a connection: {error}");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // A block of audio must not wait for an acknowledgement. Fails only on a socket that is gone already.
    let _ = stream.set_nodelay(true);
    let socket = Socket::new(stream);
    let of_requests = socket.clone();
    let service =
        service_fn(move |request| answer(Arc::clone(&shared), of_requests.clone(), request));
    let mut http = hyper::server::conn::http1::Builder::new();
    // A connection that ends badly is the gateway's doing, or a fault that was asked for.
    let _ = http
        .half_close(false)
        .serve_connection(socket, service)
        .with_upgrades()
        .await;
}

/// What all connections share. The lock is never contended, there is one thread, and never held across an await.
#[derive(Debug)]
struct Shared {
    started: Instant,
    config: Config,
    book: Mutex<Book>,
}

/// What changes with every request.
#[derive(Debug, Default)]
struct Book {
    stats: Stats,
    faults: Faults,
    faults_since: Option<Instant>,
    /// How often each reply was asked for.
    attempts: HashMap<(Provider, u32, u32), u32>,
}

impl Book {
    /// How a provider is out now.
    fn outage(&self, provider: Provider) -> Option<Outage> {
        let since = self.faults_since?.elapsed();
        self.faults.outage(provider, since)
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
struct Fate {
    latency: Duration,
    fault: Option<Fault>,
    outage: Option<Outage>,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book
            .lock()
            .unwrap_or_else(|_| unreachable!("one thread, and no code under the lock panics"))
    }

    /// The time of the marks.
    fn now_ns() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let duration = Duration::try_from(now).unwrap_or_default();
        u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
    }

    fn fate(&self, of: &Of) -> Fate {
        let book = self.book();
        let seed = self.config.seed;
        let outage = book.outage(of.provider);
        let fault = book.faults.of(of, seed);
        let drawn = self
            .config
            .profile
            .quantiles(of.provider)
            .at(of.draw(seed, What::Latency));
        let factor = match (fault, outage) {
            (_, Some(Outage::Slow)) => 5.0,
            (Some(Fault::Slow), _) => crate::faults::slowness(of, seed),
            _ => 1.0,
        };
        Fate {
            latency: drawn.mul_f64(factor),
            fault,
            outage,
        }
    }

    fn clocks(&self) -> Clocks {
        let metrics = tokio::runtime::Handle::current().metrics();
        Clocks {
            uptime: self.started.elapsed(),
            loop_busy: metrics.worker_total_busy_duration(0),
        }
    }
}

async fn answer(
    shared: Arc<Shared>,
    socket: Socket,
    request: Request<Incoming>,
) -> Result<Response<Reply>, socket::Reset> {
    let path = request.uri().path().to_owned();
    let voice = path
        .strip_prefix("/v1/text-to-speech/")
        .and_then(|rest| rest.strip_suffix("/stream"));
    match (request.method(), path.as_str(), voice) {
        (&Method::GET, "/v1/listen", _) => Ok(listen::open(&shared, &socket, request)),
        (&Method::POST, "/v1/speak", _) => {
            speak::answer(&shared, &socket, Provider::DeepgramTts, "text", request).await
        }
        (&Method::POST, "/v1/audio/speech", _) => {
            speak::answer(&shared, &socket, Provider::OpenaiTts, "input", request).await
        }
        (&Method::POST, _, Some(_voice)) => {
            speak::answer(&shared, &socket, Provider::ElevenlabsTts, "text", request).await
        }
        (&Method::GET, "/v1/voices", _) => Ok(json(&serde_json::json!({"voices": [
            {"voice_id": "mock", "name": "Mock", "labels": {"language": "en", "gender": "female", "accent": "none"}, "preview_url": ""},
        ]}))),
        (&Method::GET, "/health", _) => Ok(line(StatusCode::OK, "ok\n")),
        (&Method::GET, "/stats", _) => {
            let clocks = shared.clocks();
            Ok(json(&shared.book().stats.report(clocks)))
        }
        (&Method::POST, "/stats/reset", _) => {
            let clocks = shared.clocks();
            shared.book().stats.reset_window(clocks);
            Ok(line(StatusCode::OK, "a new window has begun\n"))
        }
        (&Method::GET, "/faults", _) => Ok(json(&shared.book().faults)),
        (&Method::PUT, "/faults", _) => Ok(put_faults(&shared, request).await),
        _ => Ok(line(StatusCode::NOT_FOUND, "no such path\n")),
    }
}

async fn put_faults(shared: &Shared, request: Request<Incoming>) -> Response<Reply> {
    let body = Limited::new(request.into_body(), MAX_CONTROL_BODY_BYTES);
    let Ok(body) = body.collect().await else {
        let told = "faults: the body is too long or did not arrive whole\n";
        return line(StatusCode::BAD_REQUEST, told);
    };
    match Faults::from_json(&body.to_bytes()) {
        Ok(faults) => {
            let told = json(&faults);
            let mut book = shared.book();
            book.faults = faults;
            book.faults_since = Some(Instant::now());
            told
        }
        Err(error) => line(StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

/// A 200 with a value as JSON.
fn json(value: &impl Serialize) -> Response<Reply> {
    // Plain data with names as keys: nothing that JSON lacks.
    let body = serde_json::to_vec(value).unwrap_or_default();
    with_type(StatusCode::OK, "application/json", body)
}

/// A line for people.
fn line(status: StatusCode, text: impl Into<Bytes>) -> Response<Reply> {
    with_type(status, "text/plain; charset=utf-8", text)
}

fn with_type(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Full::new(body.into())));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
