//! Which message the broker means when it confirms: it counts the messages of a channel from 1.

use std::collections::VecDeque;

use crate::dialect::{Fault, Heard};

/// The tags of the messages that wait for an answer, oldest first. It holds as many as the caller has open.
#[derive(Debug)]
pub(super) struct Confirms {
    /// `None`: answered, but an older one is not.
    waiting: VecDeque<Option<u64>>,
    /// The broker's number of the oldest.
    first: u64,
}

impl Confirms {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            first: 1,
        }
    }

    /// The next message was written.
    pub(super) fn published(&mut self, tag: u64) {
        self.waiting.push_back(Some(tag));
    }

    /// The broker confirms message `number`, or all up to it; number 0 with `up_to` means all.
    ///
    /// The tag that is reported with `up_to` is the newest that waited. Older ones may have been refused before.
    pub(super) fn confirmed(
        &mut self,
        number: u64,
        up_to: bool,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let Some(index) = self.index(number, up_to)? else {
            return Ok(());
        };
        if up_to {
            let newest = self.waiting.drain(..=index).flatten().next_back();
            self.first += len(index) + 1;
            if let Some(tag) = newest {
                heard(Heard::Confirmed { tag, up_to: true });
            }
        } else {
            let tag = self.answer(index).ok_or_else(|| unasked(number))?;
            heard(Heard::Confirmed { tag, up_to: false });
        }
        self.drop_answered();
        Ok(())
    }

    /// The broker refuses message `number`, or all up to it that wait.
    pub(super) fn refused(
        &mut self,
        number: u64,
        up_to: bool,
        why: &str,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let Some(index) = self.index(number, up_to)? else {
            return Ok(());
        };
        let first = if up_to { 0 } else { index };
        let mut any = false;
        for at in first..=index {
            if let Some(tag) = self.answer(at) {
                any = true;
                let tag = Some(tag);
                heard(Heard::Refused { tag, why });
            }
        }
        self.drop_answered();
        if any { Ok(()) } else { Err(unasked(number)) }
    }

    /// The memory that it takes.
    pub(super) fn held_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<Option<u64>>()
    }

    /// Where message `number` stands. `None`: all are meant, and there is none.
    fn index(&self, number: u64, up_to: bool) -> Result<Option<usize>, Fault> {
        if number == 0 && up_to {
            return Ok(self.waiting.len().checked_sub(1));
        }
        number
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok())
            .filter(|index| *index < self.waiting.len())
            .map(Some)
            .ok_or_else(|| unasked(number))
    }

    fn answer(&mut self, index: usize) -> Option<u64> {
        self.waiting.get_mut(index).and_then(Option::take)
    }

    fn drop_answered(&mut self) {
        while self.waiting.front() == Some(&None) {
            self.waiting.pop_front();
            self.first += 1;
        }
    }
}

fn len(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}

#[cold]
fn unasked(number: u64) -> Fault {
    Fault(format!(
        "the broker answers message {number} of the connection, which does not wait for an answer"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_tags(tags: &[u64]) -> Confirms {
        let mut confirms = Confirms::new();
        for tag in tags {
            confirms.published(*tag);
        }
        confirms
    }

    /// What a call reports: tag, confirmed, up to.
    fn reported(
        call: impl FnOnce(&mut dyn FnMut(Heard<'_>)) -> Result<(), Fault>,
    ) -> Result<Vec<(u64, bool, bool)>, Fault> {
        let mut seen = Vec::new();
        call(&mut |heard| match heard {
            Heard::Confirmed { tag, up_to } => seen.push((tag, true, up_to)),
            Heard::Refused { tag, why } => {
                assert_eq!(why, "no");
                seen.push((tag.unwrap(), false, false));
            }
            other => panic!("{other:?}"),
        })?;
        Ok(seen)
    }

    #[test]
    fn tags_may_have_gaps() {
        let mut confirms = with_tags(&[10, 20, 30, 40]);
        let seen = reported(|heard| confirms.confirmed(2, true, heard));
        assert_eq!(seen, Ok(vec![(20, true, true)]));
        let seen = reported(|heard| confirms.confirmed(4, false, heard));
        assert_eq!(seen, Ok(vec![(40, true, false)]));
        let seen = reported(|heard| confirms.confirmed(3, false, heard));
        assert_eq!(seen, Ok(vec![(30, true, false)]));
        confirms.published(50);
        let seen = reported(|heard| confirms.confirmed(5, false, heard));
        assert_eq!(seen, Ok(vec![(50, true, false)]));
    }

    #[test]
    fn a_refusal_names_each_message() {
        let mut confirms = with_tags(&[1, 2, 3, 4]);
        let seen = reported(|heard| confirms.confirmed(2, false, heard));
        assert_eq!(seen, Ok(vec![(2, true, false)]));
        let seen = reported(|heard| confirms.refused(3, true, "no", heard));
        assert_eq!(seen, Ok(vec![(1, false, false), (3, false, false)]));
        let seen = reported(|heard| confirms.refused(4, false, "no", heard));
        assert_eq!(seen, Ok(vec![(4, false, false)]));
    }

    #[test]
    fn number_zero_means_all() {
        let mut confirms = with_tags(&[7, 8]);
        let seen = reported(|heard| confirms.confirmed(0, true, heard));
        assert_eq!(seen, Ok(vec![(8, true, true)]));
        let seen = reported(|heard| confirms.confirmed(0, true, heard));
        assert_eq!(seen, Ok(vec![]), "none is open");
        assert!(confirms.confirmed(0, false, &mut |_| ()).is_err());
    }

    #[test]
    fn an_answer_to_nothing_is_a_fault() {
        let mut confirms = with_tags(&[7, 8]);
        assert!(confirms.confirmed(3, false, &mut |_| ()).is_err());
        assert!(confirms.confirmed(u64::MAX, true, &mut |_| ()).is_err());
        assert_eq!(confirms.confirmed(2, false, &mut |_| ()), Ok(()));
        let twice = confirms.confirmed(2, false, &mut |_| ());
        assert_eq!(twice, Err(unasked(2)));
        assert!(confirms.refused(2, false, "no", &mut |_| ()).is_err());
        assert_eq!(confirms.confirmed(1, false, &mut |_| ()), Ok(()));
        assert!(confirms.confirmed(1, false, &mut |_| ()).is_err());
    }

    #[test]
    fn a_window_of_one_size_allocates_once() {
        let mut confirms = Confirms::new();
        for tag in 0..64 {
            confirms.published(tag);
        }
        let held = confirms.held_bytes();
        for tag in 64..10_000_u64 {
            assert_eq!(confirms.confirmed(tag - 63, false, &mut |_| ()), Ok(()));
            confirms.published(tag);
        }
        assert_eq!(confirms.held_bytes(), held);
    }
}
