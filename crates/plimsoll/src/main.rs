//! The command: parse, validate, call.
//!
//! [`args`] is the command line as written. [`setup`] turns it into what the laboratory takes. [`commands`] has one
//! file per subcommand. [`progress`] shows what is going on. Exit codes: 0 pass, 1 the SLO or a check failed, 2 usage
//! or configuration, 3 invalid measurement, 70 a fault of Plimsoll itself, 130 interrupted.

mod args;
mod build;
mod catalogue;
mod commands;
mod failure;
mod fault;
mod live;
mod output;
mod progress;
mod secrets;
mod serve;
mod setup;
mod trial_files;
mod workloads;

use std::process::ExitCode;

use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

use args::{Args, Command};
use failure::Failure;
use output::note;
use plimsoll_host::isolation::{Layout, sweep_stale};
use plimsoll_host::signals::Stop;

fn main() -> ExitCode {
    fault::guarded(|| {
        if let Some(code) = commands::fleet::as_tar() {
            return code;
        }
        let args = match Args::of(std::env::args_os()) {
            Ok(args) => args,
            Err(error) => return refused(&error),
        };
        match run(&args) {
            Ok(code) => code,
            Err(failure) => {
                note!("plimsoll: {failure}");
                ExitCode::from(failure.exit_code())
            }
        }
    })
}

/// Prints help and version where they belong. Anything else is a mistake in the command line, reported in one line like
/// every other mistake.
fn refused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        // If this fails, there is nobody left to tell.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    }
    let text = error.to_string();
    // The usage and the pointer to --help follow in separate paragraphs.
    let said = text.split("\n\nUsage:").next().unwrap_or_default();
    let said = said
        .split("\n\nFor more information")
        .next()
        .unwrap_or_default();
    let words: Vec<&str> = said.split_whitespace().collect();
    let line = words.join(" ");
    note!(
        "plimsoll: {}; see --help",
        line.strip_prefix("error: ").unwrap_or(&line)
    );
    ExitCode::from(2)
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    plimsoll_host::machine::raise_fd_limit();
    let stop = plimsoll_host::signals::stop_on_signals()?;
    obey(args, &stop)
}

/// Does what the command line says, until this stop.
fn obey(args: &Args, stop: &Stop) -> Result<ExitCode, Failure> {
    if let Command::Check(_) | Command::Run(_) | Command::Find(_) | Command::Compare(_) =
        &args.command
    {
        sweep();
    }
    match &args.command {
        Command::List(list) => commands::list::run(list),
        Command::Doctor(doctor) => commands::doctor::run(doctor),
        Command::Calibrate(calibrate) => commands::calibrate::run(calibrate, stop),
        Command::Check(check) => commands::check::run(check, stop),
        Command::Run(run) => commands::run::run(run, stop),
        Command::Find(find) => commands::find::run(find, stop),
        Command::Compare(compare) => commands::compare::run(compare, stop),
        Command::Report(report) => commands::report::run(report),
        Command::History(history) => commands::history::run(history),
        Command::Serve(serve) => commands::serve::run(serve, stop),
        Command::Agent(agent) => commands::agent::run(agent, stop),
        Command::Fleet(fleet) => commands::fleet::run(fleet, stop, obey),
        Command::Generate(generate) => commands::generate::run(generate),
        Command::Engine => {
            plimsoll_lab::trial::parts::serve(workloads::ALL, stop)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Kills what earlier runs left behind when they were killed: it would take CPU time from the measurement.
fn sweep() {
    let swept = sweep_stale(&Layout::of_this_machine());
    if swept.processes > 0 {
        note!(
            "plimsoll: killed {} left behind by an earlier run that was itself killed",
            match swept.processes {
                1 => "a process".to_owned(),
                more => format!("{more} processes"),
            }
        );
    }
}
