//! Whether this machine can build and run a target, and with which versions.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::Read;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use plimsoll_host::process::program_path;
use plimsoll_host::secret_variables;

use super::{Manifest, Need};

/// If a version command takes longer than this, its tool counts as missing. The limit is generous because some
/// toolchains set themselves up on their first call.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether this machine can run a target, and what is missing if not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The target is built: the program to run is here, and so is everything that the manifest says a build makes. (If
    /// a source file has changed since, the next run builds again.)
    Ready,
    /// Every tool is here, but the target is not built, or only the build command can tell.
    NeedsBuild {
        /// The build command, as one line.
        command: String,
    },
    /// A tool is missing, or there is no program to run.
    Missing {
        /// The tool.
        tool: String,
        /// One line that says how to install it.
        install: String,
    },
}

impl Readiness {
    /// What is missing and the remedy, in one line; `None` if nothing is missing.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        match self {
            Self::Ready | Self::NeedsBuild { .. } => None,
            Self::Missing { tool, install } => Some(format!("needs {tool}: {install}")),
        }
    }

    /// A short name for scripts: `ready`, `not built` or `missing tool`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NeedsBuild { .. } => "not built",
            Self::Missing { .. } => "missing tool",
        }
    }
}

/// For people: the short name, and what follows from it.
impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Ready => Ok(()),
            Self::NeedsBuild { command } => write!(f, "; the next run builds it: {command}"),
            Self::Missing { tool, install } => write!(f, " {tool}: {install}"),
        }
    }
}

/// A target's [`Readiness`] with the versions of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// See [`Readiness`].
    pub readiness: Readiness,
    /// The first line that each tool's version command printed, by tool name. Only tools that are here.
    pub versions: BTreeMap<String, String>,
}

