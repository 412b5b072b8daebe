//! Detects whether a clock was set, or the machine slept, during a trial. Pure: the caller supplies the readings.
//!
//! Plimsoll itself measures with the monotonic clock, which is never set and does not count sleep. But a target's
//! timers may depend on the wall clock. And a machine that slept was not the machine to be measured. Nor was a virtual
//! machine that was stopped and then corrected its clock.

use crate::profile::NS_PER_MS;

/// How far a clock may move, beyond [`SLEW_PPM`], without that being a jump.
pub const ALLOWED_NS: i128 = 50 * NS_PER_MS as i128;
/// The most by which the kernel itself slews a clock, in parts per million (`adjtimex(2)`).
const SLEW_PPM: i128 = 500;
/// Clocks cannot be read at the same moment. A reading that took longer than this is ignored.
pub const READING_MAX_NS: u64 = 5 * NS_PER_MS;

/// The three clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// `CLOCK_MONOTONIC`, read before the others.
    pub monotonic_before_ns: u64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
    /// `CLOCK_BOOTTIME`.
    pub boottime_ns: u64,
    /// `CLOCK_MONOTONIC`, read after the others.
    pub monotonic_after_ns: u64,
}

/// A jump of a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockJump {
    /// The clock that moved relative to the monotonic one.
    pub clock: Moved,
    /// How far it moved beyond what slewing explains, in ms.
    pub by_ms: f64,
}

/// Which clock moved relative to the monotonic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The wall clock: it was set.
    WallClock,
    /// The boot-time clock, which counts sleep: the machine was suspended.
    BootTime,
}

impl ClockJump {
    /// Describes the jump in words, without the amount.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match self.clock {
            Moved::WallClock if self.by_ms < 0.0 => "the wall clock was set back",
            Moved::WallClock => "the wall clock was set forward",
            Moved::BootTime => "the machine was suspended, and its clock moved",
        }
    }
}

/// Detects jumps from successive readings.
#[derive(Debug, Clone, Default)]
pub struct ClockWatch {
    last: Option<Offsets>,
    wall_clock_ns: i128,
    boot_time_ns: i128,
    greatest: Option<ClockJump>,
}

#[derive(Debug, Clone, Copy)]
struct Offsets {
    at_ns: i128,
    wall_clock_ns: i128,
    boot_time_ns: i128,
}

impl ClockWatch {
    /// Adds a reading. One that took too long, because the reader was preempted between two clocks, is skipped: the
    /// next one shows the same.
    pub fn add(&mut self, reading: Reading) {
        let took_ns = reading
            .monotonic_after_ns
            .saturating_sub(reading.monotonic_before_ns);
        if took_ns > READING_MAX_NS {
            return;
        }
        let at_ns = i128::from(reading.monotonic_before_ns) + i128::from(took_ns / 2);
        let now = Offsets {
            at_ns,
            wall_clock_ns: i128::from(reading.realtime_ns) - at_ns,
            boot_time_ns: i128::from(reading.boottime_ns) - at_ns,
        };
        if let Some(last) = self.last {
            let slew_ns = (now.at_ns - last.at_ns) * SLEW_PPM / 1_000_000;
            let beyond = |moved: i128| moved.signum() * (moved.abs() - slew_ns).max(0);
            self.wall_clock_ns += beyond(now.wall_clock_ns - last.wall_clock_ns);
            self.boot_time_ns += beyond(now.boot_time_ns - last.boot_time_ns);
            self.judge(Moved::BootTime, self.boot_time_ns);
            self.judge(Moved::WallClock, self.wall_clock_ns);
        }
        self.last = Some(now);
    }

    /// The greatest jump so far, if there was one. Sleep takes precedence over the wall clock, because it moves the
    /// wall clock as well.
    #[must_use]
    pub fn jump(&self) -> Option<ClockJump> {
        self.greatest
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds, shown in milliseconds"
    )]
    fn judge(&mut self, clock: Moved, by_ns: i128) {
        let by_ms = by_ns as f64 / 1e6;
        let greater = self
            .greatest
            .is_none_or(|greatest| by_ms.abs() > greatest.by_ms.abs() + 1.0);
        if by_ns.abs() > ALLOWED_NS && greater {
            self.greatest = Some(ClockJump { clock, by_ms });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NS_PER_MS;
    const WALL_NS: u64 = 1_700_000_000_000_000_000;

    /// Readings every 100 ms. `wall_ns` and `boot_ns` say how far those clocks have moved at each reading.
    fn watched(
        readings: u64,
        wall_ns: impl Fn(u64) -> i64,
        boot_ns: impl Fn(u64) -> i64,
    ) -> ClockWatch {
        let mut watch = ClockWatch::default();
        for index in 0..readings {
            let now_ns = 1_000 * MS + index * 100 * MS;
            watch.add(Reading {
                monotonic_before_ns: now_ns,
                realtime_ns: (WALL_NS + now_ns).saturating_add_signed(wall_ns(index)),
                boottime_ns: now_ns.saturating_add_signed(boot_ns(index)),
                monotonic_after_ns: now_ns + 2_000,
            });
        }
        watch
    }

    const fn ms(ms: i64) -> i64 {
        ms * 1_000_000
    }

    #[test]
    fn clocks_that_run_alike_have_not_jumped() {
        assert_eq!(watched(1000, |_| 0, |_| 0).jump(), None);
    }

    #[test]
    fn a_step_is_a_jump_in_either_direction_and_a_small_one_is_none() {
        for by in [51, -51, 3_600_000] {
            let jump = watched(20, |at| if at >= 10 { ms(by) } else { 0 }, |_| 0).jump();
            let jump = jump.expect("a jump");
            assert_eq!(jump.clock, Moved::WallClock);
            #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
            let expected = by as f64;
            assert!((jump.by_ms - expected).abs() < 0.1, "{jump:?}");
        }
        assert_eq!(
            watched(20, |at| if at >= 10 { ms(49) } else { 0 }, |_| 0).jump(),
            None
        );
    }

    #[test]
    fn many_small_steps_are_a_jump_and_half_an_hour_of_slewing_is_none() {
        let steps = watched(20, |at| ms(10) * i64::try_from(at).unwrap(), |_| 0);
        assert!(steps.jump().is_some());
        // 500 ppm is 50 µs in 100 ms: 0.9 s in half an hour.
        let slew = watched(18_000, |at| 50_000 * i64::try_from(at).unwrap(), |_| 0);
        assert_eq!(slew.jump(), None);
        // A step is detected despite the slewing.
        let both = watched(
            18_000,
            |at| 50_000 * i64::try_from(at).unwrap() + if at > 9_000 { ms(60) } else { 0 },
            |_| 0,
        );
        assert!(both.jump().is_some());
    }

    #[test]
    fn sleep_is_told_as_sleep_although_the_wall_clock_moves_with_it() {
        let slept = |at| if at >= 5 { ms(8_000) } else { 0 };
        let jump = watched(10, slept, slept).jump().expect("a jump");
        assert_eq!(jump.clock, Moved::BootTime);
        assert!(jump.what().contains("suspended"));
    }

    #[test]
    fn a_reader_that_was_preempted_saw_no_jump() {
        let mut watch = watched(3, |_| 0, |_| 0);
        watch.add(Reading {
            monotonic_before_ns: 1_300 * MS,
            realtime_ns: WALL_NS + 1_400 * MS,
            boottime_ns: 1_400 * MS,
            monotonic_after_ns: 1_400 * MS,
        });
        assert_eq!(watch.jump(), None);
    }
}
