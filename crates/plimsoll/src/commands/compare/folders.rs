//! Compares two result folders.

use std::path::Path;

use plimsoll_core::comparison::{Measured, compare_measured};
use plimsoll_core::record::Comparison;
use plimsoll_host::timestamp;

use crate::args::CompareArgs;
use crate::build;
use crate::failure::Failure;
use crate::workloads::tellers;

pub(super) fn compare(args: &CompareArgs, a: &Path, b: &Path) -> Result<Comparison, Failure> {
    for (flag, given) in [
        ("--sessions", args.sessions.is_some()),
        ("--pairs", args.pairs.is_some()),
        ("--start", args.search.start.is_some()),
        ("--max", args.search.max.is_some()),
        ("--repeats", args.search.repeats.is_some()),
        ("--width", args.search.width.is_some()),
        ("--time-budget", args.search.time_budget.is_some()),
    ] {
        if given {
            return Err(Failure::Usage(format!(
                "{flag} is for measuring two targets; two result folders are compared as they are"
            )));
        }
    }
    let mut comparison = compare_measured(
        &measured(a)?,
        &measured(b)?,
        args.confidence,
        args.load.seed,
        timestamp::now(),
    )
    .map_err(|error| Failure::Usage(error.to_string()))?;
    comparison.build = build::of_this_program();
    Ok(comparison)
}

/// What a result folder holds about one target.
pub(crate) fn measured(folder: &Path) -> Result<Measured, Failure> {
    let results = plimsoll_report::load(folder, tellers())?;
    let trials = results
        .trials
        .into_iter()
        // A trial that a signal cut short is not a measurement.
        .filter(|stored| !stored.trial.interrupted)
        .map(|stored| (format!("{}.json", stored.stem), stored.trial))
        .collect();
    Ok(Measured {
        folder: folder.display().to_string(),
        trials,
        bracket: results.bracket,
    })
}
