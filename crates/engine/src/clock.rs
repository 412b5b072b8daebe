//! The engine's clock: monotonic nanoseconds since the trial began.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Monotonic time since an instant that all threads and processes of a trial share.
///
/// It is serialized as its zero on `CLOCK_MONOTONIC`, which all processes share and which [`Instant`] does not expose.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that reads zero now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }

    /// A clock that starts after `delay`, and reads zero until then.
    #[must_use]
    pub fn start_in(delay: Duration) -> Self {
        Self {
            epoch: Instant::now() + delay,
        }
    }

    /// A clock that reads zero at this moment.
    #[must_use]
    pub fn at(epoch: Instant) -> Self {
        Self { epoch }
    }

    /// A clock that reads zero at this moment of `CLOCK_MONOTONIC`, in nanoseconds.
    #[must_use]
    pub fn at_monotonic_ns(zero_ns: u64) -> Self {
        Self::at_monotonic(Duration::from_nanos(zero_ns))
    }

    fn at_monotonic(zero: Duration) -> Self {
        let now = SameMoment::now();
        let passed = now.monotonic.saturating_sub(zero);
        let left = zero.saturating_sub(now.monotonic);
        let epoch = now.instant.checked_sub(passed).unwrap_or(now.instant) + left;
        Self { epoch }
    }

    /// Waits until the clock starts; returns at once if it already runs.
    pub fn wait(&self) {
        std::thread::sleep(self.epoch.saturating_duration_since(Instant::now()));
    }

    /// The instant at which the clock reads zero.
    #[must_use]
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The same on `CLOCK_MONOTONIC`, in nanoseconds.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "584 years of nanoseconds fit"
    )]
    pub fn epoch_monotonic_ns(&self) -> u64 {
        self.epoch_monotonic().as_nanos() as u64
    }

    fn epoch_monotonic(&self) -> Duration {
        let now = SameMoment::now();
        let passed = now.instant.saturating_duration_since(self.epoch);
        let left = self.epoch.saturating_duration_since(now.instant);
        (now.monotonic + left).saturating_sub(passed)
    }

    /// Nanoseconds since the trial began.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "584 years of nanoseconds fit"
    )]
    pub fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

impl Serialize for Clock {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.epoch_monotonic().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Clock {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Duration::deserialize(from).map(Self::at_monotonic)
    }
}

/// The same moment as an [`Instant`] and on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy)]
struct SameMoment {
    instant: Instant,
    monotonic: Duration,
}

impl SameMoment {
    /// Reads both clocks now. An interruption between the two readings would look like a difference between the clocks,
    /// so the closest of several readings counts.
    fn now() -> Self {
        let read = |_| {
            let instant = Instant::now();
            let time = clock_gettime(ClockId::Monotonic);
            let monotonic = Duration::new(
                time.tv_sec.unsigned_abs(),
                u32::try_from(time.tv_nsec).unwrap_or(0),
            );
            (instant.elapsed(), Self { instant, monotonic })
        };
        let readings: [_; 8] = std::array::from_fn(read);
        let closest = readings.iter().min_by_key(|(took, _)| *took);
        closest.unwrap_or(&readings[0]).1
    }
}

/// CPU time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Time that the calling thread was ready to run and waited for a core, in nanoseconds. This includes the time for
/// which a CPU quota stopped it. `None` where the kernel does not count it. (`/proc/thread-self/schedstat`: time on a
/// CPU, time waited, time slices.)
#[must_use]
pub fn thread_wait_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(clock: Clock) -> Clock {
        let line = serde_json::to_string(&clock).expect("it can be told");
        serde_json::from_str(&line).expect("what is told can be read")
    }

    #[test]
    fn a_clock_that_is_told_runs_with_the_first() {
        for clock in [
            Clock::start(),
            Clock::start_in(Duration::from_secs(3600)),
            Clock {
                epoch: Instant::now()
                    .checked_sub(Duration::from_millis(70))
                    .unwrap(),
            },
        ] {
            let again = Clock::at_monotonic_ns(clock.epoch_monotonic_ns());
            for other in [told(clock), again] {
                let apart = (clock.epoch.saturating_duration_since(other.epoch))
                    .max(other.epoch.saturating_duration_since(clock.epoch));
                assert!(apart < Duration::from_micros(50), "{apart:?}");
            }
        }
    }

    #[test]
    fn it_reads_zero_until_it_runs() {
        let clock = Clock::start_in(Duration::from_millis(20));
        assert_eq!(clock.now_ns(), 0);
        clock.wait();
        assert!(Instant::now() >= clock.epoch());
        // It already runs.
        clock.wait();
    }
}
