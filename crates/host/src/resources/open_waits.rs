//! Waits for a CPU that have not ended.
//!
//! The kernel adds a wait to its count when the thread gets the CPU (`run_delay` in `kernel/sched/stats.h`). A thread that
//! gets none at all would seem to have waited for nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::parse::SchedStat;

/// Threads that were ready when last looked at.
#[derive(Debug, Default)]
pub(super) struct OpenWaits(BTreeMap<PathBuf, (SchedStat, u64)>);

impl OpenWaits {
    /// For how long this thread has been ready without running, in ns: since it was first seen ready with these
    /// counts. 0 for a thread that sleeps or has run meanwhile.
    pub(super) fn look(
        &mut self,
        thread: &Path,
        counted: SchedStat,
        ready: bool,
        now_ns: u64,
    ) -> u64 {
        if !ready {
            self.0.remove(thread);
            return 0;
        }
        let begun = match self.0.get(thread) {
            Some((before, begun_ns)) if *before == counted => *begun_ns,
            _ => now_ns,
        };
        self.0.insert(thread.to_owned(), (counted, begun));
        now_ns.saturating_sub(begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_thread_that_gets_no_time_waits() {
        let mut waits = OpenWaits::default();
        let mut look = |name: &str, [on_cpu_ns, wait_ns]: [u64; 2], ready, second| {
            let counted = SchedStat { on_cpu_ns, wait_ns };
            waits.look(Path::new(name), counted, ready, second * SECOND_NS) / SECOND_NS
        };
        assert_eq!(look("a", [7, 0], true, 1), 0);
        assert_eq!(look("a", [7, 0], true, 3), 2);
        assert_eq!(look("a", [7, 0], true, 4), 3);
        assert_eq!(look("b", [7, 0], true, 4), 0, "another thread");
        assert_eq!(
            look("a", [8, 3], true, 5),
            0,
            "it ran, and the kernel counts"
        );
        assert_eq!(look("a", [8, 3], false, 6), 0, "it sleeps");
        assert_eq!(look("a", [8, 3], true, 7), 0, "it has just woken up");
        assert_eq!(look("a", [8, 3], true, 9), 2);
    }
}
