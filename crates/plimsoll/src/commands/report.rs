//! `plimsoll report`: every rendering of a result folder again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_core::record::Ranking;
use plimsoll_report::text;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::{self, say};

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let mut written = output::render(&args.dir)?;
    let results = plimsoll_report::load(&args.dir)?;
    for folder in own_folders(&args.dir, results.ranking.as_ref()) {
        written.extend(plimsoll_report::render_all(&folder)?);
    }
    if args.json {
        let trials: Vec<_> = results.trials.iter().map(|stored| &stored.trial).collect();
        output::print_json(&serde_json::json!({
            "trials": trials,
            "bracket": results.bracket,
            "further_brackets": results.further_brackets,
            "comparison": results.comparison,
            "ranking": results.ranking,
            "check": results.check,
            "calibration": results.calibration,
            "ws_calibration": results.ws_calibration,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(ranking) = &results.ranking {
        output::print(&text::ranking(ranking, output::color()));
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
    if let Some(calibration) = &results.ws_calibration {
        output::print(&text::client_costs(calibration));
    }
    for file in written {
        say!("wrote {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the targets of a ranking have their own results, to which its page leads: folders within its own, and only such.
fn own_folders(folder: &Path, ranking: Option<&Ranking>) -> Vec<PathBuf> {
    let rows = ranking.map_or(&[][..], |ranking| &ranking.rows);
    let within = |name: &&str| Path::new(name).file_name() == Some(OsStr::new(name));
    let names = rows.iter().map(|row| row.folder.as_str()).filter(within);
    names
        .map(|name| folder.join(name))
        .filter(|own| own.is_dir())
        .collect()
}
