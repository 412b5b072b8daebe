//! Whose fault a late write is: the client's (send lag) or the target's (send wait).

/// What kept a due frame from being written, as far as it was the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    /// Since when the protocol allowed it, if the session last held a frame back.
    pub(crate) held_until_ns: Option<u64>,
    /// When the socket first refused a byte of the backlog, if there is one.
    pub(crate) blocked_since_ns: Option<u64>,
    /// When the socket last had room again.
    pub(crate) unblocked_at_ns: u64,
}

/// The lateness of a frame. The two parts together are the time from its schedule to its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lateness {
    /// The client's own.
    pub(crate) lag_ns: u64,
    /// The target's.
    pub(crate) wait_ns: u64,
}

impl Lateness {
    /// Of a frame that was due and written at these times.
    pub(crate) fn of(due_ns: u64, write_ns: u64, kept: &Kept) -> Self {
        let late_ns = write_ns.saturating_sub(due_ns);
        let allowed_ns = kept.held_until_ns.map_or(due_ns, |until| until.max(due_ns));
        let held_ns = allowed_ns - due_ns;
        // A socket that was full while the frame was held back kept nothing from being written. So the two waits do not
        // overlap.
        let blocked_ns = kept.blocked_since_ns.map_or(0, |since_ns| {
            kept.unblocked_at_ns
                .saturating_sub(since_ns.max(allowed_ns))
        });
        let wait_ns = held_ns.saturating_add(blocked_ns).min(late_ns);
        Self {
            lag_ns: late_ns - wait_ns,
            wait_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FREE: Kept = Kept {
        held_until_ns: None,
        blocked_since_ns: None,
        unblocked_at_ns: 0,
    };

    /// Lag and wait of a frame that was due at 100 and written at 200.
    fn of(kept: Kept) -> (u64, u64) {
        let Lateness { lag_ns, wait_ns } = Lateness::of(100, 200, &kept);
        (lag_ns, wait_ns)
    }

    fn held(until_ns: u64) -> Kept {
        Kept {
            held_until_ns: Some(until_ns),
            ..FREE
        }
    }

    fn blocked(since_ns: u64, until_ns: u64) -> Kept {
        Kept {
            blocked_since_ns: Some(since_ns),
            unblocked_at_ns: until_ns,
            ..FREE
        }
    }

    #[test]
    fn what_nothing_kept_is_lag() {
        assert_eq!(of(FREE), (100, 0));
        assert_eq!(of(held(60)), (100, 0));
        assert_eq!(of(blocked(50, 70)), (100, 0));
        let early = Lateness::of(100, 90, &held(95));
        assert_eq!((early.lag_ns, early.wait_ns), (0, 0));
    }

    #[test]
    fn what_the_protocol_held_back_is_wait_until_it_was_freed() {
        assert_eq!(of(held(180)), (20, 80));
        assert_eq!(of(held(200)), (0, 100));
    }

    #[test]
    fn what_a_full_socket_refused_is_wait_until_it_had_room() {
        assert_eq!(of(blocked(50, 180)), (20, 80));
        assert_eq!(of(blocked(130, 180)), (50, 50));
    }

    #[test]
    fn held_back_and_then_refused_is_counted_once() {
        let both = |until_ns, since_ns, room_ns| {
            of(Kept {
                held_until_ns: Some(until_ns),
                ..blocked(since_ns, room_ns)
            })
        };
        assert_eq!(both(140, 150, 190), (20, 80));
        assert_eq!(both(140, 50, 120), (60, 40));
        assert_eq!(both(140, 50, 190), (10, 90));
    }

    proptest! {
        /// Whatever the session and the socket say: all of the lateness is somebody's, and none is counted twice.
        #[test]
        fn the_parts_are_the_whole(times in prop::array::uniform5(0_u64..1_000), held in any::<bool>(), full in any::<bool>()) {
            let [due_ns, write_ns, until_ns, since_ns, room_ns] = times;
            let kept = Kept {
                held_until_ns: held.then_some(until_ns),
                blocked_since_ns: full.then_some(since_ns),
                unblocked_at_ns: room_ns,
            };
            let Lateness { lag_ns, wait_ns } = Lateness::of(due_ns, write_ns, &kept);
            prop_assert_eq!(lag_ns + wait_ns, write_ns.saturating_sub(due_ns));
            if !held && !full {
                prop_assert_eq!(wait_ns, 0);
            }
        }
    }
}
