//! `plimsoll check --all`: checks every target that runs here, several at a time if requested.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use plimsoll_conformance::CheckReport;
use plimsoll_core::record::LeftOut;
use plimsoll_host::isolation::{CpuList, Placement};
use plimsoll_host::signals::Stop;
use plimsoll_lab::build::build;
use plimsoll_lab::manifest::Manifest;
use plimsoll_report::ResultFolder;

use super::suites::{Place, Suites};
use super::{cases_told, code_number_of, counts, kept, show};
use crate::args::CheckArgs;
use crate::catalogue::{self, Catalogue};
use crate::failure::Failure;
use crate::output::{self, note, say};

pub(super) fn run(args: &CheckArgs, suites: &Suites, stop: &Stop) -> Result<ExitCode, Failure> {
    let Catalogue { targets, left_out } = without(&args.except, catalogue::all(&args.which)?)?;
    for target in &targets {
        suites.must_fit(target)?;
    }
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
    let checked = each(args, &built, suites, &path, stop)?;
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
    Ok(ExitCode::from(if stop.requested() {
        130
    } else {
        // Without any report, nothing is known.
        let nothing = if checked.is_empty() { 2 } else { 0 };
        code_of_all(checked.iter().map(code_number_of).chain([code, nothing]))
    }))
}

/// The catalogue without the targets that the user excludes.
fn without(except: &[String], mut catalogue: Catalogue) -> Result<Catalogue, Failure> {
    for name in except {
        let known = catalogue.targets.iter().any(|target| target.name == *name)
            || catalogue.left_out.iter().any(|left| left.name == *name);
        if !known {
            return Err(Failure::Usage(format!(
                "--except {name}: no such target; `plimsoll list` shows them"
            )));
        }
    }
    catalogue
        .targets
        .retain(|target| !except.contains(&target.name));
    catalogue
        .left_out
        .retain(|left| !except.contains(&left.name));
    catalogue.left_out.extend(except.iter().map(|name| LeftOut {
        name: name.clone(),
        reason: "named by --except".to_owned(),
    }));
    Ok(catalogue)
}

/// A target that cannot be checked takes precedence, then one that failed, then one that was disturbed.
fn code_of_all(codes: impl Iterator<Item = u8>) -> u8 {
    let weight = |code: &u8| [2, 1, 3].iter().rev().position(|known| known == code);
    codes.max_by_key(weight).unwrap_or(0)
}

/// Builds a target. If one does not build, the others are still checked.
fn ready(manifest: &Manifest, path: &Path, stop: &Stop) -> bool {
    let logs = path.join(&manifest.name).join("logs");
    let built = build(manifest, &logs, stop);
    if let Err(error) = &built {
        note!("plimsoll: {}: {error}", manifest.name);
    }
    built.is_ok()
}

/// Checks the targets on `--jobs` threads, which take them one by one. The reports are in the order of the targets.
fn each(
    args: &CheckArgs,
    targets: &[Manifest],
    suites: &Suites,
    path: &Path,
    stop: &Stop,
) -> Result<Vec<CheckReport>, Failure> {
    let placement = Placement::choose(1.0, &CpuList::allowed_to_us()?, None, None)?;
    let waiting = Mutex::new(targets.iter().enumerate());
    let reports = Mutex::new(Vec::new());
    let one = || {
        loop {
            let next = waiting.lock().map_or(None, |mut waiting| waiting.next());
            let Some((position, manifest)) = next.filter(|_| !stop.requested()) else {
                return Ok(());
            };
            let folder = path.join(&manifest.name);
            let logs = folder.join("logs");
            let place = Place {
                placement: &placement,
                logs: &logs,
                stop,
            };
            let (suite, laboratory) = suites.on_target(manifest, &place)?;
            let subject = laboratory.subject();
            let of = (&*suite, &subject, Some(&manifest.deviations));
            let report = cases_told(args, stop, of, |case| {
                // Passed cases would drown the others: a target has dozens, or more than a hundred.
                if !case.pass && case.skipped.is_none() && !args.out.json {
                    say!("{}:", manifest.name);
                    show(case, false);
                }
            });
            kept(&ResultFolder::create(folder)?, &report)?;
            note!("{} is checked", manifest.name);
            if let Ok(mut reports) = reports.lock() {
                reports.push((position, report));
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
    reports.sort_by_key(|(position, _)| *position);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        Catalogue {
            targets: Vec::new(),
            left_out: vec![LeftOut {
                name: "absent".to_owned(),
                reason: "no compiler".to_owned(),
            }],
        }
    }

    #[test]
    fn an_excluded_target_is_named_with_its_reason_once() {
        let rest = without(&["absent".to_owned()], catalogue()).unwrap();
        let reasons: Vec<_> = rest.left_out.iter().map(|left| &left.reason[..]).collect();
        assert_eq!(reasons, ["named by --except"]);
    }

    #[test]
    fn an_unknown_excluded_target_is_a_usage_error() {
        let refused = without(&["abesnt".to_owned()], catalogue()).err().unwrap();
        assert!(refused.to_string().contains("--except abesnt"), "{refused}");
    }
}
