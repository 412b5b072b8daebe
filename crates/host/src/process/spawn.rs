//! Starts a child where it belongs before its first instruction runs.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, OnceLock};

use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use plimsoll_core::secret::Secrets;

use super::cap::Watched;
use super::child::Child;
use super::stop_signal::StopSignal;
use crate::error::{Error, Result};
use crate::isolation::{Cgroup, CpuList};
use crate::secret_variables;

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The child's name in messages.
    pub name: String,
    /// The program and its arguments. A program with a slash is relative to `folder`.
    pub command: Vec<String>,
    /// The child's working folder.
    pub folder: PathBuf,
    /// Variables to set in its environment, which is otherwise ours.
    pub env: Vec<(String, String)>,
    /// Variables to remove from its environment, so that the user's shell does not change what is measured.
    pub env_remove: Vec<String>,
    /// The log file for its stdout and stderr. It is created anew, and cut back if it grows beyond
    /// [`super::LOG_MAX_BYTES`].
    pub log: PathBuf,
    /// The CPUs it may run on; `None`: the same as ours.
    pub cpus: Option<CpuList>,
    /// Removed from its log once it has ended.
    pub secrets: Secrets,
    /// The network namespace that it runs in; `None`: ours.
    pub network: Option<Arc<File>>,
    /// The signal that asks it to stop.
    pub stop_signal: StopSignal,
}

/// A child that we talk to.
#[derive(Debug)]
pub struct Piped {
    /// The child.
    pub child: Child,
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
}

impl Launch {
    /// A launch with our environment and our CPUs.
    #[must_use]
    pub fn new(name: &str, command: &[String], folder: &Path, log: &Path) -> Self {
        Self {
            name: name.into(),
            command: command.to_vec(),
            folder: folder.into(),
            env: Vec::new(),
            env_remove: Vec::new(),
            log: log.into(),
            cpus: None,
            secrets: Secrets::default(),
            network: None,
            stop_signal: StopSignal::default(),
        }
    }

    /// Starts the child in `group` (if given), on its CPUs, as the leader of its own process group. The kernel kills it
    /// when we die.
    ///
    /// # Errors
    /// The log cannot be created, or the program cannot be started.
    pub fn start(&self, group: Option<&Cgroup>) -> Result<Child> {
        let log = self.make_log()?;
        let mut command = self.prepare(group)?;
        command
            .stdin(Stdio::null())
            .stdout(self.writer(&log)?)
            .stderr(self.writer(&log)?);
        let child = self.spawn(command)?;
        Ok(self.watched(log, child))
    }

    /// Like [`Launch::start`], for a child that we talk to: only its stderr goes to the log. Its stdin also ends when
    /// we die.
    ///
    /// # Errors
    /// As [`Launch::start`].
    pub fn start_piped(&self) -> Result<Piped> {
        let log = self.make_log()?;
        let mut command = self.prepare(None)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(self.writer(&log)?);
        let mut child = self.spawn(command)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let child = self.watched(log, child);
        let (stdin, stdout) = pipes.ok_or_else(|| self.failed("has no pipes"))?;
        Ok(Piped {
            child,
            stdin,
            stdout,
        })
    }

    fn watched(&self, log: Watched, child: std::process::Child) -> Child {
        Child::new(self.name.clone(), self.log.clone(), log, child)
            .without(&self.secrets)
            .stopped_by(self.stop_signal)
    }

    fn make_log(&self) -> Result<Watched> {
        if let Some(folder) = self.log.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| Error::io("making the folder", folder, error))?;
        }
        Watched::make(&self.log)
    }

    fn writer(&self, log: &Watched) -> Result<File> {
        log.file()
            .map_err(|error| Error::io("opening the log", &self.log, error))
    }

    fn spawn(&self, command: Command) -> Result<std::process::Child> {
        on_spawn_thread(command).map_err(|error| {
            self.failed(&format!(
                "cannot start {:?}: {error}",
                self.command.join(" ")
            ))
        })
    }

    fn prepare(&self, group: Option<&Cgroup>) -> Result<Command> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(self.failed("has no command to start"));
        };
        let affinity = self.cpus.as_ref().map(CpuList::to_kernel).transpose();
        let affinity =
            affinity.map_err(|error| self.failed(&format!("its CPU list is invalid: {error}")))?;
        let join = group
            .map(Cgroup::open_for_joining)
            .transpose()?
            .unwrap_or_default();
        // It depends on the platform whether a relative program is looked up before or after the change of folder.
        let folder = std::path::absolute(&self.folder)
            .map_err(|error| Error::io("resolving", &self.folder, error))?;
        let mut command = Command::new(program_path(&folder, program));
        command
            .args(arguments)
            .current_dir(&folder)
            .process_group(0);
        // Secrets that the command received are for itself alone.
        let ours = secret_variables::set_now();
        for name in self.env_remove.iter().map(OsString::from).chain(ours) {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        take_place_before_exec(&mut command, join, affinity, self.network.clone());
        Ok(command)
    }

    fn failed(&self, text: &str) -> Error {
        Error::Child {
            name: self.name.clone(),
            text: text.into(),
            log: self.log.clone(),
            tail: Vec::new(),
        }
    }
}

