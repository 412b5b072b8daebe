//! A limit for the whole gateway: open sessions, requests in flight.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// At most `max` permits at a time, over all workers.
#[derive(Debug)]
pub struct Limit {
    semaphore: Arc<Semaphore>,
    max: usize,
}

impl Limit {
    /// 0 is no limit.
    pub fn new(max: usize) -> Self {
        let max = if max == 0 { Semaphore::MAX_PERMITS } else { max };
        Self { semaphore: Arc::new(Semaphore::new(max)), max }
    }

    /// A permit, unless all are taken. It is given back when it is dropped.
    pub fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.semaphore.clone().try_acquire_owned().ok()
    }

    /// Permits that are taken now.
    pub fn in_use(&self) -> usize {
        self.max - self.semaphore.available_permits()
    }
}
