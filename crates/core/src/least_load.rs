//! The least load at which a trial can pass. Below it the measured window holds too few answers for a gated percentile.
//! So the verdict is `invalid` ([`Doubt::TooFewSamples`](crate::caveat::Doubt::TooFewSamples)) whatever the target
//! does, unless a gate on a count fails.

use crate::profile::{Length, Profile};
use crate::slo::Slo;

/// A short trial is for loads that give 1.5 times the answers needed. Answers come in batches, each session at its own
/// phase, so a window of a few seconds may miss one answer of each session.
const SHORT_SPARE: f64 = 1.5;

/// The least load at which a trial of each length can pass; `None` if no load gives enough answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastLoads {
    /// For full trials.
    pub full: Option<u32>,
    /// For short trials; never less than for full ones.
    pub short: Option<u32>,
}

impl LeastLoads {
    /// The least loads for trials of this profile judged by `slo`. `answers_per_second` says how many answers a load
    /// gives, which must grow with the load. Loads above `most` are not considered.
    #[must_use]
    pub fn of(
        slo: &Slo,
        profile: &Profile,
        most: u32,
        answers_per_second: impl Fn(u32) -> f64,
    ) -> Self {
        let least = |length: Length| {
            let needed = answers_needed(slo, length);
            let measured_s = profile.of_length(length).measured_s;
            let enough = |load: u32| answers_per_second(load) * measured_s >= needed;
            first(most, enough)
        };
        let full = least(Length::Full);
        let short = least(Length::Short);
        Self {
            full,
            short: full.zip(short).map(|(full, short)| short.max(full)),
        }
    }

    /// The least load for trials of this length.
    #[must_use]
    pub fn of_length(&self, length: Length) -> Option<u32> {
        match length {
            Length::Full => self.full,
            Length::Short => self.short,
        }
    }

    /// Whether a trial of this length can pass at `load`.
    #[must_use]
    pub fn allow(&self, load: u32, length: Length) -> bool {
        self.of_length(length).is_some_and(|least| load >= least)
    }
}

/// The measured window that a full trial needs at `answers_per_second`, in seconds.
#[must_use]
pub fn window_needed_s(slo: &Slo, answers_per_second: f64) -> f64 {
    answers_needed(slo, Length::Full) / answers_per_second
}

#[expect(clippy::cast_precision_loss, reason = "samples of a percentile")]
fn answers_needed(slo: &Slo, length: Length) -> f64 {
    let needed = slo.samples_needed() as f64;
    match length {
        Length::Full => needed,
        Length::Short => needed * SHORT_SPARE,
    }
}

/// The first of `1..=most` for which `holds` is true; it must be true for all above it as well.
fn first(most: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (1, most);
    if most == 0 || !holds(most) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::{Gate, Metric, Percentile};
    use proptest::prelude::*;

    const MOST: u32 = 1_000_000;

    fn slo(percentile: Percentile) -> Slo {
        Slo {
            name: "one".to_owned(),
            gates: vec![Gate {
                metric: Metric::Newest(percentile),
                threshold: 100.0,
            }],
        }
    }

    /// One answer per session and second.
    fn of_sessions(slo: &Slo, profile: &Profile) -> (Option<u32>, Option<u32>) {
        let least = LeastLoads::of(slo, profile, MOST, f64::from);
        (least.full, least.short)
    }

    #[test]
    fn a_longer_window_needs_fewer_sessions() {
        let p95 = slo(Percentile::P95);
        assert_eq!(of_sessions(&p95, &Profile::quick()), (Some(20), Some(75)));
        assert_eq!(of_sessions(&p95, &Profile::standard()), (Some(5), Some(25)));
    }

    #[test]
    fn each_percentile_by_hand() {
        // In 10 s, and in 4 s with 1.5 times the answers needed.
        for (percentile, full, short) in [
            (Percentile::P50, 2, 8),
            (Percentile::P90, 10, 38),
            (Percentile::P95, 20, 75),
            (Percentile::P99, 100, 375),
            (Percentile::P999, 1_000, 3_750),
            (Percentile::Max, 2, 8),
        ] {
            let found = of_sessions(&slo(percentile), &Profile::quick());
            assert_eq!(found, (Some(full), Some(short)), "{percentile:?}");
        }
    }

    #[test]
    fn the_gate_that_needs_most_decides_and_counts_need_nothing() {
        let mut both = slo(Percentile::P50);
        both.gates.extend(slo(Percentile::P99).gates);
        assert_eq!(of_sessions(&both, &Profile::quick()).0, Some(100));
        let counts = Slo {
            name: "counts".to_owned(),
            gates: vec![Gate {
                metric: Metric::FramesLost,
                threshold: 0.0,
            }],
        };
        assert_eq!(of_sessions(&counts, &Profile::quick()), (Some(1), Some(1)));
    }

    #[test]
    fn where_answers_have_a_ceiling_no_load_may_be_enough() {
        // 50 answers a second at most: 500 in a full window, 200 in a short one.
        let capped = |load: u32| f64::from(load).min(50.0);
        let of = |percentile| LeastLoads::of(&slo(percentile), &Profile::quick(), MOST, capped);
        let (p95, p99) = (of(Percentile::P95), of(Percentile::P99));
        assert_eq!((p95.full, p95.short), (Some(20), None));
        assert_eq!((p99.full, p99.short), (None, None));
        assert!(p95.allow(20, Length::Full) && !p95.allow(19, Length::Full));
        assert!(!p95.allow(MOST, Length::Short) && !p99.allow(MOST, Length::Full));
        let silent = LeastLoads::of(&slo(Percentile::P50), &Profile::quick(), MOST, |_| 0.0);
        assert_eq!(silent.full, None);
        let none = LeastLoads::of(&slo(Percentile::P50), &Profile::quick(), 0, f64::from);
        assert_eq!(none.full, None);
    }

    #[test]
    fn the_window_that_a_load_needs() {
        let p95 = slo(Percentile::P95);
        assert!((window_needed_s(&p95, 10.0) - 20.0).abs() < 1e-9);
        assert!(window_needed_s(&p95, 0.0).is_infinite());
    }

    proptest! {
        #[test]
        fn at_the_least_load_there_are_enough_answers_and_below_there_are_not(
            each in 0.01..50.0_f64,
            measured_s in 0.5..100.0_f64,
            which in 0..6_usize,
        ) {
            let percentile = [
                Percentile::P50, Percentile::P90, Percentile::P95, Percentile::P99, Percentile::P999, Percentile::Max,
            ][which];
            let mut profile = Profile::quick();
            profile.measured_s = measured_s;
            let least = LeastLoads::of(&slo(percentile), &profile, MOST, |load| f64::from(load) * each);
            for length in [Length::Full, Length::Short] {
                let seconds = profile.of_length(length).measured_s;
                let answers = |load: u32| f64::from(load) * each * seconds;
                let needed = answers_needed(&slo(percentile), length);
                match least.of_length(length) {
                    Some(load) => {
                        prop_assert!(answers(load) >= needed && least.allow(load, length));
                        // A short window that is as long as the full one still needs more answers.
                        prop_assert!(load == 1 || answers(load - 1) < needed);
                        prop_assert!(load == 1 || !least.allow(load - 1, length));
                    }
                    None => prop_assert!(answers(MOST) < needed),
                }
            }
            prop_assert!(least.short.is_none_or(|short| Some(short) >= least.full));
        }
    }
}
