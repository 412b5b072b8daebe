//! What the broker holds, and whether that grows.
//!
//! The backlog is what was published less what was delivered. Under a load that the broker carries, it stays about the
//! same; under any other, it grows as long as the load lasts. So its slope says more than its size. The slope comes with
//! an interval at 95 %, because a backlog moves up and down.
//!
//! Published and delivered are counted where they happen, in slots of [`SLOT_NS`] ([`Flow`]), and added up after the
//! trial. Here a difference of counts is right: a message that is missing stays in the backlog. Whether a message is
//! missing is another question, and [`crate::marks`] answers it.
//!
//! The interval is that of [`plimsoll_core::drift`], which allows for the correlation of neighbouring values. It needs 20
//! of them. A second has ten slots, so a window of 2 s is enough.

use plimsoll_core::drift::{CONFIDENCE, Point, slope_per_hour};
use plimsoll_core::profile::{NS_PER_S, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The length of a slot: 100 ms.
pub const SLOT_NS: u64 = NS_PER_S / SLOTS_PER_S;
const SLOTS_PER_S: u64 = 10;
/// The most slots that a flow has: a day. What comes later counts in the last one.
pub const SLOTS_MAX: usize = 864_000;
/// A backlog grows if its slope is for certain above this share of the rate.
pub const GROWS_SHARE: f64 = 0.005;

const HOUR_S: f64 = 3600.0;

/// How many messages passed a point, slot by slot, from the trial's beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    slots: Vec<u32>,
}

impl Flow {
    /// A flow with room for a trial up to this time, so that counting allocates nothing.
    #[must_use]
    pub fn until(end_ns: u64) -> Self {
        Self {
            slots: Vec::with_capacity(slot_of(end_ns) + 1),
        }
    }

    /// Counts a message at this time since the trial began: when its write was complete, or when it first arrived. A
    /// repeated arrival is no delivery and does not count.
    pub fn count(&mut self, at_ns: u64) {
        self.count_several(at_ns, 1);
    }

    /// Counts several messages at the same time.
    pub fn count_several(&mut self, at_ns: u64, messages: u32) {
        let slot = slot_of(at_ns);
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] = self.slots[slot].saturating_add(messages);
    }

    /// Adds the flow of another connection.
    pub fn merge(&mut self, other: &Self) {
        if other.slots.len() > self.slots.len() {
            self.slots.resize(other.slots.len().min(SLOTS_MAX), 0);
        }
        for (ours, theirs) in self.slots.iter_mut().zip(&other.slots) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// The flow of several connections together.
    #[must_use]
    pub fn sum<'a>(flows: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for flow in flows {
            sum.merge(flow);
        }
        sum
    }

    /// The most messages of a second, which may begin at any slot.
    #[must_use]
    pub fn peak_per_s(&self) -> u64 {
        let per_s = usize::try_from(SLOTS_PER_S).unwrap_or(1);
        let (mut second, mut peak) = (0, 0);
        for (at, slot) in self.slots.iter().enumerate() {
            second += u64::from(*slot);
            if let Some(gone) = at.checked_sub(per_s) {
                second -= u64::from(self.slots[gone]);
            }
            peak = peak.max(second);
        }
        peak
    }

    /// All of them.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages_before(u64::MAX)
    }

    /// Those of the slots that ended by this time.
    #[must_use]
    pub fn messages_before(&self, at_ns: u64) -> u64 {
        let slots = usize::try_from(at_ns / SLOT_NS).unwrap_or(usize::MAX);
        let ended = self.slots.iter().take(slots);
        ended.map(|slot| u64::from(*slot)).sum()
    }

    fn slot(&self, slot: usize) -> i64 {
        self.slots.get(slot).copied().map_or(0, i64::from)
    }
}

/// The slot of a time.
fn slot_of(at_ns: u64) -> usize {
    usize::try_from(at_ns / SLOT_NS).map_or(SLOTS_MAX - 1, |slot| slot.min(SLOTS_MAX - 1))
}

/// The backlog over a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backlog {
    /// At the end of each slot.
    held: Vec<i64>,
}

impl Backlog {
    /// What was published less what was delivered.
    ///
    /// In a queue, `delivered` is the sum of all readers. In a stream every reader has a backlog of its own. A refused
    /// message is not held, so add the flow of refusals to `delivered`.
    #[must_use]
    pub fn of(published: &Flow, delivered: &Flow) -> Self {
        let slots = published.slots.len().max(delivered.slots.len());
        let mut held = 0;
        Self {
            held: (0..slots)
                .map(|slot| {
                    held += published.slot(slot) - delivered.slot(slot);
                    held
                })
                .collect(),
        }
    }

