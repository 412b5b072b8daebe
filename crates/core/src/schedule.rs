//! Absolute schedules: when each session connects and when each of its frames is due.
//!
//! A schedule never moves because something was late. That is what makes lateness visible.

use serde::{Deserialize, Serialize};

use crate::profile::{NS_PER_S, Profile, Window, seconds_to_ns};

/// The minimum time that a session has to open.
const OPENING_AT_LEAST_NS: u64 = NS_PER_S;

/// The plan of one session within a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPlan {
    /// Number of the session in the trial, from 0.
    pub id: u32,
    /// Seed of everything that this session draws.
    pub seed: u64,
    /// When its connection is opened, in nanoseconds since the trial began. [`SessionPlan::WITH_WORK`] if it is opened
    /// for the first work that the session gets.
    pub connect_at_ns: u64,
    /// When it must be open; otherwise it failed.
    pub open_by_ns: u64,
    /// When its first frame is due.
    pub first_due_ns: u64,
    /// The measured window.
    pub window: Window,
}

impl SessionPlan {
    /// The time to connect of a session that waits for work.
    pub const WITH_WORK: u64 = u64::MAX;
}

/// The plan of session `id` of `sessions`. Connections are spread evenly over the ramp, first frames evenly over the
/// start spread.
///
/// The spread uses the golden-ratio sequence (an additive recurrence of low discrepancy). So sessions that connect one
/// after the other do not flush one after the other, and any number of sessions is spread evenly.
#[must_use]
pub fn session_plan(id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
    let spread_ns = seconds_to_ns(profile.session_start_spread_ms / 1e3);
    session_plan_over(spread_ns, id, sessions, profile, seed)
}

/// The same with a given start spread. Sessions whose frames are far apart are spread over a whole period, because
/// otherwise their frames would come in bursts.
///
/// A session that is not open when the window begins has failed: from then on the full load is present. A profile
/// without a warm-up still gives it a moment.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "fractions of a span in nanoseconds: a float's 53 bits are finer than any timer"
)]
pub fn session_plan_over(
    spread_ns: u64,
    id: u32,
    sessions: u32,
    profile: &Profile,
    seed: u64,
) -> SessionPlan {
    const GOLDEN_RATIO_FRACTION: f64 = 0.618_033_988_749_894_9;
    let ramp_ns = profile.ramp_end_ns();
    let connect_at_ns = (u128::from(ramp_ns) * u128::from(id) / u128::from(sessions.max(1))) as u64;
    let window = profile.window();
    let start = (mix(seed) >> 11) as f64 / (1_u64 << 53) as f64;
    let phase = (start + f64::from(id) * GOLDEN_RATIO_FRACTION).fract();
    SessionPlan {
        id,
        seed: mix(seed ^ mix(u64::from(id) + 1)),
        connect_at_ns,
        open_by_ns: window.start_ns.max(connect_at_ns + OPENING_AT_LEAST_NS),
        first_due_ns: connect_at_ns + (spread_ns as f64 * phase) as u64,
        window,
    }
}

/// How arrivals are spaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Spacing {
    /// Each at a random point of its own slot: the same number in every second, and no two threads in step.
    #[default]
    Even,
    /// As in a Poisson process. Given their number, its arrivals are independent and uniform, so each is drawn
    /// independently.
    Poisson,
}

impl Spacing {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
        }
    }
}

/// Sessions that arrive at a rate, over warm-up and measured window: their arrival is the load. (None arrive during the
/// ramp; set it to 0.)
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrivals {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// How they are spaced.
    pub spacing: Spacing,
    /// How long each arrival may take to open.
    pub open_within_ns: u64,
}

