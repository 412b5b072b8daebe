//! How often intervals contain the truth for small samples. This is why `compare` uses the interval it uses and runs as
//! many pairs as it does.
//!
//! `cargo run --release -p plimsoll-core --example bootstrap-coverage`

use plimsoll_core::comparison::paired_cost_ratio;
use plimsoll_core::schedule::mix;
use plimsoll_core::stats::{Bootstrap, Mean, Ratio, Statistic, quantile};

const CASES: u64 = 2_000;
const RESAMPLES: u32 = 1_000;
/// Standard deviation of a trial as a share of the mean.
const SPREAD: f64 = 0.03;

fn main() {
    two_samples();
    pairs();
    power();
}

fn two_samples() {
    println!(
        "Two samples of normal values with a spread of {SPREAD}; share of percentile bootstrap intervals at 0.95 that contain the ratio ({CASES} cases a row):"
    );
    println!("{:>8} {:>7} {:>7}", "values", "mean", "median");
    for n in [2, 3, 5, 10, 20, 50] {
        println!(
            "{n:>8} {:>5.1} % {:>5.1} %",
            two_sample_coverage(n, Statistic::Mean) * 100.0,
            two_sample_coverage(n, Statistic::Median) * 100.0
        );
    }
}

fn two_sample_coverage(n: u64, statistic: Statistic) -> f64 {
    let contains = |case: u64| {
        let sample = |side: u64, mean: f64| -> Vec<f64> {
            let value = |i| mean * (1.0 + SPREAD * normal(mix(case) ^ mix(side * 1_000 + i)));
            (0..n).map(value).collect()
        };
        let bootstrap = Bootstrap {
            confidence: 0.95,
            resamples: RESAMPLES,
            seed: mix(!case),
        };
        bootstrap
            .ratio(statistic, &sample(1, 300.0), &sample(2, 200.0))
            .is_some_and(|ratio| ratio.low <= 1.5 && 1.5 <= ratio.high)
    };
    share(contains)
}

