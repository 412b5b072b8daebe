//! Turns at using the machine. (Cargo runs test programs one after the other, and the tests of one side by side.)

use std::sync::{Condvar, Mutex, PoisonError};

/// The whole machine: as many small trials as run side by side. `scripts/test.sh` lets more tests than this run at
/// once, because those that wait for the whole machine take none of it.
const ALL: u32 = 4;

static FREE: Mutex<u32> = Mutex::new(ALL);
static GIVEN_BACK: Condvar = Condvar::new();

/// A share of the machine, given back when dropped.
pub(crate) struct Turn(u32);

/// Waits until no other trial of this test program runs.
pub(crate) fn turn() -> Turn {
    take(ALL)
}

/// The same, for a trial so small that four do not disturb one another: about thirty sessions take a few hundredths of
/// a core.
pub(crate) fn shared_turn() -> Turn {
    take(1)
}

/// The turn for an attempt at a small trial. The first one runs beside others. If that is disturbed, the trial beside
/// it may have been the cause, so the next ones run alone.
pub(crate) fn turn_of_attempt(attempt: u32) -> Turn {
    if attempt == 1 { shared_turn() } else { turn() }
}

fn take(share: u32) -> Turn {
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut free = GIVEN_BACK
        .wait_while(free, |free| *free < share)
        .unwrap_or_else(PoisonError::into_inner);
    *free -= share;
    Turn(share)
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        GIVEN_BACK.notify_all();
    }
}
