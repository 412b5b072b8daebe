//! What our programs tell of how long something took.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::LagQuantiles;

/// A distribution of durations in three numbers, µs, as our own programs tell it; all 0 if nothing was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Maximum.
    pub max_us: u64,
}

impl Percentiles {
    /// The percentiles of a histogram of microseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            p50_us: histogram.value_at_quantile(0.5),
            p99_us: histogram.value_at_quantile(0.99),
            max_us: histogram.max(),
        }
    }

    /// Each percentile of several programs, as the worst of them told it.
    #[must_use]
    pub fn worst_of(each: impl IntoIterator<Item = Self>) -> Self {
        let worse = |worst: Self, one: Self| Self {
            p50_us: worst.p50_us.max(one.p50_us),
            p99_us: worst.p99_us.max(one.p99_us),
            max_us: worst.max_us.max(one.max_us),
        };
        each.into_iter().fold(Self::default(), worse)
    }
}

impl From<Percentiles> for LagQuantiles {
    /// Without the 99.9th percentile: it was not told.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an hour in microseconds is far below 2^53"
    )]
    fn from(told: Percentiles) -> Self {
        Self {
            p50_us: Some(told.p50_us as f64),
            p99_us: Some(told.p99_us as f64),
            p999_us: None,
            max_us: Some(told.max_us as f64),
        }
    }
}
