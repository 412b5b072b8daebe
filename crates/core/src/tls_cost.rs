//! What TLS costs the client, by the CPU clock of its threads. Pure.
//!
//! Every handshake is timed. Of the writes that are encrypted and of the pieces that are decrypted, only some are,
//! because reading the clock costs about as much as encrypting a short frame. They stand for the others.

use serde::{Deserialize, Serialize};

/// CPU time of work that was done many times, and timed some of these times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// How often it was done.
    pub count: u64,
    /// How often it was timed.
    pub timed: u64,
    /// CPU time between the readings of the clock, in ns.
    pub between_ns: u64,
    /// How much of it the readings themselves took, in ns.
    pub clock_ns: u64,
}

impl Timed {
    /// Adds what others did.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.timed += other.timed;
        self.between_ns += other.between_ns;
        self.clock_ns += other.clock_ns;
    }

    /// CPU time of one, in µs: the mean of those that were timed. `None` if none was.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        let own_ns = self.between_ns.saturating_sub(self.clock_ns);
        (self.timed > 0).then(|| precise(own_ns) / 1e3 / precise(self.timed))
    }

    /// CPU time of all, in µs, if the others cost as much as those that were timed. `None` if none of them was timed.
    #[must_use]
    pub fn all_us(&self) -> Option<f64> {
        match self.count {
            0 => Some(0.0),
            count => self.mean_us().map(|mean_us| mean_us * precise(count)),
        }
    }
}

/// What TLS costs the client. Without TLS, nothing is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsCost {
    /// Handshakes that came to their end, in the whole trial. Each is timed.
    pub handshakes: Timed,
    /// Writes that were encrypted in the measured window, after the handshake.
    pub writes: Timed,
    /// Pieces that were decrypted in the measured window, after the handshake.
    pub reads: Timed,
}

impl TlsCost {
    /// Adds what another thread or process measured.
    pub fn merge(&mut self, other: &Self) {
        self.handshakes.merge(&other.handshakes);
        self.writes.merge(&other.writes);
        self.reads.merge(&other.reads);
    }

    /// CPU time of encryption and decryption in the measured window, in µs. `None` without TLS, or if too little was done
    /// for any of it to be timed.
    #[must_use]
    pub fn window_us(&self) -> Option<f64> {
        let used = self.writes.count + self.reads.count > 0;
        let both = self.writes.all_us().zip(self.reads.all_us());
        both.filter(|_| used)
            .map(|(writes_us, reads_us)| writes_us + reads_us)
    }

    /// The same for each of the frames written in the window.
    #[must_use]
    pub fn us_per_frame(&self, frames_written: u64) -> Option<f64> {
        let window_us = self.window_us().filter(|_| frames_written > 0);
        window_us.map(|window_us| window_us / precise(frames_written))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds and frames of a trial are far below 2^53"
)]
fn precise(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(count: u64, timed: u64, between_ns: u64, clock_ns: u64) -> Timed {
        Timed {
            count,
            timed,
            between_ns,
            clock_ns,
        }
    }

    #[test]
    fn those_that_were_timed_stand_for_the_others() {
        let mut writes = timed(640, 10, 22_000, 2_000);
        assert_eq!(writes.mean_us(), Some(2.0));
        assert_eq!(writes.all_us(), Some(1_280.0));
        writes.merge(&timed(360, 10, 62_000, 2_000));
        assert_eq!(writes.mean_us(), Some(4.0));
        assert_eq!(writes.all_us(), Some(4_000.0));
        // A clock that is coarse may see nothing of the work.
        assert_eq!(timed(1, 1, 100, 101).mean_us(), Some(0.0));
        assert_eq!(timed(5, 0, 0, 0).all_us(), None);
    }

    #[test]
    fn a_frame_costs_its_part_of_the_window() {
        let cost = TlsCost {
            handshakes: timed(1, 1, 700_000, 0),
            writes: timed(1_000, 10, 20_000, 0),
            reads: timed(500, 10, 40_000, 0),
        };
        assert_eq!(cost.window_us(), Some(4_000.0));
        // A handshake is no part of a frame.
        assert_eq!(cost.us_per_frame(1_000), Some(4.0));
        assert_eq!(cost.us_per_frame(0), None);
        assert_eq!(TlsCost::default().us_per_frame(1_000), None);
        // A target that never answers has nothing to decrypt.
        let silent = TlsCost {
            reads: Timed::default(),
            ..cost
        };
        assert_eq!(silent.us_per_frame(1_000), Some(2.0));
        let unknown = TlsCost {
            reads: timed(3, 0, 0, 0),
            ..cost
        };
        assert_eq!(unknown.us_per_frame(1_000), None);
    }

    #[test]
    fn parts_are_added_each_to_its_own() {
        let one = TlsCost {
            handshakes: timed(1, 2, 3, 4),
            writes: timed(5, 6, 7, 8),
            reads: timed(9, 10, 11, 12),
        };
        let mut two = one;
        two.merge(&one);
        assert_eq!(two.handshakes, timed(2, 4, 6, 8));
        assert_eq!(two.writes, timed(10, 12, 14, 16));
        assert_eq!(two.reads, timed(18, 20, 22, 24));
    }
}