/// A kind of noise by name: a draw from a seed.
type Noise = (&'static str, fn(u64) -> f64);

/// How the trials of pairs scatter. The difference of a pair's logarithms is then the difference of two such numbers.
const NOISES: [Noise; 5] = [
    ("normal", normal),
    ("Student's t(3)", student_3),
    ("1 in 10 fivefold", contaminated),
    ("1 in 10 dearer", spikes),
    ("log-normal", |seed| normal(seed).exp()),
];

type Interval = fn(&[f64], f64, u64) -> Option<(f64, f64)>;
const METHODS: [(&str, Interval); 4] = [
    ("percentile", percentile),
    ("studentized", studentized),
    ("symmetric", symmetric),
    ("Student", student),
];

fn pairs() {
    println!();
    println!(
        "Mean of the log ratios of pairs; share of intervals at 0.95 that contain the truth, and their median width by Student's ({CASES} cases a row):"
    );
    print!("{:<18} {:>5}", "noise of a trial", "pairs");
    for (name, _) in METHODS {
        print!("  {name:>11} width");
    }
    println!();
    for (name, noise) in NOISES {
        for n in [3, 4, 5, 6, 8, 12, 20] {
            print!("{name:<18} {n:>5}");
            let (_, width_of_student) = pair_coverage(n, noise, student);
            for (_, method) in METHODS {
                let (covered, width) = pair_coverage(n, noise, method);
                let width = width / width_of_student;
                if width < 1e6 {
                    print!("  {:>9.1} % {width:>5.2}", covered * 100.0);
                } else {
                    print!("  {:>9} % {:>5}", "-", "inf");
                }
            }
            println!();
        }
    }
}

fn pair_coverage(n: u64, noise: fn(u64) -> f64, method: Interval) -> (f64, f64) {
    let intervals: Vec<_> = (0..CASES)
        .filter_map(|case| {
            let difference =
                |i| SPREAD * (noise(mix(case) ^ mix(i)) - noise(mix(case) ^ mix(1_000 + i)));
            let differences: Vec<f64> = (0..n).map(difference).collect();
            method(&differences, 0.95, mix(!case))
        })
        .collect();
    let covered = intervals
        .iter()
        .filter(|(low, high)| *low <= 0.0 && 0.0 <= *high);
    let widths: Vec<f64> = intervals
        .iter()
        .map(|(low, high)| (high - low).min(1e9))
        .collect();
    let width = quantile(&widths, 0.5).unwrap_or(1e9);
    (covered.count() as f64 / CASES as f64, width)
}

/// The percentile interval: between quantiles of the means of resamples.
fn percentile(values: &[f64], confidence: f64, seed: u64) -> Option<(f64, f64)> {
    let means: Vec<f64> = resamples(values, seed).map(|drawn| drawn.value).collect();
    let at = |q| quantile(&means, q);
    Some((at((1.0 - confidence) / 2.0)?, at((1.0 + confidence) / 2.0)?))
}

/// The bootstrap-t interval of Efron and Tibshirani, chapter 12.5.
fn studentized(values: &[f64], confidence: f64, seed: u64) -> Option<(f64, f64)> {
    let mean = Mean::of(values)?;
    let ts = student_statistics(&mean, values, seed);
    let at = |q| quantile(&ts, q).map(|t| mean.value - t * mean.std_err.unwrap_or(f64::NAN));
    Some((at((1.0 + confidence) / 2.0)?, at((1.0 - confidence) / 2.0)?))
}

/// The same with equal widths on both sides (P. Hall, The Bootstrap and Edgeworth Expansion, 1992, chapter 3.6).
fn symmetric(values: &[f64], confidence: f64, seed: u64) -> Option<(f64, f64)> {
    let mean = Mean::of(values)?;
    let ts = student_statistics(&mean, values, seed);
    let sizes: Vec<f64> = ts.into_iter().map(f64::abs).collect();
    let half = quantile(&sizes, confidence)? * mean.std_err?;
    Some((mean.value - half, mean.value + half))
}

/// The t statistics of resamples; a resample without spread gets a value as large as possible.
fn student_statistics(mean: &Mean, values: &[f64], seed: u64) -> Vec<f64> {
    resamples(values, seed)
        .map(|drawn| {
            let t = (drawn.value - mean.value) / drawn.std_err.unwrap_or(f64::NAN);
            if t.is_nan() {
                0.0
            } else {
                t.clamp(-1e12, 1e12)
            }
        })
        .collect()
}

/// The interval that `compare` uses.
fn student(values: &[f64], confidence: f64, _seed: u64) -> Option<(f64, f64)> {
    let interval = Mean::of(values)?.interval(confidence)?;
    Some((interval.low, interval.high))
}

fn resamples(values: &[f64], seed: u64) -> impl Iterator<Item = Mean> {
    (0..u64::from(RESAMPLES)).filter_map(move |resample| {
        let drawn = |i: u64| {
            let share = even(mix(seed) ^ mix(resample * 1_000 + i));
            values[((share * values.len() as f64) as usize).min(values.len() - 1)]
        };
        let drawn: Vec<f64> = (0..values.len() as u64).map(drawn).collect();
        Mean::of(&drawn)
    })
}

fn power() {
    const CONFIDENCE: f64 = 0.975;
    println!();
    println!(
        "How often pairs show that B costs 1.05 times as much, at {CONFIDENCE} (as beside a load line, together 0.95), by the spread of a trial's cost:"
    );
    let spreads = [0.005, 0.01, 0.015, 0.02, 0.03, 0.04];
    print!("{:>5}", "pairs");
    for spread in spreads {
        print!("  {:>5.1} %", spread * 100.0);
    }
    println!();
    for n in [4, 5, 6, 8, 10, 12, 16] {
        print!("{n:>5}");
        for spread in spreads {
            let shown = |case: u64| {
                let cost = |i: u64| 250.0 * (spread * normal(mix(case) ^ mix(i))).exp();
                let pairs: Vec<_> = (0..n).map(|i| (cost(i), 1.05 * cost(1_000 + i))).collect();
                let above = |ratio: Ratio| ratio.low > 1.0;
                paired_cost_ratio(&pairs, CONFIDENCE).is_some_and(above)
            };
            print!("  {:>5.1} %", share(shown) * 100.0);
        }
        println!();
    }
}

fn share(of: impl Fn(u64) -> bool) -> f64 {
    (0..CASES).filter(|case| of(*case)).count() as f64 / CASES as f64
}

fn contaminated(seed: u64) -> f64 {
    let factor = if even(mix(seed) ^ 1) < 0.1 { 5.0 } else { 1.0 };
    factor * normal(seed)
}

fn spikes(seed: u64) -> f64 {
    let more = if even(mix(seed) ^ 1) < 0.1 { 6.0 } else { 0.0 };
    normal(seed) + more
}

fn student_3(seed: u64) -> f64 {
    let squares: f64 = (1..=3).map(|k| normal(mix(seed) ^ k).powi(2)).sum();
    normal(seed) / (squares / 3.0).sqrt()
}

/// A standard normal value, by Box and Muller.
fn normal(seed: u64) -> f64 {
    (-2.0 * even(seed).ln()).sqrt() * (std::f64::consts::TAU * even(!seed)).cos()
}

/// Uniform in 0 < u <= 1, so that the logarithm exists.
fn even(seed: u64) -> f64 {
    ((mix(seed) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}
