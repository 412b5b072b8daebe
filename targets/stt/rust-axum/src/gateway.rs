//! What all sessions share.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::config::Config;
use crate::inference::InferenceClient;
use crate::limit::Limit;
use crate::metrics::Metrics;

/// One per process, behind an `Arc`. Nothing in it is written to for a mere frame.
#[derive(Debug)]
pub struct Gateway {
    /// The configuration.
    pub config: Config,
    /// The counters.
    pub metrics: Metrics,
    /// Open sessions, against `MAX_SESSIONS`.
    pub sessions: Arc<Limit>,
    /// Requests in flight, against `MAX_INFLIGHT_JOBS`.
    pub jobs: Arc<Limit>,
    /// Upgraded sockets, a little longer open than their sessions: a close handshake follows.
    pub sockets: Arc<Limit>,
    /// The way to the inference server.
    pub inference: InferenceClient,
    /// The end.
    pub drain: Drain,
}

impl Gateway {
    /// A gateway without sessions; connects nowhere yet.
    pub fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::default(),
            sessions: Limit::new(config.sessions_max),
            jobs: Limit::new(config.jobs_max),
            sockets: Limit::new(0),
            inference: InferenceClient::new(&config.inference_url, config.inference_connections),
            drain: Drain::default(),
            config,
        })
    }

    /// Refuses new sessions, lets the open ones answer what is in flight, and returns when the last socket is closed or
    /// `DRAIN_TIMEOUT_MS` is nearly over.
    pub async fn drain(&self) {
        const POLL_INTERVAL: Duration = Duration::from_millis(5);
        // What is in flight gets four fifths of the time, so that a session which gives up can still say so; a twentieth is kept for the exit of
        // the process itself.
        self.drain.begin(Instant::now() + self.config.drain_timeout.mul_f64(0.8));
        let patience = self.config.drain_timeout.mul_f64(0.95);
        let all_closed = async {
            while self.sockets.in_use() > 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        // Out of time or done: the process ends either way.
        let _ = tokio::time::timeout(patience, all_closed).await;
    }
}

/// "Shut down", as a value that costs a plain load to look at and a notification that wakes the idle.
#[derive(Debug, Default)]
pub struct Drain {
    give_up_at: OnceLock<Instant>,
    /// Wakes every session once when draining begins.
    pub wake: Notify,
}

impl Drain {
    /// Begins to drain; there is no way back. What is in flight is waited for until `give_up_at`.
    pub fn begin(&self, give_up_at: Instant) {
        // A second call changes nothing: the first promise stands.
        let _ = self.give_up_at.set(give_up_at);
        self.wake.notify_waiters();
    }

    /// Until when what is in flight is waited for; `None` while the gateway is not draining.
    pub fn give_up_at(&self) -> Option<Instant> {
        self.give_up_at.get().copied()
    }

    /// Whether the gateway is draining.
    pub fn has_begun(&self) -> bool {
        self.give_up_at().is_some()
    }
}
