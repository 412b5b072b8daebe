//! Lies of the whole process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{MutexGuard, Notify};
use tokio::time::{sleep, sleep_until};

use super::{Lie, Lies};

/// The exit code of `die`: neither success nor bad configuration.
const DIED: i32 = 1;

/// What the lie has done to the process.
#[derive(Debug, Default)]
pub struct Process {
    started: Notify,
    /// `shared_writer`: who writes audio.
    writer: tokio::sync::Mutex<()>,
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

    /// Waits as `shared_writer` does before it writes audio: until nobody else does. Who writes to a full socket keeps the
    /// turn until that caller reads.
    pub async fn turn_to_write(&self, lies: &Lies) -> Option<MutexGuard<'_, ()>> {
        if lies.is(Lie::SharedWriter) { Some(self.writer.lock().await) } else { None }
    }

    /// The send buffer of each connection, in bytes, if it is not the kernel's choice. A large one holds a caller's whole
    /// reply, and then nobody waits.
    #[must_use]
    pub fn send_buffer_bytes(lies: &Lies) -> Option<u32> {
        let bytes = lies.plan.numbers.bytes.filter(|_| lies.is(Lie::SharedWriter))?;
        u32::try_from(bytes).ok()
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
    use futures_util::FutureExt as _;

    use super::*;
    use crate::lies::Plan;

    #[test]
    fn only_a_shared_writer_has_turns() {
        let process = Process::default();
        let turn = |lie| process.turn_to_write(&Lies::new(Plan::of(lie))).now_or_never();
        assert!(turn(Lie::None).is_some_and(|turn| turn.is_none()));
        let held = turn(Lie::SharedWriter).expect("nobody else writes");
        assert!(held.is_some() && turn(Lie::SharedWriter).is_none());
        assert!(turn(Lie::None).is_some(), "an honest gateway waits for nobody");
        drop(held);
        assert!(turn(Lie::SharedWriter).is_some());
        let buffer = |lie| Process::send_buffer_bytes(&Lies::new(Plan::of(lie)));
        assert_eq!((buffer(Lie::SharedWriter), buffer(Lie::LeakMemory)), (Some(16_384), None));
    }

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
