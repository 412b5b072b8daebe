//! What the workers share. Nothing here is touched for a mere frame.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

use crate::config::Config;
use crate::h2::Target;
use crate::limit::Limit;
use crate::metrics::Published;

/// One per process.
#[derive(Debug)]
pub struct Gateway {
    /// The configuration.
    pub config: Config,
    /// What every inference request has in common.
    pub target: Target,
    /// Open sessions, against `MAX_SESSIONS`.
    pub sessions: Arc<Limit>,
    /// Requests in flight, against `MAX_INFLIGHT_JOBS`.
    pub jobs: Arc<Limit>,
    /// Per worker.
    pub workers: Box<[Desk]>,
    drain: OnceLock<Drain>,
    inference_address: Mutex<Option<SocketAddr>>,
}

/// Where a worker is reached.
#[derive(Debug)]
pub struct Desk {
    /// What it has counted.
    pub published: Published,
    /// Wakes it up.
    pub bell: OwnedFd,
}

/// When the end is.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    /// What is in flight is waited for until then.
    pub give_up_at: Instant,
    /// Workers end then, whatever is left.
    pub exit_at: Instant,
}

impl Gateway {
    /// A gateway without workers yet.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(config: Config) -> io::Result<Arc<Self>> {
        let desk = |_| {
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Desk { published: Published::default(), bell })
        };
        let url = &config.inference;
        Ok(Arc::new(Self {
            target: Target::new(&url.authority, &url.path, config.rules.cpu_passes),
            sessions: Limit::new(config.sessions_max),
            jobs: Limit::new(config.jobs_max),
            workers: (0..config.worker_threads).map(desk).collect::<io::Result<_>>()?,
            drain: OnceLock::new(),
            inference_address: Mutex::new(None),
            config,
        }))
    }

    /// Begins to drain. There is no way back.
    pub fn drain(&self, now: Instant) {
        let timeout = self.config.drain_timeout;
        // What is in flight gets four fifths of the time, so that a session that gives up can still say goodbye; the
        // last twentieth is for the exit itself.
        let drain = Drain { give_up_at: now + timeout.mul_f64(0.8), exit_at: now + timeout.mul_f64(0.95) };
        self.drain.get_or_init(|| drain);
        for worker in &self.workers {
            // It fails only when the worker has been rung for ages and has not come.
            let _ = io::write(&worker.bell, &1_u64.to_ne_bytes());
        }
    }

    /// When the end is, once it has been decided.
    pub fn draining(&self) -> Option<Drain> {
        self.drain.get().copied()
    }

    /// Where the inference server is, as far as is known.
    pub fn inference_address(&self) -> Option<SocketAddr> {
        *self.inference_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks the inference server's name up, which may take its time: not for workers. If that fails, the last address
    /// stands.
    pub fn resolve(&self) {
        let url = &self.config.inference;
        if let Ok(mut found) = (url.host.as_str(), url.port).to_socket_addrs()
            && let Some(address) = found.next()
        {
            *self.inference_address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        }
    }
}
