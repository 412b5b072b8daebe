//! How many measured frames are unanswered, integrated over time: one side of Little's law.
//!
//! The loop reports the number at a few places in each turn; nothing is done per frame.

/// The integral so far.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    at_ns: u64,
    stands: u64,
    /// Twice the area, so that the mean of two counts stays a whole number.
    doubled_area: u128,
}

impl Gauge {
    /// The number was `count` since the last call. Answers are stamped with the turn's time, which was the time of that
    /// call.
    pub(crate) fn stood(&mut self, now_ns: u64, count: u64) {
        self.advance(now_ns, 2 * u128::from(count), count);
    }

    /// The number rose evenly to `count` since the last call: frames were written, each at its own time.
    pub(crate) fn rose(&mut self, now_ns: u64, count: u64) {
        self.advance(now_ns, u128::from(self.stands) + u128::from(count), count);
    }

    /// The integral, in frame-nanoseconds.
    pub(crate) fn area(&self) -> u128 {
        self.doubled_area / 2
    }

    fn advance(&mut self, now_ns: u64, doubled: u128, count: u64) {
        self.doubled_area += u128::from(now_ns.saturating_sub(self.at_ns)) * doubled;
        self.at_ns = now_ns;
        self.stands = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_under_what_stood_and_what_rose() {
        let mut gauge = Gauge::default();
        gauge.stood(100, 0);
        gauge.rose(110, 4); // 10 ns at 2 on average
        gauge.stood(200, 4); // 90 ns at 4
        gauge.stood(210, 1); // answers stamped at 200
        assert_eq!(gauge.area(), 20 + 360 + 10);
        // A clock that does not move adds nothing.
        gauge.stood(210, 1_000);
        assert_eq!(gauge.area(), 390);
    }
}
