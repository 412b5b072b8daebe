//! Reads the machine's clocks while a trial runs; [`plimsoll_core::caveat::clock_jump`] judges them.

use nix::sys::time::TimeValLike;
use nix::time::ClockId;
use plimsoll_core::caveat::ClockJump;
use plimsoll_core::caveat::clock_jump::{ClockWatch, READING_MAX_NS, Reading};

/// The most attempts at one reading. An attempt can take too long, because its reader did not get a core.
const TRIES: u32 = 5;

/// The clocks since a trial began.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    watch: ClockWatch,
}

impl Clocks {
    /// Begins with a first reading.
    pub(super) fn start() -> Self {
        let mut clocks = Self::default();
        clocks.look();
        clocks
    }

    /// Takes one more reading: each second of a trial, and at its end.
    pub(super) fn look(&mut self) {
        let usable = |reading: &Reading| {
            reading.monotonic_after_ns - reading.monotonic_before_ns <= READING_MAX_NS
        };
        let reading = (0..TRIES).filter_map(|_| read()).find(usable);
        if let Some(reading) = reading {
            self.watch.add(reading);
        }
    }

    /// The jump, if a clock jumped.
    pub(super) fn jump(&self) -> Option<ClockJump> {
        self.watch.jump()
    }
}

/// Reads all clocks; `None` where one is missing.
fn read() -> Option<Reading> {
    let ns = |clock: ClockId| u64::try_from(clock.now().ok()?.num_nanoseconds()).ok();
    Some(Reading {
        monotonic_before_ns: ns(ClockId::CLOCK_MONOTONIC)?,
        realtime_ns: ns(ClockId::CLOCK_REALTIME)?,
        boottime_ns: ns(ClockId::CLOCK_BOOTTIME)?,
        monotonic_after_ns: ns(ClockId::CLOCK_MONOTONIC)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_clocks_are_read_in_order() {
        let reading = read().expect("Linux has all three");
        assert!(reading.monotonic_before_ns <= reading.monotonic_after_ns);
        assert!(reading.boottime_ns >= reading.monotonic_before_ns);
        // Later than when this test was written.
        assert!(reading.realtime_ns > 1_700_000_000_000_000_000);
    }
}
