//! How exact the search is on synthetic servers of known edge and noise, compared with plain bisection.
//!
//! `cargo run --release -p plimsoll-core --example search-table`, optionally followed by the number of servers per row
//! (default 200, each searched five times), then by part of the names of the rows you want, or by `budget` and part of a
//! title for searches that end by a time budget.

#[path = "../../tests/synthetic_server/mod.rs"]
mod synthetic_server;

mod bisection;
mod budget;

use std::error::Error;
use std::thread;

use bisection::bisect;
use plimsoll_core::profile::{Length, Profile};
use plimsoll_core::search::{Ended, Search, Settings, SettingsError, TrialVerdict};
use plimsoll_core::stats::quantile;
use synthetic_server::{Shape, SyntheticServer, Wander, run, uniform};

/// Servers per row.
const SERVERS: u64 = 200;
/// Searches of each server. The spread of their answers shows what repeating a search would show.
const SEARCHES: u64 = 5;
/// Widths at which bisection is tried.
const BISECTION_WIDTHS: [f64; 5] = [0.05, 0.02, 0.01, 0.005, 0.002];
/// The most bisections of one server that are averaged, if a single one is not as exact as the search at any width.
const BISECTIONS_MAX: usize = 20;
const START: u32 = 100;
const MAX: u32 = 100_000;

/// A kind of server.
struct Kind {
    name: &'static str,
    /// A server of that kind; its edge and seed are filled in later.
    like: SyntheticServer,
}

/// The rows of a table.
fn kinds() -> Vec<Kind> {
    let sharp = SyntheticServer::sharp(0.0, 0);
    let soft = |softness, false_fails| SyntheticServer {
        softness,
        false_fails,
        ..sharp
    };
    let row = |name, like| Kind { name, like };
    vec![
        row("sharp", sharp),
        row("soft 0.5 %", soft(0.005, 0.0)),
        row("soft 1 %", soft(0.01, 0.0)),
        row("soft 2 %", soft(0.02, 0.0)),
        row("soft 5 %", soft(0.05, 0.0)),
        row("sharp, 2 % false fails", soft(0.0, 0.02)),
        row("soft 1 %, 2 % false fails", soft(0.01, 0.02)),
        row("soft 2 %, 2 % false fails", soft(0.02, 0.02)),
        row("sharp, 10 % false fails", soft(0.0, 0.1)),
        row("soft 1 %, 10 % false fails", soft(0.01, 0.1)),
        row("soft 2 %, 10 % false fails", soft(0.02, 0.1)),
        row(
            "normal 1 %",
            SyntheticServer {
                shape: Shape::Normal,
                ..soft(0.01, 0.0)
            },
        ),
        row(
            "normal 2 %, 2 % false fails",
            SyntheticServer {
                shape: Shape::Normal,
                ..soft(0.02, 0.02)
            },
        ),
        row(
            "soft 1 %, short +3 %",
            SyntheticServer {
                short_optimism: 0.03,
                ..soft(0.01, 0.0)
            },
        ),
        row(
            "soft 1 %, drift 1 %",
            SyntheticServer {
                drift: 0.01,
                ..soft(0.01, 0.0)
            },
        ),
        row(
            "soft 1 %, drift 3 %",
            SyntheticServer {
                drift: 0.03,
                ..soft(0.01, 0.0)
            },
        ),
        row(
            "soft 1 %, drift 5 %",
            SyntheticServer {
                drift: 0.05,
                ..soft(0.01, 0.0)
            },
        ),
        row(
            "soft 1 %, drift 15 %",
            SyntheticServer {
                drift: 0.15,
                ..soft(0.01, 0.0)
            },
        ),
        row(
            "soft 1 %, two states, 5 % to either side",
            SyntheticServer {
                drift: 0.05,
                wander: Wander::TwoStates,
                ..soft(0.01, 0.0)
            },
        ),
        row(
            "soft 1 %, two states, 15 % to either side",
            SyntheticServer {
                drift: 0.15,
                wander: Wander::TwoStates,
                ..soft(0.01, 0.0)
            },
        ),
    ]
}

