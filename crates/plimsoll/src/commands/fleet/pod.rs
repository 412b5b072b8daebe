//! `plimsoll fleet pod`: a measurement in a pod. Its exit code is the pod's, so it ends with the verdict, but not before
//! the result was copied or the time for that is over.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use plimsoll_host::signals::Stop;
use plimsoll_report::render::{JUNIT, STEP_SUMMARY};

use super::copy::COPIED;
use super::{Obey, mistake};
use crate::args::{Args, Command, OutArgs, PodArgs};
use crate::failure::Failure;
use crate::output::{note, say};

/// How long a target may take until it accepts connections: its image may have to be fetched first.
const TARGET_WAIT: Duration = Duration::from_secs(1200);

const STEP: Duration = Duration::from_millis(200);

/// Kubernetes shows no more of a termination message.
const MESSAGE_MAX_BYTES: usize = 4096;

pub(super) fn run(args: &PodArgs, stop: &Stop, obey: Obey) -> Result<ExitCode, Failure> {
    let words = std::iter::once("plimsoll").chain(args.arguments.iter().map(String::as_str));
    let measurement = Args::of(words)
        .map_err(|error| Failure::Usage(format!("after --: {}", mistake(&error))))?;
    let out = out_of(&measurement.command).ok_or_else(|| {
        Failure::Usage("after --: give run, find or compare with --out".to_owned())
    })?;
    let copied = out.parent().unwrap_or(Path::new(".")).join(COPIED);
    // It may be there from an earlier run on the same volume.
    let _ = std::fs::remove_file(&copied);
    if let Some(missing) = args.awaited.iter().find(|awaited| !accepts(awaited, stop)) {
        note!("plimsoll: nothing accepts connections at {missing}");
        return Ok(ExitCode::from(3));
    }
    let code = match obey(&measurement, stop) {
        Ok(code) => code,
        Err(failure) => {
            note!("plimsoll: {failure}");
            ExitCode::from(failure.exit_code())
        }
    };
    tell(&out, &args.message);
    if out.is_dir() && args.keep > 0 {
        say!(
            "the result waits {} s in {} to be copied",
            args.keep,
            out.display()
        );
        keep(&copied, Duration::from_secs(args.keep), stop);
    }
    Ok(code)
}

fn out_of(command: &Command) -> Option<PathBuf> {
    let out: &OutArgs = match command {
        Command::Run(run) => &run.out,
        Command::Find(find) => &find.out,
        Command::Compare(compare) => &compare.out,
        _ => return None,
    };
    out.out.clone()
}

/// Waits until something accepts connections there. The name resolves only once the target is ready.
fn accepts(awaited: &str, stop: &Stop) -> bool {
    let until = Instant::now() + TARGET_WAIT;
    while Instant::now() < until && !stop.requested() {
        let addresses = awaited.to_socket_addrs().into_iter().flatten();
        if addresses
            .into_iter()
            .any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok())
        {
            return true;
        }
        std::thread::sleep(STEP);
    }
    false
}

/// The summary of the result as the reason of the pod's end, and its JUnit file where there is room for both.
fn tell(out: &Path, message: &Path) {
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_default();
    let text = message_of(&read(STEP_SUMMARY), &read(JUNIT));
    if text.is_empty() || !message.exists() {
        return;
    }
    if let Err(error) = std::fs::write(message, text) {
        note!("plimsoll: cannot write {}: {error}", message.display());
    }
}

fn message_of(summary: &str, junit: &str) -> String {
    let both = format!("{summary}\n{junit}");
    let text = if both.len() <= MESSAGE_MAX_BYTES {
        both.trim()
    } else {
        summary
    };
    text[..text.floor_char_boundary(MESSAGE_MAX_BYTES)].to_owned()
}

fn keep(copied: &Path, time: Duration, stop: &Stop) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.requested() && !copied.exists() {
        std::thread::sleep(STEP);
    }
    if copied.exists() {
        // The archive is written; its last bytes may still be on their way through the API server.
        std::thread::sleep(Duration::from_secs(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_both_texts_if_they_fit() {
        assert_eq!(message_of("found", "<testsuites/>"), "found\n<testsuites/>");
        let long = "ü".repeat(4000);
        assert_eq!(message_of("found", &long), "found");
        assert_eq!(message_of(&long, "").len(), MESSAGE_MAX_BYTES);
        assert_eq!(
            message_of(&format!("x{long}"), "").len(),
            MESSAGE_MAX_BYTES - 1
        );
        assert_eq!(message_of("", ""), "");
    }

    #[test]
    fn it_is_kept_until_it_is_copied_and_no_longer_than_asked() {
        let place = tempfile::tempdir().expect("a folder");
        let copied = place.path().join(COPIED);
        let began = Instant::now();
        keep(&copied, Duration::from_millis(300), &Stop::new());
        assert!(began.elapsed() >= Duration::from_millis(300));
        std::fs::write(&copied, "").expect("write");
        let began = Instant::now();
        keep(&copied, Duration::from_secs(600), &Stop::new());
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn what_measures_nothing_is_refused() {
        let parsed = Args::of(["plimsoll", "list"]).expect("a command");
        assert_eq!(out_of(&parsed.command), None);
        let parsed = Args::of([
            "plimsoll",
            "run",
            "--url",
            "http://h:1",
            "--sessions",
            "5",
            "--out",
            "/r/run",
        ]);
        assert_eq!(
            out_of(&parsed.expect("a command").command),
            Some(PathBuf::from("/r/run"))
        );
    }
}
