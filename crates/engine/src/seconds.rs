//! The seconds of a run, as reported by several parties: threads of a process, or processes of a trial.

use std::collections::BTreeMap;

use plimsoll_core::ledger::Ledger;

use crate::report::EngineSecond;

/// Gathers each second until every party has reported it. A party reports all its seconds in order, from the first one
/// on.
#[derive(Debug)]
pub struct Seconds {
    parties: Vec<Party>,
    /// Seconds that some party has not reported yet.
    pending: BTreeMap<u64, EngineSecond>,
}

#[derive(Debug, Clone, Default)]
struct Party {
    /// How many seconds it has reported.
    told: u64,
    /// Its totals at the end of the last of them. A run's totals include those of a party that is done.
    ledger: Ledger,
    sessions_open: u64,
    over: bool,
}

impl Seconds {
    /// Starts with this many parties, none of which has reported anything yet.
    #[must_use]
    pub fn new(parties: usize) -> Self {
        Self {
            parties: vec![Party::default(); parties],
            pending: BTreeMap::new(),
        }
    }

    /// Adds a second that one party, identified by its number from 0, reports. Returns the seconds that every party has
    /// now reported, in order.
    pub fn told(&mut self, party: usize, second: EngineSecond) -> Vec<EngineSecond> {
        let party = &mut self.parties[party];
        party.told = second.index + 1;
        party.ledger.clone_from(&second.ledger);
        party.sessions_open = second.sessions_open;
        match self.pending.get_mut(&second.index) {
            Some(merged) => merged.merge(&second),
            None => drop(self.pending.insert(second.index, second)),
        }
        self.complete()
    }

    /// One party will report no more; others may continue. Returns the seconds that this completes, in order.
    pub fn over(&mut self, party: usize) -> Vec<EngineSecond> {
        self.parties[party].over = true;
        self.complete()
    }

    fn complete(&mut self) -> Vec<EngineSecond> {
        let mut complete = Vec::new();
        while let Some(first) = self.pending.first_entry() {
            let index = *first.key();
            let missing = |party: &&Party| party.told <= index;
            if self.parties.iter().filter(missing).any(|party| !party.over) {
                break;
            }
            let mut second = first.remove();
            for gone in self.parties.iter().filter(missing) {
                second.ledger.merge(&gone.ledger);
                second.sessions_open += gone.sessions_open;
            }
            complete.push(second);
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CoreShares;
    use plimsoll_core::latency::{LatencySet, Series};

    fn second(index: u64, frames_sent: u64, open: u64) -> EngineSecond {
        let mut latency = LatencySet::new();
        latency.record_ns(Series::SendLag, 1_000);
        EngineSecond {
            index,
            latency,
            ledger: Ledger {
                frames_sent,
                ..Ledger::default()
            },
            sessions_open: open,
            busy: CoreShares::default(),
        }
    }

    fn seen(seconds: Vec<EngineSecond>) -> Vec<(u64, u64, u64, u64)> {
        let seen = |second: &EngineSecond| {
            let samples = second.latency.histogram(Series::SendLag).len();
            (
                second.index,
                second.ledger.frames_sent,
                second.sessions_open,
                samples,
            )
        };
        seconds.iter().map(seen).collect()
    }

    #[test]
    fn a_second_waits_for_the_slowest() {
        let mut seconds = Seconds::new(2);
        assert_eq!(seen(seconds.told(0, second(0, 5, 1))), []);
        assert_eq!(seen(seconds.told(0, second(1, 9, 1))), []);
        assert_eq!(seen(seconds.told(1, second(0, 50, 2))), [(0, 55, 3, 2)]);
        assert_eq!(seen(seconds.told(1, second(1, 60, 2))), [(1, 69, 3, 2)]);
    }

    /// Totals never run backwards because one party was done a second before the others.
    #[test]
    fn who_is_done_counts_on_with_its_last_totals() {
        let mut seconds = Seconds::new(3);
        for party in 0..3 {
            seconds.told(party, second(0, 10, 4));
        }
        assert_eq!(seen(seconds.over(0)), []);
        assert_eq!(seen(seconds.told(1, second(1, 20, 4))), []);
        assert_eq!(seen(seconds.told(2, second(1, 30, 4))), [(1, 60, 12, 2)]);
        assert_eq!(seen(seconds.told(1, second(2, 21, 3))), []);
        // The last party that the second waited for ends without reporting it.
        assert_eq!(seen(seconds.over(2)), [(2, 61, 11, 1)]);
        assert_eq!(seen(seconds.over(1)), []);
    }

    #[test]
    fn several_seconds_can_be_complete_at_once() {
        let mut seconds = Seconds::new(2);
        seconds.told(0, second(0, 1, 1));
        seconds.told(0, second(1, 2, 1));
        assert_eq!(seen(seconds.over(1)), [(0, 1, 1, 1), (1, 2, 1, 1)]);
    }
}
