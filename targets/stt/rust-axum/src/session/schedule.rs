//! The absolute schedule of flushes: `start + jitter + k · interval`, k = 1, 2, …

use std::time::{Duration, Instant};

/// Which tick comes next. Ticks are computed from each other, never from "now", so a late one moves no other.
#[derive(Debug)]
pub struct Schedule {
    next: Instant,
    interval: Duration,
}

impl Schedule {
    /// A schedule whose ticks are whole `interval`s after `origin`, the session's start plus its jitter.
    pub fn new(origin: Instant, interval: Duration) -> Self {
        assert!(!interval.is_zero(), "the configuration asks for at least 1 ms");
        Self { next: origin + interval, interval }
    }

    /// When the next tick is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The tick that is due at `now`, if any. Ticks that `now` is past as well are skipped: one flush has taken
    /// everything that they could take.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next;
        if now < due {
            return None;
        }
        while self.next <= now {
            self.next += self.interval;
        }
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_tick_moves_no_other() {
        let origin = Instant::now();
        let at = |ms| origin + Duration::from_millis(ms);
        let mut schedule = Schedule::new(origin, Duration::from_millis(1000));
        assert_eq!(schedule.due(at(999)), None);
        assert_eq!(schedule.due(at(1700)), Some(at(1000)));
        assert_eq!(schedule.next(), at(2000));
        assert_eq!(schedule.due(at(2000)), Some(at(2000)));
        assert_eq!(schedule.due(at(5500)), Some(at(3000)));
        assert_eq!(schedule.next(), at(6000));
    }
}
