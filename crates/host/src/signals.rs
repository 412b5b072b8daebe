//! Turns SIGINT, SIGTERM and SIGHUP into a value that callers pass down. A trial checks it, stops early, and keeps what
//! it has measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{Error, Result};

/// Whether we were asked to stop. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A stop that only [`Stop::request`] sets: for tests, and for stopping part of a run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True once we were asked to stop; it never becomes false again.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks everyone who holds a clone to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The flag itself, for code that must not depend on this crate.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// After this call, SIGINT and SIGTERM set the returned [`Stop`] instead of ending the process. A second signal ends
/// the process at once with code 130, in case the first Ctrl-C was not enough. Children die with us (see
/// [`crate::process`]).
///
/// SIGHUP (the terminal or the ssh connection is gone) also sets it, but never ends the process at once. The kernel and
/// the shell both send SIGHUP, and the measurements so far must be kept. Under `nohup`, which ignores SIGHUP, it stays
/// ignored.
///
/// # Errors
/// The handlers cannot be installed.
pub fn stop_on_signals() -> Result<Stop> {
    let stop = Stop::new();
    let failed = |signal: i32, source| Error::Io {
        what: format!("installing the handler of signal {signal}"),
        source,
    };
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the shutdown handler sees the flag as it was before this signal set it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.flag())
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .map_err(|source| failed(signal, source))?;
    }
    if !hangups_are_ignored() {
        signal_hook::flag::register(SIGHUP, stop.flag())
            .map_err(|source| failed(SIGHUP, source))?;
    }
    Ok(stop)
}

/// Whether this process ignores SIGHUP, as under `nohup`. Its children then ignore it too, unless they say otherwise.
#[must_use]
pub fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, SIGHUP)
}

/// Whether a process with this `/proc/PID/status` ignores the signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 is signal 1.
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_signal_sets_the_flag_and_the_process_goes_on() {
        if hangups_are_ignored() {
            plimsoll_testing::skipped!("hangups are ignored here, as under nohup");
            return;
        }
        let stop = stop_on_signals().expect("handlers install");
        assert!(!stop.requested());
        // Twice in a row, as the kernel and a shell send it. The second must not end us at once.
        for _ in 0..2 {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGHUP).expect("raise");
        }
        let deadline = Instant::now() + Duration::from_secs(5);
        while !stop.requested() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(stop.requested());
    }

    #[test]
    fn what_nohup_ignores_is_seen() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t01\nSigIgn:\t{mask}\nSigCgt:\t01\n");
        assert!(ignores(&status("0000000000001001"), SIGHUP));
        assert!(!ignores(&status("0000000000001002"), SIGHUP));
        assert!(ignores(&status("0000000000001002"), SIGINT));
        assert!(!ignores("", SIGHUP));
    }

    #[test]
    fn clones_share_the_flag() {
        let stop = Stop::new();
        let other = stop.clone();
        other.request();
        assert!(stop.requested());
    }
}
