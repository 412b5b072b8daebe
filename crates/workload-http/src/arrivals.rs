//! Hands the requests of the schedule to connections.

use std::collections::VecDeque;

use plimsoll_core::profile::{Profile, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::session::{Arrivals, Session};

use crate::account::{Counts, InHand};
use crate::expect::Expected;
use crate::free::Free;
use crate::outcome::RequestOutcome;
use crate::schedule::{Due, Schedule};

/// A session that takes requests.
pub trait Connection: Session<Claim = Counts> {
    /// How many requests it has, if it can take a further one.
    fn free(&self) -> Option<u32>;

    /// Takes a request.
    fn take(&mut self, due: Due);
}

/// Which connection gets a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dispatch {
    /// The one that has been idle for the longest time. While all are busy, requests wait in the client, in order.
    #[default]
    Pool,
    /// Request `k` goes to connection `k mod N`, whether that is busy or not, as in wrk2.
    Fixed,
}

/// The requests of a thread.
#[derive(Debug)]
pub struct Requests {
    source: Source,
    way: Way,
}

/// When requests are due.
#[derive(Debug)]
pub enum Source {
    /// By the clock.
    Clock(Schedule),
    /// As soon as a connection is free, as in a closed loop.
    AtOnce(AtOnce),
}

/// The requests of a closed loop.
#[derive(Debug)]
pub struct AtOnce {
    start_ns: u64,
    window: Window,
    number: u64,
    /// The time of the request that is handed out next.
    now_ns: u64,
}

impl AtOnce {
    /// From the warm-up until the window's end.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Self {
            start_ns: profile.ramp_end_ns(),
            window: profile.window(),
            number: 0,
            now_ns: 0,
        }
    }
}

impl Source {
    /// The next request; `None` if none is left. That of a closed loop is due since the start.
    fn peek(&self) -> Option<Due> {
        match self {
            Self::Clock(schedule) => schedule.peek(),
            Self::AtOnce(at_once) => (at_once.now_ns < at_once.window.end_ns).then_some(Due {
                number: at_once.number,
                at_ns: at_once.start_ns.max(at_once.now_ns),
                measured: at_once.window.contains(at_once.now_ns),
            }),
        }
    }

    /// The next request, if it was due at `now_ns`.
    fn peek_at(&mut self, now_ns: u64) -> Option<Due> {
        if let Self::AtOnce(at_once) = self {
            at_once.now_ns = now_ns;
        }
        self.peek().filter(|due| due.at_ns <= now_ns)
    }

    fn take(&mut self) -> Option<Due> {
        match self {
            Self::Clock(schedule) => schedule.take(),
            Self::AtOnce(_) => {
                let due = self.peek();
                if let Self::AtOnce(at_once) = self {
                    at_once.number += 1;
                }
                due
            }
        }
    }

    fn measured_before(&self, time_ns: u64) -> u64 {
        match self {
            Self::Clock(schedule) => schedule.measured_before(time_ns),
            // A closed loop owes nothing.
            Self::AtOnce(_) => 0,
        }
    }
}

#[derive(Debug)]
enum Way {
    Pool(Free),
    Fixed(Fixed),
}

/// Each connection has its own queue.
#[derive(Debug)]
struct Fixed {
    queues: Vec<VecDeque<Due>>,
    /// Whether a connection can take a request.
    free: Vec<bool>,
    /// Connections that are free and have a queue.
    ready: VecDeque<u32>,
    /// Requests that were put into a queue so far.
    queued: u64,
}

impl Requests {
    /// The requests of this source, for so many connections with at most `most` requests at once.
    #[must_use]
    pub fn new(source: Source, dispatch: Dispatch, connections: u32, most: u32) -> Self {
        let way = match dispatch {
            Dispatch::Pool => Way::Pool(Free::new(connections, most.max(1))),
            Dispatch::Fixed => Way::Fixed(Fixed {
                queues: (0..connections).map(|_| VecDeque::new()).collect(),
                free: vec![false; connections as usize],
                ready: VecDeque::new(),
                queued: 0,
            }),
        };
        Self { source, way }
    }
}

