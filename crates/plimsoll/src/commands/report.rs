//! `plimsoll report`: recreates every rendering of a result folder.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_core::record::Ranking;
use plimsoll_report::text;

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::workloads::tellers;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let out = pages_folder(args)?;
    let mut written = output::render_to(&args.path, out)?;
    let results = plimsoll_report::load(&args.path, tellers())?;
    let own = own_folders(&args.path, results.ranking.as_ref());
    for (name, folder) in &own {
        written.extend(plimsoll_report::render_to(
            folder,
            &out.join(name),
            tellers(),
        )?);
    }
    if args.pack {
        for folder in own.iter().map(|(_, folder)| folder).chain([&args.path]) {
            let packing = plimsoll_report::pack(folder)?;
            eprintln!(
                "packed {} files of {} bytes into {}, {} bytes",
                packing.records,
                packing.bytes_before,
                packing.file.display(),
                packing.bytes
            );
        }
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
            "ws_calibration": results.client_costs.first(),
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
        let text = text::search(&view, output::color(), tellers());
        output::print(&text);
    }
    for stored in results.other_trials() {
        output::print(&text::trial(&stored.trial, output::color(), tellers()));
    }
    for costs in &results.client_costs {
        output::print(&text::client_costs(costs));
    }
    for file in written {
        say!("wrote {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder to write the pages to.
fn pages_folder(args: &ReportArgs) -> Result<&Path, Failure> {
    match &args.out {
        Some(out) => Ok(out),
        None if args.path.is_file() => Err(Failure::Usage(format!(
            "{} is a file; give a folder for its pages with --out DIR, or name the result folder",
            args.path.display()
        ))),
        None => Ok(&args.path),
    }
}

/// The folders, with their names, in which the targets of a ranking have their own results. The ranking's page links to
/// them. Only folders directly inside its own folder count.
fn own_folders(folder: &Path, ranking: Option<&Ranking>) -> Vec<(String, PathBuf)> {
    let rows = ranking.map_or(&[][..], |ranking| &ranking.rows);
    let within = |name: &&str| Path::new(name).file_name() == Some(OsStr::new(name));
    let names = rows.iter().map(|row| row.folder.as_str()).filter(within);
    names
        .map(|name| (name.to_owned(), folder.join(name)))
        .filter(|(_, own)| own.is_dir())
        .collect()
}
