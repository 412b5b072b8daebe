//! The slope of a series, with an interval that allows for the correlation of neighbouring seconds.
//!
//! The values of a trial are not independent: a slow second is followed by a slow one. The textbook interval of a slope
//! treats each second as fresh evidence and is far too narrow. This interval is made in three steps:
//!
//! 1. **Batch means.** The series is cut into up to [`BLOCKS`] blocks of at least two points, and each block becomes
//!    its mean (Schmeiser, Batch Size Effects in the Analysis of Simulation Output, Operations Research 30(3), 1982: 10
//!    to 30 batches are enough). This removes any correlation that is shorter than a block.
//! 2. **Least squares** through the block means.
//! 3. **Effective sample size** for the correlation that is left. With `ρ` the lag-1 autocorrelation of the residuals,
//!    `k` blocks are worth `kₑ = k (1 − ρ) / (1 + ρ)`. `kₑ − 2` replaces `k − 2` both in the variance of the residuals
//!    and in the degrees of freedom of Student's t (Santer et al., Statistical significance of trends and trend
//!    differences in layer-average atmospheric temperature time series, J. Geophys. Res. 105(D6), 2000, eqs. 4 to 6).
//!    Around a fitted line, the sample's `r₁` is too low by about `(2 + 4ρ) / k`, so we use
//!    `ρ = (r₁ + 2/k) / (1 − 4/k)` (the bias of Kendall, Biometrika 41, 1954, and Marriott and Pope, ibid., with the
//!    further term from removing a trend). A negative `ρ` counts as 0.
//!
//! `cargo run --release -p plimsoll-core --example drift-coverage` measures how often such intervals contain the true
//! slope.

use crate::record::Slope;

/// The most blocks into which a series is cut.
pub const BLOCKS: usize = 30;
/// The fewest points for a slope.
pub const POINTS_MIN: usize = 20;
/// The fewest points of a block.
const POINTS_PER_BLOCK: usize = 2;
/// Blocks never count as fewer than this many. With fewer than two degrees of freedom an interval is four times as wide
/// and contains the truth hardly more often.
const EFFECTIVE_MIN: f64 = 4.0;
/// The highest autocorrelation that is allowed for.
const AUTOCORRELATION_MAX: f64 = 0.95;
/// Share of intervals that should contain the truth.
pub const CONFIDENCE: f64 = 0.95;
/// Seconds in an hour.
const HOUR_S: f64 = 3600.0;

/// A value and when it was observed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Time in seconds, from any origin.
    pub at_s: f64,
    /// The value observed.
    pub value: f64,
}

/// The slope of a series per hour, with its interval at [`CONFIDENCE`]. The points must be in order of time.
///
/// `None` with fewer than [`POINTS_MIN`] points, with points that are not finite, or if all points have the same time.
#[must_use]
pub fn slope_per_hour(points: &[Point]) -> Option<Slope> {
    if points.len() < POINTS_MIN
        || !points
            .iter()
            .all(|p| p.at_s.is_finite() && p.value.is_finite())
    {
        return None;
    }
    let blocks = block_means(points);
    let line = Line::through(&blocks)?;
    let half_width = line.half_width(&blocks);
    let slope = Slope {
        value: line.slope * HOUR_S,
        low: (line.slope - half_width) * HOUR_S,
        high: (line.slope + half_width) * HOUR_S,
        confidence: CONFIDENCE,
    };
    // Not finite for values near the limit of a float.
    (slope.low.is_finite() && slope.high.is_finite()).then_some(slope)
}

/// The slope per hour by least squares alone, without an interval; `None` with fewer than two different times.
pub(super) fn plain_slope_per_hour(points: &[Point]) -> Option<f64> {
    Line::through(points).map(|line| line.slope * HOUR_S)
}

/// Up to [`BLOCKS`] blocks, as equal in size as possible.
fn block_means(points: &[Point]) -> Vec<Point> {
    let blocks = (points.len() / POINTS_PER_BLOCK).min(BLOCKS);
    (0..blocks)
        .map(|block| {
            let range = block * points.len() / blocks..(block + 1) * points.len() / blocks;
            let of = &points[range];
            Point {
                at_s: mean(of, |point| point.at_s),
                value: mean(of, |point| point.value),
            }
        })
        .collect()
}

