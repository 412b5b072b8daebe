//! A connection that is lost in the broker's crash, and opens again.
//!
//! Only test `replay` has it. From the crash on, a connection that ends is opened anew until the trial is over, however
//! often that fails: a broker that starts refuses connections, or answers that it is not ready.

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S};
use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// How long to wait before each attempt.
const RETRY_NS: u64 = 10 * NS_PER_MS;
/// How long an attempt may take.
const OPEN_WITHIN_NS: u64 = 5 * NS_PER_S;

/// How a connection crossed the crash. All times are nanoseconds since the trial began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Crossing {
    /// How often it was lost.
    pub(crate) lost: u64,
    /// When it was open again, for the last time; `None` if it was not.
    pub(crate) open_ns: Option<u64>,
    /// When the first message arrived after that.
    pub(crate) first_ns: Option<u64>,
    /// When the last message arrived.
    pub(crate) last_ns: Option<u64>,
}

impl Crossing {
    /// That of several connections together: the losses of all, the last that was open, the first and the last message.
    pub(crate) fn all<'a>(crossings: impl Iterator<Item = &'a Self>) -> Self {
        crossings.fold(Self::default(), |all, of| Self {
            lost: all.lost + of.lost,
            open_ns: all.open_ns.max(of.open_ns),
            first_ns: all.first_ns.into_iter().chain(of.first_ns).min(),
            last_ns: all.last_ns.max(of.last_ns),
        })
    }
}

/// Makes the protocol's machine for another connection.
pub(crate) type Make = Box<dyn Fn() -> Option<Box<dyn Dialect>> + Send>;

/// What a connection needs to open again.
pub(crate) struct Reopen {
    make: Make,
    /// The broker does not crash before that.
    crash_ns: u64,
    pub(crate) crossing: Crossing,
}

impl Reopen {
    pub(crate) fn new(crash_ns: u64, make: Make) -> Self {
        Self {
            make,
            crash_ns,
            crossing: Crossing::default(),
        }
    }

    /// The open connection ended. Returns whether it was lost in the crash.
    pub(crate) fn lost(&mut self, now_ns: u64) -> bool {
        let in_the_crash = now_ns >= self.crash_ns;
        if in_the_crash {
            self.crossing.lost += 1;
            self.crossing.open_ns = None;
        }
        in_the_crash
    }

    /// The machine of the next attempt, when it begins, and when it has failed.
    pub(crate) fn attempt(&self, now_ns: u64) -> Option<(Box<dyn Dialect>, u64, u64)> {
        let at_ns = now_ns + RETRY_NS;
        Some(((self.make)()?, at_ns, at_ns + OPEN_WITHIN_NS))
    }

    /// It is open again.
    pub(crate) fn opened(&mut self, now_ns: u64) {
        self.crossing.open_ns = Some(now_ns);
    }

    /// A message arrived.
    pub(crate) fn arrived(&mut self, now_ns: u64) {
        let crossing = &mut self.crossing;
        crossing.last_ns = Some(now_ns);
        if crossing.open_ns.is_some() {
            crossing.first_ns.get_or_insert(now_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopen() -> Reopen {
        Reopen::new(100, Box::new(|| None))
    }

    #[test]
    fn only_the_crash_is_crossed() {
        let mut reopen = reopen();
        assert!(!reopen.lost(99));
        assert_eq!(reopen.crossing, Crossing::default());
        assert!(reopen.lost(100) && reopen.lost(200));
        assert_eq!(reopen.crossing.lost, 2);
    }

    #[test]
    fn the_first_message_is_one_of_the_new_connection() {
        let mut reopen = reopen();
        reopen.arrived(50);
        assert!(reopen.lost(100));
        assert_eq!(reopen.crossing.first_ns, None);
        reopen.opened(300);
        for at_ns in [310, 320] {
            reopen.arrived(at_ns);
        }
        let crossing = reopen.crossing;
        assert_eq!(
            (crossing.open_ns, crossing.first_ns, crossing.last_ns),
            (Some(300), Some(310), Some(320))
        );
        let other = Crossing {
            lost: 2,
            open_ns: Some(305),
            first_ns: None,
            last_ns: Some(315),
        };
        let all = Crossing {
            lost: 3,
            open_ns: Some(305),
            first_ns: Some(310),
            last_ns: Some(320),
        };
        assert_eq!(Crossing::all([crossing, other].iter()), all);
    }
}
