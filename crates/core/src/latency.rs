//! Latency recording: HDR histograms, from the schedule and from the write, side by side.
//!
//! "From the schedule" is what a user of the server experiences and what the gates look at. "From the write" leaves out
//! the client's own lateness and the time that a frame waited for the target. The difference between the two lets
//! the reader check the client. (Gil Tene's "coordinated omission" is what happens if only the second is recorded.)

mod percentiles;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::NS_PER_US;

pub use percentiles::Percentiles;

/// The highest value recorded: one hour in microseconds, with three significant digits.
const HIGHEST_US: u64 = 3_600_000_000;

/// What a sample measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Series {
    /// Arrival of an answer minus the scheduled time of the newest frame it covers.
    NewestFromSchedule,
    /// The same, from that frame's write.
    NewestFromWrite,
    /// Arrival of an answer minus the scheduled time of the oldest frame it covers.
    OldestFromSchedule,
    /// The same, from that frame's write.
    OldestFromWrite,
    /// Write minus schedule, without the time waited for the target: the client's own lateness.
    SendLag,
    /// Time that a due frame waited for the target, because its socket was full or the protocol demanded an answer first:
    /// the target's back-pressure.
    SendWait,
    /// Arrival of a confirmation minus the scheduled time of the frame that it confirms. Some targets, such as brokers,
    /// answer a frame twice: they confirm it to its sender, and they deliver it, which is the answer.
    ConfirmFromSchedule,
    /// The same, from that frame's write.
    ConfirmFromWrite,
}

impl Series {
    /// All series, in the order in which they are stored and written.
    pub const ALL: [Self; 8] = [
        Self::NewestFromSchedule,
        Self::NewestFromWrite,
        Self::OldestFromSchedule,
        Self::OldestFromWrite,
        Self::SendLag,
        Self::SendWait,
        Self::ConfirmFromSchedule,
        Self::ConfirmFromWrite,
    ];

    /// Its tag in interval logs.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::NewestFromSchedule => "newest_from_schedule",
            Self::NewestFromWrite => "newest_from_write",
            Self::OldestFromSchedule => "oldest_from_schedule",
            Self::OldestFromWrite => "oldest_from_write",
            Self::SendLag => "send_lag",
            Self::SendWait => "send_wait",
            Self::ConfirmFromSchedule => "confirm_from_schedule",
            Self::ConfirmFromWrite => "confirm_from_write",
        }
    }

    /// Whether only some workloads have it. Interval logs leave it out where it has no sample.
    #[must_use]
    pub fn is_optional(self) -> bool {
        matches!(self, Self::ConfirmFromSchedule | Self::ConfirmFromWrite)
    }
}

/// One histogram per series, and how many samples are only lower bounds.
#[derive(Debug, Clone)]
pub struct LatencySet {
    histograms: Box<[Histogram<u64>; Series::ALL.len()]>,
    /// Samples of unanswered frames in the series of the newest and of the oldest frame: the time waited, a lower bound.
    censored: u64,
    /// Samples of unconfirmed frames in the series of the confirmation: the time waited, a lower bound.
    unconfirmed: u64,
}

impl Default for LatencySet {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencySet {
    /// Empty histograms, allocated at full range so that recording never allocates.
    #[must_use]
    pub fn new() -> Self {
        Self {
            histograms: Box::new(Series::ALL.map(|_| empty_histogram())),
            censored: 0,
            unconfirmed: 0,
        }
    }

    /// Rebuilds a set from what [`LatencySet::histogram`], [`LatencySet::censored`] and [`LatencySet::unconfirmed`]
    /// returned; `None` if a histogram exceeds the range of this set.
    #[must_use]
    pub fn of(
        histograms: impl IntoIterator<Item = (Series, Histogram<u64>)>,
        censored: u64,
        unconfirmed: u64,
    ) -> Option<Self> {
        let mut set = Self::new();
        for (series, histogram) in histograms {
            set.histograms[series as usize].add(&histogram).ok()?;
        }
        set.censored = censored;
        set.unconfirmed = unconfirmed;
        Some(set)
    }

