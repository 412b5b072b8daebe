//! The baseline that the trials of a search are compared with: run before it, or taken from where it is kept.

use std::path::Path;
use std::sync::Arc;

use plimsoll_core::record;
use plimsoll_host::signals::Stop;
use plimsoll_lab::baseline::{self, Baseline};
use plimsoll_lab::campaign::Contender;
use plimsoll_lab::trial::{Conditions, Subject};
use plimsoll_report::{BASELINE, ResultFolder, load_baselines, load_trial, words};
use plimsoll_workload::plan;

use crate::args::LoadArgs;
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::progress::Progress;
use crate::workloads::tellers;

/// Runs the baseline of a search, if its plan has one, and returns the conditions for trials that are compared with it. A
/// search that is resumed takes the one that it has run since it began. If nothing can be compared with the baseline, the
/// search goes on without it, and the record says why.
pub(crate) fn before_search(
    (subject, conditions): (&Subject, &Conditions),
    load: &LoadArgs,
    folder: &ResultFolder,
    resumed_since: Option<&str>,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<(Conditions, Option<record::Baseline>), Failure> {
    let Some(wanted) = conditions.plan.baseline() else {
        return Ok((conditions.clone(), None));
    };
    let kept = match resumed_since {
        Some(since) => kept_since(folder.path(), since)?,
        None => None,
    };
    let baseline = match kept {
        Some(kept) => kept,
        None => {
            let alone = [Contender {
                subject,
                conditions,
            }];
            measured(&alone, &wanted, folder, progress, stop)?.remove(0)
        }
    };
    let (conditions, record) = compared(conditions, baseline, &wanted, load, progress);
    progress.measuring(subject, &conditions);
    Ok((conditions, Some(record)))
}

/// The same for the two sides of a comparison. Each has a baseline of its own, or neither has one.
pub(crate) fn of_sides(
    sides: [Contender<'_>; 2],
    load: &LoadArgs,
    folder: &ResultFolder,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<[Conditions; 2], Failure> {
    let alone = sides.map(|side| side.conditions.clone());
    let Some(wanted) = alone[0].plan.baseline() else {
        return Ok(alone);
    };
    let baselines = measured(&sides, &wanted, folder, progress, stop)?;
    let mut each = alone.clone();
    let mut without = false;
    for (conditions, baseline) in each.iter_mut().zip(baselines) {
        let (now, record) = compared(conditions, baseline, &wanted, load, progress);
        *conditions = now;
        without |= record.not_used.is_some();
    }
    // Both sides are judged alike.
    let each = if without { alone } else { each };
    progress.measuring(sides[0].subject, &each[0]);
    Ok(each)
}

/// The conditions for further trials of a target whose search began since then and is kept in this folder.
pub(crate) fn kept(
    conditions: &Conditions,
    folder: &Path,
    since: &str,
    load: &LoadArgs,
) -> Result<Conditions, Failure> {
    if conditions.plan.baseline().is_none() {
        return Ok(conditions.clone());
    }
    let kept = kept_since(folder, since)?;
    // The search has said it if nothing can be compared with it.
    let compared = kept.and_then(|kept| conditions.compared_with(kept, slos_are_given(load)).ok());
    Ok(compared.unwrap_or_else(|| conditions.clone()))
}

/// The conditions for one trial that is compared with the one in this record.
pub(crate) fn in_file(
    conditions: &Conditions,
    file: &Path,
    load: &LoadArgs,
) -> Result<Conditions, Failure> {
    let baseline = Baseline {
        trial: Arc::new(load_trial(file, tellers())?),
        file: file.to_string_lossy().into_owned(),
    };
    let compared = conditions.compared_with(baseline, slos_are_given(load));
    compared.map_err(|refusal| {
        Failure::Usage(format!(
            "--baseline {}: {refusal}; name the record of another trial, or leave the flag out",
            file.display()
        ))
    })
}

fn slos_are_given(load: &LoadArgs) -> bool {
    !load.slo.is_empty()
}

/// The last whole baseline in a result folder that began since then.
fn kept_since(folder: &Path, since: &str) -> Result<Option<Baseline>, Failure> {
    let kept = load_baselines(folder, tellers())?.into_iter();
    let mut ours =
        kept.filter(|stored| !stored.trial.interrupted && *stored.trial.started_at >= *since);
    Ok(ours.next_back().map(|stored| Baseline {
        file: format!("{BASELINE}/{}.json", stored.stem),
        trial: Arc::new(stored.trial),
    }))
}

/// Runs the baselines of these contenders, and keeps them in a folder of their own.
fn measured(
    contenders: &[Contender<'_>],
    wanted: &plan::Baseline,
    folder: &ResultFolder,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<Vec<Baseline>, Failure> {
    let conditions: Vec<Conditions> = contenders
        .iter()
        .map(|contender| contender.conditions.of_baseline(wanted))
        .collect();
    let apart: Vec<Contender<'_>> = contenders
        .iter()
        .zip(&conditions)
        .map(|(contender, conditions)| Contender {
            conditions,
            ..*contender
        })
        .collect();
    progress.measuring(apart[0].subject, apart[0].conditions);
    progress.say(&format!(
        "first the baseline, which the trials are compared with: {}, {} for {} s",
        wanted.what,
        words::load(wanted.load, conditions[0].plan.unit()),
        words::number(conditions[0].profile.lasts_s())
    ));
    let folder = folder.of_baselines()?;
    let mut keeper = Keeper::new(progress, std::slice::from_ref(&folder)).of_baselines();
    let mut baselines = baseline::run(&apart, wanted, stop, &mut keeper)?;
    for baseline in &mut baselines {
        baseline.file = format!("{BASELINE}/{}", baseline.file);
    }
    Ok(baselines)
}

/// The conditions for trials that are compared with this baseline, or without it if that cannot be.
fn compared(
    conditions: &Conditions,
    baseline: Baseline,
    wanted: &plan::Baseline,
    load: &LoadArgs,
    progress: &Progress,
) -> (Conditions, record::Baseline) {
    let mut record = record::Baseline {
        what: wanted.what.to_owned(),
        sessions: wanted.load,
        file: baseline.file.clone(),
        not_used: None,
    };
    match conditions.compared_with(baseline, slos_are_given(load)) {
        Ok(conditions) => (conditions, record),
        Err(refusal) => {
            progress.say(&format!(
                "{}: going on without a baseline: {refusal}",
                record.file
            ));
            record.not_used = Some(refusal.to_string());
            (conditions.clone(), record)
        }
    }
}

#[cfg(all(test, feature = "echo"))]
#[path = "baseline_tests.rs"]
mod tests;
