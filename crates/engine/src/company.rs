//! A run that shares its trial with others: it begins when they do, and ends when they may.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::clock::Clock;

/// What a run asks those whom it shares a trial with.
pub trait Company: Sync {
    /// All sessions are built. Gives the clock of the trial, whose zero may be yet to come.
    ///
    /// # Errors
    /// There is no beginning.
    fn begin(&self) -> std::io::Result<Clock>;

    /// Every measured frame of this run is answered.
    fn settled(&self);

    /// Whether those of the others are, too. To end is work: a run that ended earlier would keep others from the core on which they wait for their last answers.
    fn may_end(&self) -> bool;
}

/// Nobody else.
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

/// The end as the threads of a run come to it.
pub(crate) struct Ending<'a> {
    company: &'a dyn Company,
    /// Threads that wait for answers.
    unsettled: AtomicUsize,
}

impl<'a> Ending<'a> {
    pub(crate) fn new(company: &'a dyn Company, threads: usize) -> Self {
        Self {
            company,
            unsettled: AtomicUsize::new(threads),
        }
    }

    /// One thread more, told once, waits for none.
    pub(crate) fn settled(&self) {
        if self.unsettled.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.company.settled();
        }
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
