//! Two tests as a closed loop does them, so that the difference can be shown on one server. Nothing of this enters a ledger.
//!
//! - [`ClosedPings`]: each connection sends its next ping when the last was answered, or given up after 5 s. What was given up is in no percentile, any pong
//!   counts for the ping that is waiting, and a slow server is asked less: the omissions that the open loop does not have.
//! - [`Flood`]: each connection writes as fast as its socket takes bytes. What is counted is what was handed to the socket, whatever becomes of it.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::latency::{LatencySet, Quantiles, Series};
use plimsoll_core::profile::{NS_PER_S, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{
    Account, Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit,
};

use serde::{Deserialize, Serialize};

use super::formats::Format;
use super::link::{Link, News};
use super::payload::Content;
use super::wire::{Repeated, append_message};
use super::wse::PingIds;
use super::{Dialect, Peer};
use plimsoll_protocol::websocket::close;

/// Pings that a connection sends.
pub const PINGS_PER_CONNECTION: u32 = 50;

/// How long a ping is waited for before it vanishes.
const PING_TIMEOUT_NS: u64 = 5 * NS_PER_S;

/// Messages after which a flooding connection lets the others have their turn. A turn is a tick of the engine.
const FLOOD_TURN_MESSAGES: u64 = 1_000;

/// What the closed loop says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClosedLoop {
    /// Pings that were answered: those that its percentiles are of.
    pub pings_answered: u64,
    /// Pings that were given up, and are in no percentile.
    pub pings_given_up: u64,
    /// From the write of a ping to the pong that was taken for its answer.
    pub round_trip: Quantiles,
    /// Messages handed to sockets in the measured window.
    pub messages_handed_over: u64,
    /// The same per second.
    pub messages_per_second: f64,
}

/// What one connection found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finding {
    /// A ping was answered after this time.
    RoundTripNs(u64),
    /// A ping was given up.
    GivenUp,
    /// So many messages were handed over.
    HandedOver(u64),
}

/// Findings of all connections, added up.
#[derive(Debug, Default)]
struct Tally {
    round_trips: LatencySet,
    given_up: u64,
    handed_over: u64,
}

#[derive(Debug, Default)]
struct Results(Mutex<Tally>);

impl Results {
    fn add(&self, findings: &[Finding]) {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for finding in findings {
            match finding {
                Finding::RoundTripNs(ns) => {
                    tally.round_trips.record_ns(Series::NewestFromWrite, *ns);
                }
                Finding::GivenUp => tally.given_up += 1,
                Finding::HandedOver(messages) => tally.handed_over += messages,
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "messages of a trial")]
    fn told(&self, window_ns: u64) -> ClosedLoop {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let round_trip = tally.round_trips.summary().newest.from_write;
        ClosedLoop {
            pings_answered: round_trip.count,
            pings_given_up: tally.given_up,
            round_trip,
            messages_handed_over: tally.handed_over,
            messages_per_second: if window_ns > 0 {
                tally.handed_over as f64 * NS_PER_S as f64 / window_ns as f64
            } else {
                0.0
            },
        }
    }
}

/// Pings one after the other, on all connections at once.
#[derive(Debug)]
pub struct ClosedPings {
    peer: Peer,
    pings: u32,
    results: Results,
}

impl ClosedPings {
    /// Connections that each send so many pings.
    #[must_use]
    pub fn new(peer: Peer, pings: u32) -> Self {
        Self {
            peer,
            pings,
            results: Results::default(),
        }
    }

    /// What they say; ask after the trial.
    #[must_use]
    pub fn told(&self) -> ClosedLoop {
        self.results.told(0)
    }
}

impl SessionMachines for ClosedPings {
    type Session = ClosedSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        let content = match self.peer.dialect {
            Dialect::Wse => Format::Json.ping(PingIds::of(plan.id).id(1)),
            Dialect::Echo => Content::filler(64),
        };
        let mut ping = Vec::new();
        append_message(&mut ping, content.opcode, &content.bytes);
        ClosedSession::new(
            Link::new(&self.peer, plan.seed),
            plan.window,
            Doing::Pings {
                ping: ping.into_boxed_slice(),
                left: self.pings,
                asked_ns: None,
                given_up: 0,
            },
        )
    }

