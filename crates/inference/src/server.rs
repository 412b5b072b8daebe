//! Sockets: listening, accepting, and serving both protocols on one port.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioExecutor;
use hyper_util::server::conn::auto;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};

use crate::compute::Batcher;
use crate::config::Config;
use crate::faults::FaultShares;
use crate::latency::LatencyModel;
use crate::random::SplitMix64;
use crate::recent::RecentRequests;
use crate::stats::{Clocks, Stats};

mod infer;
mod routes;
mod stream;

use infer::AnswerTo;
use stream::{AbortHandle, AbortableStream};

/// Connections the kernel holds ready: a gateway that opens its whole pool at once must not see a reset.
const BACKLOG: u32 = 4096;

/// Streams that may be open on one HTTP/2 connection: a gateway with one connection carries all its sessions on it.
const MAX_STREAMS: u32 = 10_000;

/// Receive window of a stream: a batch of one second is 32,000 bytes, so no request waits for a window update.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// Receive window of a connection: hundreds of batches on their way at once.
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// The largest DATA frame taken: a batch of one second in one piece, which then needs no copy.
const MAX_FRAME_BYTES: u32 = 64 << 10;

/// Resets by a client before its stream was looked at. Many sessions that time out together are no attack here.
const MAX_PENDING_RESETS: usize = MAX_STREAMS as usize;

/// Random streams of the seed: latencies and faults do not shift each other.
const LATENCY_STREAM: u64 = 1;
const FAULT_STREAM: u64 = 2;

/// A simulator that listens.
#[derive(Debug)]
pub struct Simulator {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Simulator {
    /// Listens at the configured address; connections wait until [`Simulator::run`]. Needs a current-thread tokio
    /// runtime: the busy time it reports is that of the runtime's first worker.
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
        Ok(Self {
            listener,
            address,
            shared: Arc::new(Shared::new(config)),
        })
    }

    /// The address it listens at, with the port that was free where port 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until dropped.
    pub async fn run(self) {
        tokio::spawn(compute_when_due(Arc::clone(&self.shared)));
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http2()
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(MAX_FRAME_BYTES)
            .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
            // The fault `reset` resets streams by itself, as often as it is asked to.
            .max_local_error_reset_streams(None);
        let http = Arc::new(http);
        loop {
            match self.listener.accept().await {
                Ok((stream, _peer)) => {
                    tokio::spawn(serve(Arc::clone(&http), stream, Arc::clone(&self.shared)));
                }
                Err(error) => {
                    // Out of descriptors, most likely: they come back when connections close.
                    eprintln!("plimsoll-inference: cannot accept a connection: {error}");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

async fn serve(http: Arc<auto::Builder<TokioExecutor>>, stream: TcpStream, shared: Arc<Shared>) {
    // An answer is one small write: it must not wait for the client's acknowledgement. Fails only on a socket that
    // is gone already, which the first read then finds out.
    let _ = stream.set_nodelay(true);
    let abort = AbortHandle::default();
    let stream = AbortableStream::new(stream, abort.clone());
    let service =
        service_fn(move |request| routes::answer(Arc::clone(&shared), abort.clone(), request));
    // A connection that ends badly is the client's doing, or a fault that was asked for.
    let _ = http.serve_connection(stream, service).await;
}

/// Wakes when the waiting computations are due.
async fn compute_when_due(shared: Arc<Shared>) {
    loop {
        let due = shared.batcher().due();
        match due {
            None => shared.compute_sooner.notified().await,
            Some(due) => {
                tokio::select! {
                    () = sleep_until(due) => shared.batcher().run_due(Instant::now()),
                    () = shared.compute_sooner.notified() => {}
                }
            }
        }
    }
}

/// What all connections share. The locks are never contended, there is one thread, and never held across an await.
#[derive(Debug)]
struct Shared {
    started: Instant,
    model: LatencyModel,
    seed: u64,
    /// The places of `MODEL_MAX_CONCURRENT`, given in the order of asking.
    places: Semaphore,
    batcher: Mutex<Batcher<Instant, AnswerTo>>,
    /// The batcher is due sooner than it was.
    compute_sooner: Notify,
    book: Mutex<Book>,
}

/// What changes with every request.
#[derive(Debug)]
struct Book {
    latency_rng: SplitMix64,
    fault_rng: SplitMix64,
    faults: FaultShares,
    stats: Stats,
    recent: RecentRequests,
}

impl Shared {
    fn new(config: Config) -> Self {
        let seed = config.model_seed;
        Self {
            started: Instant::now(),
            model: config.latency_model(),
            seed,
            places: Semaphore::new(config.model_max_concurrent),
            batcher: Mutex::default(),
            compute_sooner: Notify::new(),
            book: Mutex::new(Book {
                latency_rng: SplitMix64::new(seed, LATENCY_STREAM),
                fault_rng: SplitMix64::new(seed, FAULT_STREAM),
                faults: FaultShares::default(),
                stats: Stats::default(),
                recent: RecentRequests::default(),
            }),
        }
    }

    fn batcher(&self) -> MutexGuard<'_, Batcher<Instant, AnswerTo>> {
        self.batcher
            .lock()
            .expect("no thread panicked with the lock")
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no thread panicked with the lock")
    }

    /// Sets the faults and begins their draws anew, so that the same request for faults gives the same faults.
    fn set_faults(&self, faults: FaultShares) {
        let mut book = self.book();
        book.faults = faults;
        book.fault_rng = SplitMix64::new(self.seed, FAULT_STREAM);
    }

    fn clocks(&self) -> Clocks {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Clocks {
            uptime: self.started.elapsed(),
            loop_busy: tokio::runtime::Handle::current()
                .metrics()
                .worker_total_busy_duration(0),
            process_cpu: Duration::try_from(cpu).unwrap_or_default(),
        }
    }
}
