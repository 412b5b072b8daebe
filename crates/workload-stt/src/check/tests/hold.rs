//! A real process that the fake gateway stands still with, as if it were its own.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Stopped by a signal at some sessions' begin, and released later.
pub(super) struct Hold {
    child: Child,
    pid: Pid,
    /// Sessions yet to come at whose begin it is stopped.
    sessions: AtomicU32,
    time: Duration,
    /// Counts the stops: only the latest ends by itself.
    stops: Arc<AtomicU32>,
}

impl Hold {
    pub(super) fn of_first_sessions(sessions: u32, time: Duration) -> Self {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep");
        Self {
            pid: Pid::from_raw(i32::try_from(child.id()).expect("pid")),
            child,
            sessions: AtomicU32::new(sessions),
            time,
            stops: Arc::default(),
        }
    }

    pub(super) fn process(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Stops it, where that is still due, and has it go on after a while.
    pub(super) fn on_upgrade(&self) {
        let due = |left: u32| left.checked_sub(1);
        if self
            .sessions
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, due)
            .is_err()
        {
            return;
        }
        kill(self.pid, Signal::SIGSTOP).expect("stopped");
        let (pid, time, stops) = (self.pid, self.time, Arc::clone(&self.stops));
        let own = stops.fetch_add(1, Ordering::SeqCst);
        thread::spawn(move || {
            thread::sleep(time);
            if stops.load(Ordering::SeqCst) == own + 1 {
                // The test may be over, and its process with it.
                let _ = kill(pid, Signal::SIGCONT);
            }
        });
    }

    /// Waits while it is stopped.
    pub(super) fn wait(&self) {
        let path = format!("/proc/{}/stat", self.pid);
        let stopped = || {
            std::fs::read_to_string(&path).is_ok_and(|stat| {
                stat.rsplit_once(") ")
                    .is_some_and(|(_, state)| state.starts_with('T'))
            })
        };
        while stopped() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
    }
}
