//! How much memory the target makes the client hold.

use plimsoll_core::session::HELD_MAX_BYTES;

use crate::run::Options;

/// The account of one engine thread. Each session knows what it holds; this keeps the sum and its limit.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: usize,
    most: usize,
}

impl Held {
    /// The share of one thread, in a process that drives its part of the sessions.
    pub(crate) fn share_of(options: &Options) -> Self {
        let threads = options.cpus.len().max(1);
        let processes = options.part.of.max(1) as usize;
        Self {
            bytes: 0,
            most: HELD_MAX_BYTES / threads / processes,
        }
    }

    /// Records that a session that held `before` bytes now holds `now`. Returns whether the session must end because it
    /// took more than was left.
    pub(crate) fn changed(&mut self, before: usize, now: usize) -> bool {
        self.bytes = self.bytes.saturating_sub(before) + now;
        now > before && self.bytes > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Part;
    use plimsoll_core::profile::Profile;
    use proptest::prelude::*;

    fn options(threads: usize, processes: u32) -> Options {
        let address = ([127, 0, 0, 1], 1).into();
        Options {
            cpus: (0..threads).collect(),
            part: Part {
                index: 0,
                of: processes,
            },
            ..Options::new(address, 1, Profile::quick())
        }
    }

    #[test]
    fn all_shares_together_are_the_limit() {
        for (threads, processes) in [(0, 1), (1, 1), (4, 1), (1, 8)] {
            let share = Held::share_of(&options(threads, processes)).most;
            let all = share * threads.max(1) * processes as usize;
            assert_eq!(all, HELD_MAX_BYTES);
        }
    }

    proptest! {
        /// Whatever the sessions come to hold: once those that must end have ended, the sum is that of the others, and
        /// within the limit.
        #[test]
        fn the_sum_stays_within_the_limit(steps in prop::collection::vec((0_usize..8, 0_usize..400), 1..200)) {
            let mut held = Held { bytes: 0, most: 1000 };
            let mut sessions = [0_usize; 8];
            for (session, now) in steps {
                if held.changed(sessions[session], now) {
                    // It has ended, so it holds nothing any more.
                    prop_assert!(!held.changed(now, 0));
                    sessions[session] = 0;
                } else {
                    sessions[session] = now;
                }
                prop_assert_eq!(held.bytes, sessions.iter().sum::<usize>());
                prop_assert!(held.bytes <= 1000);
            }
        }
    }
}
