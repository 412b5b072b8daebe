//! What the live view costs the engine: `cargo bench -p plimsoll --bench live_view [-- PAIRS SESSIONS]`
//!
//! Runs pairs of trials of the same target at the same load: one with the live view on a terminal (and `live.json`),
//! one with `--no-live`. The order alternates from pair to pair. Each trial's record has the CPU time of the engine's
//! threads per frame. The benchmark prints the ratio of each pair, and their geometric mean with its 95 % interval. It
//! needs `script` (util-linux), which makes the terminal, and the machine to itself.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const TARGET: &str = "rust-axum";
const PHASES: &str = "--ramp 2 --warm-up 4 --measured 15 --grace 3";
/// Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1.
const STUDENT_95: [f64; 9] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok());
    let pairs: usize = numbers.next().unwrap_or(8);
    let sessions: usize = numbers.next().unwrap_or(600);
    let pairs = pairs.clamp(2, STUDENT_95.len() + 1);
    let place = tempfile::tempdir()?;
    let mut logs = Vec::new();
    for pair in 0..pairs {
        let of = |live: bool| trial(place.path(), pair, sessions, live);
        let (with, without) = if pair % 2 == 0 {
            let with = of(true)?;
            (with, of(false)?)
        } else {
            let without = of(false)?;
            (of(true)?, without)
        };
        println!(
            "pair {}: {with:.3} µs per frame with the view, {without:.3} without, ratio {:.3}",
            pair + 1,
            with / without
        );
        logs.push((with / without).ln());
    }
    let count = f64::from(u32::try_from(logs.len())?);
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = STUDENT_95[logs.len() - 2] * (variance / count).sqrt();
    println!(
        "ratio {:.3} ({:.3} to {:.3}, 95 %)",
        mean.exp(),
        (mean - half).exp(),
        (mean + half).exp()
    );
    Ok(())
}

/// Client CPU per frame of one trial, in microseconds.
fn trial(place: &Path, pair: usize, sessions: usize, live: bool) -> Result<f64, Box<dyn Error>> {
    let out = place.join(format!("{pair}-{live}"));
    let off = if live { "" } else { "--no-live" };
    let line = format!(
        "stty cols 100 rows 40; {} run {TARGET} --sessions {sessions} --vcpu 1 {PHASES} {off} --out {}",
        env!("CARGO_BIN_EXE_plimsoll"),
        out.display()
    );
    // Both run on a terminal, so that nothing else differs.
    Command::new("script")
        .args(["-q", "-c", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    let record = fs::read_to_string(out.join("trial-001.json"))?;
    let record: serde_json::Value = serde_json::from_str(&record)?;
    let cost = record["client"]["cpu_us_per_frame"].as_f64();
    if record["verdict"] == "invalid" {
        println!("(invalid: {})", record["caveats"]);
    }
    cost.ok_or_else(|| "the trial has no client cost".into())
}
