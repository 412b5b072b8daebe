//! Samples of sockets over time, and what they show about a window.

use plimsoll_core::record::SocketResources;
use serde::{Deserialize, Serialize};

/// One kind of queue, over all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Queue {
    /// Bytes in all of them.
    pub sum: u64,
    /// Bytes in the fullest one.
    pub peak: u64,
}

impl Queue {
    pub(super) fn add(&mut self, bytes: u32) {
        self.sum += u64::from(bytes);
        self.peak = self.peak.max(u64::from(bytes));
    }
}

/// All connections at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SocketSample {
    /// When it was taken, in ns since the samples' epoch.
    pub at_ns: u64,
    /// Connections, including those not yet accepted.
    pub connections: u64,
    /// Segments that these and earlier connections sent again; `None` where the kernel does not report them.
    pub retransmits: Option<u64>,
    /// Bytes not yet read.
    pub receive_queue: Queue,
    /// Bytes not yet acknowledged.
    pub send_queue: Queue,
    /// Connections that wait to be accepted; `None` without a listener.
    pub accept_queue: Option<u64>,
}

/// Samples, in order of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SocketSeries {
    samples: Vec<SocketSample>,
}

impl SocketSeries {
    /// Adds later samples.
    pub fn extend(&mut self, later: Self) {
        self.samples.extend(later.samples);
    }

    /// Adds a sample; it must not be older than the last.
    pub fn push(&mut self, sample: SocketSample) {
        self.samples.push(sample);
    }

    /// What the samples in a window show. `None` if there are none: the sockets could not be seen.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Option<SocketResources> {
        let begin = self
            .samples
            .partition_point(|sample| sample.at_ns < from_ns);
        let end = self.samples.partition_point(|sample| sample.at_ns <= to_ns);
        let inside = self.samples.get(begin..end)?;
        let (first, last) = (inside.first()?, inside.last()?);
        // What was counted before the window. If the window begins with the series, this is what its first sample
        // counted.
        let before = begin
            .checked_sub(1)
            .map_or(first, |before| &self.samples[before]);
        let connections: u64 = inside.iter().map(|sample| sample.connections).sum();
        let most = |value: fn(&SocketSample) -> u64| inside.iter().map(value).max().unwrap_or(0);
        let mean = |queue: fn(&SocketSample) -> Queue| {
            let sum: u64 = inside.iter().map(|sample| queue(sample).sum).sum();
            ratio(sum, connections.max(1))
        };
        Some(SocketResources {
            connections_peak: most(|sample| sample.connections),
            retransmits: last
                .retransmits
                .zip(before.retransmits)
                .map(|(last, before)| last.saturating_sub(before)),
            receive_queue_peak_bytes: most(|sample| sample.receive_queue.peak),
            receive_queue_mean_bytes: mean(|sample| sample.receive_queue),
            send_queue_peak_bytes: most(|sample| sample.send_queue.peak),
            send_queue_mean_bytes: mean(|sample| sample.send_queue),
            accept_queue_peak: inside.iter().filter_map(|sample| sample.accept_queue).max(),
        })
    }
}

#[allow(clippy::cast_precision_loss)] // Bytes in queues, far below 2^53.
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ns: u64, connections: u64, retransmits: u64, unread: &[u32]) -> SocketSample {
        let mut sample = SocketSample {
            at_ns,
            connections,
            retransmits: Some(retransmits),
            accept_queue: (at_ns != 30).then_some(at_ns / 10),
            ..SocketSample::default()
        };
        for bytes in unread {
            sample.receive_queue.add(*bytes);
        }
        sample
    }

    #[test]
    fn a_window_is_its_samples_and_the_counter_before_it() {
        let mut series = SocketSeries::default();
        series.push(sample(10, 2, 5, &[999, 999]));
        series.push(sample(20, 2, 7, &[100, 200]));
        series.push(sample(30, 4, 9, &[300, 0, 0, 0]));
        series.push(sample(40, 1, 50, &[999]));
        let window = series.between(15, 35).expect("seen");
        assert_eq!(window.connections_peak, 4);
        assert_eq!(window.retransmits, Some(4));
        assert_eq!(window.receive_queue_peak_bytes, 300);
        assert!((window.receive_queue_mean_bytes - 100.0).abs() < 1e-9);
        assert_eq!(window.send_queue_peak_bytes, 0);
        assert_eq!(window.accept_queue_peak, Some(2));
        let first = series.between(0, 10).expect("seen");
        assert_eq!(first.retransmits, Some(0));
    }

    #[test]
    fn without_samples_nothing_is_said() {
        let mut series = SocketSeries::default();
        assert_eq!(series.between(0, 100), None);
        series.push(sample(10, 0, 0, &[]));
        assert_eq!(series.between(11, 19), None);
        let empty = series.between(0, 19).expect("a listener");
        assert_eq!(empty.receive_queue_mean_bytes.to_bits(), 0f64.to_bits());
    }
}
