//! A counter with a ceiling: sessions for admission, requests for the gateway-wide cap.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many of something exist now, and how many may. Taken at most once per flush, never per frame.
#[derive(Debug)]
pub struct Limit {
    in_use: AtomicUsize,
    max: usize,
}

/// One unit of a [`Limit`], given back on drop, so that no way out of a session can forget it.
#[derive(Debug)]
pub struct Permit(Arc<Limit>);

impl Limit {
    /// A limit of `max`, where 0 means none.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { in_use: AtomicUsize::new(0), max: if max == 0 { usize::MAX } else { max } })
    }

    /// Takes a unit, unless all are taken.
    pub fn acquire(self: &Arc<Self>) -> Option<Permit> {
        // Relaxed: the count guards no other memory.
        self.in_use
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |in_use| (in_use < self.max).then_some(in_use + 1))
            .is_ok()
            .then(|| Permit(Arc::clone(self)))
    }

    /// Units that are taken now.
    pub fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_out_its_units_and_takes_them_back() {
        let limit = Limit::new(2);
        let first = limit.acquire().expect("free");
        let _second = limit.acquire().expect("free");
        assert!(limit.acquire().is_none());
        drop(first);
        assert_eq!(limit.in_use(), 1);
        assert!(limit.acquire().is_some());
    }

    #[test]
    fn zero_is_no_limit() {
        let limit = Limit::new(0);
        let permits: Vec<_> = (0..1000).map_while(|_| limit.acquire()).collect();
        assert_eq!(permits.len(), 1000);
    }
}
