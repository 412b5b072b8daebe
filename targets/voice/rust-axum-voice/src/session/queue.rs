//! Texts that wait to be spoken, and which of them an interruption drops.

use std::collections::VecDeque;

use crate::messages::Speak;
use crate::problem::{Kind, Problem};

/// Most bytes of texts that may wait: some ten of the longest. The contract has no limit, but memory has one.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// A text, counted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Of the client's `speak` messages, from 1.
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) may_be_interrupted: bool,
}

/// The texts that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    last_number: u64,
}

impl Queue {
    /// Another text.
    pub(super) fn push(&mut self, speak: Speak) -> Result<(), Problem> {
        if self.bytes + speak.text.len() > WAITING_BYTES_MAX {
            return Err(Problem::passing(Kind::TooLarge, "too many texts wait to be spoken"));
        }
        self.bytes += speak.text.len();
        self.last_number += 1;
        self.waiting.push_back(Waiting {
            number: self.last_number,
            text: speak.text,
            may_be_interrupted: speak.allow_interruption,
        });
        Ok(())
    }

    /// The text that is to be spoken next.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let next = self.waiting.pop_front()?;
        self.bytes -= next.text.len();
        Some(next)
    }

    /// Drops the texts that may be interrupted; how many those were.
    pub(super) fn interrupt(&mut self) -> u64 {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| !waiting.may_be_interrupted);
        self.bytes = self.waiting.iter().map(|waiting| waiting.text.len()).sum();
        (before - self.waiting.len()) as u64
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speak(text: &str, allow_interruption: bool) -> Speak {
        Speak { text: text.to_owned(), flush: false, allow_interruption }
    }

    #[test]
    fn texts_are_counted_and_wait_in_order() {
        let mut queue = Queue::default();
        for (text, may) in [("a", true), ("b", false), ("c", true)] {
            queue.push(speak(text, may)).expect("room");
        }
        assert_eq!(queue.pop().map(|next| (next.number, next.text)), Some((1, "a".to_owned())));
        assert_eq!((queue.interrupt(), queue.bytes), (1, 1));
        queue.push(speak("d", true)).expect("room");
        assert_eq!(queue.pop().map(|next| (next.number, next.text)), Some((2, "b".to_owned())));
        assert_eq!(queue.pop().map(|next| (next.number, next.text)), Some((4, "d".to_owned())));
        assert_eq!((queue.pop(), queue.len(), queue.bytes), (None, 0, 0));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut queue = Queue::default();
        let long = "x".repeat(crate::messages::TEXT_BYTES_MAX);
        let taken = (0..20).take_while(|_| queue.push(speak(&long, true)).is_ok()).count();
        assert_eq!(taken, 10);
        queue.pop();
        assert!(queue.push(speak(&long, true)).is_ok());
    }
}