    /// Messages that the broker held at the end of each second of the trial. What is delivered before its write is known
    /// to be complete makes the value less than it is, in passing even less than 0.
    pub fn per_second(&self) -> impl Iterator<Item = i64> + '_ {
        let per_s = usize::try_from(SLOTS_PER_S).unwrap_or(1);
        self.held
            .chunks(per_s)
            .filter_map(|second| second.last().copied())
    }

    /// Messages that the broker held at this time; 0 before the trial, and what it held last after the last slot.
    #[must_use]
    pub fn at(&self, at_ns: u64) -> i64 {
        let ended = usize::try_from(at_ns / SLOT_NS).unwrap_or(usize::MAX);
        let last = ended.min(self.held.len()).checked_sub(1);
        last.map_or(0, |slot| self.held[slot])
    }

    /// How the backlog changed over the window, if `rate_per_s` messages a second were due.
    ///
    /// `None` if there is no such interval: the window is shorter than 2 s, or the rate is 0.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "messages and tenths of seconds of a trial, far below 2^53"
    )]
    pub fn slope(&self, window: Window, rate_per_s: f64) -> Option<BacklogSlope> {
        let slots = window.start_ns.div_ceil(SLOT_NS)..=window.end_ns / SLOT_NS;
        let points: Vec<Point> = slots
            .map(|slot| Point {
                at_s: slot as f64 / SLOTS_PER_S as f64,
                value: self.at(slot * SLOT_NS) as f64,
            })
            .collect();
        let per_hour = slope_per_hour(&points).filter(|_| rate_per_s > 0.0)?;
        Some(BacklogSlope {
            per_s: per_hour.value / HOUR_S,
            low_per_s: per_hour.low / HOUR_S,
            high_per_s: per_hour.high / HOUR_S,
            confidence: CONFIDENCE,
            rate_per_s,
        })
    }
}

/// How fast a backlog grows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BacklogSlope {
    /// Messages per second by which the backlog grows; below 0 if it shrinks.
    pub per_s: f64,
    /// Lower end of the interval.
    pub low_per_s: f64,
    /// Upper end of the interval.
    pub high_per_s: f64,
    /// Share of such intervals that contain the true slope.
    pub confidence: f64,
    /// Messages per second that were due.
    pub rate_per_s: f64,
}

