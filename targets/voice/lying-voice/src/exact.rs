//! A timer that is exact to some microseconds. The runtime's own are to a millisecond, which is too coarse for delays that a
//! test holds against what a client measured.
//!
//! The kernel wakes a sleeper of `epoll_wait` some 50 µs late to save power, but not one that waits for a timer's descriptor.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// The timer. It takes a descriptor when it is first used.
#[derive(Debug, Default)]
pub(crate) struct Timer(Option<AsyncFd<OwnedFd>>);

impl Timer {
    /// Returns at that moment, at once if it has passed.
    pub(crate) async fn until(&mut self, due: Instant) {
        if due <= Instant::now() {
            return;
        }
        if self.wait(due).await.is_err() {
            // Out of descriptors: late by a millisecond is better than never.
            tokio::time::sleep_until(due.into()).await;
        }
    }

    async fn wait(&mut self, due: Instant) -> io::Result<()> {
        let timer = match &mut self.0 {
            Some(timer) => timer,
            none => none.insert(timer()?),
        };
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            // Setting it also takes back that it has rung.
            timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once(left))?;
            let mut rung = timer.readable().await?;
            rung.clear_ready();
        }
    }
}

#[expect(unsafe_code, reason = "the runtime has no safe way to wait for a descriptor of this kind")]
fn timer() -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    // SAFETY: an `OwnedFd` is open until it is dropped, and is always the same descriptor.
    Ok(unsafe { AsyncFd::register(timer) }?)
}

fn once(after: Duration) -> Itimerspec {
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let tv_sec = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
    Itimerspec { it_interval: zero, it_value: Timespec { tv_sec, tv_nsec: after.subsec_nanos().into() } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_never_early_and_hardly_late() {
        let mut timer = Timer::default();
        let mut late = Vec::new();
        for us in [1, 300, 700, 1300, 2500, 900, 1100, 1900, 2100, 3300] {
            let due = Instant::now() + Duration::from_micros(us);
            timer.until(due).await;
            late.push(Instant::now().checked_duration_since(due).expect("not early"));
        }
        timer.until(Instant::now()).await;
        // The best of them: a busy machine makes any one late. The runtime's own timer is 0.5 ms late on average.
        late.sort_unstable();
        assert!(late[2] < Duration::from_micros(400), "{late:?}");
    }

    #[tokio::test]
    async fn it_can_be_given_up_and_set_anew() {
        let mut timer = Timer::default();
        let soon = Duration::from_millis(5);
        for _ in 0..3 {
            let given_up = tokio::time::timeout(soon, timer.until(Instant::now() + Duration::from_secs(60))).await;
            assert!(given_up.is_err());
        }
        let due = Instant::now() + soon;
        timer.until(due).await;
        assert!(Instant::now() >= due);
    }
}
