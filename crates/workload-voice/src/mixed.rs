//! Test `mixed`: of all who arrive some call, and the others visit as REST clients, each on a connection of its own.

use std::sync::Arc;

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{
    Account, Disconnect, Endpoint, NoArrivals, Phase, Session, SessionMachines, Transmit,
    Unconnected,
};

use crate::caller::Claim;
use crate::load::VoiceLoad;
use crate::machines::Callers;
use crate::rest::RestSession;
use crate::rest::account::Book;
use crate::rest::request::Form;
use crate::rest::session::Shared;
use crate::rest::visit;
use crate::session::CallerSession;
use crate::tally::Tally;

/// Whoever arrives.
#[derive(Debug)]
pub(crate) enum Arrival {
    Caller(Box<CallerSession>),
    Visitor(Box<RestSession>),
}

/// The session machines: those of callers, and of visitors beside them.
#[derive(Debug)]
pub(crate) struct Mixed {
    callers: Callers,
    visitors: Arc<Shared>,
}

impl Mixed {
    /// So many arrivals a second at `endpoint`.
    pub(crate) fn new(
        endpoint: &Endpoint,
        load: &VoiceLoad,
        per_second: u32,
        profile: &Profile,
    ) -> Self {
        Self {
            callers: Callers::new(endpoint.clone(), load, per_second, profile),
            visitors: Arc::new(Shared {
                form: Form::new(endpoint, &load.providers),
                book: Book::Apart,
            }),
        }
    }

    /// What all turns and requests came to, after the trial is settled.
    pub(crate) fn tally(&self) -> Option<&Tally> {
        self.callers.tally()
    }
}

impl SessionMachines for Mixed {
    type Session = Arrival;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        self.callers.plan(id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Arrival {
        if visit::is_call(plan) {
            return Arrival::Caller(Box::new(self.callers.session(plan)));
        }
        let visit = visit::requests(plan);
        Arrival::Visitor(Box::new(RestSession::new(&self.visitors, plan, visit)))
    }

    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        self.callers.settle(claims, account);
    }
}

/// The same call to either.
macro_rules! either {
    ($self:ident, $session:ident => $call:expr) => {
        match $self {
            Self::Caller($session) => $call,
            Self::Visitor($session) => $call,
        }
    };
}

impl Session for Arrival {
    type Claim = Claim;

    fn phase(&self) -> Phase {
        either!(self, session => session.phase())
    }

    fn next_due_ns(&self) -> Option<u64> {
        either!(self, session => session.next_due_ns())
    }

    fn owed(&self, now_ns: u64) -> u64 {
        either!(self, session => session.owed(now_ns))
    }

    fn connecting(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        either!(self, session => session.connecting(now_ns, recorder));
    }

    fn connected(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        either!(self, session => session.connected(now_ns, recorder));
    }

    fn woke(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        either!(self, session => session.woke(now_ns, recorder));
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        either!(self, session => session.unconnected(now_ns))
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        either!(self, session => session.transmit(now_ns))
    }

    fn dues(&self) -> &[u64] {
        either!(self, session => session.dues())
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Claim>) {
        either!(self, session => session.sent(write_ns, recorder));
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Claim>) {
        either!(self, session => session.received(now_ns, bytes, recorder));
    }

    fn held_bytes(&self) -> usize {
        either!(self, session => session.held_bytes())
    }

    fn unread_max_bytes(&self) -> Option<u64> {
        either!(self, session => session.unread_max_bytes())
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        either!(self, session => session.disconnected(now_ns, how, recorder));
    }

    fn settled(&self) -> bool {
        either!(self, session => session.settled())
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        either!(self, session => session.finish(now_ns, recorder));
    }
}