    /// Records one sample.
    pub fn record_ns(&mut self, series: Series, value_ns: u64) {
        self.histograms[series as usize].saturating_record(value_ns / NS_PER_US);
    }

    /// Records the same sample many times.
    pub fn record_many_ns(&mut self, series: Series, value_ns: u64, times: u64) {
        if times > 0 {
            self.histograms[series as usize].saturating_record_n(value_ns / NS_PER_US, times);
        }
    }

    /// Records an unanswered frame with the time we waited for it, in the four series of the newest and of the oldest
    /// frame. A frame that was confirmed but never delivered is unanswered, too.
    pub fn record_unanswered(&mut self, from_schedule_ns: u64, from_write_ns: u64) {
        self.record_ns(Series::NewestFromSchedule, from_schedule_ns);
        self.record_ns(Series::OldestFromSchedule, from_schedule_ns);
        self.record_ns(Series::NewestFromWrite, from_write_ns);
        self.record_ns(Series::OldestFromWrite, from_write_ns);
        self.censored += 1;
    }

    /// Records a frame that was never confirmed with the time we waited for the confirmation, in both confirm series.
    pub fn record_unconfirmed(&mut self, from_schedule_ns: u64, from_write_ns: u64) {
        self.record_ns(Series::ConfirmFromSchedule, from_schedule_ns);
        self.record_ns(Series::ConfirmFromWrite, from_write_ns);
        self.unconfirmed += 1;
    }

    /// The histogram of a series, with values in microseconds.
    #[must_use]
    pub fn histogram(&self, series: Series) -> &Histogram<u64> {
        &self.histograms[series as usize]
    }

    /// The number of unanswered frames among the samples of the newest and of the oldest frame.
    #[must_use]
    pub fn censored(&self) -> u64 {
        self.censored
    }

    /// The number of unconfirmed frames among the samples of the confirmation.
    #[must_use]
    pub fn unconfirmed(&self) -> u64 {
        self.unconfirmed
    }

    /// Adds the samples of another set.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.histograms.iter_mut().zip(other.histograms.iter()) {
            if !theirs.is_empty() {
                mine.add(theirs)
                    .unwrap_or_else(|_| unreachable!("all histograms have one range"));
            }
        }
        self.censored += other.censored;
        self.unconfirmed += other.unconfirmed;
    }

    /// Removes all samples but keeps the memory.
    pub fn clear(&mut self) {
        for histogram in self.histograms.iter_mut() {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
        self.censored = 0;
        self.unconfirmed = 0;
    }

    /// The percentiles of the latency series, as the result shows them.
    #[must_use]
    pub fn summary(&self) -> Latency {
        let dual = |[from_schedule, from_write]: [Series; 2], censored| Dual {
            from_schedule: Quantiles::of(self.histogram(from_schedule), censored),
            from_write: Quantiles::of(self.histogram(from_write), censored),
        };
        let newest = [Series::NewestFromSchedule, Series::NewestFromWrite];
        let oldest = [Series::OldestFromSchedule, Series::OldestFromWrite];
        let confirm = [Series::ConfirmFromSchedule, Series::ConfirmFromWrite];
        let with_confirm = !self.histogram(Series::ConfirmFromSchedule).is_empty();
        Latency {
            newest: dual(newest, self.censored),
            oldest: dual(oldest, self.censored),
            confirm: with_confirm.then(|| dual(confirm, self.unconfirmed)),
            // A set does not know which of its samples are of which second.
            worst_second_p99_ms: None,
        }
    }
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_US, 3)
        .unwrap_or_else(|_| unreachable!("constant bounds are valid"))
}

/// Latencies of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Latency of the last frame that an answer covers.
    pub newest: Dual,
    /// Latency of the first frame that an answer covers.
    pub oldest: Dual,
    /// Latency of the confirmation of a frame; `null` if no frame was confirmed or waited for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Dual>,
    /// Latency of the newest frame from the schedule, 99th percentile of the second in which it was greatest; `null` in
    /// results of earlier versions.
    #[serde(default)]
    pub worst_second_p99_ms: Option<f64>,
}

