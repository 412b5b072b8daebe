//! Sockets: listening, and who answers what.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use plimsoll_mock_server::http::Connection;
use plimsoll_mock_server::program::{self, Clocks};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::config::Config;
use crate::faults::{Fault, Faults, Outage, slowness};
use crate::profile::{Of, Provider, What};
use crate::stats::Stats;

mod control;

mod listen;
mod outage;
mod reply;

mod result;
mod speak;

use speak::Asked;

/// How much slower a provider is that is out in this way.
const OUT_SLOW_FACTOR: u32 = 5;
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
    /// What the operating system says to creating, binding or listening, in one line.
    pub fn bind(config: Config) -> Result<Self, String> {
        let (listener, address) = program::listen(SocketAddr::new(config.bind, config.port))?;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            config,
            book: Mutex::default(),
            changed: Notify::new(),
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
        let serve = |stream| serve(stream, Arc::clone(&self.shared));
        program::accept(&self.listener, "plimsoll-providers", serve).await;
    }
}

/// What all connections share. The lock is never contended, there is one thread, and never held across an await.
#[derive(Debug)]
struct Shared {
    started: Instant,
    config: Config,
    book: Mutex<Book>,
    /// An outage began or ended, or faults were changed.
    changed: Notify,
}

/// What changes with every request.
#[derive(Debug, Default)]
struct Book {
    stats: Stats,
    faults: Faults,
    faults_since: Option<Instant>,
    /// Who says when an outage begins or ends.
    crier: Option<AbortHandle>,
    /// How often each reply was asked for.
    attempts: HashMap<(Provider, u32, u32), u32>,
}

impl Book {
    /// How a provider is out now.
    fn outage(&self, provider: Provider) -> Option<Outage> {
        let since = self.faults_since?.elapsed();
        self.faults.outage(provider, since)
    }

    /// How often a reply was asked for, this time included.
    fn attempt(&mut self, provider: Provider, vu: u32, turn: u32) -> u32 {
        let attempts = self.attempts.entry((provider, vu, turn)).or_default();
        *attempts += 1;
        *attempts
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
struct Fate {
    latency: Duration,
    fault: Option<Fault>,
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

    /// What becomes of a request.
    fn fate(&self, of: &Of) -> Fate {
        let fault = self.book().faults.of(of, self.config.seed);
        let mut fate = self.faultless(of);
        if fault == Some(Fault::Slow) {
            fate.latency = fate.latency.mul_f64(slowness(of, self.config.seed));
        }
        Fate { fault, ..fate }
    }

    /// What becomes of a request that meets no fault of its own.
    fn faultless(&self, of: &Of) -> Fate {
        let quantiles = self.config.profile.quantiles(of.provider);
        let drawn = quantiles.at(of.draw(self.config.seed, What::Latency));
        let out_slow = self.outage(of.provider) == Some(Outage::Slow);
        Fate {
            latency: if out_slow {
                drawn * OUT_SLOW_FACTOR
            } else {
                drawn
            },
            fault: None,
        }
    }

    fn clocks(&self) -> Clocks {
        Clocks::now(self.started)
    }
}

/// Answers the requests of a connection, one after the other.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // A block of audio must not wait for an acknowledgement. Fails only on a socket that is gone already.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    while let Some(request) = connection.request().await {
        let (read, read_ns) = (Instant::now(), Shared::now_ns());
        let (method, path) = (request.method.as_str(), request.path.as_str());
        let answered = match (method, path, speaker(path)) {
            ("GET", "/v1/listen", _) => return listen::open(shared, connection, &request).await,
            ("POST", _, Some(provider)) => {
                let asked = Asked {
                    provider,
                    request: &request,
                    read,
                    read_ns,
                };
                asked.answer(&shared, &mut connection).await
            }
            _ => {
                let answer = control::answer(&shared, &request);
                connection.answer(&answer, request.keep_alive).await
            }
        };
        if answered.is_err() {
            return;
        }
        if !request.keep_alive {
            return connection.linger().await;
        }
    }
}

/// The provider that speaks at this path.
fn speaker(path: &str) -> Option<Provider> {
    let voice = path
        .strip_prefix("/v1/text-to-speech/")
        .and_then(|rest| rest.strip_suffix("/stream"));
    match path {
        "/v1/speak" => Some(Provider::DeepgramTts),
        "/tts/bytes" => Some(Provider::CartesiaTts),
        "/v1/audio/speech" => Some(Provider::OpenaiTts),
        _ => voice
            .filter(|voice| !voice.is_empty())
            .map(|_| Provider::ElevenlabsTts),
    }
}
