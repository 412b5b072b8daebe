//! Connection storm: connections that arrive at a rate, each by its own schedule.
//!
//! A frame of the load is an arrival. It is due when it should connect, written when its connecting begins, and answered when it is open: upgraded and, in
//! dialect `wse`, the server ready and the hello written. That is its newest latency; the oldest is until the server took
//! the hello. An open connection stays for a while, then says its farewell and lets the server close.

use std::sync::Arc;

use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_S, Profile};
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::schedule::{Arrivals, SessionPlan};
use plimsoll_core::session::{Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit};

use super::link::{Link, News};
use super::outcome::ArrivalOutcome;
use super::{Dialect, Peer};
use plimsoll_protocol::websocket::close;

/// How long the server may take to answer a farewell before the client closes by itself.
const FAREWELL_NS: u64 = NS_PER_S;

/// The workload.
#[derive(Debug)]
pub struct Storm {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    peer: Peer,
    arrivals: Arrivals,
    linger_ns: u64,
}

impl Storm {
    /// Connections that arrive as told and stay open for `linger_ns`.
    #[must_use]
    pub fn new(peer: Peer, arrivals: Arrivals, linger_ns: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                peer,
                arrivals,
                linger_ns,
            }),
        }
    }
}

impl SessionMachines for Storm {
    type Session = StormSession;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        self.shared.arrivals.plan(id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        StormSession {
            stage: Stage::Planned,
            link: None,
            arrival: Arrival {
                due_ns: plan.first_due_ns,
                measured: plan.window.contains(plan.first_due_ns),
                began_ns: None,
                fate: Fate::Pending,
            },
            hello_unwritten: false,
            hello_awaited: false,
            left: false,
            seed: plan.seed,
            shared: Arc::clone(&self.shared),
        }
    }
}

/// The account of one arrival.
#[derive(Debug)]
struct Arrival {
    due_ns: u64,
    measured: bool,
    /// When its connecting began.
    began_ns: Option<u64>,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pending,
    /// It was open.
    Opened,
    /// The target refused it, in one way or another.
    Refused,
    /// It was waited for in vain.
    Lost,
}

impl Arrival {
    fn began(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        if self.began_ns.is_some() {
            return;
        }
        self.began_ns = Some(now_ns);
        recorder.ledger.frames_sent_in_all += 1;
        if self.measured {
            recorder.ledger.frames_sent += 1;
            let lag_ns = now_ns.saturating_sub(self.due_ns);
            recorder.interval.record_ns(Series::SendLag, lag_ns);
        }
    }

    fn ages(&self, now_ns: u64) -> Ages {
        Ages {
            from_schedule_ns: now_ns.saturating_sub(self.due_ns),
            from_write_ns: now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns)),
        }
    }

    fn opened(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.fate = Fate::Opened;
        let ledger = &mut recorder.ledger;
        ledger.frames_answered_in_all += 1;
        ledger.partials_in_all += 1;
        if self.measured {
            ledger.frames_answered += 1;
            ledger.partials += 1;
            let ages = self.ages(now_ns);
            recorder.resided(1, u128::from(ages.from_write_ns));
            recorder.answered(Some(ages), None);
        }
    }

    /// The server took the hello; or nobody waits for that any more.
    fn greeted(&self, now_ns: u64, recorder: &mut Recorder<()>) {
        if self.measured {
            recorder.answered(None, Some(self.ages(now_ns)));
        }
    }

    fn refused(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.fate = Fate::Refused;
        if self.measured {
            recorder.ledger.frames_errored += 1;
            recorder.ledger.errors += 1;
            let waited_ns = self.ages(now_ns).from_write_ns;
            recorder.resided(1, u128::from(waited_ns));
        }
    }

    /// Nothing came of it: the time that it was waited for is the least that its latency is.
    fn lost(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.fate = Fate::Lost;
        if self.measured {
            recorder.ledger.frames_lost += 1;
            let ages = self.ages(now_ns);
            let (from_schedule_ns, from_write_ns) = (ages.from_schedule_ns, ages.from_write_ns);
            recorder
                .interval
                .record_unanswered(from_schedule_ns, from_write_ns);
        }
    }
}

/// The machine of one arrival.
#[derive(Debug)]
pub struct StormSession {
    stage: Stage,
    /// Made when the connecting begins: the requests of all arrivals of a trial would take more memory than their connections ever do.
    link: Option<Box<Link>>,
    arrival: Arrival,
    /// The hello that makes it open is queued and not written.
    hello_unwritten: bool,
    /// It is open, and the server has not taken the hello.
    hello_awaited: bool,
    /// It was open and is counted as closed.
    left: bool,
    seed: u64,
    shared: Arc<Shared>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Planned,
    Opening,
    Open {
        leave_at_ns: u64,
    },
    /// The farewell is said.
    Leaving {
        until_ns: u64,
    },
    /// The connection is over.
    Gone,
    /// The trial is over.
    Finished,
}

impl StormSession {
    fn open(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.hello_unwritten = false;
        self.stage = Stage::Open {
            leave_at_ns: now_ns.saturating_add(self.shared.linger_ns),
        };
        recorder.session_started();
        self.arrival.opened(now_ns, recorder);
        if self.shared.peer.dialect == Dialect::Echo {
            self.arrival.greeted(now_ns, recorder);
        } else {
            self.hello_awaited = true;
        }
    }

