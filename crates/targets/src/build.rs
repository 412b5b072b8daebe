//! Brings a target up to date before it is measured.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_host::process::{Launch, last_lines};
use plimsoll_host::signals::Stop;

use crate::error::{Error, Result};
use crate::manifest::{Manifest, Readiness};

/// How many lines of the build's output an error shows.
const TAIL_LINES: usize = 20;

/// Variables of the caller's environment that would make a build write its output to a place where `run.command` does
/// not look.
const REMOVED_VARIABLES: [&str; 2] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"];

/// A finished build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The log file with its whole output; `None` if the target has nothing to build.
    pub log: Option<PathBuf>,
    /// How long it took.
    pub took: Duration,
    /// Versions of the tools that the manifest needs, by tool name.
    pub versions: std::collections::BTreeMap<String, String>,
}

/// Runs the target's build command in the target's folder, with the output in `<log_folder>/build-<name>.log`. Call it
/// before every measurement, so that the measured program matches its source. If nothing changed, this costs little.
///
/// # Errors
/// A needed tool is missing (the error says how to install it), the command fails (the error shows the end of its
/// output), or we were asked to stop.
pub fn build(manifest: &Manifest, log_folder: &Path, stop: &Stop) -> Result<Built> {
    let started = Instant::now();
    let availability = manifest.availability();
    if let Readiness::Missing { tool, install } = availability.readiness {
        return Err(Error::MissingTool {
            target: manifest.name.clone(),
            tool,
            install,
        });
    }
    let built = |log| Built {
        log,
        took: started.elapsed(),
        versions: availability.versions.clone(),
    };
    let Some(build) = &manifest.build else {
        return Ok(built(None));
    };
    let log = log_folder.join(format!("build-{}.log", manifest.name));
    let name = format!("the build of {}", manifest.name);
    let mut launch = Launch::new(&name, &build.command, manifest.folder(), &log);
    launch.env_remove = REMOVED_VARIABLES.map(str::to_owned).to_vec();
    let status = launch.start(None)?.wait_ended(stop)?;
    let failed = |status: String| Error::BuildFailed {
        target: manifest.name.clone(),
        status,
        log: log.clone(),
        tail: last_lines(&log, TAIL_LINES),
    };
    if !status.success() {
        return Err(failed(status.to_string()));
    }
    // Without this check, a build that succeeds but does not make the program to run would show only later, as a failed
    // start.
    if let Some(product) = manifest.missing_product() {
        return Err(failed(format!(
            "it succeeded, but did not create {product}"
        )));
    }
    Ok(built(Some(log)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::keys;

    fn manifest(folder: &Path, build: &str, tool: &str) -> Manifest {
        let text = format!(
            r#"
name = "t"
workload = "ws"
tier = "test"
language = "x"
description = "x"
[build]
command = ["sh", "-c", {build:?}]
[[build.needs]]
tool = "{tool}"
version_command = ["{tool}", "-c", "echo {tool} 7"]
install = "apt install {tool}"
[run]
command = ["out/program"]
"#
        );
        let file = folder.join("target.toml");
        std::fs::write(&file, text).expect("write");
        Manifest::read(&file, keys).expect("valid")
    }

    #[test]
    fn a_build_runs_in_the_targets_folder_and_tells_the_versions() {
        let folder = tempfile::tempdir().expect("temp");
        let target = manifest(
            folder.path(),
            "mkdir -p out && echo made && touch out/program",
            "sh",
        );
        let logs = folder.path().join("logs");
        let built = build(&target, &logs, &Stop::new()).expect("builds");
        assert_eq!(built.versions["sh"], "sh 7");
        assert!(folder.path().join("out/program").is_file());
        assert_eq!(
            std::fs::read_to_string(built.log.expect("log")).expect("read"),
            "made\n"
        );
    }

    #[test]
    fn a_failure_shows_the_end_of_the_output_and_the_log() {
        let folder = tempfile::tempdir().expect("temp");
        let target = manifest(
            folder.path(),
            "for i in $(seq 30); do echo line $i >&2; done; exit 3",
            "sh",
        );
        let error = build(&target, folder.path(), &Stop::new()).expect_err("fails");
        let Error::BuildFailed { tail, log, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(tail.len(), 20);
        assert_eq!(tail.last().map(String::as_str), Some("line 30"));
        assert!(log.ends_with("build-t.log"));
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }

    #[test]
    fn a_build_that_makes_nothing_is_a_failure() {
        let folder = tempfile::tempdir().expect("temp");
        let error = build(
            &manifest(folder.path(), "true", "sh"),
            folder.path(),
            &Stop::new(),
        )
        .expect_err("nothing made");
        assert!(
            error.to_string().contains("did not create out/program"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_tool_is_named_with_its_install_line() {
        let folder = tempfile::tempdir().expect("temp");
        let target = manifest(folder.path(), "true", "no-such-tool-anywhere");
        let error = build(&target, folder.path(), &Stop::new())
            .expect_err("missing")
            .to_string();
        assert_eq!(
            error,
            "t needs no-such-tool-anywhere, which is not installed: apt install no-such-tool-anywhere"
        );
    }

    #[test]
    fn a_stop_ends_the_build() {
        let folder = tempfile::tempdir().expect("temp");
        let target = manifest(folder.path(), "sleep 600", "sh");
        let stop = Stop::new();
        stop.request();
        let error = build(&target, folder.path(), &stop).expect_err("stopped");
        let interrupted = matches!(error, Error::Host(plimsoll_host::Error::Interrupted(_)));
        assert!(interrupted, "{error}");
    }
}
