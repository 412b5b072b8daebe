//! How far off the search is, and how many trials it takes, on synthetic servers of known edge and noise.
//!
//! `cargo run -p plimsoll-core --example search-table`

#[path = "../tests/synthetic_server/mod.rs"]
mod synthetic_server;

use plimsoll_core::search::{Search, Settings, SettingsError};
use plimsoll_core::stats::quantile;
use synthetic_server::{SyntheticServer, run, uniform};

const SEEDS: u64 = 1_000;

/// The widths of the two profiles.
const WIDTHS: [(&str, f64); 2] = [("quick", 0.05), ("standard", 0.02)];
const REPEATS: [u32; 2] = [3, 5];
/// How soft the edge is, as a share of it.
const NOISES: [f64; 5] = [0.0, 0.005, 0.01, 0.02, 0.05];
/// Share of trials that fail at any load.
const FALSE_FAILS: [f64; 3] = [0.0, 0.02, 0.10];

fn main() -> Result<(), SettingsError> {
    println!(
        "{SEEDS} seeds a row; the edge is drawn between 200 and 8,000, the search starts at 100."
    );
    println!(
        "noise: softness of the edge (logistic); false fails: share of trials failing at any load."
    );
    println!("error: confirmed / edge - 1; in bracket: confirmed <= edge < first fail.\n");
    println!(
        "                                 | error                                   |      in | trials"
    );
    println!(
        "profile  repeats  noise  f. fails |      p1      p5     p50     p95     p99 | bracket |    p50   p95   max"
    );
    for (profile, relative_width) in WIDTHS {
        for repeats in REPEATS {
            let settings = Settings {
                start: 100,
                min: 1,
                max: 100_000,
                relative_width,
                repeats,
                max_trials: 60,
                seed: 0,
            };
            for noise in NOISES {
                for false_fails in FALSE_FAILS {
                    print!("{profile:<8} {repeats:>7}");
                    row(settings, noise, false_fails)?;
                }
            }
        }
    }
    Ok(())
}

/// Runs the search on one server per seed and prints the rest of a row.
fn row(settings: Settings, noise: f64, false_fails: f64) -> Result<(), SettingsError> {
    let (mut errors, mut trials_spent, mut bracketed) = (Vec::new(), Vec::new(), 0);
    for seed in 0..SEEDS {
        let edge = 200.0 * 40_f64.powf(uniform(seed, u32::MAX));
        let server = SyntheticServer {
            edge,
            noise,
            false_fails,
            seed,
        };
        let mut search = Search::new(Settings { seed, ..settings })?;
        let (outcome, trials) = run(&mut search, |load, trial| server.verdict(load, trial));
        // A search that finds nothing is as wrong as can be.
        let confirmed = f64::from(outcome.confirmed.unwrap_or(0));
        let first_fail = outcome.first_fail.map_or(f64::INFINITY, f64::from);
        errors.push((confirmed / edge - 1.0) * 100.0);
        trials_spent.push(f64::from(trials));
        bracketed += u32::from(confirmed <= edge && edge < first_fail);
    }
    let error = |q| quantile(&errors, q).unwrap_or(f64::NAN);
    let trials = |q| quantile(&trials_spent, q).unwrap_or(f64::NAN);
    println!(
        " {:>4.1} % {:>7.0} % | {:>5.1} % {:>5.1} % {:>5.1} % {:>5.1} % {:>5.1} % | {:>5.1} % | {:>6.0} {:>5.0} {:>5.0}",
        noise * 100.0,
        false_fails * 100.0,
        error(0.01),
        error(0.05),
        error(0.5),
        error(0.95),
        error(0.99),
        f64::from(bracketed) / SEEDS as f64 * 100.0,
        trials(0.5),
        trials(0.95),
        trials(1.0),
    );
    Ok(())
}
