//! What all sessions share.

use std::sync::Arc;

use crate::config::Config;
use crate::drain::Drain;
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
        self.drain.run(self.config.drain_timeout, &self.sockets).await;
    }
}
