//! The target's memory at moments of the trial: idle, under load, and after the last connection has closed.

use std::time::{Duration, Instant};

use plimsoll_core::record::TargetMemory;
use plimsoll_engine::EngineSecond;

use super::Asked;
use super::conditions::Conditions;
use super::stage::Staged;

/// How often to look whether a signal ends the wait.
const LOOK: Duration = Duration::from_millis(50);

/// Reads the memory, each moment once.
pub(super) struct MemoryReadings {
    window_start_s: f64,
    read: TargetMemory,
}

impl MemoryReadings {
    pub(super) fn new(conditions: &Conditions, stage: &Staged) -> Self {
        let profile = &conditions.profile;
        Self {
            window_start_s: profile.ramp_s + profile.warm_up_s,
            read: TargetMemory {
                idle: stage.memory_idle(),
                ..TargetMemory::default()
            },
        }
    }

    /// Reads it under load, in the last second before the measured window: connections are open, the load is in full,
    /// and what reading costs is no part of what is measured.
    pub(super) fn second_over(&mut self, second: &EngineSecond, stage: &Staged) {
        if self.read.loaded.is_none() && is_last_before(self.window_start_s, second.index) {
            self.read.loaded = stage.memory_now();
        }
    }

    /// Waits as long as the plan asks for, and reads it once more. Nobody waits after a signal.
    pub(super) fn finish(
        mut self,
        asked: &Asked<'_>,
        stage: &Staged,
        closed: Instant,
    ) -> TargetMemory {
        let Some(wait) = asked.conditions.plan.memory_after() else {
            return self.read;
        };
        while !asked.stop.requested() {
            let left = wait.saturating_sub(closed.elapsed());
            if left.is_zero() {
                self.read.after = stage.memory_now();
                break;
            }
            std::thread::sleep(left.min(LOOK));
        }
        self.read
    }
}

/// Whether the second after that one is the last before the window, or the window has begun already.
#[expect(clippy::cast_precision_loss, reason = "seconds of a trial")]
fn is_last_before(window_start_s: f64, index: u64) -> bool {
    (index + 2) as f64 >= window_start_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reading_under_load_is_before_the_window() {
        // A window that begins at 5 s: the second with index 3 ends at 4 s.
        let at = |start_s| (0..9).find(|index| is_last_before(start_s, *index));
        assert_eq!(at(5.0), Some(3));
        assert_eq!(at(5.2), Some(4), "it ends at 5 s");
        assert_eq!(at(1.2), Some(0), "it ends at 1 s");
        assert_eq!(at(0.0), Some(0));
    }
}
