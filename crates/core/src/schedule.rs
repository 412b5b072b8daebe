//! Absolute schedules: when each session connects and when each of its frames is due.
//!
//! A schedule never moves because something was late. That is what makes lateness visible.

use crate::profile::{Profile, Window, seconds_to_ns};

/// The plan of one session within a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPlan {
    /// Number of the session in the trial, from 0.
    pub id: u32,
    /// Seed of everything that this session draws.
    pub seed: u64,
    /// When its connection is opened, in nanoseconds since the trial began.
    pub connect_at_ns: u64,
    /// When its first frame is due.
    pub first_due_ns: u64,
    /// The measured window.
    pub window: Window,
}

/// The plan of session `id` of `sessions`: connections evenly over the ramp, first frames evenly over the start spread.
///
/// The spread uses the golden-ratio sequence (an additive recurrence of low discrepancy), so that sessions that connect one after
/// the other do not flush one after the other, and any number of sessions is spread evenly.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "fractions of a span in nanoseconds: a float's 53 bits are finer than any timer"
)]
pub fn session_plan(id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
    const GOLDEN_RATIO_FRACTION: f64 = 0.618_033_988_749_894_9;
    let ramp_ns = profile.ramp_end_ns();
    let connect_at_ns = (u128::from(ramp_ns) * u128::from(id) / u128::from(sessions.max(1))) as u64;
    let spread_ns = seconds_to_ns(profile.session_start_spread_ms / 1e3);
    let start = (mix(seed) >> 11) as f64 / (1_u64 << 53) as f64;
    let phase = (start + f64::from(id) * GOLDEN_RATIO_FRACTION).fract();
    SessionPlan {
        id,
        seed: mix(seed ^ mix(u64::from(id) + 1)),
        connect_at_ns,
        first_due_ns: connect_at_ns + (spread_ns as f64 * phase) as u64,
        window: profile.window(),
    }
}

/// An absolute periodic schedule, `first + k * period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periodic {
    /// When slot 0 is due.
    pub first_ns: u64,
    /// The distance between slots; not zero.
    pub period_ns: u64,
}

impl Periodic {
    /// When slot `k` is due.
    #[must_use]
    pub fn due_ns(&self, k: u64) -> u64 {
        self.first_ns + k * self.period_ns
    }

    /// How many slots are due strictly before `time_ns`; that is also the first slot due at or after it.
    #[must_use]
    pub fn due_before(&self, time_ns: u64) -> u64 {
        time_ns
            .saturating_sub(self.first_ns)
            .div_ceil(self.period_ns)
    }

    /// The same schedule, without the slots before `time_ns`.
    #[must_use]
    pub fn starting_at(&self, time_ns: u64) -> Self {
        Self {
            first_ns: self.due_ns(self.due_before(time_ns)),
            period_ns: self.period_ns,
        }
    }
}

/// One step of `SplitMix64` (Steele, Lea, Flood, 2014): a well-mixed 64-bit hash of its argument.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{NS_PER_MS, NS_PER_S};
    use proptest::prelude::*;

    #[test]
    fn sessions_connect_evenly_over_the_ramp() {
        let profile = Profile::quick();
        let at = |id| session_plan(id, 300, &profile, 7).connect_at_ns;
        assert_eq!(at(0), 0);
        assert_eq!(at(150), 1_500 * NS_PER_MS);
        assert!(at(299) < 3 * NS_PER_S);
    }

    #[test]
    fn first_frames_fill_the_spread_without_a_herd() {
        let mut profile = Profile::quick();
        profile.ramp_s = 0.0;
        let mut tenths = [0; 10];
        for id in 0..1000 {
            let plan = session_plan(id, 1000, &profile, 3);
            tenths[usize::try_from(plan.first_due_ns / (100 * NS_PER_MS)).unwrap()] += 1;
        }
        assert!(
            tenths.iter().all(|n| (95..=105).contains(n)),
            "uneven: {tenths:?}"
        );
    }

    #[test]
    fn the_seed_decides_everything() {
        let profile = Profile::quick();
        assert_eq!(
            session_plan(5, 10, &profile, 1),
            session_plan(5, 10, &profile, 1)
        );
        assert_ne!(
            session_plan(5, 10, &profile, 1).seed,
            session_plan(5, 10, &profile, 2).seed
        );
        assert_ne!(
            session_plan(5, 10, &profile, 1).seed,
            session_plan(6, 10, &profile, 1).seed
        );
    }

    proptest! {
        #[test]
        fn due_before_counts_the_slots(first in 0_u64..10_000, period in 1_u64..500, time in 0_u64..20_000) {
            let schedule = Periodic { first_ns: first, period_ns: period };
            let counted = (0..).take_while(|k| schedule.due_ns(*k) < time).count() as u64;
            prop_assert_eq!(schedule.due_before(time), counted);
            let later = schedule.starting_at(time);
            prop_assert!(later.first_ns >= time);
            prop_assert_eq!((later.first_ns - first) % period, 0);
        }
    }
}