impl Fixed {
    /// Puts what was due at `now_ns` into the queue of its connection.
    fn queue(&mut self, source: &mut Source, now_ns: u64) {
        let connections = self.queues.len() as u64;
        while connections > 0
            && let Some(due) = source.peek_at(now_ns)
        {
            source.take();
            let place = u32::try_from(self.queued % connections).unwrap_or_default();
            self.queued += 1;
            let queue = &mut self.queues[place as usize];
            if queue.is_empty() && self.free[place as usize] {
                self.ready.push_back(place);
            }
            queue.push_back(due);
        }
    }

    /// The next connection that is free and has a queue.
    fn first(&mut self) -> Option<u32> {
        while let Some(place) = self.ready.front().copied() {
            if self.free[place as usize] && !self.queues[place as usize].is_empty() {
                return Some(place);
            }
            self.ready.pop_front();
        }
        None
    }

    fn set(&mut self, place: u32, free: bool) {
        let was = std::mem::replace(&mut self.free[place as usize], free);
        if free && !was && !self.queues[place as usize].is_empty() {
            self.ready.push_back(place);
        }
    }
}

impl<S: Connection> Arrivals<S> for Requests {
    fn next_due_ns(&self) -> Option<u64> {
        let next = self.source.peek()?;
        match &self.way {
            // An answer frees a connection, and wakes the engine.
            Way::Pool(free) if free.first().is_none() => None,
            Way::Pool(_) | Way::Fixed(_) => Some(next.at_ns),
        }
    }

    fn next(&mut self, now_ns: u64, _recorder: &mut Recorder<Counts>) -> Option<u32> {
        match &mut self.way {
            Way::Pool(free) => {
                self.source.peek_at(now_ns)?;
                free.first()
            }
            Way::Fixed(fixed) => {
                fixed.queue(&mut self.source, now_ns);
                fixed.first()
            }
        }
    }

    fn hand_out(&mut self, place: u32, session: &mut S, recorder: &mut Recorder<Counts>) {
        let due = match &mut self.way {
            Way::Pool(_) => self.source.take(),
            Way::Fixed(fixed) => fixed.queues[place as usize].pop_front(),
        };
        if let Some(due) = due {
            recorder.ledger.frames_due += u64::from(due.measured);
            session.take(due);
        }
    }

    fn look(&mut self, place: u32, session: &S) {
        let in_flight = session.free();
        match &mut self.way {
            Way::Pool(free) => free.set(place, in_flight),
            Way::Fixed(fixed) => fixed.set(place, in_flight.is_some()),
        }
    }

    fn owed(&self, now_ns: u64) -> u64 {
        match &self.way {
            Way::Pool(free) if free.first().is_none() => 0,
            // What is in a queue waits for its connection.
            Way::Pool(_) | Way::Fixed(_) => self.source.measured_before(now_ns),
        }
    }

    fn settled(&self) -> bool {
        let waits = match &self.way {
            Way::Pool(_) => false,
            Way::Fixed(fixed) => fixed.queues.iter().any(|queue| !queue.is_empty()),
        };
        !waits && self.source.peek().is_none()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        let mut left = Vec::new();
        let all_busy = match &mut self.way {
            Way::Pool(free) => free.first().is_none(),
            Way::Fixed(fixed) => {
                left.extend(fixed.queues.iter_mut().flat_map(std::mem::take));
                !left.is_empty()
            }
        };
        if let Source::Clock(schedule) = &mut self.source {
            while let Some(due) = schedule.peek().filter(|due| due.at_ns <= now_ns) {
                schedule.take();
                left.push(due);
            }
        }
        let mut counts = Counts::default();
        for due in left {
            recorder.ledger.frames_due += u64::from(due.measured);
            counts.found_all_busy += u64::from(due.measured && all_busy);
            let never = InHand::new(due, due.at_ns, Expected::Any);
            never.failed(RequestOutcome::NeverWritten, now_ns, recorder);
        }
        recorder.claims.push(counts);
    }
}
