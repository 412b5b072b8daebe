//! Turns at using the machine. (Cargo runs test programs one after the other, and the tests of one side by side.)

use std::cell::Cell;
use std::io::Write as _;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The whole machine: as many small trials as run side by side. `scripts/test.sh` lets many more tests than this run at
/// once, because those that wait for the whole machine take none of it: they come last, one after the other.
const ALL: u32 = 12;

static FREE: Mutex<u32> = Mutex::new(ALL);
static GIVEN_BACK: Condvar = Condvar::new();

thread_local! {
    /// The time of the whole machine that the turns of this thread took, since it was last asked for.
    static TAKEN: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The time that the turns of this thread took of the whole machine, since the last call.
pub(super) fn machine_time_taken() -> Duration {
    TAKEN.take()
}

/// A share of the machine, given back when dropped.
pub(crate) struct Turn {
    share: u32,
    waited: Duration,
    began: Instant,
}

/// Waits until no other trial of this test program runs.
pub(crate) fn turn() -> Turn {
    take(ALL)
}

/// The same, for a trial so small that [`ALL`] of them do not disturb one another: about thirty sessions take a few hundredths of a
/// core.
pub(crate) fn shared_turn() -> Turn {
    take(1)
}

/// The same, for what takes more than a small trial, but does not need the whole machine.
pub(crate) fn half_turn() -> Turn {
    take(ALL / 2)
}

/// The turn for one of so many attempts at a small trial. The first one runs beside others. If that is disturbed, the
/// trials beside it may have been the cause, so the next one has at most three beside it, and the last one runs alone.
pub(crate) fn turn_of_attempt(attempt: u32, most: u32) -> Turn {
    match attempt {
        1 => shared_turn(),
        last if last == most => turn(),
        _ => take(ALL / 4),
    }
}

fn take(share: u32) -> Turn {
    let asked = Instant::now();
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut free = GIVEN_BACK
        .wait_while(free, |free| *free < share)
        .unwrap_or_else(PoisonError::into_inner);
    *free -= share;
    let began = Instant::now();
    Turn {
        share,
        waited: began - asked,
        began,
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.share;
        GIVEN_BACK.notify_all();
        TAKEN.set(TAKEN.get() + self.machine_time());
        self.log();
    }
}

impl Turn {
    /// The time that it has taken of the whole machine: its share of it.
    pub(crate) fn machine_time(&self) -> Duration {
        self.began.elapsed() * self.share / ALL
    }

    /// Its share, the seconds waited for it, and the seconds that it was held.
    fn log(&self) {
        let (waited_s, held_s) = (
            self.waited.as_secs_f64(),
            self.began.elapsed().as_secs_f64(),
        );
        log(&format!("{} {waited_s:.1} {held_s:.1}", self.share));
    }
}

/// Appends what happened, and the name of the test, to the file that `PLIMSOLL_TURNS_LOG` names. It shows where the time
/// of these tests goes.
pub(super) fn log(what: &str) {
    let Some(file) = std::env::var_os("PLIMSOLL_TURNS_LOG") else {
        return;
    };
    let test = std::thread::current();
    let line = format!("{what} {}\n", test.name().unwrap_or("?"));
    let log = std::fs::File::options()
        .append(true)
        .create(true)
        .open(file);
    // A test does not fail by its log.
    let _ = log.and_then(|mut log| log.write_all(line.as_bytes()));
}
