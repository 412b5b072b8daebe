//! How often the interval of a slope contains the true slope, for series whose neighbouring values are correlated.
//! Compares it with the textbook least-squares interval, which treats every second as fresh evidence.
//!
//! `cargo run --release -p plimsoll-core --example drift-coverage`

use plimsoll_core::drift::{Point, slope_per_hour};
use plimsoll_core::schedule::mix;

const SERIES: u64 = 4_000;
/// The true slope, per hour.
const SLOPE: f64 = 36.0;

fn main() {
    println!(
        "{SERIES} AR(1) series a row, one value a second; share of intervals at 0.95 that contain the true slope:"
    );
    println!(
        "{:>8} {:>16} {:>8} {:>9}",
        "seconds", "autocorrelation", "here", "textbook"
    );
    for seconds in [30, 40, 60, 180, 600, 1800] {
        for autocorrelation in [0.0, 0.5, 0.8, 0.9, 0.95, 0.99] {
            let (here, textbook) = coverage(seconds, autocorrelation);
            println!(
                "{seconds:>8} {autocorrelation:>16} {:>6.1} % {:>7.1} %",
                here * 100.0,
                textbook * 100.0
            );
        }
    }
}

fn coverage(seconds: u32, autocorrelation: f64) -> (f64, f64) {
    let (mut here, mut textbook) = (0_u32, 0_u32);
    for seed in 0..SERIES {
        let points = series(
            mix(seed ^ (u64::from(seconds) << 32)),
            seconds,
            autocorrelation,
        );
        let slope = slope_per_hour(&points);
        here += u32::from(slope.is_some_and(|slope| slope.low <= SLOPE && SLOPE <= slope.high));
        textbook += u32::from(textbook_contains(&points));
    }
    let share = |hits: u32| f64::from(hits) / SERIES as f64;
    (share(here), share(textbook))
}

/// A slope of [`SLOPE`] an hour with stationary noise: each noise value is `autocorrelation` times the previous one
/// plus a standard normal draw.
fn series(seed: u64, seconds: u32, autocorrelation: f64) -> Vec<Point> {
    let draw = |second: u32| normal(mix(seed) ^ mix(u64::from(second)));
    let mut noise = draw(u32::MAX) / (1.0 - autocorrelation * autocorrelation).sqrt();
    (0..seconds)
        .map(|second| {
            noise = autocorrelation * noise + draw(second);
            let at_s = f64::from(second);
            Point {
                at_s,
                value: SLOPE / 3600.0 * at_s + noise,
            }
        })
        .collect()
}

fn textbook_contains(points: &[Point]) -> bool {
    let n = points.len() as f64;
    let mean_s = points.iter().map(|p| p.at_s).sum::<f64>() / n;
    let mean = points.iter().map(|p| p.value).sum::<f64>() / n;
    let spread: f64 = points.iter().map(|p| (p.at_s - mean_s).powi(2)).sum();
    let product: f64 = points
        .iter()
        .map(|p| (p.at_s - mean_s) * (p.value - mean))
        .sum();
    let slope = product / spread;
    let residual = |p: &Point| p.value - mean - slope * (p.at_s - mean_s);
    let squares: f64 = points.iter().map(|p| residual(p).powi(2)).sum();
    // Student's t with 28 degrees of freedom or more: 2.05 or less.
    let half_width = 2.05 * (squares / (n - 2.0) / spread).sqrt();
    (slope - SLOPE / 3600.0).abs() <= half_width
}

/// A standard normal value, by Box and Muller.
fn normal(seed: u64) -> f64 {
    // Uniform in 0 < u <= 1, so that the logarithm exists.
    let uniform = |seed| ((mix(seed) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-2.0 * uniform(seed).ln()).sqrt() * (std::f64::consts::TAU * uniform(!seed)).cos()
}
