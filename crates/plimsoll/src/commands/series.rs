//! `plimsoll run` of a series: one trial for each of its plans, all in one result folder.

use std::process::ExitCode;
use std::sync::Arc;

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Trial, Verdict};
use plimsoll_host::signals::Stop;
use plimsoll_lab::campaign::{Observer, TrialBegins};
use plimsoll_lab::trial::{self, Conditions, FinishedTrial, Subject};
use plimsoll_report::{ResultFolder, StoredTrial, text};
use plimsoll_workload::Row;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::output::{self, say};
use crate::progress::Progress;
use crate::workloads::tellers;

/// Measures the rows one after the other. Whatever ends this, the trials so far are kept and shown.
pub(super) fn run(
    args: &RunArgs,
    conditions: &Conditions,
    subject: &Subject,
    rows: &[Row],
    mut progress: Progress,
    folder: &ResultFolder,
    stop: &Stop,
) -> Result<ExitCode, Failure> {
    let mut keeper = Keeper::new(&mut progress, std::slice::from_ref(folder));
    let mut trials: Vec<StoredTrial> = Vec::new();
    let mut cut_short = None;
    for ((number, trials_left), row) in (1..).zip((1..=count(rows)).rev()).zip(rows) {
        // The command has given each row a load.
        let load = row.load.unwrap_or_default();
        keeper.trial_begins(&TrialBegins {
            number,
            sessions: load,
            why: &row.name,
            trials_left,
            ..TrialBegins::default()
        });
        match one(load, conditions, subject, row, &mut keeper, stop) {
            Ok(outcome) => {
                let trial = outcome.trial.clone();
                let interrupted = trial.interrupted;
                let file = keeper.trial_ends(outcome).map_err(Failure::Usage)?;
                let stem = file.trim_end_matches(".json").to_owned();
                trials.push(StoredTrial { stem, trial });
                if interrupted {
                    break;
                }
            }
            // Nothing is known yet, so there is nothing to show.
            Err(error) if trials.is_empty() => return Err(error.into()),
            Err(error) => {
                cut_short = Some(error);
                break;
            }
        }
    }
    drop(keeper);
    drop(progress);
    output::render(folder.path())?;
    if args.out.json {
        let trials: Vec<&Trial> = trials.iter().map(|stored| &stored.trial).collect();
        output::print_json(&trials)?;
    } else {
        output::print(&text::side_by_side(&trials, tellers()));
        say!("result: {}", folder.path().display());
    }
    match cut_short {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::from(code_number_of(&trials))),
    }
}

fn count(rows: &[Row]) -> u32 {
    u32::try_from(rows.len()).unwrap_or(u32::MAX)
}

fn one(
    load: u32,
    conditions: &Conditions,
    subject: &Subject,
    row: &Row,
    keeper: &mut Keeper<'_>,
    stop: &Stop,
) -> plimsoll_lab::Result<FinishedTrial> {
    let mut conditions = conditions.clone();
    conditions.plan = Arc::clone(&row.plan);
    let subject = match subject {
        // If a URL has no path, the default path says what a session speaks.
        Subject::Running { url, resources } => Subject::Running {
            url: url.with_default_path(&row.plan.told().path)?,
            resources: resources.clone(),
        },
        Subject::Started(_) => subject.clone(),
    };
    trial::run(
        &conditions,
        &subject,
        load,
        Length::Full,
        stop,
        &mut |second| keeper.second(second),
    )
}

/// The exit code: 130 if interrupted, 3 if a row could not be measured, 1 if one failed, else 0.
fn code_number_of(trials: &[StoredTrial]) -> u8 {
    let any = |verdict| trials.iter().any(|stored| stored.trial.verdict == verdict);
    if trials.iter().any(|stored| stored.trial.interrupted) {
        130
    } else if any(Verdict::Invalid) {
        3
    } else if any(Verdict::Fail) {
        1
    } else {
        0
    }
}
