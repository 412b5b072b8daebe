//! `plimsoll run`: one trial at one load, or one for each row of a matrix.

use std::process::ExitCode;

use plimsoll_core::profile::Length;
use plimsoll_core::record::LiveCommand;
use plimsoll_host::signals::Stop;
use plimsoll_lab::campaign::{Observer, TrialBegins};
use plimsoll_lab::trial;
use plimsoll_report::{ResultFolder, text};
use plimsoll_workload::Series;

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
    let conditions =
        setup::conditions(&subject, &args.which, &args.place, &args.load, logs.clone())?;
    let series = conditions.plan.series()?;
    let load = load(args, series.as_ref())?;
    trial::must_be_possible(&conditions, &subject, load)?;
    // Everything that can be refused early has been refused by now, so the folder is not created in vain.
    let folder = ResultFolder::create(path)?;
    setup::bring_up_to_date(&subject, &logs, stop)?;
    let targets = vec![subject.name().to_owned()];
    let mut progress = Progress::new(LiveCommand::Run, targets, &folder, !args.out.no_live);
    progress.measuring(&subject, &conditions);
    for why in conditions.no_verdict_at(load) {
        progress.say(&format!("this trial will be invalid: {why}"));
    }
    conditions.placement.client_cpus.bind_this_thread()?;
    if let Some(Series { mut rows, .. }) = series {
        for row in &mut rows {
            row.load.get_or_insert(load);
        }
        return series::run(args, &conditions, &subject, &rows, progress, &folder, stop);
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

/// The load of the trial; of a series with loads of its own the greatest one.
fn load(args: &RunArgs, series: Option<&Series>) -> Result<u32, Failure> {
    let rows = series.map_or([].as_slice(), |series| &series.rows);
    let own = rows.iter().filter_map(|row| row.load).max();
    match (args.sessions, own) {
        (Some(load), None) | (None, Some(load)) => Ok(load),
        (Some(_), Some(_)) => Err(Failure::Usage(
            "--sessions: the set has loads of its own; leave --sessions or --set out".to_owned(),
        )),
        (None, None) => Err(Failure::Usage(
            "--sessions: say how much load, for example --sessions 100".to_owned(),
        )),
    }
}
