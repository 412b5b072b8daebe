//! Where results go: the result folder, and the terminal.

use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_core::record::Verdict;
use plimsoll_report::render::STEP_SUMMARY;
use plimsoll_report::{ReportError, ResultFolder};

use crate::args::OutArgs;
use crate::failure::Failure;
use crate::workloads::tellers;

/// The path of this call's result folder: the requested one, or a new one named by time, command and subject. Nothing
/// is created yet, so that a refused call leaves nothing behind.
pub(crate) fn path(out: &OutArgs, verb: &str, subject: &str) -> PathBuf {
    match &out.out {
        Some(path) => path.clone(),
        None => default_path(verb, subject),
    }
}

/// Creates the result folder of this call.
pub(crate) fn folder(out: &OutArgs, verb: &str, subject: &str) -> Result<ResultFolder, Failure> {
    Ok(ResultFolder::create(path(out, verb, subject))?)
}

fn default_path(verb: &str, subject: &str) -> PathBuf {
    let now = plimsoll_host::timestamp::now();
    let when: String = now.chars().filter(|c| !"-:".contains(*c)).collect();
    let subject: String = subject
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let name = format!("{when}-{verb}-{}", subject.trim_matches('-'));
    let mut path = Path::new("results").join(&name);
    // Two calls within a second get separate folders.
    for number in 2.. {
        if !path.exists() {
            break;
        }
        path = Path::new("results").join(format!("{name}-{number}"));
    }
    path
}

/// Makes all renderings of a result folder, and shows the result on the page of the workflow run if there is one.
/// Returns the files that were written.
pub(crate) fn render(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    render_to(folder, folder)
}

/// The same, into a folder other than that of the records.
pub(crate) fn render_to(records: &Path, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let written = plimsoll_report::render_to(records, folder, tellers())?;
    let page = std::env::var_os(STEP_SUMMARY_VARIABLE).filter(|path| !path.is_empty());
    if let Some(page) = page.map(PathBuf::from)
        && let Err(error) = append_step_summary(folder, &page)
    {
        // The result itself is complete: a page that cannot be written must not make a passing run fail.
        note!(
            "plimsoll: cannot append to {}, named by {STEP_SUMMARY_VARIABLE}: {error}; the same text is in {}",
            page.display(),
            folder.join(STEP_SUMMARY).display()
        );
    }
    Ok(written)
}

/// Names the file that GitHub shows on the page of a workflow run. Every step of a job appends to its own.
const STEP_SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

fn append_step_summary(folder: &Path, page: &Path) -> std::io::Result<()> {
    let text = std::fs::read_to_string(folder.join(STEP_SUMMARY))?;
    let mut file = OpenOptions::new().append(true).create(true).open(page)?;
    // One write, so that two commands at once do not mix their lines. An empty line first, because the existing text
    // may not end with one.
    file.write_all(format!("\n{text}").as_bytes())
}

/// Prints a value as JSON on stdout.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        Failure::Usage(format!("the result cannot be written as JSON: {error}"))
    })?;
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    written.or_else(|error| match error.kind() {
        // The reader has seen enough (`plimsoll … --json | head`).
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::Usage(format!("cannot write to stdout: {error}"))),
    })
}

/// Writes text for people to stdout. A reader who has seen enough (`plimsoll list | head -1`) is no reason to stop, and
/// what is printed here is in the result folder as well.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        note!("plimsoll: cannot write to stdout: {error}");
    }
}

/// `eprintln!` that does not panic if stderr is gone. After a SIGHUP the terminal is gone, and what was measured must
/// still be kept.
macro_rules! note {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // If this fails, there is nobody left to tell.
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}
pub(crate) use note;

/// `println!` that does not panic when nobody reads any more: see [`print`].
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::print(&format!("{}\n", format_args!($($text)*)))
    };
}
pub(crate) use say;

/// The exit code of a trial.
pub(crate) fn code_of(verdict: Verdict, interrupted: bool) -> ExitCode {
    ExitCode::from(match verdict {
        _ if interrupted => 130,
        Verdict::Pass => 0,
        Verdict::Fail => 1,
        Verdict::Invalid => 3,
    })
}

/// Whether to write colours to stdout.
pub(crate) fn color() -> bool {
    std::io::stdout().is_terminal() && no_color_unset()
}

/// See <https://no-color.org>.
pub(crate) fn no_color_unset() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_workflow_run_keeps_what_is_on_it() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(STEP_SUMMARY), "### pass\n").unwrap();
        let page = place.path().join("page.md");
        append_step_summary(place.path(), &page).unwrap();
        append_step_summary(place.path(), &page).unwrap();
        let shown = std::fs::read_to_string(&page).unwrap();
        assert_eq!(shown, "\n### pass\n\n### pass\n");
        assert!(append_step_summary(place.path(), place.path()).is_err());
    }
}
