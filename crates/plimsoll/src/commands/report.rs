//! `plimsoll report`: recreates every rendering of result folders.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_core::record::Ranking;
use plimsoll_report::goals::{answers, hashes};
use plimsoll_report::{Results, text};

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::setup::goals::hash_of;
use crate::workloads::tellers;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    for path in &args.paths {
        pages_folder(args, path)?;
    }
    let all: Vec<Results> = args
        .paths
        .iter()
        .map(|path| plimsoll_report::load(path, tellers()))
        .collect::<Result<_, _>>()?;
    // Before anything is written.
    must_have_one_goals_file(&all, args.goals.as_deref())?;
    let mut written = Vec::new();
    for results in &all {
        written.extend(rendered(args, results)?);
    }
    if args.json {
        let records: Vec<_> = all.iter().map(records).collect();
        match records.as_slice() {
            [only] => output::print_json(only)?,
            several => output::print_json(&several)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    all.iter().for_each(shown);
    if let [_, _, ..] = all.as_slice() {
        let goals: Vec<_> = all.iter().flat_map(answers).collect();
        if goals.iter().any(|answer| answer.goals.is_some()) {
            output::print(&text::key_findings(&goals, output::color()));
        }
    }
    for file in written {
        say!("wrote {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a result, and packs it if that is asked for. Returns the files of the pages.
fn rendered(args: &ReportArgs, results: &Results) -> Result<Vec<PathBuf>, Failure> {
    let path = &results.path;
    let out = pages_folder(args, path)?;
    let mut written = output::render_to(path, out)?;
    let own = own_folders(path, results.ranking.as_ref());
    for (name, folder) in &own {
        written.extend(plimsoll_report::render_to(
            folder,
            &out.join(name),
            tellers(),
        )?);
    }
    if args.pack {
        for folder in own.iter().map(|(_, folder)| folder).chain([path]) {
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
    Ok(written)
}

/// The records of a result in one object.
fn records(results: &Results) -> serde_json::Value {
    let trials: Vec<_> = results.trials.iter().map(|stored| &stored.trial).collect();
    serde_json::json!({
        "trials": trials,
        "bracket": results.bracket,
        "further_brackets": results.further_brackets,
        "comparison": results.comparison,
        "ranking": results.ranking,
        "check": results.check,
        "calibration": results.calibration,
        "ws_calibration": results.client_costs.first(),
        "inference": results.inference,
    })
}

/// Prints a result.
fn shown(results: &Results) {
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
    if let Some(inference) = &results.inference {
        output::print(&text::inference(inference));
    }
}

/// Refuses results that were measured with other goals than those of `file`, if it is given; otherwise those that were
/// measured with two different files. Goals that were set afterwards prove nothing.
fn must_have_one_goals_file(all: &[Results], file: Option<&Path>) -> Result<(), Failure> {
    let mut known = match file {
        Some(file) => Some((format!("--goals {}", file.display()), hash_of(file)?)),
        None => None,
    };
    for results in all {
        for (record, hash) in hashes(results) {
            let record = format!("{} ({record})", results.path.display());
            match (&known, hash) {
                (Some((of, wanted)), Some(hash)) if wanted != hash => {
                    return Err(Failure::Usage(format!(
                        "{of}: {record} was measured with another goals file, whose SHA-256 is {hash}; give that file as it was, and only results of one file"
                    )));
                }
                (Some((of, _)), None) if file.is_some() => {
                    return Err(Failure::Usage(format!(
                        "{of}: {record} was measured without goals, and goals that are set afterwards prove nothing; measure again with --goals"
                    )));
                }
                (None, Some(hash)) => known = Some((record, hash.to_owned())),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The folder to write the pages of a result to.
fn pages_folder<'a>(args: &'a ReportArgs, path: &'a Path) -> Result<&'a Path, Failure> {
    match &args.out {
        Some(_) if args.paths.len() > 1 => Err(Failure::Usage(
            "--out is for the pages of one result; name one, or leave --out out".to_owned(),
        )),
        Some(out) => Ok(out),
        None if path.is_file() => Err(Failure::Usage(format!(
            "{} is a file; give a folder for its pages with --out DIR, or name the result folder",
            path.display()
        ))),
        None => Ok(path),
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
