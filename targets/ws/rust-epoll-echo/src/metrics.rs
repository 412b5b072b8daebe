//! Metrics: each worker has counters of its own, and a scrape adds the workers up.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted, with its name and type in the order of [`Counters`].
const ROWS: [(&str, &str); 7] = [
    ("ws_connections_open", "gauge"),
    ("ws_connections_accepted_total", "counter"),
    ("ws_connections_refused_total", "counter"),
    ("ws_messages_received_total", "counter"),
    ("ws_bytes_received_total", "counter"),
    ("ws_messages_sent_total", "counter"),
    ("ws_messages_dropped_total", "counter"),
];

/// One counter of a worker.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names of the contract")]
#[repr(usize)]
pub enum Counter {
    ConnectionsOpen,
    ConnectionsAccepted,
    ConnectionsRefused,
    MessagesReceived,
    BytesReceived,
    MessagesSent,
    MessagesDropped,
}

/// A worker's counters, on cache lines of their own. It alone writes to them, so a load and a store will do, and it does so
/// before it answers: what a client has got an answer to is counted when the client asks for the metrics.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters([AtomicU64; ROWS.len()]);

impl Counters {
    /// Adds to one of them.
    pub fn add(&self, counter: Counter, count: u64) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_add(count), Ordering::Release);
    }

    /// A connection is open no more.
    pub fn closed(&self) {
        let cell = &self.0[Counter::ConnectionsOpen as usize];
        cell.store(cell.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Release);
    }
}

/// The Prometheus text of all workers together.
pub fn render<'a>(workers: impl Iterator<Item = &'a Counters>) -> String {
    let mut sums = [0_u64; ROWS.len()];
    for worker in workers {
        for (sum, cell) in sums.iter_mut().zip(&worker.0) {
            *sum = sum.wrapping_add(cell.load(Ordering::Acquire));
        }
    }
    let mut text = String::with_capacity(1024);
    for ((name, kind), sum) in ROWS.iter().zip(sums) {
        writeln!(text, "# TYPE {name} {kind}\n{name} {sum}").expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_added_up() {
        let workers = [Counters::default(), Counters::default()];
        for worker in &workers {
            worker.add(Counter::ConnectionsOpen, 1);
            worker.add(Counter::ConnectionsAccepted, 1);
            worker.add(Counter::MessagesReceived, 3);
            worker.add(Counter::BytesReceived, 500);
            worker.add(Counter::MessagesDropped, 2);
        }
        workers[1].closed();
        let text = render(workers.iter());
        for line in [
            "# TYPE ws_connections_open gauge",
            "ws_connections_open 1",
            "ws_connections_accepted_total 2",
            "ws_connections_refused_total 0",
            "ws_messages_received_total 6",
            "ws_bytes_received_total 1000",
            "ws_messages_sent_total 0",
            "# TYPE ws_messages_dropped_total counter",
            "ws_messages_dropped_total 4",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line} is not in\n{text}");
        }
        assert_eq!(text.lines().count(), 14);
    }
}