/// The least-squares line through some points.
struct Line {
    slope: f64,
    mean_at_s: f64,
    mean_value: f64,
    /// Sum of the squared deviations of the times from their mean, in s².
    spread_s2: f64,
}

impl Line {
    /// `None` if the points have fewer than two different times.
    fn through(points: &[Point]) -> Option<Self> {
        if points.len() < 2 {
            return None;
        }
        let (mean_at_s, mean_value) = (mean(points, |p| p.at_s), mean(points, |p| p.value));
        let spread_s2: f64 = points.iter().map(|p| (p.at_s - mean_at_s).powi(2)).sum();
        let product: f64 = points
            .iter()
            .map(|p| (p.at_s - mean_at_s) * (p.value - mean_value))
            .sum();
        (spread_s2 > 0.0).then(|| Self {
            slope: product / spread_s2,
            mean_at_s,
            mean_value,
            spread_s2,
        })
    }

    fn residual(&self, point: &Point) -> f64 {
        point.value - self.mean_value - self.slope * (point.at_s - self.mean_at_s)
    }

    /// Half the width of the slope's interval, by the formulas in the module's documentation.
    fn half_width(&self, blocks: &[Point]) -> f64 {
        let residuals: Vec<f64> = blocks.iter().map(|block| self.residual(block)).collect();
        let squares: f64 = residuals.iter().map(|e| e * e).sum();
        if squares <= 0.0 {
            return 0.0;
        }
        let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let k = count(blocks.len());
        let autocorrelation =
            ((products / squares + 2.0 / k) / (1.0 - 4.0 / k)).clamp(0.0, AUTOCORRELATION_MAX);
        let worth = (k * (1.0 - autocorrelation) / (1.0 + autocorrelation)).max(EFFECTIVE_MIN);
        let freedom = worth - 2.0;
        student_975(freedom) * (squares / freedom / self.spread_s2).sqrt()
    }
}

/// The 97.5 % quantile of Student's t: both ends of an interval at 95 %.
///
/// Interpolates linearly in the reciprocal of the degrees of freedom, between the values of the usual table
/// (NIST/SEMATECH e-Handbook, 1.3.6.7.2). The error is at most 0.1 % from 4 degrees of freedom on.
fn student_975(freedom: f64) -> f64 {
    const TABLE: [(f64, f64); 12] = [
        (2.0, 4.303),
        (3.0, 3.182),
        (4.0, 2.776),
        (5.0, 2.571),
        (6.0, 2.447),
        (8.0, 2.306),
        (10.0, 2.228),
        (12.0, 2.179),
        (15.0, 2.131),
        (20.0, 2.086),
        (30.0, 2.042),
        (60.0, 2.000),
    ];
    const NORMAL: f64 = 1.960;
    let freedom = freedom.max(TABLE[0].0);
    let fewer = TABLE
        .iter()
        .rev()
        .find(|(entry, _)| *entry <= freedom)
        .unwrap_or(&TABLE[0]);
    let (more_reciprocal, more_t) = TABLE
        .iter()
        .find(|(entry, _)| *entry > freedom)
        .map_or((0.0, NORMAL), |(entry, t)| (1.0 / entry, *t));
    let (fewer_reciprocal, fewer_t) = (1.0 / fewer.0, fewer.1);
    let share = (1.0 / freedom - more_reciprocal) / (fewer_reciprocal - more_reciprocal);
    more_t + (fewer_t - more_t) * share
}

