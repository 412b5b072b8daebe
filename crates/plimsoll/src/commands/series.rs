//! `plimsoll run` of a series: one trial for each of its plans, all in one result folder.

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::profile::Length;
use plimsoll_core::record::{Trial, Verdict};
use plimsoll_host::signals::Stop;
use plimsoll_lab::campaign::{Observer, TrialBegins};
use plimsoll_lab::trial::{self, Conditions, Subject};
use plimsoll_report::{ResultFolder, StoredTrial, text};
use plimsoll_workload::{Row, Series};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::output::{self, say};
use crate::progress::Progress;
use crate::workloads::tellers;

/// How often a pause looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// What became of the rows so far.
#[derive(Debug, Default)]
struct Done {
    trials: Vec<StoredTrial>,
    /// Rows for which the machine has too little, each with what that is.
    without_room: Vec<String>,
    /// What ended the series before its last row.
    cut_short: Option<Failure>,
}

/// Measures the rows one after the other. Whatever ends this, the trials so far are kept and shown.
pub(super) fn run(
    args: &RunArgs,
    measured: (&Conditions, &Subject),
    series: &Series,
    mut progress: Progress,
    folder: &ResultFolder,
    stop: &Stop,
) -> Result<ExitCode, Failure> {
    let mut keeper = Keeper::new(&mut progress, std::slice::from_ref(folder));
    let done = rows(measured, series, &mut keeper, stop);
    drop(keeper);
    drop(progress);
    let Done {
        trials,
        without_room,
        cut_short,
    } = done;
    if trials.is_empty() {
        // Nothing is known, so there is nothing to show.
        let nothing = || Failure::Usage(without_room.join("; "));
        return Err(cut_short.unwrap_or_else(nothing));
    }
    output::render(folder.path())?;
    if args.out.json {
        let trials: Vec<&Trial> = trials.iter().map(|stored| &stored.trial).collect();
        output::print_json(&trials)?;
    } else {
        output::print(&text::side_by_side(&trials, tellers()));
        for row in &without_room {
            say!("{row}");
        }
        say!("result: {}", folder.path().display());
    }
    match cut_short {
        Some(failure) => Err(failure),
        None if stop.requested() => Ok(ExitCode::from(130)),
        None => Ok(ExitCode::from(code_number_of(&trials, &without_room))),
    }
}

fn rows(
    measured: (&Conditions, &Subject),
    series: &Series,
    keeper: &mut Keeper<'_>,
    stop: &Stop,
) -> Done {
    let mut done = Done::default();
    let mut before = false;
    let left = (1..=count(&series.rows)).rev();
    for (trials_left, row) in left.zip(&series.rows) {
        if before {
            rest(series.pause, stop);
        }
        if before && stop.requested() {
            break;
        }
        match one(measured, row, trials_left, &mut done, keeper, stop) {
            Ok(ran) => before = ran,
            Err(failure) => {
                done.cut_short = Some(failure);
                break;
            }
        }
    }
    done
}

/// Waits, unless it is time to stop.
fn rest(pause: Duration, stop: &Stop) {
    let until = Instant::now() + pause;
    while !stop.requested() && Instant::now() < until {
        thread::sleep(LOOK.min(pause));
    }
}

fn count(rows: &[Row]) -> u32 {
    u32::try_from(rows.len()).unwrap_or(u32::MAX)
}

/// Measures a row and keeps its trial. Returns whether it ran: there may be no room for it.
fn one(
    (conditions, subject): (&Conditions, &Subject),
    row: &Row,
    trials_left: u32,
    done: &mut Done,
    keeper: &mut Keeper<'_>,
    stop: &Stop,
) -> Result<bool, Failure> {
    // The command has given each row a load.
    let load = row.load.unwrap_or_default();
    let mut conditions = conditions.clone();
    conditions.plan = Arc::clone(&row.plan);
    if let Some(phases) = row.phases {
        conditions.profile = conditions.profile.with_phases(phases);
    }
    keeper.measuring(subject, &conditions);
    if let Err(error) = trial::must_have_room(&conditions, load) {
        let why = format!("{}: not measured, machine-bound: {error}", row.name);
        keeper.say(&why);
        done.without_room.push(why);
        return Ok(false);
    }
    for why in conditions.no_verdict_at(load) {
        keeper.say(&format!("this trial will be invalid: {why}"));
    }
    let subject = match subject {
        // If a URL has no path, the default path says what a session speaks.
        Subject::Running { url, resources } => &Subject::Running {
            url: url.with_default_path(&row.plan.told().path)?,
            resources: resources.clone(),
        },
        Subject::Started(_) => subject,
    };
    keeper.trial_begins(&TrialBegins {
        number: u32::try_from(done.trials.len() + 1).unwrap_or(u32::MAX),
        sessions: load,
        why: &row.name,
        trials_left,
        ..TrialBegins::default()
    });
    let outcome = trial::run(
        &conditions,
        subject,
        load,
        Length::Full,
        stop,
        &mut |second| keeper.second(second),
    )?;
    let trial = outcome.trial.clone();
    let file = keeper.trial_ends(outcome).map_err(Failure::Usage)?;
    let stem = file.trim_end_matches(".json").to_owned();
    done.trials.push(StoredTrial { stem, trial });
    Ok(true)
}

/// The exit code: 130 if interrupted, 3 if a row could not be measured, 1 if one failed, else 0.
fn code_number_of(trials: &[StoredTrial], without_room: &[String]) -> u8 {
    let any = |verdict| trials.iter().any(|stored| stored.trial.verdict == verdict);
    if trials.iter().any(|stored| stored.trial.interrupted) {
        130
    } else if any(Verdict::Invalid) || !without_room.is_empty() {
        3
    } else if any(Verdict::Fail) {
        1
    } else {
        0
    }
}
