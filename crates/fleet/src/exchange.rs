//! How far apart two monotonic clocks are, from probes and their answers.
//!
//! A probe is sent at `t0` and its answer comes at `t1`; the other side read `t` in between. So its clock is ahead of ours by
//! `t - t0` at most and by `t - t1` at least, and the middle is wrong by no more than half the round trip, whatever
//! the way took (Cristian, *Probabilistic clock synchronization*, 1989).

use std::collections::{BTreeMap, VecDeque};

/// Probes whose answers count for the present offset: the best of them does.
const RECENT: usize = 20;

/// How far the other side's clock is ahead of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// By so much, in ns.
    pub ahead_ns: i128,
    /// It may be wrong by so much, in ns: half the round trip.
    pub error_ns: u64,
}

impl ClockOffset {
    /// A moment of our clock on the other side's.
    #[must_use]
    pub fn there_ns(&self, here_ns: u64) -> u64 {
        let there = i128::from(here_ns) + self.ahead_ns;
        u64::try_from(there.max(0)).unwrap_or(u64::MAX)
    }
}

/// Probes that were sent, and what their answers say.
#[derive(Debug, Default)]
pub struct Exchange {
    next: u64,
    sent: BTreeMap<u64, u64>,
    recent: VecDeque<ClockOffset>,
    answers: u64,
}

impl Exchange {
    /// A probe is sent now. Returns its number.
    pub fn probe(&mut self, now_ns: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        self.sent.insert(number, now_ns);
        // An answer that has not come after so many others never will.
        while self.sent.len() > 4 * RECENT {
            self.sent.pop_first();
        }
        number
    }

    /// The answer to a probe came now. One that nobody asked for is ignored.
    pub fn answered(&mut self, number: u64, there_ns: u64, now_ns: u64) {
        let Some(sent_ns) = self.sent.remove(&number) else {
            return;
        };
        let round_trip_ns = now_ns.saturating_sub(sent_ns);
        let middle_ns = i128::from(sent_ns) + i128::from(round_trip_ns / 2);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(ClockOffset {
            ahead_ns: i128::from(there_ns) - middle_ns,
            error_ns: round_trip_ns.div_ceil(2),
        });
        self.answers += 1;
    }

    /// Whether every probe was answered.
    #[must_use]
    pub fn awaits_none(&self) -> bool {
        self.sent.is_empty()
    }

    /// How many probes were answered.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// What the recent answers say: the one with the shortest way counts. `None` before the first.
    #[must_use]
    pub fn offset(&self) -> Option<ClockOffset> {
        let best = self.recent.iter().min_by_key(|offset| offset.error_ns);
        best.copied()
    }

    /// How wrong `earlier` may be by now, in ns: its own error, and by how much the clocks have surely drifted apart since.
    #[must_use]
    pub fn error_of_ns(&self, earlier: &ClockOffset) -> u64 {
        let Some(now) = self.offset() else {
            return earlier.error_ns;
        };
        let apart = now.ahead_ns.abs_diff(earlier.ahead_ns);
        let apart = u64::try_from(apart).unwrap_or(u64::MAX);
        // Within both errors nothing shows a drift.
        let drift = apart.saturating_sub(earlier.error_ns.saturating_add(now.error_ns));
        earlier.error_ns.saturating_add(drift)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Exchanges one probe: sent at this moment, this long on its way there and back, with the other clock ahead by so much.
    fn one(exchange: &mut Exchange, at_ns: u64, there_ns: u64, back_ns: u64, ahead_ns: i64) {
        let number = exchange.probe(at_ns);
        let read = (at_ns + there_ns)
            .checked_add_signed(ahead_ns)
            .expect("late enough");
        exchange.answered(number, read, at_ns + there_ns + back_ns);
    }

    #[test]
    fn a_way_of_40_ms_there_is_an_error_of_20() {
        let mut exchange = Exchange::default();
        assert_eq!(exchange.offset(), None);
        one(&mut exchange, 1_000_000_000, 40_000_000, 0, 7);
        let offset = exchange.offset().expect("an answer");
        assert_eq!((offset.ahead_ns, offset.error_ns), (20_000_007, 20_000_000));
        // An answer with a short way is better.
        one(&mut exchange, 2_000_000_000, 1_000, 1_000, 7);
        let offset = exchange.offset().expect("an answer");
        assert_eq!((offset.ahead_ns, offset.error_ns), (7, 1_000));
        assert_eq!(offset.there_ns(50), 57);
    }

    #[test]
    fn clocks_that_drift_are_seen_to() {
        let mut exchange = Exchange::default();
        one(&mut exchange, 1_000_000_000, 100, 100, 0);
        let beginning = exchange.offset().expect("an answer");
        assert_eq!(exchange.error_of_ns(&beginning), 100);
        // 100 ppm over a minute are 6 ms. All recent probes are of the end.
        for number in 0..RECENT as u64 {
            one(&mut exchange, 61_000_000_000 + number, 100, 100, 6_000_000);
        }
        assert_eq!(exchange.error_of_ns(&beginning), 100 + 6_000_000 - 200);
    }

    #[test]
    fn answers_that_nobody_asked_for_say_nothing() {
        let mut exchange = Exchange::default();
        exchange.answered(0, 5, 6);
        let number = exchange.probe(10);
        exchange.answered(number, 5, 6);
        exchange.answered(number, 900, 901);
        assert_eq!(exchange.answers(), 1);
    }

    proptest! {
        /// Whatever the ways are like: the true offset is within the error.
        #[test]
        fn the_truth_is_within_the_error(
            ahead_ns in -1_000_000_000_000_i64..1_000_000_000_000,
            ways in prop::collection::vec((0_u64..50_000_000, 0_u64..50_000_000), 1..40),
        ) {
            let mut exchange = Exchange::default();
            for (number, (there, back)) in ways.iter().enumerate() {
                one(&mut exchange, 2_000_000_000_000 + number as u64 * 5_000_000_000, *there, *back, ahead_ns);
            }
            let offset = exchange.offset().expect("answers");
            let wrong = offset.ahead_ns.abs_diff(ahead_ns.into());
            prop_assert!(wrong <= u128::from(offset.error_ns) + 1);
            prop_assert!(exchange.error_of_ns(&offset) == offset.error_ns);
        }
    }
}
