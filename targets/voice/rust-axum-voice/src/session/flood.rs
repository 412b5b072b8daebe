//! How many bad messages are too many.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many bad messages…
const MESSAGES_MAX: usize = 100;
/// …within this time are a flood.
const WINDOW: Duration = Duration::from_secs(10);

/// The bad messages of one client.
#[derive(Debug, Default)]
pub(super) struct Flood {
    /// When the newest came, oldest first.
    times: VecDeque<Instant>,
}

impl Flood {
    /// Another bad message came. Whether that makes it a flood.
    pub(super) fn is_too_much(&mut self, now: Instant) -> bool {
        self.times.push_back(now);
        if self.times.len() < MESSAGES_MAX {
            return false;
        }
        let oldest = self.times.pop_front();
        oldest.is_some_and(|oldest| now.saturating_duration_since(oldest) <= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_within_ten_seconds() {
        let start = Instant::now();
        let first = |gap_ms: u32| {
            let mut flood = Flood::default();
            (1..=300_u32).find(|number| flood.is_too_much(start + Duration::from_millis(gap_ms.into()) * *number))
        };
        assert_eq!(first(0), Some(100));
        assert_eq!(first(101), Some(100));
        assert_eq!(first(102), None);
    }
}
