//! The ratio of two load lines.

use crate::record::LoadEvidence;
use crate::search::edge::EdgePosterior;
use crate::stats::{Draws, Ratio, quantile};

/// Draws behind an interval. At a confidence of 0.975, about 50 of them lie beyond each end.
const DRAWS: usize = 4_000;

/// Where the edge lies, if the trials bound it from both sides. Without a fail it is a lower bound, without a pass an
/// upper one, and neither has a ratio to anything.
#[must_use]
pub fn edge_of(evidence: &[LoadEvidence]) -> Option<EdgePosterior> {
    let passed = |load: &LoadEvidence| load.passed + load.short_passed > 0;
    let failed = |load: &LoadEvidence| load.failed + load.short_failed > 0;
    let bounded = evidence.iter().any(passed) && evidence.iter().any(failed);
    bounded.then(|| EdgePosterior::of(evidence)).flatten()
}

/// The ratio `b / a` of two edges that are known as distributions, given by their quantile functions. The interval is
/// made of draws from both and lies between the quantiles `(1 ∓ confidence) / 2` of the ratios. The value is the ratio
/// of the medians.
///
/// The two edges count as independent, although their trials took turns on one machine. A disturbance of both alike
/// would make the true interval narrower, not wider.
///
/// `None` if a quantile is not a positive, finite number (an edge that nothing bounds), or if the confidence is not
/// between 0 and 1.
#[must_use]
pub fn load_line_ratio(
    a: impl Fn(f64) -> f64,
    b: impl Fn(f64) -> f64,
    confidence: f64,
    seed: u64,
) -> Option<Ratio> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let mut draws = Draws(seed);
    let positive = |edge: &dyn Fn(f64) -> f64, q: f64| {
        let value = edge(q);
        (value.is_finite() && value > 0.0).then_some(value)
    };
    let value = positive(&b, 0.5)? / positive(&a, 0.5)?;
    let ratios: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let (p, q) = (inner_share(&mut draws), inner_share(&mut draws));
            Some(positive(&b, p)? / positive(&a, q)?)
        })
        .collect::<Option<_>>()?;
    Some(Ratio {
        value,
        low: quantile(&ratios, (1.0 - confidence) / 2.0)?,
        high: quantile(&ratios, (1.0 + confidence) / 2.0)?,
    })
}

/// A uniform draw strictly between 0 and 1.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are what a float between 0 and 1 has"
)]
fn inner_share(draws: &mut Draws) -> f64 {
    ((draws.next_bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_known_exactly_have_an_exact_ratio() {
        let ratio = load_line_ratio(|_| 400.0, |_| 500.0, 0.95, 1).unwrap();
        assert_eq!((ratio.value, ratio.low, ratio.high), (1.25, 1.25, 1.25));
    }

    #[test]
    fn an_even_spread_by_hand() {
        // b is uniform between 90 and 110, a is known: the 2.5 % and 97.5 % points are 90.5 and 109.5.
        let ratio = load_line_ratio(|_| 100.0, |q| 90.0 + 20.0 * q, 0.95, 1).unwrap();
        assert!((ratio.low - 0.905).abs() < 0.004, "{ratio:?}");
        assert!((ratio.high - 1.095).abs() < 0.004, "{ratio:?}");
        assert!((ratio.value - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_seed_decides_the_draws() {
        let with = |seed| load_line_ratio(|q| 90.0 + q, |q| 90.0 + 20.0 * q, 0.95, seed);
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }

    #[test]
    fn an_edge_that_nothing_bounds_has_no_ratio() {
        for open in [f64::INFINITY, f64::NAN, 0.0] {
            assert_eq!(
                load_line_ratio(|_| 100.0, |q| if q > 0.9 { open } else { 100.0 }, 0.95, 1),
                None
            );
        }
        assert_eq!(load_line_ratio(|_| 1.0, |_| 1.0, 1.0, 1), None);
    }
}
