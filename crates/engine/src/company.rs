//! A run that shares its trial with other runs: they begin together and end together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::clock::Clock;

/// How a run coordinates with the other runs of its trial.
pub trait Company: Sync {
    /// Called when all sessions are built. Returns the clock of the trial, whose zero may be in the future.
    ///
    /// # Errors
    /// The trial does not begin.
    fn begin(&self) -> std::io::Result<Clock>;

    /// Called when every measured frame of this run is answered.
    fn settled(&self);

    /// Whether the other runs are settled, too. Ending takes CPU time: a run that ended earlier would keep others from
    /// the core on which they wait for their last answers.
    fn may_end(&self) -> bool;
}

/// A run without others.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

impl Company for Alone {
    fn begin(&self) -> std::io::Result<Clock> {
        Ok(Clock::start())
    }

    fn settled(&self) {}

    fn may_end(&self) -> bool {
        true
    }
}

/// The end of a run, which its threads reach one by one.
pub(crate) struct Ending<'a> {
    company: &'a dyn Company,
    /// Threads that still wait for answers.
    unsettled: AtomicUsize,
    /// Whether there is no reason to go on, whatever is unsettled.
    over: AtomicBool,
}

impl<'a> Ending<'a> {
    pub(crate) fn new(company: &'a dyn Company, threads: usize) -> Self {
        Self {
            company,
            unsettled: AtomicUsize::new(threads),
            over: AtomicBool::new(false),
        }
    }

    /// Called once by each thread, when it waits for no more answers.
    pub(crate) fn settled(&self) {
        if self.unsettled.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.company.settled();
        }
    }

    /// Ends the run at once: whoever gets its seconds has seen enough.
    pub(crate) fn is_now(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_come(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn may_come(&self) -> bool {
        self.company.may_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Company for Counting {
        fn begin(&self) -> std::io::Result<Clock> {
            Err(std::io::ErrorKind::Other.into())
        }

        fn settled(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn may_end(&self) -> bool {
            self.0.load(Ordering::Relaxed) > 0
        }
    }

    #[test]
    fn a_run_has_settled_when_its_last_thread_has() {
        let company = Counting::default();
        let ending = Ending::new(&company, 3);
        ending.settled();
        ending.settled();
        assert!(!ending.may_come());
        ending.settled();
        assert!(ending.may_come());
        assert_eq!(company.0.load(Ordering::Relaxed), 1);
        assert!(Ending::new(&Alone, 2).may_come());
    }
}
