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
use super::ready::{Look, Ready};
use super::spawn::describe;
use super::stop_signal::StopSignal;
use super::tree::{descendants, start_time_ticks};
use crate::error::{Error, Result};
use crate::signals::Stop;

/// How many lines of the log an error shows.
const TAIL_LINES: usize = 20;

/// Time between two checks of a child that is ending.
const POLL: Duration = Duration::from_millis(10);

/// Time between two looks into the log of a child that is getting ready.
const LOG_POLL: Duration = Duration::from_millis(1);

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Whether it did not end within the grace and was killed.
    pub killed: bool,
    /// Time from the request to its end.
    pub took: Duration,
}

/// A child that we started. Dropping it kills it and everything that it started.
#[derive(Debug)]
pub struct Child {
    name: String,
    log: PathBuf,
    /// Held for as long as the child may write.
    _watched: Watched,
    child: std::process::Child,
    /// When its program began.
    started: Instant,
    ended: Option<ExitStatus>,
    /// Removed from its log once it has ended.
    secrets: Secrets,
    /// Asks it to stop.
    stop_signal: StopSignal,
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
            started: Instant::now(),
            ended: None,
            secrets: Secrets::default(),
            stop_signal: StopSignal::default(),
        }
    }

    /// The same child, with these secrets to be removed from its log.
    pub(super) fn without(mut self, secrets: &Secrets) -> Self {
        self.secrets = secrets.clone();
        self
    }

    /// The same child, with the signal that asks it to stop.
    pub(super) fn stopped_by(mut self, signal: StopSignal) -> Self {
        self.stop_signal = signal;
        self
    }

    /// Its process id, which is also the id of its process group.
    #[must_use]
    pub fn pid(&self) -> i32 {
        // Process ids are at most 2^22 on Linux.
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of its log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The first line of its log that is a JSON object, once it is written. By contract it names the versions.
    #[must_use]
    pub fn first_json_line(&self) -> Option<serde_json::Value> {
        first_json_line(&self.log)
    }

    /// Its exit status, if it has ended by now. What it left behind in its process group is then killed: a target
    /// without its leader is over, and must not disturb the next one.
    ///
    /// # Errors
    /// The system does not report its state.
    pub fn try_ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        // Check without reaping. Until the child is reaped, its id, which is also the group's, cannot belong to another
        // process when we signal it.
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(Pid::from_raw(self.pid())), look) {
            Ok(WaitStatus::StillAlive) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(self.failed(&format!("waiting for it failed: {error}"))),
        }
        self.kill_group();
        let status = self.child.wait();
        self.ended =
            Some(status.map_err(|error| self.failed(&format!("waiting for it failed: {error}")))?);
        scrub(&self.log, &self.secrets);
        Ok(self.ended)
    }

    /// Fails if the child has ended; for use during a trial.
    ///
    /// # Errors
    /// It has ended. The error says how, and shows the end of its log.
    pub fn must_run(&mut self) -> Result<()> {
        match self.try_ended()? {
            None => Ok(()),
            Some(status) => Err(self.failed(&format!("ended unexpectedly ({})", describe(status)))),
        }
    }

    /// Waits until it shows that it is ready. Returns the time from its start to then.
    ///
    /// # Errors
    /// It ended or was not ready in time (the error shows the end of its log), or we were asked to stop.
    pub fn wait_ready(
        &mut self,
        ready: &Ready,
        timeout: Duration,
        stop: &Stop,
    ) -> Result<Duration> {
        self.wait_ready_unless(ready, timeout, stop, &mut || None)
    }

    /// Like [`Child::wait_ready`], but can give up early. While nothing answers, it calls `hopeless` from time to time,
    /// and stops if that returns an error.
    ///
    /// # Errors
    /// As [`Child::wait_ready`], and the error that `hopeless` returns.
    pub fn wait_ready_unless(
        &mut self,
        ready: &Ready,
        timeout: Duration,
        stop: &Stop,
        hopeless: &mut dyn FnMut() -> Option<Error>,
    ) -> Result<Duration> {
        let started = self.started;
        let mut last_answer = String::from("nothing answered");
        let mut asked_hopeless = started;
        let took = self.wait_until(timeout, ready.poll(), stop, || match ready.look() {
            Look::Ready => Some(Ok(started.elapsed())),
            Look::NotYet(how) => {
                last_answer = how;
                None
            }
            Look::Nobody if asked_hopeless.elapsed() < POLL => None,
            Look::Nobody => {
                asked_hopeless = Instant::now();
                hopeless().map(Err)
            }
        })?;
        took.unwrap_or_else(|| {
            let last_answer = self.secrets.scrub(&last_answer);
            Err(self.failed(&format!(
                "was not ready within {timeout:?}: {ready}: {last_answer}"
            )))
        })
    }

    /// Waits until its first JSON line is written, and returns it.
    ///
    /// # Errors
    /// As [`Child::wait_ready`].
    pub fn wait_json_line(&mut self, timeout: Duration, stop: &Stop) -> Result<serde_json::Value> {
        let log = self.log.clone();
        let line = self.wait_until(timeout, LOG_POLL, stop, || first_json_line(&log))?;
        line.ok_or_else(|| self.failed(&format!("wrote no JSON line within {timeout:?}")))
    }

    /// Calls `answer`, with a pause after each call, until it returns a value. `None` means that the time is over. If the
    /// child has ended, that is an error at once.
    fn wait_until<T>(
        &mut self,
        timeout: Duration,
        pause: Duration,
        stop: &Stop,
        mut answer: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>> {
        let deadline = Instant::now() + timeout;
        loop {
            // Check this first, so that neither the last output of a dying child nor the answer of another server on
            // its port counts.
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
            std::thread::sleep(pause);
        }
    }

    /// Waits for it to end by itself.
    ///
    /// # Errors
    /// We were asked to stop, or the system does not report its state. The child then keeps running.
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

    /// Sends its stop signal to its process group, gives it `grace` to end, then kills it. Everything that it started is killed
    /// in any case.
    ///
    /// # Errors
    /// The system does not report how it ended.
    pub fn terminate(&mut self, grace: Duration) -> Result<Ended> {
        let asked = Instant::now();
        if let Some(status) = self.try_ended()? {
            return Ok(Ended {
                status,
                killed: false,
                took: Duration::ZERO,
            });
        }
        // Collected while the child lives. Once it is gone, descendants that left the group cannot be told from
        // unrelated processes.
        let below = self.descendants_with_start();
        // This fails only if the whole group is already gone.
        let _ = killpg(Pid::from_raw(self.pid()), self.stop_signal.signal());
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

    /// Kills it and everything that it started, without asking (`kill -9`), and waits until it is gone.
    ///
    /// # Errors
    /// The system does not report its state.
    pub fn kill(&mut self) -> Result<()> {
        if self.try_ended()?.is_none() {
            let below = self.descendants_with_start();
            self.kill_group();
            kill_those(&below);
            self.wait_ended(&Stop::new())?;
        }
        Ok(())
    }

    fn descendants_with_start(&self) -> BTreeMap<i32, Option<u64>> {
        descendants(self.pid())
            .into_iter()
            .map(|pid| (pid, start_time_ticks(pid)))
            .collect()
    }

    /// Call this only before the child is reaped; see [`Child::try_ended`].
    fn kill_group(&self) {
        // This fails only if the group is empty.
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
        // Nobody is left to report a failure to.
        if self.ended.is_none() {
            let below = self.descendants_with_start();
            self.kill_group();
            kill_those(&below);
            let _ = self.child.wait();
            scrub(&self.log, &self.secrets);
        }
    }
}

/// Kills descendants that left the process group. (Those whose parent died before we looked are out of reach here; the
/// control group has them.)
fn kill_those(processes: &BTreeMap<i32, Option<u64>>) {
    for (pid, started) in processes {
        // Only if it is still the same process, not a later one with the same id.
        if started.is_some() && start_time_ticks(*pid) == *started {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
    }
}
