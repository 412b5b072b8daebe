//! `plimsoll report`: every rendering of a result folder again.

use std::process::ExitCode;

use plimsoll_report::text;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::{self, say};

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let written = output::render(&args.dir)?;
    let results = plimsoll_report::load(&args.dir)?;
    if args.json {
        let trials: Vec<_> = results.trials.iter().map(|stored| &stored.trial).collect();
        output::print_json(&serde_json::json!({
            "trials": trials,
            "bracket": results.bracket,
            "further_brackets": results.further_brackets,
            "comparison": results.comparison,
            "check": results.check,
            "calibration": results.calibration,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(comparison) = &results.comparison {
        output::print(&text::comparison(comparison, output::color()));
    }
    for view in results.searches() {
        let text = text::bracket(view.bracket, &results.trials, output::color());
        output::print(&text);
    }
    for stored in results.other_trials() {
        output::print(&text::trial(&stored.trial, output::color()));
    }
    for file in written {
        say!("wrote {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}
