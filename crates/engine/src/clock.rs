//! The engine's clock: monotonic nanoseconds since the trial began.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Monotonic time since an instant that all threads of a trial share.
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

    /// The instant at which it read zero.
    #[must_use]
    pub fn epoch(&self) -> Instant {
        self.epoch
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

/// CPU time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Time that the calling thread was ready to run and waited for a core, a stop by a CPU quota included, in nanoseconds; `None` where the
/// kernel does not count it. (`/proc/thread-self/schedstat`: time on a CPU, time waited, time slices.)
#[must_use]
pub fn thread_wait_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