    fn settle(&self, claims: &[Finding], _account: Account<'_>) {
        self.results.add(claims);
    }
}

/// Messages as fast as sockets take them.
#[derive(Debug)]
pub struct Flood {
    peer: Peer,
    messages: Arc<Repeated>,
    window_ns: u64,
    results: Results,
}

impl Flood {
    /// Connections that write `content` all through a window of that length.
    #[must_use]
    pub fn new(peer: Peer, content: &Content, window: Window) -> Self {
        Self {
            peer,
            messages: Arc::new(Repeated::new(content)),
            window_ns: window.end_ns - window.start_ns,
            results: Results::default(),
        }
    }

    /// What was written; ask after the trial.
    #[must_use]
    pub fn told(&self) -> ClosedLoop {
        self.results.told(self.window_ns)
    }
}

impl SessionMachines for Flood {
    type Session = ClosedSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        ClosedSession::new(
            Link::new(&self.peer, plan.seed),
            plan.window,
            Doing::Flood {
                messages: Arc::clone(&self.messages),
                turn_ns: 0,
                left: 0,
                writing: 0,
                handed_over: 0,
            },
        )
    }

    fn settle(&self, claims: &[Finding], _account: Account<'_>) {
        self.results.add(claims);
    }
}

/// The machine of one connection.
#[derive(Debug)]
pub struct ClosedSession {
    link: Link,
    window: Window,
    stage: Stage,
    doing: Doing,
    /// What was given to be written is a message of the load.
    writing_load: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    Open,
    Gone,
    Finished,
}

#[derive(Debug)]
enum Doing {
    Pings {
        ping: Box<[u8]>,
        left: u32,
        /// When the ping that is waited for was written.
        asked_ns: Option<u64>,
        given_up: u32,
    },
    Flood {
        messages: Arc<Repeated>,
        /// The turn of the engine that `left` is for.
        turn_ns: u64,
        left: u64,
        /// Messages that were given to be written.
        writing: u64,
        handed_over: u64,
    },
}

impl Doing {
    /// Whether more of the load may be written now: [`Doing::bytes`] has it then.
    fn begin(&mut self, now_ns: u64, window: Window) -> bool {
        match self {
            Self::Pings {
                left,
                asked_ns,
                given_up,
                ..
            } => {
                if asked_ns.is_some_and(|asked_ns| now_ns >= asked_ns + PING_TIMEOUT_NS) {
                    *asked_ns = None;
                    *left -= 1;
                    *given_up += 1;
                }
                *left > 0 && asked_ns.is_none() && now_ns >= window.start_ns
            }
            Self::Flood {
                messages,
                turn_ns,
                left,
                writing,
                ..
            } => {
                if now_ns != *turn_ns {
                    (*turn_ns, *left) = (now_ns, FLOOD_TURN_MESSAGES);
                }
                *writing = messages.most().min(*left);
                *writing > 0 && window.contains(now_ns)
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Pings { ping, .. } => ping,
            Self::Flood {
                messages, writing, ..
            } => messages.messages(*writing),
        }
    }

    /// What [`Doing::bytes`] has was written.
    fn written(&mut self, write_ns: u64, recorder: &mut Recorder<Finding>) {
        match self {
            Self::Pings { asked_ns, .. } => {
                *asked_ns = Some(write_ns);
                recorder.ledger.frames_sent_in_all += 1;
            }
            Self::Flood {
                left,
                writing,
                handed_over,
                ..
            } => {
                *left = left.saturating_sub(*writing);
                *handed_over += *writing;
                recorder.ledger.frames_sent_in_all += *writing;
            }
        }
    }

    /// A pong or an echo came: whichever it is, the ping that is waiting is answered.
    fn answered(&mut self, now_ns: u64, recorder: &mut Recorder<Finding>) {
        if let Self::Pings { left, asked_ns, .. } = self
            && let Some(asked_ns) = asked_ns.take()
        {
            let round_trip_ns = now_ns.saturating_sub(asked_ns);
            recorder.claims.push(Finding::RoundTripNs(round_trip_ns));
            *left -= 1;
        }
    }

    /// The trial is over: what was found out beside the round trips.
    fn finish(&self, recorder: &mut Recorder<Finding>) {
        match self {
            Self::Pings {
                asked_ns, given_up, ..
            } => {
                let given_up = given_up + u32::from(asked_ns.is_some());
                let findings = std::iter::repeat_n(Finding::GivenUp, given_up as usize);
                recorder.claims.extend(findings);
            }
            Self::Flood { handed_over, .. } => {
                recorder.claims.push(Finding::HandedOver(*handed_over));
            }
        }
    }

    fn next_due_ns(&self, window: Window) -> Option<u64> {
        match self {
            Self::Pings { left: 0, .. } => None,
            Self::Pings { asked_ns, .. } => {
                Some(asked_ns.map_or(window.start_ns, |asked_ns| asked_ns + PING_TIMEOUT_NS))
            }
            Self::Flood { turn_ns, .. } => {
                let next_ns = window.start_ns.max(turn_ns + 1);
                window.contains(next_ns).then_some(next_ns)
            }
        }
    }
}

impl ClosedSession {
    fn new(link: Link, window: Window, doing: Doing) -> Self {
        Self {
            link,
            window,
            stage: Stage::Opening,
            doing,
            writing_load: false,
        }
    }

