//! Whether this machine can build and run a target, and with which versions.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Manifest, Need, program_path};
use crate::contract::SECRET_VARIABLES;

/// A version command that takes longer than this counts as absent. Generous: some toolchains set themselves up at their first call.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// What stands between this machine and a running target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The program to run is here. (A build may still find something to do.)
    Ready,
    /// Every tool is here, the program is not built yet, or nobody can tell but the build command.
    NeedsBuild,
    /// A tool is absent, or there is nothing to run.
    Missing {
        /// The tool.
        tool: String,
        /// The line that tells how to install it.
        install: String,
    },
}

impl Readiness {
    /// What is missing and the remedy, in a line; `None` where nothing is.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        match self {
            Self::Ready | Self::NeedsBuild => None,
            Self::Missing { tool, install } => Some(format!("needs {tool}: {install}")),
        }
    }
}

/// A target's [`Readiness`] with the versions of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// See [`Readiness`].
    pub readiness: Readiness,
    /// Tool → the first line that its version command printed; only tools that are here.
    pub versions: BTreeMap<String, String>,
}

pub(super) fn of(manifest: &Manifest) -> Availability {
    let mut versions = BTreeMap::new();
    let mut missing = None;
    for need in manifest.build.iter().flat_map(|build| &build.needs) {
        match version_of(need, manifest.folder()) {
            Some(version) => {
                versions.insert(need.tool.clone(), version);
            }
            None if need.optional || missing.is_some() => {}
            None => {
                missing = Some(Readiness::Missing {
                    tool: need.tool.clone(),
                    install: need.install.clone(),
                });
            }
        }
    }
    Availability {
        readiness: missing.unwrap_or_else(|| readiness_of_program(manifest)),
        versions,
    }
}

pub(super) fn readiness_of_program(manifest: &Manifest) -> Readiness {
    let program = &manifest.run.command[0];
    let has_build = manifest.build.is_some();
    if program.contains('/') {
        let path = program_path(manifest.folder(), program);
        return match (path.is_file(), has_build) {
            (true, _) => Readiness::Ready,
            (false, true) => Readiness::NeedsBuild,
            (false, false) => Readiness::Missing {
                tool: program.clone(),
                install: format!(
                    "{} is not there and the manifest has no [build]",
                    path.display()
                ),
            },
        };
    }
    match (in_path(program), has_build) {
        (false, _) => Readiness::Missing {
            tool: program.clone(),
            install: format!("install {program} so that it is found in PATH"),
        },
        // An interpreter is here, but only the build command knows whether its packages are.
        (true, true) => Readiness::NeedsBuild,
        (true, false) => Readiness::Ready,
    }
}

fn in_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

/// The first line that the need's version command prints on stdout, else on stderr (as `java -version` does).
/// `None`: not found, failed, or took too long. A shim that exists but has nothing behind it fails, so it counts as absent.
fn version_of(need: &Need, folder: &Path) -> Option<String> {
    let (program, arguments) = need.version_command.split_first()?;
    let mut command = Command::new(program_path(folder, program));
    for name in SECRET_VARIABLES {
        command.env_remove(name);
    }
    let mut child = command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let stdout = read_in_background(child.stdout.take());
    let stderr = read_in_background(child.stderr.take());
    let deadline = Instant::now() + VERSION_TIMEOUT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            _ => {
                // Both calls fail only when the child is already gone.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    if !status.success() {
        return None;
    }
    let texts = [stdout.join().ok()?, stderr.join().ok()?];
    let first_line = |text: &String| {
        text.lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .map(str::to_owned)
    };
    texts
        .iter()
        .find_map(first_line)
        .or_else(|| Some("unknown".into()))
}

fn read_in_background<R: Read + Send + 'static>(
    source: Option<R>,
) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(source) = source {
            // A version text that cannot be read whole is still worth its beginning.
            let _ = source.take(64 * 1024).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::RUST_AXUM;

    fn manifest_in(folder: &Path, from: &str, to: &str) -> Manifest {
        assert!(RUST_AXUM.contains(from), "{from}");
        let file = folder.join("target.toml");
        std::fs::write(&file, RUST_AXUM.replace(from, to)).expect("write");
        Manifest::read(&file).expect("valid")
    }

    #[test]
    fn a_target_becomes_ready_when_its_program_exists() {
        let folder = tempfile::tempdir().expect("temp");
        let manifest = manifest_in(
            folder.path(),
            "[\"cargo\", \"--version\"]",
            "[\"sh\", \"-c\", \"echo; echo tool 1.2; echo more\"]",
        );
        let before = manifest.availability();
        assert_eq!(before.readiness, Readiness::NeedsBuild);
        assert_eq!(before.versions["cargo"], "tool 1.2");
        std::fs::create_dir_all(folder.path().join("target/release")).expect("mkdir");
        std::fs::write(folder.path().join("target/release/rust-axum"), "").expect("write");
        assert_eq!(manifest.availability().readiness, Readiness::Ready);
    }

    #[test]
    fn a_version_on_stderr_counts() {
        let folder = tempfile::tempdir().expect("temp");
        let manifest = manifest_in(
            folder.path(),
            "[\"cargo\", \"--version\"]",
            "[\"sh\", \"-c\", \"echo on the side >&2\"]",
        );
        assert_eq!(manifest.availability().versions["cargo"], "on the side");
    }

    #[test]
    fn an_absent_or_failing_tool_is_missing_with_its_install_line() {
        for command in [
            "[\"no-such-tool-anywhere\"]",
            "[\"sh\", \"-c\", \"exit 127\"]",
        ] {
            let folder = tempfile::tempdir().expect("temp");
            let manifest = manifest_in(folder.path(), "[\"cargo\", \"--version\"]", command);
            let Readiness::Missing { tool, install } = manifest.availability().readiness else {
                panic!("{command} should be missing");
            };
            assert_eq!(tool, "cargo");
            assert!(install.starts_with("install Rust"));
        }
    }

    #[test]
    fn an_optional_need_does_not_stand_in_the_way() {
        let folder = tempfile::tempdir().expect("temp");
        let manifest = manifest_in(
            folder.path(),
            "version_command = [\"cargo\", \"--version\"]",
            "optional = true\nversion_command = [\"no-such-tool-anywhere\"]",
        );
        let availability = manifest.availability();
        assert_eq!(availability.readiness, Readiness::NeedsBuild);
        assert!(availability.versions.is_empty());
    }

    #[test]
    fn without_a_build_the_program_must_be_there() {
        let folder = tempfile::tempdir().expect("temp");
        let file = folder.path().join("target.toml");
        for (command, ready) in [
            ("sh", true),
            ("no-such-program-anywhere", false),
            ("bin/none", false),
        ] {
            let text = format!(
                "name=\"a\"\nworkload=\"ws\"\ntier=\"test\"\nlanguage=\"x\"\ndescription=\"x\"\n[run]\ncommand=[\"{command}\"]\n"
            );
            std::fs::write(&file, text).expect("write");
            let readiness = Manifest::read(&file)
                .expect("valid")
                .availability()
                .readiness;
            assert_eq!(
                readiness == Readiness::Ready,
                ready,
                "{command}: {readiness:?}"
            );
        }
    }
}
