//! What tests of all crates share.
//!
//! The test runner knows only passed and failed, and it hides what a passing test prints. A test may find that it
//! cannot test anything here (no control groups, one core), or that a disturbed machine gave it no conclusive answer.
//! It then calls [`skipped!`] and returns. The runner counts it as passed; `scripts/test.sh` subtracts it from that
//! count, and lists it with its reason at the end.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use plimsoll_testing_attribute::measures;
use socket2::{Domain, Socket, Type};

/// Names the file to which skips are appended, one per line: `NAME: reason`.
pub const LOG_VARIABLE: &str = "PLIMSOLL_SKIPPED_LOG";

/// Reports that the running test could not test anything, and why. The test then returns.
#[macro_export]
macro_rules! skipped {
    ($($reason:tt)*) => {
        $crate::note(env!("CARGO_CRATE_NAME"), &format!($($reason)*))
    };
}

thread_local! {
    /// Whether the test on this thread has been written down.
    static NOTED: Cell<bool> = const { Cell::new(false) };
}

/// Appends the line; called by [`skipped!`].
pub fn note(of: &str, reason: &str) {
    // The runner names a test's thread after the test.
    let thread = std::thread::current();
    let line = line_of(of, thread.name().unwrap_or("a thread of it"), reason);
    eprintln!("SKIPPED: {line}");
    // A test is counted once, whatever else it could not test.
    if NOTED.replace(true) {
        return;
    }
    if let Some(log) = std::env::var_os(LOG_VARIABLE).filter(|log| !log.is_empty()) {
        let opened = OpenOptions::new().create(true).append(true).open(&log);
        // One write, so that two tests at once do not mix their lines. An uncounted skip would be a pass, hence the
        // panic.
        let written = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("{LOG_VARIABLE}={}: {error}", log.display()));
    }
}

/// Does the same with each of these, at most `most` at once: what mostly waits does so together.
///
/// # Panics
/// If one of them does.
pub fn side_by_side<T>(
    most: usize,
    all: impl IntoIterator<Item = T, IntoIter: Send>,
    each: impl Fn(T) + Sync,
) {
    let left = Mutex::new(all.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..most {
            scope.spawn(|| {
                while let Some(one) = next() {
                    each(one);
                }
            });
        }
    });
}

/// Waits until a condition holds. If it never does, the test fails and names the condition.
///
/// # Panics
/// If it does not hold within half a minute.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An address where nobody listens, and a socket that keeps everybody else from it.
///
/// # Panics
/// If there is no free port.
#[must_use]
pub fn nobody_listens() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).expect("a free port");
    let address = socket.local_addr().expect("an address");
    (socket, address.as_socket().expect("an IP address"))
}

/// One line, whatever the reason contains.
fn line_of(of: &str, test: &str, reason: &str) -> String {
    let reason: Vec<&str> = reason.split_whitespace().collect();
    format!("{of}::{test}: {}", reason.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_one_line_with_the_tests_name() {
        let line = line_of("lies", "starved::a_search", "no control group:\n  refused");
        assert_eq!(line, "lies::starved::a_search: no control group: refused");
    }

    #[test]
    fn the_runner_names_the_thread_after_the_test() {
        let name = std::thread::current().name().map(str::to_owned);
        let expected = "tests::the_runner_names_the_thread_after_the_test";
        // With --test-threads=1 the runner runs tests on its own thread.
        assert!(
            [expected, "main"].contains(&name.as_deref().unwrap_or("")),
            "{name:?}"
        );
    }
}
