//! Crashes the target in the middle of the measured window, and starts it again on the same data.
//!
//! A thread of its own does it, because the engine's seconds must go on. It learns from the first of them when the trial
//! began. That is always told a little late, so the crash is never early by the sessions' clock.

use std::fs::File;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::profile::Window;
use plimsoll_engine::EngineSecond;
use plimsoll_host::data_folder::DataFolder;
use plimsoll_host::signals::Stop;
use plimsoll_workload::{Crash, CrashKind, Crashed};

use super::Asked;
use super::conditions::Conditions;
use super::stage::Staged;
use super::started::Started;
use crate::error::{Error, Result};

/// How often to look whether a signal ends the pause.
const LOOK: Duration = Duration::from_millis(20);

/// A target that is to be crashed, and its data.
pub(super) struct Victim {
    pub(super) started: Started,
    // Declared after what uses it, so that it is dropped later.
    pub(super) data: Option<DataFolder>,
}

/// Lets the disk have what a target wrote to get ready, if the plan cuts its power later. On a real machine, settings and
/// empty files are on disk long before; here they are as old as the trial, and a target that cannot read them any more
/// shows nothing about its messages.
///
/// # Errors
/// The kernel refuses.
pub(super) fn keep_what_made_it_ready(
    conditions: &Conditions,
    data: Option<&DataFolder>,
) -> Result<()> {
    let crash = conditions.plan.crash();
    let cut = crash.filter(|crash| crash.kind == CrashKind::Power);
    let Some((data, _)) = data.zip(cut) else {
        return Ok(());
    };
    let folder = File::open(data.path());
    let synced = folder.and_then(|folder| Ok(nix::unistd::syncfs(&folder)?));
    let failed = |error| plimsoll_host::Error::io("syncing", data.path(), error);
    Ok(synced.map_err(failed)?)
}

/// Tells the thread that crashes the target when the trial began, and by its end that the trial is over.
pub(super) struct Beginning(Option<Sender<Instant>>);

impl Beginning {
    pub(super) fn second_over(&self, second: &EngineSecond) {
        let began = Instant::now().checked_sub(Duration::from_secs(1));
        if second.index == 0
            && let Some((sender, began)) = self.0.as_ref().zip(began)
        {
            // A thread that has failed listens no more.
            let _ = sender.send(began);
        }
    }
}

/// What happened, before the trial's clock is known.
struct Fell {
    at: Instant,
    ready: Option<Instant>,
    not_back: Option<String>,
}

/// What became of the target of a trial; it knows the times only by the machine's clock.
pub(super) struct Fallen(Fell);

impl Fallen {
    /// The same by the clock of a trial that began then.
    pub(super) fn since(self, epoch: Instant) -> Crashed {
        let ns = |at: Instant| {
            let since = at.saturating_duration_since(epoch).as_nanos();
            u64::try_from(since).unwrap_or(u64::MAX)
        };
        let Fell {
            at,
            ready,
            not_back,
        } = self.0;
        Crashed {
            at_ns: ns(at),
            ready_ns: ready.map(ns),
            not_back,
        }
    }
}

/// Calls `drive`, which drives the trial's load, and meanwhile crashes the target if the plan asks for it.
///
/// # Errors
/// That of `drive`, or the target cannot be crashed.
pub(super) fn around<T>(
    asked: &Asked<'_>,
    stage: &mut Staged,
    drive: impl FnOnce(&Staged, Beginning) -> Result<T>,
) -> Result<(T, Option<Fallen>)> {
    let asked_for = asked.conditions.plan.crash();
    let Some((crash, mut victim)) = asked_for.and_then(|crash| Some((crash, stage.hand_over()?)))
    else {
        return Ok((drive(stage, Beginning(None))?, None));
    };
    let window = asked.conditions.profile.window();
    let (sender, receiver) = channel();
    let (driven, fallen) = thread::scope(|scope| {
        let victim = &mut victim;
        let crashes = scope.spawn(move || {
            let at = moment(&receiver, &window)?;
            Some(suffer(&crash, victim, at, asked.stop))
        });
        let driven = drive(stage, Beginning(Some(sender)));
        (driven, crashes.join())
    });
    stage.take_back(victim);
    let driven = driven?;
    let fallen = fallen
        .map_err(|_| Error::Fault("the thread that crashes the target panicked".to_owned()))?;
    Ok((driven, fallen.transpose()?.map(Fallen)))
}

/// Waits until the target is to be crashed; `None` if the trial ends before.
fn moment(beginning: &Receiver<Instant>, window: &Window) -> Option<Instant> {
    let began = beginning.recv().ok()?;
    let at = began + Duration::from_nanos(Crash::at_ns(window));
    match beginning.recv_timeout(at.saturating_duration_since(Instant::now())) {
        Err(RecvTimeoutError::Timeout) => Some(Instant::now()),
        // The beginning is told only once.
        Ok(_) | Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// Crashes the target and starts it again.
fn suffer(crash: &Crash, victim: &mut Victim, at: Instant, stop: &Stop) -> Result<Fell> {
    let Victim { started, data } = victim;
    let data = data.as_ref().filter(|_| crash.kind == CrashKind::Power);
    // First the power: what a process wrote while it was being killed would be on the disk otherwise.
    data.map_or(Ok(()), DataFolder::cut_power)?;
    started.kill()?;
    data.map_or(Ok(()), DataFolder::restore_power)?;
    let until = Instant::now() + crash.pause;
    while Instant::now() < until && !stop.requested() {
        thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
    }
    let (ready, not_back) = match started.start_again(stop) {
        Ok(()) => (Some(Instant::now()), None),
        Err(Error::Interrupted(_)) => (None, None),
        // Not a fault of the measurement: this is what the target does after a crash.
        Err(Error::Host(error @ plimsoll_host::Error::Child { .. })) => {
            (None, Some(error.to_string()))
        }
        Err(error) => return Err(error),
    };
    Ok(Fell {
        at,
        ready,
        not_back,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;

    fn window(measured_s: f64) -> Window {
        let profile = Profile {
            ramp_s: 0.0,
            warm_up_s: 0.0,
            measured_s,
            ..Profile::quick()
        };
        profile.window()
    }

    #[test]
    fn the_crash_is_in_the_middle_of_the_window_and_never_early() {
        let (sender, receiver) = channel();
        let began = Instant::now();
        sender.send(began).expect("heard");
        let at = moment(&receiver, &window(0.2)).expect("it comes");
        assert!(at >= began + Duration::from_millis(100));
        // A window whose middle is over when its beginning is told.
        let Some(long_ago) = began.checked_sub(Duration::from_secs(5)) else {
            return;
        };
        sender.send(long_ago).expect("heard");
        assert!(moment(&receiver, &window(0.2)).is_some());
    }

    #[test]
    fn a_trial_that_ends_before_has_no_crash() {
        let (sender, receiver) = channel();
        sender.send(Instant::now()).expect("heard");
        drop(sender);
        assert_eq!(
            moment(&receiver, &window(600.0)),
            None,
            "after its beginning"
        );
        assert_eq!(moment(&receiver, &window(600.0)), None, "without one");
    }

    #[test]
    fn times_are_those_of_the_trial() {
        let epoch = Instant::now();
        let fell = Fell {
            at: epoch + Duration::from_millis(5),
            ready: Some(epoch + Duration::from_millis(7)),
            not_back: None,
        };
        let crashed = Fallen(fell).since(epoch);
        assert_eq!(
            (crashed.at_ns, crashed.ready_ns),
            (5_000_000, Some(7_000_000))
        );
    }
}
