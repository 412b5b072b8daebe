//! `plimsoll check --all`: every target that runs here, several at a time where that is asked for.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use plimsoll_lab::build::build;
use plimsoll_lab::check::{CheckReport, Laboratory};
use plimsoll_lab::isolation::{CpuList, Placement};
use plimsoll_lab::manifest::Manifest;
use plimsoll_lab::signals::Stop;
use plimsoll_report::ResultFolder;

use super::{cases_told, code_number_of, counts, kept, show, simulator_binary};
use crate::args::CheckArgs;
use crate::catalogue::{self, Catalogue};
use crate::failure::Failure;
use crate::output::{self, note, say};

pub(super) fn run(args: &CheckArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    let Catalogue { targets, left_out } = catalogue::all(&args.which)?;
    let binary = simulator_binary(args)?;
    let path = output::path(&args.out, "check", "all");
    for left in &left_out {
        note!("not checked: {}: {}", left.name, left.reason);
    }
    let mut code = 0;
    let built: Vec<Manifest> = targets
        .into_iter()
        .filter(|manifest| {
            let ready = stop.requested() || ready(manifest, &path, stop);
            code = code.max(u8::from(!ready) * 2);
            ready
        })
        .collect();
    let checked = each(args, &built, &binary, &path, stop)?;
    if args.out.json {
        output::print_json(&checked)?;
    } else {
        for report in &checked {
            say!("{}", counts(report));
        }
        for left in &left_out {
            say!("{}: not checked: {}", left.name, left.reason);
        }
        say!("result: {}", path.display());
    }
    let failed = checked.iter().map(code_number_of).max().unwrap_or(2);
    Ok(ExitCode::from(if stop.requested() {
        130
    } else {
        code.max(failed)
    }))
}

/// Builds a target. One that does not build does not keep the others from their check.
fn ready(manifest: &Manifest, path: &Path, stop: &Stop) -> bool {
    let logs = path.join(&manifest.name).join("logs");
    let built = build(manifest, &logs, stop);
    if let Err(error) = &built {
        note!("plimsoll: {}: {error}", manifest.name);
    }
    built.is_ok()
}

/// The reports in the order of the targets; `--jobs` threads take the targets one by one.
fn each(
    args: &CheckArgs,
    targets: &[Manifest],
    binary: &Path,
    path: &Path,
    stop: &Stop,
) -> Result<Vec<CheckReport>, Failure> {
    let placement = Placement::choose(1.0, &CpuList::allowed_to_us()?, None, None)?;
    let waiting = Mutex::new(targets.iter().enumerate());
    let reports = Mutex::new(Vec::new());
    let one = || {
        loop {
            let next = waiting.lock().map_or(None, |mut waiting| waiting.next());
            let Some((place, manifest)) = next.filter(|_| !stop.requested()) else {
                return Ok(());
            };
            let folder = path.join(&manifest.name);
            let logs = folder.join("logs");
            let laboratory = Laboratory::new(manifest, binary, &logs, stop)
                .on_cpus(placement.target_cpus.clone(), placement.client_cpus.clone());
            let subject = laboratory.subject();
            let report = cases_told(args, stop, &subject, |case| {
                // Passed ones would drown the others: there are more than a hundred of each target.
                if !case.pass && case.skipped.is_none() && !args.out.json {
                    say!("{}:", manifest.name);
                    show(case, false);
                }
            });
            kept(&ResultFolder::create(folder)?, &report)?;
            note!("{} is checked", manifest.name);
            if let Ok(mut reports) = reports.lock() {
                reports.push((place, report));
            }
        }
    };
    let ended: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.jobs.unwrap_or(1))
            .map(|_| scope.spawn(one))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    });
    ended.into_iter().collect::<Result<(), _>>()?;
    let mut reports = reports.into_inner().unwrap_or_default();
    reports.sort_by_key(|(place, _)| *place);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}
