//! What all sessions share.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::inference::InferenceClient;
use crate::limit::Limit;
use crate::metrics::Metrics;

/// How long a client may take to answer the gateway's close.
pub const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// One for the process.
pub struct Gateway {
    pub config: Config,
    pub metrics: Metrics,
    pub inference: InferenceClient,
    /// Open sessions, against `MAX_SESSIONS`.
    pub sessions: Limit,
    /// Requests in flight, against `MAX_INFLIGHT_JOBS`.
    pub jobs: Limit,
    /// Cancelled when the drain begins.
    pub shutdown: CancellationToken,
    /// Upgraded connections. They are open a little longer than their sessions: a close follows.
    pub connections: TaskTracker,
}

impl Gateway {
    pub fn new(config: Config) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            metrics: Metrics::new()?,
            inference: InferenceClient::new(&config)?,
            sessions: Limit::new(config.max_sessions),
            jobs: Limit::new(config.max_inflight_jobs),
            shutdown: CancellationToken::new(),
            connections: TaskTracker::new(),
            config,
        }))
    }

    /// Refuses new sessions, lets the open ones answer what is in flight, and closes them.
    pub async fn drain(&self) {
        self.shutdown.cancel();
        self.connections.close();
        let limit = self.config.drain_timeout + CLOSE_TIMEOUT;
        if timeout(limit, self.connections.wait()).await.is_err() {
            tracing::warn!(connections = self.connections.len(), "left without a close");
        }
    }
}
