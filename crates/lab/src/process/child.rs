//! A running child.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use plimsoll_core::secret::Secrets;

use super::cap::Watched;
use super::log::{first_json_line, last_lines, scrub};
use super::spawn::describe;
use super::tree::{descendants, start_time_ticks};
use crate::error::{Error, Result};
use crate::http;
use crate::signals::Stop;

/// Lines of the log that an error shows.
const TAIL_LINES: usize = 20;

/// How often a child that is getting ready, or is ending, is looked at.
const POLL: Duration = Duration::from_millis(10);

/// A single question for readiness may take this long.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// It did not end within the grace and was killed.
    pub killed: bool,
    /// From the request to its end.
    pub took: Duration,
}

/// A child that we started. Dropping it kills it and everything that it started.
#[derive(Debug)]
pub struct Child {
    name: String,
    log: PathBuf,
    /// Held while it may write.
    _watched: Watched,
    child: std::process::Child,
    ended: Option<ExitStatus>,
    /// Taken out of its log once it has ended.
    secrets: Secrets,
}

impl Child {
    pub(super) fn new(
        name: String,
        log: PathBuf,
        watched: Watched,
        child: std::process::Child,
    ) -> Self {
        Self {
            name,
            log,
            _watched: watched,
            child,
            ended: None,
            secrets: Secrets::default(),
        }
    }

    /// The same child, whose log is to be without these.
    pub(super) fn without(mut self, secrets: &Secrets) -> Self {
        self.secrets = secrets.clone();
        self
    }

