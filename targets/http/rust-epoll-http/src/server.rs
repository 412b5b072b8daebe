//! What the workers share. Nothing here is touched by another worker for a request, but to show the metrics.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use http_target::config::Config;
use http_target::metrics::Sums;
use http_target::routes;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

/// A worker's counters, on cache lines of their own. It alone writes to them, so a load and a store will do.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    requests: AtomicU64,
    accepted: AtomicU64,
    closed: AtomicU64,
}

fn add_one(cell: &AtomicU64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
}

impl Counters {
    /// A request was read to its end, or refused.
    pub fn request(&self) {
        add_one(&self.requests);
    }

    /// A connection was accepted.
    pub fn accepted(&self) {
        add_one(&self.accepted);
    }

    /// A connection is open no more.
    pub fn closed(&self) {
        add_one(&self.closed);
    }
}

/// One per process.
#[derive(Debug)]
pub struct Server {
    /// The configuration.
    pub config: Config,
    /// What `/bytes/N` answers the beginning of.
    pub pattern: Box<[u8]>,
    /// Per worker.
    pub counters: Box<[Counters]>,
    /// Per worker: becomes readable when draining begins.
    pub bells: Box<[OwnedFd]>,
    exit_at: OnceLock<Instant>,
}

impl Server {
    /// A server without workers yet.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(config: Config) -> io::Result<Arc<Self>> {
        let workers = config.worker_threads;
        let bell = |_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Arc::new(Self {
            pattern: routes::pattern().into(),
            counters: (0..workers).map(|_| Counters::default()).collect(),
            bells: (0..workers).map(bell).collect::<io::Result<_>>()?,
            exit_at: OnceLock::new(),
            config,
        }))
    }

    /// Begins to drain. There is no way back.
    pub fn drain(&self, now: Instant) {
        // The last twentieth is for the exit itself.
        self.exit_at.get_or_init(|| now + self.config.drain_timeout.mul_f64(0.95));
        for bell in &self.bells {
            // Fails only if it rings already.
            let _ = io::write(bell, &1_u64.to_ne_bytes());
        }
    }

    /// When workers end, whatever is left; once draining has begun.
    pub fn exit_at(&self) -> Option<Instant> {
        self.exit_at.get().copied()
    }

    /// What all workers have counted.
    pub fn sums(&self) -> Sums {
        let sum = |cell: fn(&Counters) -> &AtomicU64| {
            self.counters.iter().map(|worker| cell(worker).load(Ordering::Acquire)).sum::<u64>()
        };
        // Before those accepted: so no more can be closed than accepted.
        let closed = sum(|worker| &worker.closed);
        let accepted = sum(|worker| &worker.accepted);
        Sums { requests: sum(|worker| &worker.requests), accepted, open: accepted.saturating_sub(closed) }
    }
}