impl Arrivals {
    /// The number of arrivals in a trial of this profile; at least one.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rounded, and clamped by the cast: a float's 53 bits are finer than any timer"
    )]
    pub fn count(&self, profile: &Profile) -> u32 {
        let span_s = Self::span_ns(profile) as f64 / NS_PER_S as f64;
        ((self.rate_per_s * span_s).round() as u32).max(1)
    }

    /// The plan of arrival `id` of `arrivals`. Its first frame is its arrival, due when it connects.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a fraction of a span that fits"
    )]
    pub fn plan(&self, id: u32, arrivals: u32, profile: &Profile, seed: u64) -> SessionPlan {
        const UNIT: u128 = 1 << 64;
        let span_ns = u128::from(Self::span_ns(profile));
        let seed = mix(seed ^ mix(u64::from(id) + 1));
        let drawn = u128::from(mix(seed));
        let offset_ns = match self.spacing {
            Spacing::Even => {
                // In units of 2^-32 of a slot, so that nothing overflows.
                let slots = (u128::from(id) << 32) + (drawn >> 32);
                span_ns * slots / (u128::from(arrivals.max(1)) << 32)
            }
            Spacing::Poisson => span_ns * drawn / UNIT,
        };
        let connect_at_ns = profile.ramp_end_ns() + offset_ns as u64;
        SessionPlan {
            id,
            seed,
            connect_at_ns,
            open_by_ns: connect_at_ns.saturating_add(self.open_within_ns),
            first_due_ns: connect_at_ns,
            window: profile.window(),
        }
    }

    fn span_ns(profile: &Profile) -> u64 {
        profile
            .window()
            .end_ns
            .saturating_sub(profile.ramp_end_ns())
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

    /// How many slots are due strictly before `time_ns`. This is also the number of the first slot due at or after it.
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
    use crate::profile::NS_PER_MS;
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

    #[test]
    fn a_session_must_be_open_when_the_window_begins() {
        let mut profile = Profile::quick();
        let open_by = |profile: &Profile| session_plan(299, 300, profile, 7).open_by_ns;
        assert_eq!(open_by(&profile), 6 * NS_PER_S);
        (profile.ramp_s, profile.warm_up_s) = (0.0, 0.0);
        assert_eq!(open_by(&profile), NS_PER_S);
    }

    fn arrivals(spacing: Spacing) -> Vec<SessionPlan> {
        let profile = Profile::quick();
        let arrivals = Arrivals {
            rate_per_s: 100.0,
            spacing,
            open_within_ns: 5 * NS_PER_S,
        };
        let count = arrivals.count(&profile);
        // 3 s of warm-up and 10 s of window.
        assert_eq!(count, 1_300);
        (0..count)
            .map(|id| arrivals.plan(id, count, &profile, 9))
            .collect()
    }

    #[test]
    fn even_arrivals_keep_their_slots_and_are_not_in_step() {
        let plans = arrivals(Spacing::Even);
        for (slot, plan) in (0_u64..).zip(&plans) {
            let from_ns = 3 * NS_PER_S + slot * 10 * NS_PER_MS;
            assert!((from_ns..from_ns + 10 * NS_PER_MS).contains(&plan.connect_at_ns));
            assert_eq!(plan.first_due_ns, plan.connect_at_ns);
            assert_eq!(plan.open_by_ns, plan.connect_at_ns + 5 * NS_PER_S);
        }
        let measured = |plan: &&SessionPlan| plan.window.contains(plan.first_due_ns);
        assert_eq!(plans.iter().filter(measured).count(), 1_000);
        let phases = plans
            .iter()
            .map(|plan| plan.connect_at_ns % (10 * NS_PER_MS));
        let early = phases.filter(|phase| *phase < 5 * NS_PER_MS).count();
        assert!((580..=720).contains(&early), "{early} of 1,300");
    }

    #[test]
    fn poisson_arrivals_are_as_irregular_as_they_should_be() {
        let plans = arrivals(Spacing::Poisson);
        let mut tenths = [0_u32; 130];
        for plan in &plans {
            let since_ns = plan.connect_at_ns - 3 * NS_PER_S;
            tenths[usize::try_from(since_ns / (100 * NS_PER_MS)).unwrap()] += 1;
        }
        // Ten are expected in each tenth of a second, with a variance of ten.
        let squares: f64 = tenths.iter().map(|n| (f64::from(*n) - 10.0).powi(2)).sum();
        let variance = squares / 130.0;
        assert!((6.0..15.0).contains(&variance), "{variance}");
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
