//! What waits to go out, each at its time and none before the one ahead of it.

use std::collections::VecDeque;
use std::time::Instant;

/// A queue whose times never decrease.
#[derive(Debug)]
pub(crate) struct Outgoing<T>(VecDeque<(Instant, T)>);

impl<T> Outgoing<T> {
    pub(crate) fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(crate) fn push(&mut self, due: Instant, item: T) {
        let due = self.0.back().map_or(due, |(last, _)| due.max(*last));
        self.0.push_back((due, item));
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.front().map(|(due, _)| *due)
    }

    /// The next one, if it is due.
    pub(crate) fn next(&mut self, now: Instant) -> Option<T> {
        let due = self.due()?;
        if due > now {
            return None;
        }
        self.0.pop_front().map(|(_, item)| item)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.0.retain(|(_, item)| keep(item));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn nothing_overtakes() {
        let now = Instant::now();
        let later = now + Duration::from_millis(5);
        let mut out = Outgoing::new();
        out.push(later, 1);
        out.push(now, 2);
        assert_eq!((out.next(now), out.due()), (None, Some(later)));
        assert_eq!([out.next(later), out.next(later), out.next(later)], [Some(1), Some(2), None]);
    }
}
