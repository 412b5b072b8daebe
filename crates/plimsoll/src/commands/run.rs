//! `plimsoll run`: one trial at one load.

use std::process::ExitCode;

use plimsoll_core::profile::Length;
use plimsoll_lab::signals::Stop;
use plimsoll_lab::trial;
use plimsoll_report::{ResultFolder, text};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::progress::Progress;
use crate::setup;
use crate::trial_files::TrialFiles;

pub(crate) fn run(args: &RunArgs, stop: &Stop) -> Result<ExitCode, Failure> {
    let name = args.target.as_deref();
    let subject_name = name.or(args.which.url.as_deref()).unwrap_or("manifest");
    let path = output::path(&args.out, "run", subject_name);
    let logs = path.join("logs");
    let conditions = setup::conditions(&args.which, &args.place, &args.load, logs.clone())?;
    let subject = setup::subject(name, &args.which, &args.load)?;
    trial::must_be_possible(&subject, args.sessions)?;
    // All that can be refused at once is refused by now, so the folder is not made in vain.
    let folder = ResultFolder::create(path)?;
    setup::bring_up_to_date(&subject, &logs, stop)?;
    let mut progress = Progress::new(&conditions.profile);
    conditions.placement.client_cpus.bind_this_thread()?;
    progress.trial_begins(1, args.sessions, None, 1);
    let mut files = TrialFiles::new(&folder);
    let outcome = trial::run(
        &conditions,
        &subject,
        args.sessions,
        Length::Full,
        stop,
        &mut |second| {
            progress.second(second);
            files.second(second);
        },
    )?;
    drop(progress);
    files.trial_ends(&outcome)?;
    output::render(folder.path())?;
    if args.out.json {
        output::print_json(&outcome.trial)?;
    } else {
        output::print(&text::trial(&outcome.trial, output::color()));
        say!("result: {}", folder.path().display());
    }
    Ok(output::code_of(
        outcome.trial.verdict,
        outcome.trial.interrupted,
    ))
}
