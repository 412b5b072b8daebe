//! Durations of which all are kept, so that a percentile is a value that occurred (nearest rank). What never came counts with
//! the time that we waited, a lower bound.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::NS_PER_MS;

/// Percentiles of durations, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Durations {
    /// How many there are.
    pub samples: u64,
    /// Of these, what never came: the time that we waited, a lower bound.
    pub unanswered: u64,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    #[serde(default)]
    pub p90_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile.
    pub p999_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
}

/// Durations that are still collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    all_ns: Vec<u64>,
    unanswered: u64,
}

impl Collected {
    /// It came after this time.
    pub fn came(&mut self, ns: u64) {
        self.all_ns.push(ns);
    }

    /// It never came in the time that we waited.
    pub fn missing(&mut self, waited_ns: u64) {
        self.all_ns.push(waited_ns);
        self.unanswered += 1;
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all_ns.is_empty()
    }

    /// Their percentiles.
    #[must_use]
    pub fn durations(mut self) -> Durations {
        self.all_ns.sort_unstable();
        let at = |share: f64| nearest_rank(&self.all_ns, share).map(ms);
        Durations {
            samples: self.all_ns.len() as u64,
            unanswered: self.unanswered,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: at(1.0),
        }
    }
}

/// The smallest value that is at least as great as this share of all values.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as many values as a machine holds, and a share of at most 1"
)]
fn nearest_rank(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[expect(clippy::cast_precision_loss, reason = "hours in nanoseconds")]
fn ms(ns: u64) -> f64 {
    ns as f64 / NS_PER_MS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let sorted: Vec<u64> = (1..=200).collect();
        assert_eq!(nearest_rank(&sorted, 0.5), Some(100));
        assert_eq!(nearest_rank(&sorted, 0.95), Some(190));
        assert_eq!(nearest_rank(&sorted, 1.0), Some(200));
        assert_eq!(nearest_rank(&[7], 0.5), Some(7));
        assert_eq!(nearest_rank(&[], 0.5), None);
    }
}
