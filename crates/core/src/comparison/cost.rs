//! The ratio of two costs.
//!
//! Costs are compared by their logarithms. A disturbance of a trial (a neighbour, a warmer cache, a slower clock)
//! multiplies its cost, and a ratio of 1.05 one way is a ratio of 1 / 1.05 the other way round. So the ratios here are
//! ratios of geometric means.

use crate::stats::{Mean, Ratio};

/// The fewest pairs, or degrees of freedom plus one, for an interval. With two pairs the interval holds in theory, but
/// it is a dozen standard errors wide and relies on noise without tails.
pub(super) const PAIRS_MIN: usize = 3;

/// The ratio `b / a` of the costs in pairs `(a, b)` of trials that ran one right after the other, with its interval.
///
/// It is `exp` of the mean of `ln(b / a)`; the interval is Student's for that mean ([`Mean::interval`]). What both
/// trials of a pair have in common (the noise of that hour) cancels.
///
/// `None` for fewer than three pairs, and for a cost that is not positive and finite.
#[must_use]
pub fn paired_cost_ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<Ratio> {
    let usable = |(a, b): &(f64, f64)| positive(*a) && positive(*b);
    if pairs.len() < PAIRS_MIN || !pairs.iter().all(usable) {
        return None;
    }
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let interval = Mean::of(&differences)?.interval(confidence)?;
    Some(Ratio {
        value: interval.value.exp(),
        low: interval.low.exp(),
        high: interval.high.exp(),
    })
}

/// The costs of both sides at the same load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostsAtLoad {
    /// One value per trial of `a`.
    pub a: Vec<f64>,
    /// One value per trial of `b`.
    pub b: Vec<f64>,
}

/// The ratio `b / a` of the costs of trials that ran apart from each other, at the loads that both sides were tried at.
///
/// The model is `ln cost = effect of the load + (b's difference) + noise`, fitted by least squares. A load `l` with `n`
/// and `m` trials shows the difference `d_l` of the mean logarithms, with the weight `n m / (n + m)`. The estimate is
/// the weighted mean of the `d_l`. The variance of the noise is what the model leaves over, with `N − L − 1` degrees of
/// freedom for `N` trials at `L` loads (Student's interval). A ratio that changes with the load widens the interval, as
/// it should. With one load this is the pooled two-sample t interval; with one trial per side at each load it is the
/// paired one.
///
/// `None` with fewer than two degrees of freedom, and for a cost that is not positive and finite.
#[must_use]
pub fn unpaired_cost_ratio(loads: &[CostsAtLoad], confidence: f64) -> Option<Ratio> {
    let both = |load: &&CostsAtLoad| !load.a.is_empty() && !load.b.is_empty();
    let loads: Vec<Logarithms> = loads
        .iter()
        .filter(both)
        .map(Logarithms::of)
        .collect::<Option<_>>()?;
    let trials: usize = loads.iter().map(|load| load.a.len() + load.b.len()).sum();
    let degrees_of_freedom = trials.checked_sub(loads.len() + 1)?;
    if degrees_of_freedom + 1 < PAIRS_MIN {
        return None;
    }
    let weights: f64 = loads.iter().map(Logarithms::weight).sum();
    let difference = loads
        .iter()
        .map(|l| l.weight() * l.difference())
        .sum::<f64>()
        / weights;
    let squares: f64 = loads.iter().map(|load| load.left_over(difference)).sum();
    let degrees_of_freedom = u32::try_from(degrees_of_freedom).ok()?;
    let mean = Mean {
        n: trials,
        value: difference,
        std_err: Some((squares / f64::from(degrees_of_freedom) / weights).sqrt()),
    };
    let interval = mean.interval_with(confidence, degrees_of_freedom)?;
    Some(Ratio {
        value: interval.value.exp(),
        low: interval.low.exp(),
        high: interval.high.exp(),
    })
}

/// The logarithms of the costs at one load.
struct Logarithms {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Logarithms {
    fn of(load: &CostsAtLoad) -> Option<Self> {
        let logarithms = |costs: &[f64]| {
            let usable = costs.iter().all(|cost| positive(*cost));
            usable.then(|| costs.iter().map(|cost| cost.ln()).collect::<Vec<_>>())
        };
        Some(Self {
            a: logarithms(&load.a)?,
            b: logarithms(&load.b)?,
        })
    }

    fn weight(&self) -> f64 {
        let (n, m) = (count(&self.a), count(&self.b));
        n * m / (n + m)
    }

    fn difference(&self) -> f64 {
        mean(&self.b) - mean(&self.a)
    }

