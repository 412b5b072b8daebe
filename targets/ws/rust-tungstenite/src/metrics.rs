//! Metrics: counters that all connections share.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    open: AtomicU64,
    /// Upgrades answered with 101.
    pub accepted: Counter,
    /// Requests for a WebSocket that were answered otherwise.
    pub refused: Counter,
    received: Counter,
    received_bytes: Counter,
    /// Messages handed to tungstenite.
    pub sent: Counter,
    /// Messages of the hub that a connection was too slow for.
    pub dropped: Counter,
}

/// A connection, for as long as it is open.
#[derive(Debug)]
pub struct OpenConnection(Arc<Metrics>);

impl Metrics {
    /// A connection is open.
    pub fn connection(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// Connections that are open.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// A whole message came.
    pub fn message(&self, bytes: usize) {
        self.received.add(1);
        self.received_bytes.add(bytes as u64);
    }

    /// The Prometheus text format, version 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(1024);
        for (name, kind, value) in [
            ("ws_connections_open", "gauge", self.open()),
            ("ws_connections_accepted_total", "counter", self.accepted.get()),
            ("ws_connections_refused_total", "counter", self.refused.get()),
            ("ws_messages_received_total", "counter", self.received.get()),
            ("ws_bytes_received_total", "counter", self.received_bytes.get()),
            ("ws_messages_sent_total", "counter", self.sent.get()),
            ("ws_messages_dropped_total", "counter", self.dropped.get()),
        ] {
            writeln!(text, "# TYPE {name} {kind}\n{name} {value}").expect("a String takes all");
        }
        text
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_what_was_counted() {
        let metrics = Arc::new(Metrics::default());
        let kept = metrics.connection();
        drop(metrics.connection());
        metrics.accepted.add(2);
        metrics.message(500);
        metrics.message(0);
        metrics.dropped.add(3);
        let text = metrics.render();
        for line in [
            "# TYPE ws_connections_open gauge",
            "ws_connections_open 1",
            "ws_connections_accepted_total 2",
            "ws_connections_refused_total 0",
            "ws_messages_received_total 2",
            "ws_bytes_received_total 500",
            "ws_messages_sent_total 0",
            "ws_messages_dropped_total 3",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
        }
        drop(kept);
        assert_eq!(metrics.open(), 0);
    }
}