impl BacklogSlope {
    /// The slope as a share of the rate: 0.2 if a fifth of what is published stays behind.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.per_s / self.rate_per_s
    }

    /// Lower end of the interval as a share of the rate.
    #[must_use]
    pub fn low_share(&self) -> f64 {
        self.low_per_s / self.rate_per_s
    }

    /// Upper end of the interval as a share of the rate.
    #[must_use]
    pub fn high_share(&self) -> f64 {
        self.high_per_s / self.rate_per_s
    }

    /// Whether the backlog grows for certain: the whole interval is above [`GROWS_SHARE`] of the rate.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.low_share() > GROWS_SHARE
    }

    /// Of the readers of a stream, the slope of the one that falls back fastest. `None` without readers, or if one of
    /// them has no slope: the worst one is not known then.
    #[must_use]
    pub fn worst(slopes: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let all: Option<Vec<Self>> = slopes.into_iter().collect();
        all?.into_iter().max_by(|a, b| a.per_s.total_cmp(&b.per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use proptest::prelude::*;

    /// Ramp and warm-up take 2 s.
    fn window(measured_s: f64) -> Window {
        let profile = Profile {
            ramp_s: 1.0,
            warm_up_s: 1.0,
            measured_s,
            ..Profile::quick()
        };
        profile.window()
    }

    /// So many messages a second over a time, in milliseconds.
    fn flow(per_s: u64, ms: std::ops::Range<u64>) -> Flow {
        let mut flow = Flow::until(ms.end * 1_000_000);
        let (first, last) = (ms.start * per_s / 1_000, ms.end * per_s / 1_000);
        for message in first..last {
            flow.count(message * NS_PER_S / per_s);
        }
        flow
    }

    /// Fault of other benchmarks: drained counted as received. The broker delivers 80 % of what comes.
    #[test]
    fn a_broker_that_delivers_80_percent_has_a_slope_of_20() {
        let backlog = Backlog::of(&flow(1_000, 1_000..12_000), &flow(800, 1_000..12_000));
        let slope = backlog.slope(window(10.0), 1_000.0).unwrap();
        assert!((slope.share() - 0.2).abs() < 0.001, "{slope:?}");
        assert!(slope.low_share() <= slope.share() && slope.share() <= slope.high_share());
        assert!(slope.grows());
        // Whatever drains afterwards changes nothing about the window.
        let mut delivered = flow(800, 1_000..12_000);
        delivered.merge(&flow(10_000, 12_000..12_220));
        let drained = Backlog::of(&flow(1_000, 1_000..12_000), &delivered);
        assert_eq!(drained.slope(window(10.0), 1_000.0), Some(slope));
        assert_eq!(drained.at(20 * NS_PER_S), 0);
        assert_eq!(drained.at(12 * NS_PER_S), 2_200);
    }

    #[test]
    fn a_broker_that_keeps_up_has_none() {
        let mut behind = Flow::default();
        for ms in 1_000..12_000 {
            behind.count((ms + 50) * 1_000_000);
        }
        let backlog = Backlog::of(&flow(1_000, 1_000..12_000), &behind);
        assert_eq!(backlog.at(11 * NS_PER_S), 50);
        let slope = backlog.slope(window(9.0), 1_000.0).unwrap();
        assert!(!slope.grows() && slope.share().abs() < 1e-9, "{slope:?}");
        // A stall of half a second in the middle is a bump and no growth.
        let mut stalled = flow(1_000, 1_000..6_000);
        stalled.count_several(6_500_000_000, 500);
        stalled.merge(&flow(1_000, 6_500..12_000));
        let slope = Backlog::of(&flow(1_000, 1_000..12_000), &stalled)
            .slope(window(10.0), 1_000.0)
            .unwrap();
        assert!(!slope.grows(), "{slope:?}");
        assert!(slope.high_share() > 0.0 && slope.low_share() < 0.0);
    }

    #[test]
    fn a_short_window_has_no_slope() {
        let backlog = Backlog::of(&flow(1_000, 1_000..6_000), &flow(500, 1_000..6_000));
        assert_eq!(backlog.slope(window(1.8), 1_000.0), None);
        assert!(backlog.slope(window(2.0), 1_000.0).is_some());
        assert_eq!(backlog.slope(window(2.0), 0.0), None);
    }

    #[test]
    fn seconds_by_hand() {
        let (mut published, mut delivered) = (Flow::default(), Flow::default());
        for ms in [0, 100, 999, 1_000, 2_500] {
            published.count(ms * 1_000_000);
        }
        for ms in [900, 2_400, 2_550] {
            delivered.count(ms * 1_000_000);
        }
        let backlog = Backlog::of(&published, &delivered);
        let seconds: Vec<i64> = backlog.per_second().collect();
        assert_eq!(seconds, [2, 3, 2]);
        assert_eq!(backlog.at(0), 0);
        assert_eq!(backlog.at(SLOT_NS), 1, "what came in the first slot");
        assert_eq!(Backlog::of(&Flow::default(), &Flow::default()).at(7), 0);
    }

    #[test]
    fn time_without_end_takes_no_memory_without_end() {
        let mut flow = Flow::default();
        flow.count(u64::MAX);
        assert_eq!(flow.slots.len(), SLOTS_MAX);
        let mut other = Flow::default();
        other.merge(&flow);
        assert_eq!(other, flow);
    }

    #[test]
    fn the_worst_reader_of_a_stream() {
        let published = flow(1_000, 1_000..12_000);
        let slope = |per_s| {
            Backlog::of(&published, &flow(per_s, 1_000..12_000)).slope(window(10.0), 1_000.0)
        };
        let worst = BacklogSlope::worst([slope(1_000), slope(500), slope(900)]).unwrap();
        assert!((worst.share() - 0.5).abs() < 0.001);
        assert_eq!(BacklogSlope::worst([slope(1_000), None]), None);
        assert_eq!(BacklogSlope::worst([]), None);
    }

    proptest! {
        /// However the messages are divided among connections, their sum is the same.
        #[test]
        fn flows_add_up(times in prop::collection::vec((0_u64..20_000_000_000, 0_usize..4), 0..200)) {
            let mut parts = vec![Flow::default(); 4];
            let mut whole = Flow::default();
            for (at_ns, part) in &times {
                parts[*part].count(*at_ns);
                whole.count(*at_ns);
            }
            prop_assert_eq!(&Flow::sum(&parts), &whole);
            parts.reverse();
            prop_assert_eq!(&Flow::sum(&parts), &whole);
            let held = Backlog::of(&whole, &Flow::default());
            prop_assert_eq!(held.at(u64::MAX), i64::try_from(times.len()).unwrap());
        }
    }
}
