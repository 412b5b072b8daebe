//! The messages of a writer that the broker has not answered yet, with the times that their latency counts from.
//!
//! A broker answers mostly in order, so they are a queue by number. An answered message in the middle leaves a hole until
//! those before it are answered. A broker that leaves one message unanswered while it answers a million others would make
//! that queue as long: beyond [`SPAN_MAX`] the oldest ones that are still open move to a list of their own. Only they do,
//! and there are never more than the window allows.

use std::collections::VecDeque;

/// The most numbers between the oldest and the newest open message before the oldest ones move.
const SPAN_MAX: usize = 1 << 16;

/// An open message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    /// When it was due, in nanoseconds since the trial began.
    pub(crate) due_ns: u64,
    /// When it was written.
    pub(crate) written_ns: u64,
    /// Whether it is measured.
    pub(crate) measured: bool,
}

/// The open messages of one writer.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed {
    /// The number of the first of `queue`.
    first: u64,
    queue: VecDeque<Option<Open>>,
    /// Those that moved, by number, in order.
    stragglers: Vec<(u64, Open)>,
    open: u64,
}

impl Unconfirmed {
    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.open
    }

    /// Adds the next message. Numbers rise by one.
    pub(crate) fn push(&mut self, number: u64, open: Open) {
        if self.queue.is_empty() {
            self.first = number;
        }
        debug_assert_eq!(
            number,
            self.first + u64::try_from(self.queue.len()).unwrap_or(0)
        );
        self.queue.push_back(Some(open));
        self.open += 1;
        while self.queue.len() > SPAN_MAX {
            if let Some(oldest) = self.queue.pop_front().flatten() {
                self.stragglers.push((self.first, oldest));
            }
            self.first += 1;
        }
    }

    /// Takes a message out; `None` if it is not open.
    pub(crate) fn take(&mut self, number: u64) -> Option<Open> {
        let taken = match number.checked_sub(self.first) {
            Some(at) => {
                let at = usize::try_from(at).ok()?;
                self.queue.get_mut(at)?.take()
            }
            None => {
                let found = self.stragglers.binary_search_by_key(&number, |(of, _)| *of);
                found.ok().map(|at| self.stragglers.remove(at).1)
            }
        }?;
        self.open -= 1;
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
        }
        Some(taken)
    }

    /// Forgets all of them: their connection ended.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn open(number: u64) -> Open {
        Open {
            due_ns: number * 10,
            written_ns: number * 10 + 1,
            measured: number.is_multiple_of(2),
        }
    }

    #[test]
    fn a_message_that_is_never_answered_does_not_hold_the_others() {
        let mut unconfirmed = Unconfirmed::default();
        let beyond = u64::try_from(SPAN_MAX).unwrap() * 3;
        for number in 0..beyond {
            unconfirmed.push(number, open(number));
            if number > 0 {
                assert_eq!(unconfirmed.take(number), Some(open(number)));
            }
        }
        assert!(unconfirmed.queue.len() <= SPAN_MAX);
        assert_eq!(unconfirmed.stragglers.len(), 1);
        assert_eq!(unconfirmed.len(), 1);
        assert_eq!(unconfirmed.take(0), Some(open(0)));
        assert_eq!(unconfirmed.take(0), None);
        assert_eq!(unconfirmed.len(), 0);
    }

    proptest! {
        /// Whatever the order of answers: it is a map from number to message.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec(prop::option::of(0_u64..60), 1..200)) {
            let mut unconfirmed = Unconfirmed::default();
            let mut map = BTreeMap::new();
            let mut next = 0;
            for step in steps {
                if let Some(number) = step {
                    prop_assert_eq!(unconfirmed.take(number), map.remove(&number));
                } else {
                    unconfirmed.push(next, open(next));
                    map.insert(next, open(next));
                    next += 1;
                }
                prop_assert_eq!(unconfirmed.len(), u64::try_from(map.len()).unwrap());
            }
        }
    }
}
