//! Hands the requests of the schedule to the connections of a pool.

use plimsoll_core::recorder::Recorder;
use plimsoll_core::session::Arrivals;
use plimsoll_workload_http::free::Free;
use plimsoll_workload_http::outcome::RequestOutcome;
use plimsoll_workload_http::schedule::Schedule;

use super::account::{Book, InHand};
use super::request::{Asked, Kind};
use super::session::RestSession;
use crate::caller::Claim;

/// The requests of a thread. The connection that has been idle for the longest time gets the next one; while all are busy,
/// requests wait in the client, in order.
#[derive(Debug)]
pub(crate) struct Requests {
    kind: Kind,
    seed: u64,
    schedule: Schedule,
    free: Free,
}

impl Requests {
    /// Requests of this kind and this schedule, for so many connections.
    pub(crate) fn new(kind: Kind, seed: u64, schedule: Schedule, connections: u32) -> Self {
        Self {
            kind,
            seed,
            schedule,
            free: Free::new(connections, 1),
        }
    }

    /// Takes the next request of the schedule. Each has its own caller, so that no two texts have the same mark.
    fn take(&mut self) -> Option<Asked> {
        let due = self.schedule.take()?;
        Some(Asked {
            kind: self.kind,
            vu: u32::try_from(due.number).unwrap_or(u32::MAX),
            seed: self.seed,
            at_ns: due.at_ns,
            measured: due.measured,
        })
    }
}

impl Arrivals<RestSession> for Requests {
    fn next_due_ns(&self) -> Option<u64> {
        // Where none is free, an answer frees a connection, and wakes the engine.
        self.free.first()?;
        self.schedule.peek().map(|due| due.at_ns)
    }

    fn next(&mut self, now_ns: u64, _recorder: &mut Recorder<Claim>) -> Option<u32> {
        let due = self.schedule.peek()?;
        (due.at_ns <= now_ns).then(|| self.free.first()).flatten()
    }

    fn hand_out(&mut self, _place: u32, session: &mut RestSession, recorder: &mut Recorder<Claim>) {
        if let Some(asked) = self.take() {
            recorder.ledger.frames_due += u64::from(asked.measured);
            session.take(asked);
        }
    }

    fn look(&mut self, place: u32, session: &RestSession) {
        self.free.set(place, session.is_free().then_some(0));
    }

    fn owed(&self, now_ns: u64) -> u64 {
        match self.free.first() {
            Some(_) => self.schedule.measured_before(now_ns),
            None => 0,
        }
    }

    fn settled(&self) -> bool {
        self.schedule.peek().is_none()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        while self.schedule.peek().is_some_and(|due| due.at_ns <= now_ns) {
            let Some(asked) = self.take() else { return };
            recorder.ledger.frames_due += u64::from(asked.measured);
            let never = Err(RequestOutcome::NeverWritten);
            InHand::new(asked, asked.at_ns).ended(never, now_ns, Book::Ledger, recorder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::Profile;
    use plimsoll_core::schedule::Spacing;
    use plimsoll_core::session::Share;
    use plimsoll_workload_http::schedule::Rates;

    fn requests(share: Share) -> Requests {
        let rates = Rates {
            measured: 10,
            warm_up: 10,
            spacing: Spacing::Even,
            whole_seconds: false,
        };
        let schedule = Schedule::new(rates, share, &Profile::quick(), 7);
        Requests::new(Kind::Speak, 7, schedule, 2)
    }

    /// Two texts with the same mark would be one caller's to the mock providers.
    #[test]
    fn each_request_of_a_trial_has_its_own_caller() {
        let mut callers = Vec::new();
        for index in 0..2 {
            let mut share = requests(Share { index, of: 2 });
            while let Some(asked) = share.take() {
                callers.push(asked.vu);
            }
        }
        callers.sort_unstable();
        // 3 s of warm-up and 10 s of window.
        assert_eq!(callers, (0..130).collect::<Vec<_>>());
    }

    #[test]
    fn what_no_connection_took_is_lost() {
        let mut requests = requests(Share { index: 0, of: 1 });
        let mut recorder = Recorder::default();
        let end_ns = Profile::quick().window().grace_end_ns;
        assert_eq!(
            Arrivals::<RestSession>::next(&mut requests, end_ns, &mut recorder),
            None
        );
        Arrivals::<RestSession>::finish(&mut requests, end_ns, &mut recorder);
        let ledger = &recorder.ledger;
        assert_eq!((ledger.frames_due, ledger.frames_lost), (100, 100));
        assert!(ledger.is_whole());
        assert_eq!(ledger.reasons.get("POST /speak: never_written"), Some(&100));
        assert!(Arrivals::<RestSession>::settled(&requests));
    }
}