/// The result of one search or one bisection.
struct Answer {
    /// Edge estimate / true edge - 1, in per cent.
    error: f64,
    /// The load line / true edge - 1, in per cent; -100 when there is none.
    confirmed_error: f64,
    confirmed: f64,
    contains: bool,
    on_budget: bool,
    trials: f64,
    full_trials: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let servers = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => SERVERS,
    };
    let filter = std::env::args().nth(2);
    if filter.as_deref() == Some("budget") {
        let titled = std::env::args().nth(3).unwrap_or_default();
        return Ok(budget::tables(servers, &titled)?);
    }
    println!(
        "{servers} servers a row, each searched {SEARCHES} times; edges 200 to 8,000 (log-uniform); start {START}; at most 60 trials."
    );
    println!(
        "in: intervals (95 %) that contain the edge. error: |estimate / edge - 1| %. line: |confirmed / edge - 1| %."
    );
    println!(
        "spread: (max / min - 1) % of the five load lines. cut: ended by the trial budget. time: s of ramp, warm-up and window, mean."
    );
    println!(
        "bisection: plain, two agreeing full trials a load; the cheapest choice of width and of runs to average whose median error is"
    );
    println!("no greater than the search's. ratio: time of the search / time of the bisection.\n");
    for (profile, relative_width) in [(Profile::quick(), 0.05), (Profile::standard(), 0.02)] {
        let settings = Settings {
            start: START,
            min: 1,
            short_min: 1,
            max: MAX,
            relative_width,
            confidence: 0.95,
            repeats: 3,
            max_trials: 60,
            seed: 0,
            short_share: profile.short_share(),
        };
        let full_s = profile.ramp_s + profile.warm_up_s + profile.measured_s;
        println!(
            "profile {}, width {:.0} %, full trial {full_s:.0} s, short {:.0} s",
            profile.name,
            relative_width * 100.0,
            full_s * settings.short_share
        );
        println!(
            "                            |   in % | error bias   p50   p95   max | line p50   p95   max | spread p50   p95 | trials p50  p95  cut % | time s | bisection w % runs   p50   p95  time s | ratio"
        );
        let wanted = |kind: &Kind| filter.as_ref().is_none_or(|word| kind.name.contains(word));
        for kind in kinds().into_iter().filter(wanted) {
            row(settings, &kind, servers, full_s)?;
        }
        println!();
    }
    if filter.is_none() {
        budget::tables(servers, "")?;
    }
    Ok(())
}

/// One server of a kind. All servers in a group of searches have the same edge and different draws.
fn server(kind: &Kind, number: u64) -> SyntheticServer {
    SyntheticServer {
        edge: 200.0 * 40_f64.powf(uniform(number / SEARCHES, u32::MAX)),
        seed: number,
        ..kind.like
    }
}

/// Computes one answer per search, on all cores.
fn in_parallel<T, F>(count: u64, answer: F) -> Result<Vec<T>, SettingsError>
where
    T: Send,
    F: Fn(u64) -> Result<T, SettingsError> + Sync,
{
    let threads = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let part = |thread: u64| {
        (0..count)
            .filter(|number| number * threads / count == thread)
            .map(&answer)
            .collect::<Result<Vec<_>, _>>()
    };
    let parts: Result<Vec<_>, _> = thread::scope(|scope| {
        let part = &part;
        let running: Vec<_> = (0..threads).map(|t| scope.spawn(move || part(t))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("a search panicked"))
            .collect()
    });
    Ok(parts?.into_iter().flatten().collect())
}

fn searched(settings: Settings, server: &SyntheticServer) -> Result<Answer, SettingsError> {
    let mut search = Search::new(Settings {
        seed: server.seed,
        ..settings
    })?;
    let (outcome, spent) = run(
        &mut search,
        settings.short_share,
        |load, length, n, time| server.verdict(load, length, n, time),
    );
    let confirmed = f64::from(outcome.confirmed.unwrap_or(0));
    // A search that finds nothing counts as an estimate of 0.
    let (estimate, low, high) = outcome.edge.map_or((0.0, f64::NAN, f64::NAN), |edge| {
        (edge.value, edge.low, edge.high.unwrap_or(f64::INFINITY))
    });
    let edge = server.half_passes();
    Ok(Answer {
        error: (estimate / edge - 1.0) * 100.0,
        confirmed_error: (confirmed / edge - 1.0) * 100.0,
        confirmed,
        contains: low <= edge && edge <= high,
        on_budget: outcome.ended == Ended::TrialBudget,
        trials: f64::from(spent.trials),
        full_trials: spent.full_trials,
    })
}

/// Repeats the bisection of one server. Returns the logarithm of each edge it found and the number of its trials.
fn bisected(width: f64, server: &SyntheticServer) -> Vec<(f64, f64)> {
    let mut before = 0;
    let mut once = || {
        let found = bisect(START, MAX, width, |load, trial| {
            let trial = before + trial;
            let verdict = server.verdict(load, Length::Full, trial, f64::from(trial));
            verdict == TrialVerdict::Pass
        });
        before += found.trials;
        (found.edge.ln(), f64::from(found.trials))
    };
    (0..BISECTIONS_MAX).map(|_| once()).collect()
}

