//! Counters with a ceiling that all workers share: sessions, and requests in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many there are and how many there may be. Touched about once per session and second, never per frame.
#[derive(Debug)]
pub struct Limit {
    taken: AtomicUsize,
    max: usize,
}

/// One unit, given back when dropped.
#[derive(Debug)]
pub struct Permit(Arc<Limit>);

impl Limit {
    /// A ceiling of `max`; 0 is none.
    pub fn new(max: usize) -> Arc<Self> {
        let max = if max == 0 { usize::MAX } else { max };
        Arc::new(Self { taken: AtomicUsize::new(0), max })
    }

    /// A unit, if there is one left. The count guards no other memory, so its order does not matter.
    pub fn take(self: &Arc<Self>) -> Option<Permit> {
        let take = |taken| (taken < self.max).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(Permit(Arc::clone(self)))
    }

    /// Units taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_run_out_and_come_back() {
        let limit = Limit::new(1);
        let permit = limit.take().expect("one");
        assert!(limit.take().is_none());
        drop(permit);
        assert_eq!(limit.taken(), 0);
        assert!(limit.take().is_some());
        let endless = Limit::new(0);
        assert_eq!((0..1000).map_while(|_| endless.take()).collect::<Vec<_>>().len(), 1000);
    }
}
