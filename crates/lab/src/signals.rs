//! SIGINT and SIGTERM as a value that is passed down: a trial looks at it, stops early, and keeps what was measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::error::{Error, Result};

/// Says whether we were asked to stop. Clones share the same flag.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A stop that only [`Stop::request`] sets: for tests, and for stopping a part of a run.
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

/// From now on SIGINT and SIGTERM set the returned [`Stop`] instead of ending the process. A second signal ends the process
/// at once with code 130, for the user whose first Ctrl-C was not enough; children die with us (see [`crate::process`]).
///
/// # Errors
/// When the handlers cannot be installed.
pub fn stop_on_signals() -> Result<Stop> {
    let stop = Stop::new();
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the shutdown handler sees the flag as it was before this signal set it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.flag())
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .map_err(|source| Error::Io {
                what: format!("installing the handler of signal {signal}"),
                source,
            })?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_signal_sets_the_flag_and_the_process_goes_on() {
        let stop = stop_on_signals().expect("handlers install");
        assert!(!stop.requested());
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).expect("raise");
        let deadline = Instant::now() + Duration::from_secs(5);
        while !stop.requested() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(stop.requested());
    }

    #[test]
    fn clones_share_the_flag() {
        let stop = Stop::new();
        let other = stop.clone();
        other.request();
        assert!(stop.requested());
    }
}
