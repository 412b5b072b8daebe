//! A caller whose gateway is killed: its connection ends, and it comes back within 5 s.

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S};
use plimsoll_core::schedule::mix;

/// Over what time callers come back, from the kill on.
const OVER_NS: u64 = 5 * NS_PER_S;
/// How long to wait before another attempt: a gateway that starts refuses connections.
const RETRY_NS: u64 = 100 * NS_PER_MS;
/// How long an attempt may take.
const READY_WITHIN_NS: u64 = 10 * NS_PER_S;
/// What tells this draw from the others of a caller.
const DRAW: u64 = 0x4241_434B;

/// Why a session that did not come back has died.
pub(crate) const NOT_BACK: &str = "not ready again after the gateway's restart";

/// How a caller crosses the kill of its gateway. Only the first connection that ends after it is excused.
#[derive(Debug)]
pub(crate) struct Back {
    /// The gateway is not killed before that.
    killed_ns: u64,
    /// When the caller tries first.
    returns_ns: u64,
    was_lost: bool,
    is_away: bool,
}

impl Back {
    /// A caller with this seed, whose gateway is killed then. When it comes back is drawn evenly.
    pub(crate) fn after(killed_ns: u64, seed: u64) -> Self {
        Self {
            killed_ns,
            returns_ns: killed_ns + mix(seed ^ DRAW) % OVER_NS,
            was_lost: false,
            is_away: false,
        }
    }

    /// The connection, or an attempt, ended. Whether the caller comes back.
    pub(crate) fn lost(&mut self, now_ns: u64) -> bool {
        if !self.was_lost && now_ns >= self.killed_ns {
            self.was_lost = true;
            self.is_away = true;
        }
        self.is_away
    }

    /// When the next attempt begins, and when it has failed; `None` if the caller is not away.
    pub(crate) fn attempt(&self, now_ns: u64) -> Option<(u64, u64)> {
        let at_ns = self.returns_ns.max(now_ns + RETRY_NS);
        self.is_away.then_some((at_ns, at_ns + READY_WITHIN_NS))
    }

    pub(crate) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Its session is ready again, or for the first time.
    pub(crate) fn opened(&mut self) {
        self.is_away = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_come_back_evenly_over_five_seconds() {
        let mut returns: Vec<u64> = (0..1_000)
            .map(|seed| Back::after(NS_PER_S, mix(seed)).returns_ns)
            .collect();
        returns.sort_unstable();
        assert!(returns[0] >= NS_PER_S && returns[999] < 6 * NS_PER_S);
        for (share, at_ns) in [(250, 2_250), (500, 3_500), (750, 4_750)] {
            let off_ms = (returns[share] / NS_PER_MS).abs_diff(at_ns);
            assert!(off_ms < 250, "{off_ms} ms");
        }
    }

    #[test]
    fn only_the_kill_is_excused() {
        let mut back = Back::after(1_000, 7);
        assert!(!back.lost(999));
        assert_eq!(back.attempt(999), None);
        assert!(back.lost(1_000));
        let (at_ns, by_ns) = back.attempt(1_000).expect("it comes back");
        assert!(1_000 + RETRY_NS <= at_ns && at_ns < by_ns);
        // An attempt that fails is no loss.
        assert!(back.lost(at_ns));
        let (again_ns, _) = back.attempt(at_ns).expect("once more");
        assert!(again_ns >= at_ns + RETRY_NS);
        back.opened();
        assert!(!back.lost(again_ns), "the new gateway ended it");
    }
}
