//! How often the bootstrap interval of a ratio contains the truth, for small samples.
//!
//! `cargo run --release -p plimsoll-core --example bootstrap-coverage`

use plimsoll_core::schedule::mix;
use plimsoll_core::stats::{Bootstrap, Statistic};

const CASES: u64 = 2_000;
/// Standard deviation as a share of the mean, as in repeated trials.
const SPREAD: f64 = 0.03;

fn main() {
    println!(
        "{CASES} cases a row, normal values with a spread of {SPREAD}; share of intervals at 0.95 that contain the truth:"
    );
    println!("{:>8} {:>7} {:>7}", "values", "mean", "median");
    for n in [2, 3, 5, 10, 20, 50] {
        println!(
            "{n:>8} {:>5.1} % {:>5.1} %",
            coverage(n, Statistic::Mean) * 100.0,
            coverage(n, Statistic::Median) * 100.0
        );
    }
}

fn coverage(n: u64, statistic: Statistic) -> f64 {
    let contains = |case: u64| {
        let sample = |side: u64, mean: f64| -> Vec<f64> {
            let value = |i| mean * (1.0 + SPREAD * normal(mix(case) ^ mix(side * 1_000 + i)));
            (0..n).map(value).collect()
        };
        let bootstrap = Bootstrap {
            confidence: 0.95,
            resamples: 1_000,
            seed: mix(!case),
        };
        bootstrap
            .ratio(statistic, &sample(1, 300.0), &sample(2, 200.0))
            .is_some_and(|ratio| ratio.low <= 1.5 && 1.5 <= ratio.high)
    };
    (0..CASES).filter(|case| contains(*case)).count() as f64 / CASES as f64
}

/// A standard normal value, by Box and Muller.
fn normal(seed: u64) -> f64 {
    // In 0 < u <= 1, so that the logarithm exists.
    let uniform = |seed| ((mix(seed) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-2.0 * uniform(seed).ln()).sqrt() * (std::f64::consts::TAU * uniform(!seed)).cos()
}
