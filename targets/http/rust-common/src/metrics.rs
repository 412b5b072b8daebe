//! What is counted, for servers whose threads share their counters, and the text that shows it.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sums that a scrape shows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    /// Requests whose head was read in full.
    pub requests: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that are open.
    pub open: u64,
}

impl Sums {
    /// The Prometheus text format, version 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(256);
        for (name, kind, value) in [
            ("http_requests_total", "counter", self.requests),
            ("http_connections_accepted_total", "counter", self.accepted),
            ("http_connections_open", "gauge", self.open),
        ] {
            writeln!(text, "# TYPE {name} {kind}\n{name} {value}").expect("a String takes all");
        }
        text
    }
}

/// Counters that all connections share.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: AtomicU64,
    accepted: AtomicU64,
    closed: AtomicU64,
}

/// A connection, for as long as it is open.
#[derive(Debug)]
pub struct OpenConnection(Arc<Metrics>);

impl Metrics {
    /// A request has come.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was accepted.
    pub fn connection(self: &Arc<Self>) -> OpenConnection {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    /// What was counted until now.
    pub fn sums(&self) -> Sums {
        // Before those accepted: so no more can be closed than accepted.
        let closed = self.closed.load(Ordering::Acquire);
        let accepted = self.accepted.load(Ordering::Acquire);
        Sums { requests: self.requests.load(Ordering::Relaxed), accepted, open: accepted.saturating_sub(closed) }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_was_counted() {
        let metrics = Arc::new(Metrics::default());
        let _kept = metrics.connection();
        drop(metrics.connection());
        metrics.request();
        metrics.request();
        metrics.request();
        assert_eq!(metrics.sums(), Sums { requests: 3, accepted: 2, open: 1 });
        let text = "# TYPE http_requests_total counter\nhttp_requests_total 3\n\
            # TYPE http_connections_accepted_total counter\nhttp_connections_accepted_total 2\n\
            # TYPE http_connections_open gauge\nhttp_connections_open 1\n";
        assert_eq!(metrics.sums().render(), text);
    }
}
