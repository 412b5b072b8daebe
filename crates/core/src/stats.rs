//! Small statistics: means with their error and interval, quantiles, and the interval of a ratio.
//!
//! All functions return `None` if there is no answer: without values, or with values that are not finite numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::mix;

mod student;

pub use student::{MeanInterval, t_quantile};

/// The arithmetic mean of independent values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// Number of values.
    pub n: usize,
    /// Their mean, in the unit of the values.
    pub value: f64,
    /// The standard error of the mean, in the unit of the values; `null` for a single value, whose error is unknown.
    pub std_err: Option<f64>,
}

impl Mean {
    /// The mean `x̄ = Σx / n` with its standard error `s / √n`, where `s² = Σ(x − x̄)² / (n − 1)` (Bessel's
    /// correction); see the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.2 and 1.3.5.6.
    ///
    /// The values must be independent. Values within one trial are not, and their error comes out too small.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if !usable(values) {
            return None;
        }
        let n = values.len();
        let value = mean(values);
        let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
        let std_err = (n > 1).then(|| (squares / (count(n) - 1.0) / count(n)).sqrt());
        Some(Self { n, value, std_err })
    }
}

/// The middle value, or the mean of the two middle ones.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The quantile `q` in `0..=1` by linear interpolation. With the sorted values `x₀ … xₙ₋₁` and `h = (n − 1) q`, it is
/// `x⌊h⌋ + (h − ⌊h⌋) (x⌊h⌋₊₁ − x⌊h⌋)`.
///
/// This is definition 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages, The American Statistician 50
/// (1996). Also `None` for `q` outside `0..=1`.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if !usable(values) || !(0.0..=1.0).contains(&q) {
        return None;
    }
    Some(quantile_of_sorted(&sorted(values), q))
}

/// The statistic that a ratio compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The median.
    Median,
}

impl Statistic {
    /// The statistic of at least one finite value.
    fn of(self, values: &[f64]) -> f64 {
        match self {
            Self::Mean => mean(values),
            Self::Median => quantile_of_sorted(&sorted(values), 0.5),
        }
    }
}

/// A ratio with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The ratio itself.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The settings of a bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// The share of intervals that should contain the truth, between 0 and 1; 0.95 is usual.
    pub confidence: f64,
    /// Number of draws; at least 1, and 10,000 leaves little to chance.
    pub resamples: u32,
    /// Decides the draws.
    pub seed: u64,
}

impl Bootstrap {
    /// The ratio `statistic(a) / statistic(b)` with its percentile bootstrap interval. Both samples are resampled with
    /// replacement, independently of each other. The interval lies between the quantiles `(1 ∓ confidence) / 2` of the
    /// resulting ratios (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8.3 and 13.3).
    ///
    /// `None` if a sample has fewer than two values or one that is not positive and finite (the ratio is of costs,
    /// loads or times; a denominator near zero has no useful interval), or if the settings make no sense.
    ///
    /// **Small samples:** the percentile interval is too narrow for few values. Of intervals at 0.95 for the ratio of
    /// two means of normal values, 67 % contained the truth with 2 values per side, 81 % with 3, 89 % with 5, 92 % with
    /// 10 and 94 % with 50 (`cargo run --release -p plimsoll-core --example bootstrap-coverage`). Do not conclude from
    /// 3 values: use [`Mean::interval`] for that.
    #[must_use]
    pub fn ratio(&self, statistic: Statistic, a: &[f64], b: &[f64]) -> Option<Ratio> {
        let positive =
            |values: &[f64]| values.len() >= 2 && usable(values) && values.iter().all(|x| *x > 0.0);
        let sensible = self.confidence > 0.0 && self.confidence < 1.0 && self.resamples > 0;
        if !positive(a) || !positive(b) || !sensible {
            return None;
        }
        let mut draws = Draws(self.seed);
        let (mut drawn_a, mut drawn_b) = (a.to_vec(), b.to_vec());
        let mut ratios = Vec::with_capacity(self.resamples as usize);
        for _ in 0..self.resamples {
            draws.resample(a, &mut drawn_a);
            draws.resample(b, &mut drawn_b);
            ratios.push(statistic.of(&drawn_a) / statistic.of(&drawn_b));
        }
        let ratios = sorted(&ratios);
        Some(Ratio {
            value: statistic.of(a) / statistic.of(b),
            low: quantile_of_sorted(&ratios, (1.0 - self.confidence) / 2.0),
            high: quantile_of_sorted(&ratios, (1.0 + self.confidence) / 2.0),
        })
    }
}