/// The same latency from both starting points.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dual {
    /// From the scheduled send time: what the gates look at.
    pub from_schedule: Quantiles,
    /// From the actual write.
    pub from_write: Quantiles,
}

/// Percentiles in milliseconds; `null` when there was no sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Median.
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    pub p90_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile.
    pub p999_ms: Option<f64>,
    /// Maximum.
    pub max_ms: Option<f64>,
    /// Number of samples.
    pub count: u64,
    /// How many samples are of unanswered frames, in `confirm` of unconfirmed ones: their latency is only known to be at
    /// least the recorded value.
    pub censored: u64,
}

impl Quantiles {
    fn of(histogram: &Histogram<u64>, censored: u64) -> Self {
        let at = |quantile| quantile_us(histogram, quantile).map(|us| us / 1e3);
        Self {
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: at(1.0),
            count: histogram.len(),
            censored,
        }
    }
}

/// Percentiles of the client's lateness in microseconds; `null` when nothing was sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LagQuantiles {
    /// Median.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Maximum.
    pub max_us: Option<f64>,
}

impl LagQuantiles {
    /// The percentiles of a histogram of microseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| quantile_us(histogram, quantile);
        Self {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
        }
    }
}

/// A quantile of a histogram of microseconds; `None` when it is empty.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "an hour in microseconds is far below 2^53"
)]
pub fn quantile_us(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(quantile) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::NS_PER_MS;

    #[test]
    fn an_empty_record_has_no_percentiles() {
        let latency = LatencySet::new().summary();
        assert_eq!(latency.newest.from_schedule.p50_ms, None);
        assert_eq!(latency.newest.from_schedule.count, 0);
    }

    #[test]
    fn unanswered_frames_are_in_the_percentiles() {
        let mut set = LatencySet::new();
        for _ in 0..90 {
            set.record_ns(Series::NewestFromSchedule, 100 * NS_PER_MS);
        }
        for _ in 0..10 {
            set.record_unanswered(7_000 * NS_PER_MS, 6_999 * NS_PER_MS);
        }
        let newest = set.summary().newest.from_schedule;
        assert_eq!((newest.count, newest.censored), (100, 10));
        assert!(newest.p95_ms.unwrap() >= 7_000.0);
        assert!(newest.p50_ms.unwrap() < 101.0);
    }

    #[test]
    fn merged_sets_are_the_sum() {
        let mut a = LatencySet::new();
        let mut b = LatencySet::new();
        a.record_ns(Series::SendLag, 5_000);
        b.record_ns(Series::SendLag, 9_000);
        b.record_unanswered(1, 1);
        a.merge(&b);
        assert_eq!(a.histogram(Series::SendLag).len(), 2);
        assert_eq!(a.histogram(Series::SendLag).max(), 9);
        assert_eq!(a.censored(), 1);
        a.clear();
        assert_eq!(a.histogram(Series::SendLag).len(), 0);
    }

    #[test]
    fn a_series_has_its_place_and_its_own_tag() {
        for (place, series) in Series::ALL.into_iter().enumerate() {
            assert_eq!(series as usize, place);
            let same_tag = |other: &Series| other.tag() == series.tag();
            assert_eq!(
                Series::ALL.iter().filter(|other| same_tag(other)).count(),
                1
            );
        }
    }

    #[test]
    fn unconfirmed_frames_are_in_the_percentiles_of_the_confirmation_only() {
        let mut set = LatencySet::new();
        assert_eq!(set.summary().confirm, None);
        set.record_unanswered(3_000 * NS_PER_MS, 3_000 * NS_PER_MS);
        assert_eq!(set.summary().confirm, None);
        for _ in 0..98 {
            set.record_ns(Series::ConfirmFromSchedule, 5 * NS_PER_MS);
            set.record_ns(Series::ConfirmFromWrite, 4 * NS_PER_MS);
        }
        for _ in 0..2 {
            set.record_unconfirmed(9_000 * NS_PER_MS, 8_000 * NS_PER_MS);
        }
        assert_eq!((set.censored(), set.unconfirmed()), (1, 2));
        let Latency {
            newest, confirm, ..
        } = set.summary();
        let Dual {
            from_schedule,
            from_write,
        } = confirm.unwrap();
        assert_eq!((from_schedule.count, from_schedule.censored), (100, 2));
        assert_eq!((from_write.count, from_write.censored), (100, 2));
        assert!(from_schedule.p50_ms.unwrap() < 5.1 && from_write.p50_ms.unwrap() < 4.1);
        assert!(from_schedule.p99_ms.unwrap() >= 9_000.0);
        assert!((8_000.0..8_100.0).contains(&from_write.p99_ms.unwrap()));
        let newest = newest.from_schedule;
        assert_eq!((newest.count, newest.censored), (1, 1));
        set.clear();
        assert_eq!((set.unconfirmed(), set.summary().confirm), (0, None));
    }

    #[test]
    fn a_record_without_a_confirmation_is_that_of_earlier_versions() {
        let mut set = LatencySet::new();
        set.record_ns(Series::NewestFromSchedule, NS_PER_MS);
        let earlier = serde_json::to_value(set.summary()).unwrap();
        assert!(earlier.get("confirm").is_none());
        let read: Latency = serde_json::from_value(earlier).unwrap();
        assert_eq!(read, set.summary());
        set.record_unconfirmed(NS_PER_MS, NS_PER_MS);
        let later = serde_json::to_value(set.summary()).unwrap();
        assert_eq!(later["confirm"]["from_write"]["censored"], 1);
        assert_eq!(
            serde_json::from_value::<Latency>(later).unwrap(),
            set.summary()
        );
    }

    /// What may be recorded, and into which of two sets.
    fn samples() -> impl Strategy<Value = Vec<(usize, u64, bool)>> {
        let of_series = 0..Series::ALL.len() + 2;
        let sample = (of_series, 0_u64..8_000_000_000_000, any::<bool>());
        prop::collection::vec(sample, 0..200)
    }

    fn record(into: &mut LatencySet, what: usize, value_ns: u64) {
        match Series::ALL.get(what) {
            Some(series) => into.record_ns(*series, value_ns),
            None if what == Series::ALL.len() => into.record_unanswered(value_ns, value_ns / 2),
            None => into.record_unconfirmed(value_ns, value_ns / 2),
        }
    }

    proptest! {
        /// A set is rebuilt from what it shows, and two sets merged are the one that has all samples.
        #[test]
        fn parts_merged_and_rebuilt_are_the_whole(samples in samples()) {
            let (mut whole, mut first, mut second) = (LatencySet::new(), LatencySet::new(), LatencySet::new());
            for (what, value_ns, to_first) in samples {
                record(&mut whole, what, value_ns);
                record(if to_first { &mut first } else { &mut second }, what, value_ns);
            }
            first.merge(&second);
            let shown = Series::ALL.map(|series| (series, first.histogram(series).clone()));
            let rebuilt = LatencySet::of(shown, first.censored(), first.unconfirmed()).unwrap();
            for set in [&first, &rebuilt] {
                prop_assert_eq!(set.summary(), whole.summary());
                prop_assert_eq!(set.censored(), whole.censored());
                prop_assert_eq!(set.unconfirmed(), whole.unconfirmed());
                for series in Series::ALL {
                    prop_assert_eq!(set.histogram(series), whole.histogram(series));
                }
            }
        }
    }

    #[test]
    fn a_value_beyond_the_range_is_kept_as_the_greatest() {
        let mut set = LatencySet::new();
        set.record_ns(Series::SendWait, u64::MAX);
        assert!(set.histogram(Series::SendWait).max() >= HIGHEST_US - HIGHEST_US / 500);
    }
}