/// The mean over at least one point.
pub(super) fn mean(points: &[Point], of: impl Fn(&Point) -> f64) -> f64 {
    points.iter().map(of).sum::<f64>() / count(points.len())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "points of a trial: far below 2^53"
)]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drift::synthetic::{Noise, series};

    #[test]
    fn a_line_without_noise_by_hand() {
        // 0.5 a second is 1800 an hour; the residuals are rounding errors.
        let slope = slope_per_hour(&series(40, |s| 7.0 + 0.5 * s)).unwrap();
        assert!((slope.value - 1800.0).abs() < 1e-6, "{slope:?}");
        assert!(slope.high - slope.low < 1e-6, "{slope:?}");
        let flat = slope_per_hour(&series(40, |_| 5.0)).unwrap();
        assert_eq!((flat.value, flat.low, flat.high), (0.0, 0.0, 0.0));
    }

    #[test]
    fn what_has_no_slope_is_refused() {
        assert!(slope_per_hour(&series(POINTS_MIN - 1, |s| s)).is_none());
        assert!(slope_per_hour(&series(POINTS_MIN, |s| s)).is_some());
        assert!(slope_per_hour(&series(40, |s| if s > 20.0 { f64::NAN } else { s })).is_none());
        let at_once = vec![
            Point {
                at_s: 1.0,
                value: 1.0
            };
            40
        ];
        assert!(slope_per_hour(&at_once).is_none());
        assert!(
            slope_per_hour(&series(40, |s| s * 1e307)).is_none(),
            "no infinite slope"
        );
    }

    #[test]
    fn students_t_as_in_the_table_and_between() {
        for (freedom, t) in [(2.0, 4.303), (3.0, 3.182), (10.0, 2.228), (60.0, 2.000)] {
            assert!((student_975(freedom) - t).abs() < 1e-9, "{freedom}");
        }
        // From larger tables: 7, 25, 40 and 120 degrees of freedom.
        for (freedom, t) in [(7.0, 2.365), (25.0, 2.060), (40.0, 2.021), (120.0, 1.980)] {
            assert!((student_975(freedom) / t - 1.0).abs() < 1e-3, "{freedom}");
        }
        assert!(student_975(1e9) < 1.9601);
        assert!(
            (student_975(0.5) - 4.303).abs() < 1e-9,
            "never less than two"
        );
    }

    /// The share of 500 intervals that contain the slope of an AR(1) series of this length.
    fn coverage(seconds: usize, autocorrelation: f64) -> f64 {
        const SEEDS: u64 = 500;
        let contains = |seed: &u64| {
            let mut noise = Noise::new(*seed, autocorrelation);
            let points = series(seconds, |s| 0.01 * s + noise.next());
            let slope = slope_per_hour(&points).unwrap();
            slope.low <= 36.0 && 36.0 <= slope.high
        };
        count((0..SEEDS).filter(contains).count()) / count(500)
    }

    /// The seeds are fixed, so this cannot fail by chance. The floors are the measured shares less two standard errors
    /// (1 %).
    #[test]
    fn intervals_contain_the_slope_of_correlated_series() {
        for (seconds, autocorrelation, floor) in [
            (40, 0.0, 0.94),
            (40, 0.5, 0.94),
            (40, 0.8, 0.93),
            (40, 0.95, 0.90),
            (180, 0.9, 0.94),
            (1800, 0.0, 0.94),
            (1800, 0.9, 0.93),
            (1800, 0.99, 0.94),
        ] {
            let share = coverage(seconds, autocorrelation);
            assert!(
                share >= floor,
                "{seconds} s, {autocorrelation}: {share} of intervals, at least {floor} wanted"
            );
        }
    }

    /// If neighbouring seconds counted as independent, the interval would be several times narrower.
    #[test]
    fn correlation_widens_the_interval() {
        let width = |autocorrelation| {
            let mut noise = Noise::new(3, autocorrelation);
            let slope = slope_per_hour(&series(300, |_| noise.next())).unwrap();
            slope.high - slope.low
        };
        assert!(
            width(0.9) > 5.0 * width(0.0),
            "{} {}",
            width(0.9),
            width(0.0)
        );
    }

    proptest! {
        #[test]
        fn the_interval_moves_with_the_series(
            seed in 0_u64..1000, gain in 0.1_f64..100.0, offset in -1e3_f64..1e3, tilt in -10.0_f64..10.0,
        ) {
            let mut noise = Noise::new(seed, 0.5);
            let points = series(60, |_| noise.next());
            let slope = slope_per_hour(&points).unwrap();
            prop_assert!(slope.low <= slope.value && slope.value <= slope.high);
            // Scaled, shifted and tilted: the slope follows, and the width scales.
            let moved: Vec<Point> = points
                .iter()
                .map(|p| Point { at_s: p.at_s + 1e4, value: gain * p.value + offset + tilt * p.at_s })
                .collect();
            let after = slope_per_hour(&moved).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()));
            prop_assert!(near(after.value, gain * slope.value + tilt * HOUR_S));
            prop_assert!(near(after.high - after.low, gain * (slope.high - slope.low)));
        }
    }
}