/// A sequence of draws: `SplitMix64` over a counter, which is the seed at first.
#[derive(Debug, Clone)]
pub struct Draws(pub u64);

impl Draws {
    const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        let draw = mix(self.0);
        self.0 = self.0.wrapping_add(Self::GOLDEN_GAMMA);
        draw
    }

    /// Fills `drawn` with values of `sample`, each drawn independently.
    fn resample(&mut self, sample: &[f64], drawn: &mut [f64]) {
        for value in drawn {
            *value = sample[self.below(sample.len())];
        }
    }

    /// A number below `bound`, which is not zero, by multiply and shift; its bias, `bound` / 2^64, is negligible.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product's upper half is below `bound`"
    )]
    pub fn below(&mut self, bound: usize) -> usize {
        let draw = self.next_bits();
        ((u128::from(draw) * bound as u128) >> 64) as usize
    }
}

fn usable(values: &[f64]) -> bool {
    !values.is_empty() && values.iter().all(|x| x.is_finite())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nobody has 2^53 values in memory"
)]
fn count(n: usize) -> f64 {
    n as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The quantile of at least one value; `q` in `0..=1`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index below the length, not negative"
)]
fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let h = count(sorted.len() - 1) * q;
    let lower = sorted[h.floor() as usize];
    let upper = sorted[h.ceil() as usize];
    lower + h.fract() * (upper - lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn mean_by_hand() {
        // Mean 5; squared deviations 9+1+1+1+0+0+4+16 = 32; s² = 32/7; standard error √(32/7/8) = √(4/7).
        let mean = Mean::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((mean.n, mean.value), (8, 5.0));
        assert!(close(mean.std_err.unwrap(), (4.0_f64 / 7.0).sqrt()));
    }

    #[test]
    fn the_error_of_a_single_value_is_unknown() {
        let single = Mean {
            n: 1,
            value: 3.0,
            std_err: None,
        };
        assert_eq!(Mean::of(&[3.0]), Some(single));
        assert_eq!(Mean::of(&[]), None);
        assert_eq!(Mean::of(&[1.0, f64::NAN]), None);
        assert_eq!(Mean::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn quantiles_by_hand() {
        let values = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(median(&values), Some(25.0));
        assert_eq!(median(&values[..3]), Some(30.0));
        assert_eq!(quantile(&values, 0.0), Some(10.0));
        assert_eq!(quantile(&values, 1.0), Some(40.0));
        // h = 3 × 0.25 = 0.75: 10 + 0.75 × (20 − 10).
        assert_eq!(quantile(&values, 0.25), Some(17.5));
        // h = 3 × 0.9 = 2.7: 30 + 0.7 × (40 − 30).
        assert!(close(quantile(&values, 0.9).unwrap(), 37.0));
        assert_eq!(quantile(&[7.0], 0.9), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&values, 1.1), None);
        assert_eq!(quantile(&values, f64::NAN), None);
    }

    const BOOTSTRAP: Bootstrap = Bootstrap {
        confidence: 0.95,
        resamples: 2_000,
        seed: 5,
    };

    #[test]
    fn ratio_of_samples_without_spread_by_hand() {
        let exact = Ratio {
            value: 1.5,
            low: 1.5,
            high: 1.5,
        };
        for statistic in [Statistic::Mean, Statistic::Median] {
            assert_eq!(
                BOOTSTRAP.ratio(statistic, &[3.0; 4], &[2.0; 5]),
                Some(exact)
            );
        }
    }

    #[test]
    fn bootstrap_of_two_values_by_hand() {
        // The mean of two draws from {1, 3} is 1, 2 or 3 with probabilities 1/4, 1/2, 1/4. So the 10th percentile is 1
        // and the 90th is 3.
        let bootstrap = Bootstrap {
            confidence: 0.8,
            ..BOOTSTRAP
        };
        let ratio = bootstrap.ratio(Statistic::Mean, &[1.0, 3.0], &[1.0, 1.0]);
        assert_eq!(
            ratio,
            Some(Ratio {
                value: 2.0,
                low: 1.0,
                high: 3.0
            })
        );
        // The 30th and the 70th percentile are 2.
        let bootstrap = Bootstrap {
            confidence: 0.4,
            ..BOOTSTRAP
        };
        let ratio = bootstrap.ratio(Statistic::Mean, &[1.0, 3.0], &[1.0, 1.0]);
        assert_eq!(
            ratio,
            Some(Ratio {
                value: 2.0,
                low: 2.0,
                high: 2.0
            })
        );
    }

    #[test]
    fn mean_and_median_differ_where_they_should() {
        let (a, b) = ([1.0, 2.0, 9.0], [1.0, 1.0]);
        let value = |statistic| BOOTSTRAP.ratio(statistic, &a, &b).unwrap().value;
        assert_eq!(value(Statistic::Mean), 4.0);
        assert_eq!(value(Statistic::Median), 2.0);
    }

    #[test]
    fn the_seed_decides_the_draws() {
        let (a, b) = ([1.0, 2.5, 4.0, 4.5], [2.0, 3.0, 5.0]);
        let with = |seed| {
            Bootstrap {
                seed,
                resamples: 50,
                ..BOOTSTRAP
            }
            .ratio(Statistic::Mean, &a, &b)
        };
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }

    #[test]
    fn what_has_no_interval_is_refused() {
        let ratio = |a: &[f64], b: &[f64]| BOOTSTRAP.ratio(Statistic::Mean, a, b);
        let good = [1.0, 2.0];
        assert!(ratio(&good, &good).is_some());
        assert_eq!(ratio(&[1.0], &good), None);
        assert_eq!(ratio(&good, &[0.0, 1.0]), None);
        assert_eq!(ratio(&[-1.0, 1.0], &good), None);
        assert_eq!(ratio(&good, &[f64::NAN, 1.0]), None);
        for (confidence, resamples) in [(0.0, 10), (1.0, 10), (f64::NAN, 10), (0.9, 0)] {
            let bootstrap = Bootstrap {
                confidence,
                resamples,
                seed: 1,
            };
            assert_eq!(bootstrap.ratio(Statistic::Mean, &good, &good), None);
        }
    }

    proptest! {
        #[test]
        fn quantiles_rise_and_stay_within(values in prop::collection::vec(-1e6_f64..1e6, 1..50), p in 0.0..=1.0, q in 0.0..=1.0) {
            let (lower, upper) = (quantile(&values, f64::min(p, q)).unwrap(), quantile(&values, f64::max(p, q)).unwrap());
            prop_assert!(lower <= upper);
            prop_assert!(quantile(&values, 0.0).unwrap() <= lower && upper <= quantile(&values, 1.0).unwrap());
        }

        #[test]
        fn the_interval_of_the_inverse_is_the_inverse_within_the_draws(a in prop::collection::vec(1.0..100.0, 2..8), b in prop::collection::vec(1.0..100.0, 2..8)) {
            let there = BOOTSTRAP.ratio(Statistic::Median, &a, &b).unwrap();
            let back = BOOTSTRAP.ratio(Statistic::Median, &b, &a).unwrap();
            prop_assert!(close(there.value * back.value, 1.0));
            prop_assert!(there.low <= there.high && back.low <= back.high);
            let most = |v: &[f64]| quantile(v, 1.0).unwrap();
            let least = |v: &[f64]| quantile(v, 0.0).unwrap();
            prop_assert!(there.high <= most(&a) / least(&b) * (1.0 + 1e-12) && there.low >= least(&a) / most(&b) * (1.0 - 1e-12));
        }
    }
}