/// Whether this machine can build and run each of these targets, in their order. As [`Manifest::availability`], but
/// several targets are asked at once, and a tool that many targets need is asked for its version once.
#[must_use]
pub fn availability_of_each<'a>(
    manifests: impl IntoIterator<Item = &'a Manifest>,
) -> Vec<Availability> {
    let manifests: Vec<_> = manifests.into_iter().collect();
    let (versions, next) = (SharedVersions::default(), AtomicUsize::new(0));
    let answer_some = || {
        let mut answers = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(manifest) = manifests.get(index) else {
                return answers;
            };
            let version = |need: &Need, folder: &Path| versions.of(need, folder, version_of);
            answers.push((index, of_with(manifest, version)));
        }
    };
    let mut answers: Vec<_> = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(answer_some)).collect();
        let joined = started.into_iter().map(ScopedJoinHandle::join);
        joined
            .flat_map(|answers| answers.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    answers.sort_unstable_by_key(|&(index, _)| index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// What tools said, by version command. Only a command that names no file: `sh install.sh version` is another one in each
/// folder. (A version manager may give a folder another version of a tool. The build asks there, and records what it hears.)
#[derive(Default)]
struct SharedVersions(Mutex<HashMap<Vec<String>, SharedVersion>>);

/// Empty until one thread has asked.
type SharedVersion = Arc<OnceLock<Option<String>>>;

impl SharedVersions {
    fn of(
        &self,
        need: &Need,
        folder: &Path,
        ask: impl FnOnce(&Need, &Path) -> Option<String>,
    ) -> Option<String> {
        let (program, arguments) = need.version_command.split_first()?;
        let shared = !program.contains('/')
            && arguments
                .iter()
                .all(|argument| argument == "version" || argument.starts_with("--"));
        if !shared {
            return ask(need, folder);
        }
        let answer = Arc::clone(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(need.version_command.clone())
                .or_default(),
        );
        answer.get_or_init(|| ask(need, folder)).clone()
    }
}

pub(super) fn of(manifest: &Manifest) -> Availability {
    of_with(manifest, version_of)
}

/// The same, with a function that gives the version of a tool in a folder.
fn of_with(
    manifest: &Manifest,
    version_of: impl Fn(&Need, &Path) -> Option<String>,
) -> Availability {
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

fn readiness_of_program(manifest: &Manifest) -> Readiness {
    let program = &manifest.run.command[0];
    let Some(build) = &manifest.build else {
        return unbuilt_program(manifest.folder(), program);
    };
    let in_folder = program.contains('/');
    if !in_folder && !in_path(program) {
        return not_in_path(program);
    }
    // An interpreter is here before any build, so only what the build makes shows whether it ran.
    let told = in_folder || !build.makes.is_empty();
    if told && missing_product(manifest).is_none() {
        return Readiness::Ready;
    }
    Readiness::NeedsBuild {
        command: build.command.join(" "),
    }
}

/// The first file that a finished build leaves and that is missing. Paths are relative to the target's folder.
pub(super) fn missing_product(manifest: &Manifest) -> Option<&str> {
    let program = &manifest.run.command[0];
    let makes = manifest.build.iter().flat_map(|build| &build.makes);
    std::iter::once(program)
        .filter(|program| program.contains('/'))
        .chain(makes)
        .find(|path| !manifest.folder().join(path).is_file())
        .map(String::as_str)
}

fn unbuilt_program(folder: &Path, program: &str) -> Readiness {
    if !program.contains('/') {
        return if in_path(program) {
            Readiness::Ready
        } else {
            not_in_path(program)
        };
    }
    let path = program_path(folder, program);
    if path.is_file() {
        return Readiness::Ready;
    }
    Readiness::Missing {
        tool: program.to_owned(),
        install: format!(
            "{} does not exist, and the manifest has no [build]",
            path.display()
        ),
    }
}

fn not_in_path(program: &str) -> Readiness {
    Readiness::Missing {
        tool: program.to_owned(),
        install: format!("install {program} so that it is found in PATH"),
    }
}

fn in_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

/// The first line that the version command prints on stdout, or else on stderr (as `java -version` does). `None` if the
/// command was not found, failed, or took too long. A shim with no tool behind it fails, so that tool counts as
/// missing.
fn version_of(need: &Need, folder: &Path) -> Option<String> {
    let (program, arguments) = need.version_command.split_first()?;
    let mut command = Command::new(program_path(folder, program));
    for name in secret_variables::set_now() {
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
                // Both calls fail only if the child is already gone.
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
            // If the version text cannot be read in full, its beginning is still useful.
            let _ = source.take(64 * 1024).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::RUST_AXUM;
    use crate::manifest::tests::keys;

    fn manifest_in(folder: &Path, from: &str, to: &str) -> Manifest {
        assert!(RUST_AXUM.contains(from), "{from}");
        let file = folder.join("target.toml");
        std::fs::write(&file, RUST_AXUM.replace(from, to)).expect("write");
        Manifest::read(&file, keys).expect("valid")
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
        let not_built = "not built; the next run builds it: cargo build --release --locked";
        assert_eq!(before.readiness.to_string(), not_built);
        assert_eq!(before.versions["cargo"], "tool 1.2");
        std::fs::create_dir_all(folder.path().join("target/release")).expect("mkdir");
        std::fs::write(folder.path().join("target/release/rust-axum"), "").expect("write");
        assert_eq!(manifest.availability().readiness, Readiness::Ready);
    }

    /// An interpreter or a script exists before any build, so neither makes a target ready.
    #[test]
    fn what_a_build_makes_tells_whether_there_was_one() {
        let folder = tempfile::tempdir().expect("temp");
        std::fs::write(folder.path().join("run.sh"), "").expect("write");
        let version = "[\"sh\", \"-c\", \"echo 1\"]";
        for run in ["[\"sh\", \"run.sh\"]", "[\"./run.sh\"]"] {
            let build = "command = [\"cargo\", \"build\", \"--release\", \"--locked\"]";
            let with_makes = |makes: &str| {
                let text = RUST_AXUM
                    .replace("[\"cargo\", \"--version\"]", version)
                    .replace("[\"target/release/rust-axum\"]", run)
                    .replace(build, &format!("{build}\n{makes}"));
                let file = folder.path().join("target.toml");
                std::fs::write(&file, text).expect("write");
                Manifest::read(&file, keys)
                    .expect("valid")
                    .availability()
                    .readiness
            };
            if run.contains("\"sh\"") {
                assert_eq!(with_makes("").word(), "not built", "nobody can tell");
            }
            let makes = "makes = [\"out/.built\"]";
            assert_eq!(with_makes(makes).word(), "not built");
            std::fs::create_dir_all(folder.path().join("out")).expect("mkdir");
            std::fs::write(folder.path().join("out/.built"), "").expect("write");
            assert_eq!(with_makes(makes), Readiness::Ready);
            std::fs::remove_file(folder.path().join("out/.built")).expect("rm");
        }
    }

    /// Every target in this repository that runs an interpreter or a script says how to tell that it is built.
    #[test]
    fn every_target_here_tells_when_it_is_built() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let found = crate::manifest::discover(&root, keys).expect("targets");
        assert!(found.targets.len() > 10 && found.broken.is_empty());
        for manifest in found.targets {
            let Some(build) = &manifest.build else {
                continue;
            };
            let program = &manifest.run.command[0];
            let tracked = !program.contains('/')
                || [".sh", "bin/python", ".bin/bun"]
                    .iter()
                    .any(|end| program.ends_with(end));
            assert!(!tracked || !build.makes.is_empty(), "{}", manifest.name);
        }
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
    fn each_of_many_targets_gets_the_answer_that_it_gets_alone() {
        let folders: Vec<_> = (0..5).map(|_| tempfile::tempdir().expect("temp")).collect();
        let of_index = |(index, folder): (usize, &tempfile::TempDir)| {
            let said = format!("echo from {index}; exit {}", index % 2);
            std::fs::write(folder.path().join("ask.sh"), said).expect("write");
            let script = "[\"cargo\", \"--version\"]\ninstall = \"none\"\n[[build.needs]]\ntool = \"script\"\nversion_command = [\"sh\", \"ask.sh\"]";
            manifest_in(folder.path(), "[\"cargo\", \"--version\"]", script)
        };
        let manifests: Vec<_> = folders.iter().enumerate().map(of_index).collect();
        let alone: Vec<_> = manifests.iter().map(Manifest::availability).collect();
        assert_eq!(alone[2].versions["script"], "from 2");
        assert_eq!(availability_of_each(&manifests), alone);
    }

    #[test]
    fn a_tool_is_asked_once_and_a_script_in_each_folder() {
        let asked = Mutex::new(Vec::new());
        let ask = |need: &Need, folder: &Path| {
            let line = format!("{} in {}", need.version_command.join(" "), folder.display());
            asked.lock().expect("lock").push(line);
            Some(need.version_command[0].clone())
        };
        let versions = SharedVersions::default();
        for folder in ["a", "b"] {
            for command in [
                "mvn --version",
                "go version",
                "sh x.sh version",
                "./mvnw --version",
            ] {
                let need = Need {
                    tool: "tool".into(),
                    version_command: command.split(' ').map(str::to_owned).collect(),
                    install: "none".into(),
                    optional: false,
                };
                let answer = versions.of(&need, Path::new(folder), ask);
                assert_eq!(answer.as_ref(), Some(&need.version_command[0]));
            }
        }
        let expected = [
            "mvn --version in a",
            "go version in a",
            "sh x.sh version in a",
            "./mvnw --version in a",
            "sh x.sh version in b",
            "./mvnw --version in b",
        ];
        assert_eq!(asked.into_inner().expect("lock"), expected);
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
        assert_eq!(availability.readiness.word(), "not built");
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
            let readiness = Manifest::read(&file, keys)
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
