//! The hub behind `/fanout`: what one connection sends goes to all, on whichever worker they are, in one order.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

/// Messages as frames ready to be sent, one behind the other: those of one read of one sender.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The frames.
    pub bytes: Arc<Vec<u8>>,
    /// How many messages they are.
    pub messages: u64,
}

/// A worker, as the others see it.
#[derive(Debug)]
struct Desk {
    /// Its connections to the hub.
    members: AtomicUsize,
    letters: Mutex<Vec<Batch>>,
    /// Wakes it up.
    bell: OwnedFd,
}

/// What the workers share for it.
#[derive(Debug)]
pub struct Hub {
    /// Held while all desks get a batch, so that all have them in the same order.
    order: Mutex<()>,
    desks: Box<[Desk]>,
}

impl Hub {
    /// A hub without connections.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(workers: usize) -> io::Result<Self> {
        let desk = |_| {
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Desk { members: AtomicUsize::new(0), letters: Mutex::default(), bell })
        };
        Ok(Self { order: Mutex::new(()), desks: (0..workers).map(desk).collect::<io::Result<_>>()? })
    }

    /// Becomes readable when `worker` has been called for.
    pub fn bell(&self, worker: usize) -> &OwnedFd {
        &self.desks[worker].bell
    }

    /// Calls for all workers.
    pub fn ring_all(&self) {
        self.desks.iter().for_each(Desk::ring);
    }

    /// A connection of `worker` is one more to get what comes.
    pub fn join(&self, worker: usize) {
        let _order = lock(&self.order);
        self.desks[worker].members.fetch_add(1, Ordering::Relaxed);
    }

    /// One is gone. What has come for the last one is for nobody.
    pub fn leave(&self, worker: usize) {
        let _order = lock(&self.order);
        let desk = &self.desks[worker];
        if desk.members.fetch_sub(1, Ordering::Relaxed) == 1 {
            lock(&desk.letters).clear();
        }
    }

    /// Gives a batch to all workers that have connections. They are called for, but not `from`: it collects by itself, at
    /// the end of its turn.
    pub fn publish(&self, from: usize, batch: &Batch) {
        let _order = lock(&self.order);
        for (number, desk) in self.desks.iter().enumerate() {
            if desk.members.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut letters = lock(&desk.letters);
            letters.push(batch.clone());
            // Who has letters already has been called for, or collects soon.
            if letters.len() == 1 && number != from {
                desk.ring();
            }
        }
    }

    /// Moves what has come for `worker` to `batches`.
    pub fn collect(&self, worker: usize, batches: &mut Vec<Batch>) {
        batches.append(&mut lock(&self.desks[worker].letters));
    }
}

impl Desk {
    fn ring(&self) {
        // It fails only when the worker has been called for ages and has not come.
        let _ = io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends the process, so a lock is never left poisoned.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(text: &str) -> Batch {
        Batch { bytes: Arc::new(text.into()), messages: 1 }
    }

    fn collected(hub: &Hub, worker: usize) -> Vec<Vec<u8>> {
        let mut batches = Vec::new();
        hub.collect(worker, &mut batches);
        batches.iter().map(|batch| batch.bytes.to_vec()).collect()
    }

    fn was_rung(hub: &Hub, worker: usize) -> bool {
        io::read(hub.bell(worker), &mut [0; 8]).is_ok()
    }

    #[test]
    fn workers_with_connections_get_all_in_order() {
        let hub = Hub::new(3).expect("descriptors");
        hub.join(0);
        hub.join(2);
        hub.publish(0, &batch("a"));
        hub.publish(2, &batch("b"));
        assert_eq!(collected(&hub, 0), [b"a", b"b"]);
        assert_eq!(collected(&hub, 1), Vec::<Vec<u8>>::new());
        assert_eq!(collected(&hub, 2), [b"a", b"b"]);
        assert!(!was_rung(&hub, 1) && was_rung(&hub, 2) && !was_rung(&hub, 2));
        assert!(collected(&hub, 2).is_empty());
        hub.publish(2, &batch("c"));
        assert!(was_rung(&hub, 0));
    }

    #[test]
    fn nothing_is_left_for_the_next_one_to_join() {
        let hub = Hub::new(1).expect("descriptors");
        hub.join(0);
        hub.publish(0, &batch("old"));
        hub.leave(0);
        hub.join(0);
        assert!(collected(&hub, 0).is_empty());
    }
}
