//! Acknowledges messages that a reader has taken, with as few frames as possible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::wire::{CHANNEL, append_method, method};

/// What of a channel's deliveries is settled. The broker numbers them from 1 without gaps.
#[derive(Debug, Default)]
pub(super) struct Settlements {
    /// All up to this one are.
    settled_to: u64,
    /// Settled ones beyond, while an older one is not.
    ahead: BinaryHeap<Reverse<u64>>,
}

impl Settlements {
    /// Appends acknowledgements for these deliveries, each of which is named once in the life of a connection.
    ///
    /// Those that continue the settled ones share one frame (`multiple`). The others get one each: a `multiple` would
    /// settle the gap before them as well.
    pub(super) fn settle(&mut self, out: &mut Vec<u8>, numbers: &[u64]) {
        let mut newest = None;
        for &number in numbers {
            if number == self.settled_to + 1 {
                self.settled_to = number;
                newest = Some(number);
                self.join_ahead();
            } else {
                append_ack(out, number, false);
                self.ahead.push(Reverse(number));
            }
        }
        // It names one that was not acknowledged before, as RabbitMQ demands, and not one that was ahead.
        if let Some(number) = newest {
            append_ack(out, number, true);
        }
    }

    fn join_ahead(&mut self) {
        while let Some(Reverse(number)) = self.ahead.peek().copied()
            && number == self.settled_to + 1
        {
            self.settled_to = number;
            self.ahead.pop();
        }
    }

    /// The memory that it takes.
    pub(super) fn held_bytes(&self) -> usize {
        self.ahead.capacity() * size_of::<u64>()
    }
}

/// `basic.ack`: delivery tag, and a bit that includes all older ones.
pub(super) fn append_ack(out: &mut Vec<u8>, number: u64, multiple: bool) {
    append_method(out, CHANNEL, method::BASIC_ACK, |out| {
        out.extend_from_slice(&number.to_be_bytes());
        out.push(u8::from(multiple));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(expected: &[(u64, bool)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, multiple) in expected {
            append_ack(&mut out, *number, *multiple);
        }
        out
    }

    #[test]
    fn a_run_is_one_frame() {
        let mut settlements = Settlements::default();
        let mut out = Vec::new();
        settlements.settle(&mut out, &[1, 2, 3]);
        settlements.settle(&mut out, &[4]);
        settlements.settle(&mut out, &[]);
        assert_eq!(out, acks(&[(3, true), (4, true)]));
        assert_eq!(
            acks(&[(3, true)]),
            b"\x01\0\x01\0\0\0\x0D\0\x3C\0\x50\0\0\0\0\0\0\0\x03\x01\xCE"
        );
    }

    #[test]
    fn a_gap_is_not_settled() {
        let mut settlements = Settlements::default();
        let mut out = Vec::new();
        settlements.settle(&mut out, &[1, 3, 4]);
        assert_eq!(out, acks(&[(3, false), (4, false), (1, true)]));
        out.clear();
        settlements.settle(&mut out, &[2, 5]);
        assert_eq!(out, acks(&[(5, true)]));
        out.clear();
        settlements.settle(&mut out, &[8, 7, 6]);
        assert_eq!(out, acks(&[(8, false), (7, false), (6, true)]));
        out.clear();
        settlements.settle(&mut out, &[9]);
        assert_eq!(out, acks(&[(9, true)]));
        assert!(settlements.ahead.is_empty());
    }
}