    fn over(&mut self, reason: &str, recorder: &mut Recorder<Finding>) {
        match self.stage {
            Stage::Opening => recorder.session_failed(reason),
            Stage::Open => recorder.session_died(reason),
            Stage::Gone | Stage::Finished => return,
        }
        self.stage = Stage::Gone;
    }
}

impl Session for ClosedSession {
    type Claim = Finding;

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Opening => Phase::Opening,
            Stage::Open => Phase::Open,
            Stage::Gone | Stage::Finished => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        (self.stage == Stage::Open)
            .then(|| self.doing.next_due_ns(self.window))
            .flatten()
    }

    /// A closed loop owes nothing: that is what is wrong with it.
    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        if self.stage == Stage::Open && !self.writing_load && self.link.control().is_none() {
            self.writing_load = self.doing.begin(now_ns, self.window);
        }
        let head = if self.writing_load {
            self.doing.bytes()
        } else {
            self.link.control()?
        };
        Some(Transmit {
            head,
            body: &[],
            due_ns: None,
            held_until_ns: None,
            measured: false,
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Finding>) {
        if std::mem::take(&mut self.writing_load) {
            self.doing.written(write_ns, recorder);
        } else {
            self.link.control_sent();
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Finding>) {
        let Self {
            link, stage, doing, ..
        } = self;
        let mut over = None;
        link.received(bytes, |news| match news {
            News::Open => {
                *stage = Stage::Open;
                recorder.session_started();
            }
            News::Pong(_) | News::Message(_) => doing.answered(now_ns, recorder),
            News::Fault(fault) => recorder.protocol_fault(fault),
            News::Over(reason) => over = Some(reason.to_owned()),
            News::Hello | News::Tick(_) => {}
        });
        if let Some(reason) = over {
            self.over(&reason, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.link.held_bytes()
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, recorder: &mut Recorder<Finding>) {
        self.over(how.reason(), recorder);
        self.link.abandon();
    }

    fn settled(&self) -> bool {
        self.stage != Stage::Open || self.doing.next_due_ns(self.window).is_none()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Finding>) {
        if self.stage == Stage::Opening && now_ns >= self.window.start_ns {
            recorder.session_failed(Disconnect::TimedOut.reason());
        }
        self.doing.finish(recorder);
        self.link.close(close::NORMAL);
        self.stage = Stage::Finished;
    }
}
