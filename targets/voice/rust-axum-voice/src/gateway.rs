//! What all sessions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rust_axum::drain::Drain;
use rust_axum::limit::Limit;

use crate::admission::Admission;
use crate::config::Config;
use crate::http::voices::Voices;
use crate::metrics::Metrics;
use crate::upstream::Upstream;

/// One per process, behind an `Arc`.
#[derive(Debug)]
pub struct Gateway {
    /// The configuration.
    pub config: Config,
    /// The counters.
    pub metrics: Metrics,
    /// Open sessions, against their limits.
    pub admission: Admission,
    /// What the end waits for: upgraded sockets, a little longer open than their sessions, and replies over HTTP.
    pub sockets: Arc<Limit>,
    /// The list of voices.
    pub voices: Voices,
    /// The end.
    pub drain: Drain,
    upstreams: Box<[Arc<Upstream>]>,
    next: AtomicUsize,
}

impl Gateway {
    /// A gateway without sessions; connects nowhere yet.
    pub fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::default(),
            admission: Admission::new(config.admission),
            sockets: Limit::new(0),
            voices: Voices::default(),
            drain: Drain::default(),
            upstreams: config.provider_urls.iter().map(Upstream::new).collect(),
            next: AtomicUsize::new(0),
            config,
        })
    }

    /// The providers of the next session, in turn.
    pub fn upstream(&self) -> Arc<Upstream> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.upstreams.len();
        Arc::clone(&self.upstreams[turn])
    }

    /// Refuses new sessions, lets replies that play end, and returns when the last socket is closed or `DRAIN_TIMEOUT_MS`
    /// is nearly over.
    pub async fn drain(&self) {
        self.drain.run(self.config.drain_timeout, &self.sockets).await;
    }
}