    /// The server took the hello, or there is nothing more to wait for.
    fn greeted(&mut self, now_ns: u64, recorder: &mut Recorder<()>) -> bool {
        let awaited = std::mem::take(&mut self.hello_awaited);
        if awaited {
            self.arrival.greeted(now_ns, recorder);
        }
        awaited
    }

    /// The connection is over, as it should be or not.
    fn over(
        &mut self,
        reason: &str,
        how: Option<Disconnect>,
        now_ns: u64,
        recorder: &mut Recorder<()>,
    ) {
        match self.stage {
            Stage::Planned | Stage::Opening => {
                self.arrival.began(now_ns, recorder);
                let link = self.link.as_ref();
                let outcome = link.map_or(ArrivalOutcome::before_upgrade(how), |link| {
                    link.outcome(how)
                });
                recorder.session_failed(&outcome.name());
                // What was not refused but waited for in vain has a latency: at least the time waited.
                if how == Some(Disconnect::TimedOut) {
                    self.arrival.lost(now_ns, recorder);
                } else {
                    self.arrival.refused(now_ns, recorder);
                }
            }
            Stage::Open { .. } => recorder.session_died(reason),
            Stage::Leaving { .. } => self.leave(recorder),
            Stage::Gone | Stage::Finished => return,
        }
        self.stage = Stage::Gone;
        self.link = None;
    }

    /// An open connection is closed as planned.
    fn leave(&mut self, recorder: &mut Recorder<()>) {
        if !std::mem::replace(&mut self.left, true) {
            recorder.session_left();
        }
    }
}

impl Session for StormSession {
    type Claim = ();

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Planned | Stage::Opening => Phase::Opening,
            Stage::Open { .. } | Stage::Leaving { .. } => Phase::Open,
            Stage::Gone | Stage::Finished => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Open { leave_at_ns } => Some(leave_at_ns),
            Stage::Leaving { until_ns } => Some(until_ns),
            _ => None,
        }
    }

    /// An arrival is written by connecting, so no socket ever withholds one.
    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn connecting(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.arrival.began(now_ns, recorder);
        self.link = Some(Box::new(Link::new(&self.shared.peer, self.seed)));
        self.stage = Stage::Opening;
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let link = self.link.as_mut()?;
        match self.stage {
            Stage::Open { leave_at_ns } if now_ns >= leave_at_ns => {
                link.begin_close(close::NORMAL);
                self.stage = Stage::Leaving {
                    until_ns: now_ns + FAREWELL_NS,
                };
            }
            Stage::Leaving { until_ns } if now_ns >= until_ns && !link.is_writing() => {
                // The engine looks at the phase next, and closes the socket.
                self.stage = Stage::Gone;
                return None;
            }
            _ => {}
        }
        link.control().map(|head| Transmit {
            head,
            body: &[],
            due_ns: None,
            held_until_ns: None,
            measured: false,
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<()>) {
        let Some(link) = &mut self.link else {
            return;
        };
        link.control_sent();
        let all_written = link.control().is_none();
        match self.stage {
            Stage::Opening if self.hello_unwritten && all_written => self.open(write_ns, recorder),
            Stage::Leaving { .. } => self.leave(recorder),
            _ => {}
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<()>) {
        let Some(mut link) = self.link.take() else {
            return;
        };
        let mut over = None;
        link.received(bytes, |news| match news {
            News::Open if self.shared.peer.dialect == Dialect::Echo => self.open(now_ns, recorder),
            News::Open => self.hello_unwritten = true,
            News::Hello => {
                self.greeted(now_ns, recorder);
            }
            News::Fault(fault) => recorder.protocol_fault(fault),
            News::Over(reason) => over = Some(reason.to_owned()),
            News::Pong(_) | News::Tick(_) | News::Message(_) => {}
        });
        self.link = Some(link);
        // The answer to a farewell is not the end: the server closes its side, so that the port is the server's to remember.
        if let Some(reason) = over
            && !matches!(self.stage, Stage::Leaving { .. })
        {
            self.over(&reason, None, now_ns, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.held_bytes())
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<()>) {
        self.over(how.reason(), Some(how), now_ns, recorder);
    }

    fn settled(&self) -> bool {
        !self.arrival.measured || self.arrival.fate != Fate::Pending
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        if self.stage == Stage::Opening
            && self.arrival.measured
            && let Some(link) = &self.link
        {
            let outcome = link.outcome(Some(Disconnect::TimedOut));
            recorder.session_failed(&outcome.name());
            self.arrival.lost(now_ns, recorder);
        }
        // It is open all the same; the second latency is at least this.
        if self.greeted(now_ns, recorder) {
            recorder.ledger.because("no_server_hello");
        }
        if self.arrival.measured && self.arrival.fate != Fate::Pending {
            recorder.ledger.frames_due += 1;
        }
        if let Some(link) = &mut self.link {
            link.close(close::NORMAL);
        }
        self.stage = Stage::Finished;
    }
}
