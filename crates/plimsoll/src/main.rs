//! The command: parse, validate, call.
//!
//! [`args`] is the command line as written, [`setup`] makes of it what the laboratory takes, [`commands`] has one file per verb, [`progress`] shows what
//! is going on. Exit codes: 0 pass, 1 the SLO or a check failed, 2 usage or configuration, 3 invalid measurement, 130 interrupted.

mod args;
mod commands;
mod failure;
mod output;
mod progress;
mod setup;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use failure::Failure;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no errors; clap prints them where they belong.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(&args) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("plimsoll: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, Failure> {
    plimsoll_lab::machine::raise_fd_limit();
    let stop = plimsoll_lab::signals::stop_on_signals()?;
    match &args.command {
        Command::List(list) => commands::list::run(list),
        Command::Doctor(doctor) => commands::doctor::run(doctor),
        Command::Calibrate(calibrate) => commands::calibrate::run(calibrate, &stop),
        Command::Check(check) => commands::check::run(check, &stop),
        Command::Run(run) => commands::run::run(run, &stop),
        Command::Find(find) => commands::find::run(find, &stop),
        Command::Report(report) => commands::report::run(report),
    }
}
