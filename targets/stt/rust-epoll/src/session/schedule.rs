//! The ticks of a session: `start + jitter + k · interval`, k = 1, 2, …

use std::time::{Duration, Instant};

/// Counts ticks from an origin that never moves, so that a late tick is late alone.
#[derive(Debug)]
pub struct Schedule {
    origin: Instant,
    interval: Duration,
    /// k of the next tick.
    next: u32,
}

impl Schedule {
    /// Ticks a whole number of `interval`s (of at least 1 ms) after `origin`.
    pub fn new(origin: Instant, interval: Duration) -> Self {
        Self { origin, interval, next: 1 }
    }

    /// When the next tick is due.
    pub fn next(&self) -> Instant {
        self.origin + self.interval * self.next
    }

    /// The tick that is due, if one is: when it should have been. Later ones that are due as well are skipped, for
    /// the one leaves nothing for them to do.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next();
        if now < due {
            return None;
        }
        let ticks = now.duration_since(self.origin).as_nanos() / self.interval.as_nanos();
        self.next = u32::try_from(ticks + 1).expect("over a month of ticks of a millisecond");
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ticks_are_late_alone() {
        let origin = Instant::now();
        let at = |ms| origin + Duration::from_millis(ms);
        let mut schedule = Schedule::new(origin, Duration::from_millis(1000));
        assert_eq!(schedule.due(at(999)), None);
        assert_eq!(schedule.due(at(1700)), Some(at(1000)));
        assert_eq!(schedule.due(at(1999)), None);
        assert_eq!(schedule.due(at(2000)), Some(at(2000)));
        assert_eq!(schedule.due(at(5500)), Some(at(3000)), "and 4000 and 5000 are skipped");
        assert_eq!(schedule.next(), at(6000));
    }
}
