//! Compares the newest result of each target with an earlier one, for continuous integration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_core::comparison::compare_measured;
use plimsoll_core::record::Comparison;
use plimsoll_host::timestamp;
use plimsoll_report::history::{self, Entry, Filter, History, Kind};
use plimsoll_report::text;
use plimsoll_report::words::plain;
use serde::Serialize;

use super::pairing::{Baseline, Held, Pairing, pair};
use crate::args::HistoryArgs;
use crate::commands::compare;
use crate::failure::Failure;
use crate::output;
use crate::workloads::tellers;

/// The default confidence.
const CONFIDENCE: f64 = 0.95;
/// Intervals come from random draws; the same seed gives the same intervals.
const SEED: u64 = 1;

/// The outcome of one comparison.
#[derive(Debug, Serialize)]
struct Judged {
    target: String,
    baseline: Option<String>,
    result: Option<String>,
    comparison: Option<Comparison>,
    /// Why there is no conclusion.
    cannot_tell: Option<String>,
    #[serde(skip)]
    code: u8,
}

pub(super) fn judge(
    args: &HistoryArgs,
    baseline: &str,
    history: &History,
    filter: &Filter,
) -> Result<ExitCode, Failure> {
    let confidence = compare::confidence_of(args.confidence.unwrap_or(CONFIDENCE))?;
    let mut baseline = baseline_of(&args.results, baseline)?;
    let mut given = args
        .result
        .as_deref()
        .map(|path| of_path(&args.results, "--result", path))
        .transpose()?;
    if let Some(target) = &filter.target {
        // Of a ranking, only that target.
        let is_asked_for = |held: &Held| held.entry.targets.contains(target);
        if let Baseline::These(baselines) = &mut baseline {
            baselines.retain(is_asked_for);
        }
        if let Some(given) = &mut given {
            given.retain(is_asked_for);
        }
    }
    let pairings = pair(&baseline, given.as_deref(), &there(args, history, filter)?);
    let judged = pairings
        .into_iter()
        .map(|pairing| judged(args, confidence, pairing))
        .collect::<Result<Vec<Judged>, _>>()?;
    if args.json {
        output::print_json(&judged)?;
    } else {
        for judged in &judged {
            output::print(&told(judged));
        }
        if judged.is_empty() {
            output::print("no conclusion: there is no search and no trial to judge\n");
        }
    }
    Ok(ExitCode::from(code_of(&judged)))
}

/// The exit code: 1 if any result is worse, else 3 if any has no conclusion or there is none at all, else 0.
fn code_of(judged: &[Judged]) -> u8 {
    let any = |code| judged.iter().any(|judged| judged.code == code);
    if any(1) {
        1
    } else if judged.is_empty() || any(3) {
        3
    } else {
        0
    }
}

fn judged(args: &HistoryArgs, confidence: f64, pairing: Pairing) -> Result<Judged, Failure> {
    let mut judged = Judged {
        target: pairing.target,
        baseline: pairing.baseline.as_ref().map(named),
        result: pairing.result.as_ref().map(named),
        comparison: None,
        cannot_tell: pairing.missing,
        code: 3,
    };
    let (Some(baseline), Some(result)) = (pairing.baseline, pairing.result) else {
        return Ok(judged);
    };
    let compared = compare_measured(
        &compare::folders::measured(&baseline.path)?,
        &compare::folders::measured(&result.path)?,
        confidence,
        SEED,
        timestamp::now(),
    );
    match compared {
        Ok(comparison) => {
            judged.code = compare::code_number_of(args.fail_if, &comparison);
            judged.cannot_tell = (judged.code == 3).then(|| comparison.notes.join(" "));
            judged.comparison = Some(comparison);
        }
        // Different conditions, among others; the error says which.
        Err(error) => judged.cannot_tell = Some(error.to_string()),
    }
    Ok(judged)
}

fn named(held: &Held) -> String {
    held.path.display().to_string()
}

fn told(judged: &Judged) -> String {
    let path = |path: &Option<String>| plain(path.as_deref().unwrap_or("nothing"));
    let mut text = format!(
        "{}: {} against {}\n",
        plain(&judged.target),
        path(&judged.result),
        path(&judged.baseline)
    );
    if let Some(comparison) = &judged.comparison {
        text.push_str(&text::comparison(comparison, output::color()));
    }
    if let Some(why) = &judged.cannot_tell {
        text.push_str(&format!("no conclusion: {}\n", plain(why)));
    }
    text.push('\n');
    text
}

/// `last`, `best`, or a result folder: the path as given, or below the folder of results.
fn baseline_of(results: &Path, baseline: &str) -> Result<Baseline, Failure> {
    match baseline {
        "last" => Ok(Baseline::Last),
        "best" => Ok(Baseline::Best),
        path => of_path(results, "--against", Path::new(path)).map(Baseline::These),
    }
}

/// What a folder named by the user holds: a result of one target, or of each target of a ranking.
fn of_path(results: &Path, flag: &str, named: &Path) -> Result<Vec<Held>, Failure> {
    let path = [named.to_owned(), results.join(named)]
        .into_iter()
        .find(|path| path.is_dir())
        .ok_or_else(|| {
            let or = if flag == "--against" {
                ", `last` or `best`"
            } else {
                ""
            };
            Failure::Usage(format!(
                "{flag} {}: there is no such folder; name a result folder{or}",
                named.display()
            ))
        })?;
    let loaded = plimsoll_report::load(&path, tellers())?;
    let mut held = Vec::new();
    for row in loaded.ranking.iter().flat_map(|ranking| &ranking.rows) {
        // A folder that a record names must lie inside the record's own folder.
        if history::below(&path, Path::new(&row.folder)).is_none() {
            continue;
        }
        let path = path.join(&row.folder);
        let of_target = plimsoll_report::load(&path, tellers())?;
        held.extend(first_of(&path, history::entry::of(&row.folder, &of_target)));
    }
    let name = path.display().to_string();
    held.extend(first_of(&path, history::entry::of(&name, &loaded)));
    if held.is_empty() {
        return Err(Failure::Usage(format!(
            "{flag} {name}: it holds neither a search nor a trial; name a result folder of `find` or `run`"
        )));
    }
    Ok(held)
}

/// The entry of a folder that can be compared: its search, by the first SLO, or its first trial.
fn first_of(path: &Path, entries: Vec<Entry>) -> Option<Held> {
    let measured = entries.into_iter().find(is_measured);
    measured.map(|entry| held(path.to_owned(), entry))
}

fn is_measured(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::Find | Kind::Run)
}

fn held(path: PathBuf, entry: Entry) -> Held {
    Held {
        real: fs::canonicalize(&path).unwrap_or_else(|_| path.clone()),
        began: entry.began(),
        path,
        entry,
    }
}

/// All results to choose from, newest first, one per folder and kind.
fn there(args: &HistoryArgs, history: &History, filter: &Filter) -> Result<Vec<Held>, Failure> {
    let filter = Filter {
        limit: None,
        ..filter.clone()
    };
    let mut there: Vec<Held> = Vec::new();
    for entry in history.list(&filter)?.into_iter().filter(is_measured) {
        if there
            .iter()
            .any(|held| held.entry.folder == entry.folder && held.entry.kind == entry.kind)
        {
            continue;
        }
        let path = args.results.join(&entry.folder);
        there.push(held(path, entry));
    }
    Ok(there)
}
