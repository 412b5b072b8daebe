//! Lies of the whole process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until};

use super::{Lie, Lies};

/// The exit code of `die`: neither success nor bad configuration.
const DIED: i32 = 1;

/// What the lie has done to the process.
#[derive(Debug, Default)]
pub struct Process {
    started: Notify,
    leaked: Mutex<Vec<Vec<u8>>>,
}

impl Process {
    /// A session is ready.
    pub fn session_started(&self) {
        self.started.notify_one();
    }

    /// A message of a client came, while so many sessions are open.
    pub fn message_came(&self, lies: &Lies, sessions: u64) {
        let until = Instant::now() + lies.work(sessions);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        if lies.is(Lie::LeakMemory) {
            let bytes = usize::try_from(lies.plan.numbers.bytes.unwrap_or(0)).unwrap_or(0);
            // Ones, because the kernel gives no memory for zeros that nobody has written.
            self.leaked.lock().unwrap_or_else(PoisonError::into_inner).push(vec![1; bytes]);
        }
    }

    /// Does what the lie has the process do, from its first session on.
    pub async fn act(self: Arc<Self>, lies: Arc<Lies>) {
        if !lies.is(Lie::Stall) && !lies.is(Lie::Die) {
            return;
        }
        self.started.notified().await;
        let mut next = Instant::now() + lies.plan.after();
        if lies.is(Lie::Die) {
            sleep_until(next.into()).await;
            std::process::exit(DIED);
        }
        let period = Duration::from_millis(lies.plan.numbers.period_ms.unwrap_or(u64::MAX));
        loop {
            sleep_until(next.into()).await;
            // Of the only thread: nothing is accepted, read or written.
            std::thread::sleep(lies.plan.duration());
            next += period;
        }
    }

    /// Waits as `slow_accept` does before it accepts a connection.
    pub async fn before_accept(lies: &Lies) {
        if lies.is(Lie::SlowAccept) {
            sleep(lies.plan.duration()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::Plan;

    #[test]
    fn messages_leak_and_spin() {
        let process = Process::default();
        process.message_came(&Lies::new(Plan::of(Lie::None)), 1000);
        assert_eq!(process.leaked.lock().expect("lock").len(), 0);
        process.message_came(&Lies::new(Plan::of(Lie::LeakMemory)), 1);
        assert_eq!(process.leaked.lock().expect("lock").concat().len(), 4096);
        let began = Instant::now();
        process.message_came(&Lies::new(Plan::of(Lie::Spin)), 1000);
        assert!(began.elapsed() >= Duration::from_millis(10));
    }
}
