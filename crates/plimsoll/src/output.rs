//! Where results go: the folder, and the terminal.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_core::record::Verdict;
use plimsoll_lab::trial::Outcome;
use plimsoll_report::{IntervalHistograms, ReportError, ResultFolder};

use crate::args::OutArgs;
use crate::failure::Failure;

/// The result folder of this call: the one asked for, or a new one that says when, what and whom.
pub(crate) fn folder(out: &OutArgs, verb: &str, subject: &str) -> Result<ResultFolder, Failure> {
    let path = match &out.out {
        Some(path) => path.clone(),
        None => default_path(verb, subject),
    };
    Ok(ResultFolder::create(path)?)
}

fn default_path(verb: &str, subject: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let when: String = now.chars().filter(|c| !"-:".contains(*c)).collect();
    let subject: String = subject
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let name = format!("{when}-{verb}-{}", subject.trim_matches('-'));
    let mut path = Path::new("results").join(&name);
    // Two calls within a second get folders of their own.
    for number in 2.. {
        if !path.exists() {
            break;
        }
        path = Path::new("results").join(format!("{name}-{number}"));
    }
    path
}

/// Writes a trial's files; the stem of their names.
pub(crate) fn write_trial(
    folder: &ResultFolder,
    outcome: &mut Outcome,
) -> Result<String, ReportError> {
    let intervals: Vec<_> = outcome
        .intervals
        .drain(..)
        .map(|(start_s, set)| IntervalHistograms {
            start_s,
            duration_s: 1.0,
            set,
        })
        .collect();
    folder.write_trial(&outcome.trial, &outcome.seconds, &intervals)
}

/// Prints a value as JSON on stdout.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        Failure::Usage(format!("the result cannot be written as JSON: {error}"))
    })?;
    println!("{text}");
    Ok(())
}

/// The exit code of a trial.
pub(crate) fn code_of(verdict: Verdict, interrupted: bool) -> ExitCode {
    ExitCode::from(match verdict {
        _ if interrupted => 130,
        Verdict::Pass => 0,
        Verdict::Fail => 1,
        Verdict::Invalid => 3,
    })
}

/// Whether to write colours on stdout.
pub(crate) fn color() -> bool {
    std::io::stdout().is_terminal() && no_color_unset()
}

/// See <https://no-color.org>.
pub(crate) fn no_color_unset() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
