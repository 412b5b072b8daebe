//! What all sessions share.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use crate::admission::Admission;
use crate::config::Config;
use crate::lies::Lies;
use crate::lies::process::Process;
use crate::metrics::Metrics;
use crate::pool::Pool;
use crate::voices::Voices;

/// The gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) config: Config,
    pub(crate) lies: Arc<Lies>,
    pub(crate) process: Arc<Process>,
    pub(crate) metrics: Metrics,
    pub(crate) admission: Arc<Admission>,
    pub(crate) pool: Pool,
    pub(crate) callers: Callers,
    pub(crate) voices: Voices,
    /// How the end comes near.
    pub(crate) drain: watch::Sender<Drain>,
    /// How often providers were taken.
    taken: AtomicUsize,
}

/// How near the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drain {
    No,
    /// Sessions close when they are quiet.
    WhenQuiet,
    /// They close.
    Now,
}

impl Gateway {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            lies: Arc::new(Lies::new(config.plan)),
            process: Arc::default(),
            metrics: Metrics::default(),
            admission: Admission::new(&config),
            pool: Pool::default(),
            callers: Callers::default(),
            voices: Voices::default(),
            drain: watch::Sender::new(Drain::No),
            taken: AtomicUsize::new(0),
            config,
        })
    }

    /// The providers of the next session, in turn.
    pub(crate) fn place(&self) -> String {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        let places = &self.config.providers;
        places.get(turn % places.len().max(1)).cloned().unwrap_or_default()
    }
}

/// Who gives a caller audio that is not its own.
type Foreign = mpsc::UnboundedSender<Bytes>;

/// The open sessions, for the liar that confuses them.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Foreign>>,
}

impl Callers {
    /// A number for a session that opens.
    pub(crate) fn enter(&self, foreign: Foreign) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open().insert(number, foreign);
        number
    }

    pub(crate) fn leave(&self, number: u64) {
        self.open().remove(&number);
    }

    /// The session after this one; `None` if there is no other.
    pub(crate) fn other(&self, number: u64) -> Option<Foreign> {
        let open = self.open();
        let mut after = open.range((Bound::Excluded(number), Bound::Unbounded));
        let next = after.next().or_else(|| open.first_key_value());
        next.filter(|(other, _)| **other != number).map(|(_, foreign)| foreign.clone())
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Foreign>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_caller_is_the_next_one() {
        let callers = Callers::default();
        let enter = || {
            let (foreign, audio) = mpsc::unbounded_channel();
            (callers.enter(foreign), audio)
        };
        let (first, mut audio) = enter();
        assert!(callers.other(first).is_none());
        let (second, _) = enter();
        let other = callers.other(second).expect("the first");
        other.send(Bytes::from_static(b"x")).expect("open");
        assert_eq!(audio.try_recv().ok(), Some(Bytes::from_static(b"x")));
        callers.leave(first);
        assert!(callers.other(second).is_none());
    }
}