/// Asks the kernel, in a forked child, to kill it when the parent's thread that forked it ends. It is safe in a signal
/// handler.
fn die_with(parent: Pid) -> nix::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before that call. Then nobody would ever send the signal.
    match getppid() == parent {
        true => Ok(()),
        false => Err(nix::Error::ESRCH),
    }
}

/// Makes the child, between fork and exec, join its control group, bind itself to its CPUs, enter its network, and ask
/// to be killed when we die.
#[allow(unsafe_code)]
fn take_place_before_exec(
    command: &mut Command,
    join: Vec<File>,
    affinity: Option<CpuSet>,
    network: Option<Arc<File>>,
) {
    let parent = Pid::this();
    let take_place = move || -> std::io::Result<()> {
        die_with(parent)?;
        for list in &join {
            let mut list: &File = list;
            // "0" means the writing process, in both versions.
            list.write_all(b"0")?;
        }
        // This comes after joining the cpuset, because joining resets the affinity to the whole set.
        if let Some(affinity) = &affinity {
            sched_setaffinity(Pid::from_raw(0), affinity)?;
        }
        if let Some(network) = &network {
            setns(network, CloneFlags::CLONE_NEWNET)?;
        }
        Ok(())
    };
    // SAFETY: the closure runs in the forked child of a process with several threads, so it may do only what is safe in
    // a signal handler. It calls prctl, getppid, write, sched_setaffinity and setns, which are plain system calls. The
    // files were opened and the CPU set was built before the fork. Errors are carried as numbers. It neither allocates
    // nor frees, and takes no lock.
    unsafe {
        command.pre_exec(take_place);
    }
}

type Started = std::io::Result<std::process::Child>;
type Request = (Command, std::sync::mpsc::SyncSender<Started>);

/// Forks on a thread that lives as long as the process. The kernel sends a child its "parent died" signal when the
/// *thread* that forked it ends. If a thread of one trial forked a target, the target would be killed when that thread
/// ends.
fn on_spawn_thread(command: Command) -> Started {
    static THREAD: OnceLock<std::result::Result<Sender<Request>, String>> = OnceLock::new();
    let start_thread = || {
        let (sender, requests) = channel::<Request>();
        let run = move || {
            for (mut command, answer) in requests {
                // The caller waits, so the answer is always received.
                let _ = answer.send(command.spawn());
            }
        };
        let thread = std::thread::Builder::new()
            .name("plimsoll-spawn".into())
            .spawn(run);
        thread.map(|_| sender).map_err(|error| error.to_string())
    };
    let gone = || std::io::Error::other("the thread that starts children is gone");
    let thread = THREAD
        .get_or_init(start_thread)
        .as_ref()
        .map_err(|error| std::io::Error::other(error.clone()))?;
    let (answer, answered) = sync_channel(1);
    thread.send((command, answer)).map_err(|_| gone())?;
    answered.recv().map_err(|_| gone())?
}

/// Resolves the program of a command. With a slash it is relative to `folder`; without one it comes from
/// `PATH`.
#[must_use]
pub fn program_path(folder: &Path, program: &str) -> PathBuf {
    if program.contains('/') {
        folder.join(program)
    } else {
        PathBuf::from(program)
    }
}

/// How a process ended: "exit code 1", or "killed by SIGKILL".
pub(super) fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(number) => match Signal::try_from(number) {
            Ok(signal) => format!("killed by {signal}"),
            Err(_) => format!("killed by signal {number}"),
        },
        None => format!("exit code {}", status.code().unwrap_or(-1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_a_slash_are_relative_to_the_folder() {
        let folder = Path::new("/t/x");
        assert_eq!(
            program_path(folder, "target/release/a"),
            Path::new("/t/x/target/release/a")
        );
        assert_eq!(program_path(folder, "/usr/bin/a"), Path::new("/usr/bin/a"));
        assert_eq!(program_path(folder, "node"), Path::new("node"));
    }
}
