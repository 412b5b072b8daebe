//! What the workers share. Nothing here is touched by another worker for a mere echo.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rustix::io;

use crate::config::Config;
use crate::hub::Hub;
use crate::metrics::Counters;

/// One per process.
#[derive(Debug)]
pub struct Server {
    /// The configuration.
    pub config: Config,
    /// `/fanout`, and the way to wake a worker.
    pub hub: Hub,
    /// Per worker.
    pub counters: Box<[Counters]>,
    exit_at: OnceLock<Instant>,
}

impl Server {
    /// A server without workers yet.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(config: Config) -> io::Result<Arc<Self>> {
        let workers = config.worker_threads;
        Ok(Arc::new(Self {
            hub: Hub::new(workers)?,
            counters: (0..workers).map(|_| Counters::default()).collect(),
            exit_at: OnceLock::new(),
            config,
        }))
    }

    /// Begins to drain. There is no way back.
    pub fn drain(&self, now: Instant) {
        // The last twentieth is for the exit itself.
        self.exit_at.get_or_init(|| now + self.config.drain_timeout.mul_f64(0.95));
        self.hub.ring_all();
    }

    /// When workers end, whatever is left; once draining has begun.
    pub fn exit_at(&self) -> Option<Instant> {
        self.exit_at.get().copied()
    }
}