    /// The sum of squares that the load's own level and the common difference do not explain.
    fn left_over(&self, difference: f64) -> f64 {
        let (n, m) = (count(&self.a), count(&self.b));
        let level =
            (self.a.iter().sum::<f64>() + self.b.iter().sum::<f64>() - m * difference) / (n + m);
        let of_a: f64 = self.a.iter().map(|x| (x - level).powi(2)).sum();
        let of_b: f64 = self
            .b
            .iter()
            .map(|x| (x - level - difference).powi(2))
            .sum();
        of_a + of_b
    }
}

fn positive(cost: f64) -> bool {
    cost.is_finite() && cost > 0.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values)
}

#[expect(clippy::cast_precision_loss, reason = "trials of a folder")]
fn count(values: &[f64]) -> f64 {
    values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-3
    }

    #[test]
    fn pairs_by_hand() {
        // ln ratios 0.1, 0.2, 0.3: mean 0.2, s = 0.1, error 0.05774, t(2) = 4.3027, half width 0.24842.
        let pairs: Vec<(f64, f64)> = [0.1_f64, 0.2, 0.3].map(|d| (250.0, 250.0 * d.exp())).into();
        let ratio = paired_cost_ratio(&pairs, 0.95).unwrap();
        assert!(near(ratio.value, 0.2_f64.exp()), "{ratio:?}");
        assert!(near(ratio.low, (0.2_f64 - 0.24842).exp()), "{ratio:?}");
        assert!(near(ratio.high, (0.2_f64 + 0.24842).exp()), "{ratio:?}");
    }

    #[test]
    fn swapping_the_sides_inverts_the_ratio() {
        let pairs = [(1.0, 1.1), (2.0, 2.1), (3.0, 3.5), (1.0, 1.0)];
        let there = paired_cost_ratio(&pairs, 0.9).unwrap();
        let back = paired_cost_ratio(&pairs.map(|(a, b)| (b, a)), 0.9).unwrap();
        assert!(near(there.value * back.value, 1.0));
        assert!(near(there.low * back.high, 1.0) && near(there.high * back.low, 1.0));
    }

    #[test]
    fn what_has_no_ratio_is_refused() {
        let good = [(1.0, 1.1), (1.0, 1.2), (1.0, 1.1)];
        assert!(paired_cost_ratio(&good, 0.95).is_some());
        assert_eq!(paired_cost_ratio(&good[..2], 0.95), None);
        assert_eq!(paired_cost_ratio(&good, 1.0), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                paired_cost_ratio(&[(1.0, 1.0), (1.0, 1.0), (1.0, bad)], 0.95),
                None
            );
            let loads = [at(&[1.0, 1.0], &[1.0, bad])];
            assert_eq!(unpaired_cost_ratio(&loads, 0.95), None);
        }
        assert_eq!(unpaired_cost_ratio(&[at(&[1.0], &[1.1])], 0.95), None);
        assert_eq!(unpaired_cost_ratio(&[], 0.95), None);
    }

    fn at(a: &[f64], b: &[f64]) -> CostsAtLoad {
        CostsAtLoad {
            a: a.to_vec(),
            b: b.to_vec(),
        }
    }

    #[test]
    fn one_load_is_the_two_sample_t_interval() {
        // Logarithms 1, 2, 3 against 2, 3, 4, 5: difference 1.5; squares 2 + 5 = 7 over 5 degrees; error √(1.4 · 7/12)
        // = 0.9037; t(5) = 2.5706.
        let exp = |logs: &[f64]| logs.iter().map(|x: &f64| x.exp()).collect::<Vec<_>>();
        let load = at(&exp(&[1.0, 2.0, 3.0]), &exp(&[2.0, 3.0, 4.0, 5.0]));
        let ratio = unpaired_cost_ratio(&[load], 0.95).unwrap();
        assert!(near(ratio.value.ln(), 1.5), "{ratio:?}");
        assert!(near(ratio.high.ln(), 1.5 + 2.5706 * 0.9037), "{ratio:?}");
    }

    #[test]
    fn single_trials_at_several_loads_are_pairs() {
        let pairs = [(100.0, 108.0), (200.0, 205.0), (150.0, 163.0), (90.0, 91.0)];
        let loads = pairs.map(|(a, b)| at(&[a], &[b]));
        let apart = unpaired_cost_ratio(&loads, 0.95).unwrap();
        let paired = paired_cost_ratio(&pairs, 0.95).unwrap();
        for (x, y) in [
            (apart.value, paired.value),
            (apart.low, paired.low),
            (apart.high, paired.high),
        ] {
            assert!((x - y).abs() < 1e-9, "{apart:?} {paired:?}");
        }
    }

    #[test]
    fn what_the_load_does_to_the_cost_is_no_noise() {
        let loads = [
            at(&[100.0, 101.0], &[110.0, 111.0]),
            at(&[1000.0, 1010.0], &[1100.0, 1110.0]),
            at(&[5.0], &[]),
        ];
        let ratio = unpaired_cost_ratio(&loads, 0.95).unwrap();
        assert!(ratio.low > 1.08 && ratio.high < 1.12, "{ratio:?}");
    }
}