    /// Its process id, also that of its process group.
    #[must_use]
    pub fn pid(&self) -> i32 {
        // Process ids are at most 2^22 on Linux.
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The first line of its log that is a JSON object (by contract: its versions), once it is written.
    #[must_use]
    pub fn first_json_line(&self) -> Option<serde_json::Value> {
        first_json_line(&self.log)
    }

    /// Its exit status when it has ended by now. What it left behind in its process group is killed then: a target without its
    /// leader is over, and must not disturb the next one.
    ///
    /// # Errors
    /// When the system will not tell.
    pub fn try_ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        // Looked at without reaping, so that its id, which names the group too, cannot be somebody else's when we signal it.
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(Pid::from_raw(self.pid())), look) {
            Ok(WaitStatus::StillAlive) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(self.failed(&format!("cannot be waited for: {error}"))),
        }
        self.kill_group();
        let status = self.child.wait();
        self.ended =
            Some(status.map_err(|error| self.failed(&format!("cannot be waited for: {error}")))?);
        scrub(&self.log, &self.secrets);
        Ok(self.ended)
    }

    /// An error that tells how it ended with the end of its log, if it has; for use during a trial.
    ///
    /// # Errors
    /// That error.
    pub fn must_run(&mut self) -> Result<()> {
        match self.try_ended()? {
            None => Ok(()),
            Some(status) => Err(self.failed(&format!("ended by itself ({})", describe(status)))),
        }
    }

    /// Waits until `GET url` is answered 200.
    ///
    /// # Errors
    /// It ended, or was not ready in time, or we were asked to stop; the end of its log is with it.
    pub fn wait_ready(&mut self, url: &str, timeout: Duration, stop: &Stop) -> Result<()> {
        self.wait_ready_unless(url, timeout, stop, &mut || None)
    }

    /// The same, but given up when `hopeless`, which is asked after each time that nothing answered, says why.
    ///
    /// # Errors
    /// As [`Child::wait_ready`], and what `hopeless` says.
    pub fn wait_ready_unless(
        &mut self,
        url: &str,
        timeout: Duration,
        stop: &Stop,
        hopeless: &mut dyn FnMut() -> Option<Error>,
    ) -> Result<()> {
        let mut last_answer = String::from("nothing answered");
        let ready = self.wait_until(timeout, stop, || match http::get(url, HEALTH_TIMEOUT) {
            Ok(response) if response.status == 200 => Some(Ok(())),
            Ok(response) => {
                last_answer = format!("the last answer was {}", response.status);
                None
            }
            Err(_) => hopeless().map(Err),
        })?;
        ready.unwrap_or_else(|| {
            Err(self.failed(&format!(
                "was not ready within {timeout:?}: GET {url}: {last_answer}"
            )))
        })
    }

    /// Waits until its first JSON line is written.
    ///
    /// # Errors
    /// As [`Child::wait_ready`].
    pub fn wait_json_line(&mut self, timeout: Duration, stop: &Stop) -> Result<serde_json::Value> {
        let log = self.log.clone();
        let line = self.wait_until(timeout, stop, || first_json_line(&log))?;
        line.ok_or_else(|| self.failed(&format!("wrote no JSON line within {timeout:?}")))
    }

    /// Asks until `answer` has something to say. `None`: the time is over. A child that ended is an error at once.
    fn wait_until<T>(
        &mut self,
        timeout: Duration,
        stop: &Stop,
        mut answer: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>> {
        let deadline = Instant::now() + timeout;
        loop {
            // Looked at first, so that what a dying child wrote or another server on its port answers does not count.
            if let Some(status) = self.try_ended()? {
                return Err(
                    self.failed(&format!("ended before it was ready ({})", describe(status)))
                );
            }
            if let Some(value) = answer() {
                return Ok(Some(value));
            }
            if stop.requested() {
                return Err(Error::Interrupted(format!("waiting for {}", self.name)));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits for it to end by itself.
    ///
    /// # Errors
    /// When we were asked to stop, or the system will not tell. It runs on then.
    pub fn wait_ended(&mut self, stop: &Stop) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_ended()? {
                return Ok(status);
            }
            if stop.requested() {
                return Err(Error::Interrupted(format!(
                    "waiting for {} to end",
                    self.name
                )));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Sends SIGTERM to its process group, gives it `grace` to end, then kills it; whatever it started is killed in any case.
    ///
    /// # Errors
    /// When the system will not tell how it ended.
    pub fn terminate(&mut self, grace: Duration) -> Result<Ended> {
        let asked = Instant::now();
        if let Some(status) = self.try_ended()? {
            return Ok(Ended {
                status,
                killed: false,
                took: Duration::ZERO,
            });
        }
        // Taken while it lives: once it is gone, those that left the group cannot be told from strangers.
        let below = self.descendants_with_start();
        // It fails only when the whole group is gone by now.
        let _ = killpg(Pid::from_raw(self.pid()), Signal::SIGTERM);
        while self.try_ended()?.is_none() && asked.elapsed() < grace {
            std::thread::sleep(POLL);
        }
        let killed = self.ended.is_none();
        if killed {
            self.kill_group();
        }
        kill_those(&below);
        let status = self.wait_ended(&Stop::new())?;
        Ok(Ended {
            status,
            killed,
            took: asked.elapsed(),
        })
    }

    fn descendants_with_start(&self) -> BTreeMap<i32, Option<u64>> {
        descendants(self.pid())
            .into_iter()
            .map(|pid| (pid, start_time_ticks(pid)))
            .collect()
    }

    /// Only before the child is reaped; see [`Child::try_ended`].
    fn kill_group(&self) {
        // It fails only when nobody is in it.
        let _ = killpg(Pid::from_raw(self.pid()), Signal::SIGKILL);
    }

    fn failed(&self, text: &str) -> Error {
        Error::Child {
            name: self.name.clone(),
            text: text.into(),
            log: self.log.clone(),
            tail: last_lines(&self.log, TAIL_LINES)
                .iter()
                .map(|line| self.secrets.scrub(line).into_owned())
                .collect(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nobody is left to be told of a failure here.
        if self.ended.is_none() {
            let below = self.descendants_with_start();
            self.kill_group();
            kill_those(&below);
            let _ = self.child.wait();
            scrub(&self.log, &self.secrets);
        }
    }
}

/// Kills descendants that left the process group. (Those whose parent died before we looked are beyond reach here; the control
/// group has them.)
fn kill_those(processes: &BTreeMap<i32, Option<u64>>) {
    for (pid, started) in processes {
        // The same process still, not a later one with its number.
        if started.is_some() && start_time_ticks(*pid) == *started {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
    }
}