/// The cheapest bisection with a median error of at most `error` per cent.
struct Bisection {
    width: f64,
    /// How many bisections are averaged.
    runs: usize,
    /// Median of the absolute errors, in per cent.
    p50: f64,
    p95: f64,
    full_trials: f64,
}

fn equal_bisection(kind: &Kind, count: u64, error: f64) -> Option<Bisection> {
    let mut best: Option<Bisection> = None;
    for width in BISECTION_WIDTHS {
        let found: Vec<(f64, Vec<(f64, f64)>)> = (0..count)
            .map(|number| server(kind, number))
            .map(|server| (server.half_passes().ln(), bisected(width, &server)))
            .collect();
        let cheapest = (1..=BISECTIONS_MAX).find_map(|runs| {
            let errors: Vec<f64> = found
                .iter()
                .map(|(edge, of_server)| {
                    let estimate: f64 = of_server[..runs].iter().map(|(ln, _)| ln).sum();
                    ((estimate / runs as f64 - edge).exp_m1() * 100.0).abs()
                })
                .collect();
            let trials: f64 = found
                .iter()
                .flat_map(|(_, of_server)| &of_server[..runs])
                .map(|(_, trials)| trials)
                .sum();
            let p50 = at(&errors, 0.5);
            (p50 <= error).then(|| Bisection {
                width,
                runs,
                p50,
                p95: at(&errors, 0.95),
                full_trials: trials / count as f64,
            })
        });
        let least = best.as_ref().map_or(f64::INFINITY, |b| b.full_trials);
        best = cheapest.filter(|b| b.full_trials < least).or(best);
    }
    best
}

fn of(answers: &[Answer], value: impl Fn(&Answer) -> f64) -> Vec<f64> {
    answers.iter().map(value).collect()
}

fn at(values: &[f64], q: f64) -> f64 {
    quantile(values, q).unwrap_or(f64::NAN)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn share(answers: &[Answer], holds: impl Fn(&Answer) -> bool) -> f64 {
    mean(&of(answers, |a| f64::from(u8::from(holds(a))))) * 100.0
}

/// Prints a row: the search, and the bisection that is equally exact.
fn row(settings: Settings, kind: &Kind, servers: u64, full_s: f64) -> Result<(), SettingsError> {
    let count = servers * SEARCHES;
    let found = in_parallel(count, |number| searched(settings, &server(kind, number)))?;
    let errors = of(&found, |a| a.error.abs());
    let lines = of(&found, |a| a.confirmed_error.abs());
    let spreads: Vec<f64> = found
        .chunks(SEARCHES as usize)
        .map(|of_one| {
            let lines = of(of_one, |a| a.confirmed);
            (at(&lines, 1.0) / at(&lines, 0.0).max(1.0) - 1.0) * 100.0
        })
        .collect();
    let trials = of(&found, |a| a.trials);
    let seconds = mean(&of(&found, |a| a.full_trials)) * full_s;
    print!(
        "{:<27} | {:>6.1} | {:>10.2} {:>5.2} {:>5.2} {:>5.1} | {:>8.2} {:>5.2} {:>5.1} | {:>10.2} {:>5.2} | {:>10.0} {:>4.0} {:>6.1} | {:>6.0} |",
        kind.name,
        share(&found, |a| a.contains),
        at(&of(&found, |a| a.error), 0.5),
        at(&errors, 0.5),
        at(&errors, 0.95),
        at(&errors, 1.0),
        at(&lines, 0.5),
        at(&lines, 0.95),
        at(&lines, 1.0),
        at(&spreads, 0.5),
        at(&spreads, 0.95),
        at(&trials, 0.5),
        at(&trials, 0.95),
        share(&found, |a| a.on_budget),
        seconds,
    );
    match equal_bisection(kind, count, at(&errors, 0.5)) {
        Some(bisection) => println!(
            "{:>15.1} {:>4} {:>5.2} {:>5.2} {:>7.0} | {:>5.2}",
            bisection.width * 100.0,
            bisection.runs,
            bisection.p50,
            bisection.p95,
            bisection.full_trials * full_s,
            seconds / (bisection.full_trials * full_s)
        ),
        None => println!(" not even {BISECTIONS_MAX} of any width are as exact"),
    }
    Ok(())
}
