//! `plimsoll run`: one trial at one load, or one for each row of a matrix.

use std::path::PathBuf;
use std::process::ExitCode;

use plimsoll_core::profile::Length;
use plimsoll_core::record::LiveCommand;
use plimsoll_host::signals::Stop;
use plimsoll_lab::campaign::{Observer, TrialBegins};
use plimsoll_lab::trial::{self, Conditions, Subject};
use plimsoll_report::{ResultFolder, text};
use plimsoll_workload::{Plan, Series};

use crate::args::RunArgs;
use crate::commands::series;
use crate::failure::Failure;
use crate::live::keeper::Keeper;
use crate::output::{self, say};
use crate::progress::Progress;
use crate::setup;
use crate::workloads::tellers;

pub(crate) fn run(args: &RunArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    let name = args.target.as_deref();
    let subject_name = setup::subject_name(name, &args.which);
    let path = output::path(&args.out, "run", &subject_name);
    let logs = path.join("logs");
    let subject = setup::subject(name, &args.which, &args.load)?;
    let mut conditions = conditions(args, &subject, logs.clone())?;
    let series = conditions.plan.series()?;
    series
        .iter()
        .try_for_each(|series| must_leave_phases(args, &*conditions.plan, series))?;
    let load = load(args, series.as_ref())?;
    conditions.fleet = setup::fleet::gathered(&args.load, &[&subject], &*conditions.plan, stop)?;
    trial::must_be_possible(&conditions, &subject, load)?;
    // Everything that can be refused early has been refused by now, so the folder is not created in vain.
    let folder = ResultFolder::create(path)?;
    setup::bring_up_to_date(&subject, &logs, stop)?;
    let targets = vec![subject.name().to_owned()];
    let mut progress = Progress::new(LiveCommand::Run, targets, &folder, !args.out.no_live);
    progress.measuring(&subject, &conditions);
    conditions.placement.client_cpus.bind_this_thread()?;
    if let Some(mut series) = series {
        for row in &mut series.rows {
            row.load.get_or_insert(load);
        }
        return series::run(
            args,
            (&conditions, &subject),
            &series,
            progress,
            &folder,
            stop,
        );
    }
    for why in conditions.no_verdict_at(load) {
        progress.say(&format!("this trial will be invalid: {why}"));
    }
    let mut keeper = Keeper::new(&mut progress, std::slice::from_ref(&folder));
    keeper.trial_begins(&TrialBegins {
        number: 1,
        sessions: load,
        trials_left: 1,
        ..TrialBegins::default()
    });
    let outcome = trial::run(
        &conditions,
        &subject,
        load,
        Length::Full,
        stop,
        &mut |second| keeper.second(second),
    )?;
    keeper.keep(&outcome)?;
    drop(keeper);
    drop(progress);
    output::render(folder.path())?;
    if args.out.json {
        output::print_json(&outcome.trial)?;
    } else {
        output::print(&text::trial(&outcome.trial, output::color(), tellers()));
        say!("result: {}", folder.path().display());
    }
    Ok(output::code_of(
        outcome.trial.verdict,
        outcome.trial.interrupted,
    ))
}

/// The conditions of the trial, which is compared with the baseline if the user names one.
fn conditions(args: &RunArgs, subject: &Subject, logs: PathBuf) -> Result<Conditions, Failure> {
    let mut conditions = setup::conditions(subject, &args.which, &args.place, &args.load, logs)?;
    conditions.goals = setup::goals::goals(&args.goals, conditions.plan.workload())?;
    match &args.baseline {
        Some(file) => setup::baseline::in_file(&conditions, file, &args.load),
        None => Ok(conditions),
    }
}

/// The load of the trial; of a series with loads of its own the least one, so that what cannot be measured at any load is
/// refused early.
fn load(args: &RunArgs, series: Option<&Series>) -> Result<u32, Failure> {
    let least = series.and_then(|series| {
        let own = series.rows.iter().filter_map(|row| row.load).min()?;
        Some((own, series.asked_by.as_str()))
    });
    match (args.sessions, least) {
        (Some(load), None) | (None, Some((load, _))) => Ok(load),
        (Some(_), Some((_, asked_by))) => Err(Failure::Usage(format!(
            "--sessions: {asked_by} has loads of its own; leave --sessions or {asked_by} out"
        ))),
        (None, None) => Err(Failure::Usage(
            "--sessions: say how much load, for example --sessions 100".to_owned(),
        )),
    }
}

/// Refuses phases beside a series that has its own.
fn must_leave_phases(args: &RunArgs, plan: &dyn Plan, series: &Series) -> Result<(), Failure> {
    if series.rows.iter().all(|row| row.phases.is_none()) {
        return Ok(());
    }
    let load = &args.load;
    let flags = [
        ("--ramp", load.ramp.is_some()),
        ("--warm-up", load.warm_up.is_some()),
        ("--measured", load.measured.is_some()),
        ("--profile soak", setup::profile_name(load, plan) == "soak"),
    ];
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::Usage(format!(
            "{flag}: {} has a ramp, a warm-up and a window of its own for each trial; leave {flag} out",
            series.asked_by
        ))),
        None => Ok(()),
    }
}
