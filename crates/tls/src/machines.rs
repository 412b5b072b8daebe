//! Machines whose sessions use TLS.

use plimsoll_core::profile::Profile;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Account, Arrivals, Session, SessionMachines, Share};

use crate::client::Client;
use crate::meter::CpuClock;
use crate::session::TlsSession;

/// Other machines, each of whose sessions goes over TLS.
#[derive(Debug)]
pub struct TlsMachines<'a, M> {
    machines: &'a M,
    client: &'a Client,
    clock: CpuClock,
}

impl<'a, M> TlsMachines<'a, M> {
    /// These machines, with the connections of this client. The clock says what TLS costs the thread that reads it.
    #[must_use]
    pub fn new(machines: &'a M, client: &'a Client, clock: CpuClock) -> Self {
        Self {
            machines,
            client,
            clock,
        }
    }
}

impl<M: SessionMachines> SessionMachines for TlsMachines<'_, M> {
    type Session = TlsSession<M::Session>;
    type Arrivals = TlsArrivals<M::Arrivals>;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        self.machines.plan(id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        let inner = self.machines.session(plan);
        TlsSession::new(inner, plan, self.client.clone(), self.clock)
    }

    fn arrivals(
        &self,
        share: Share,
        sessions: u32,
        profile: &Profile,
        seed: u64,
    ) -> Option<Self::Arrivals> {
        let arrivals = self.machines.arrivals(share, sessions, profile, seed);
        arrivals.map(TlsArrivals)
    }

    fn settle(&self, claims: &[<Self::Session as Session>::Claim], account: Account<'_>) {
        self.machines.settle(claims, account);
    }
}

/// Work for the sessions that are encrypted.
#[derive(Debug)]
pub struct TlsArrivals<A>(A);

impl<S: Session, A: Arrivals<S>> Arrivals<TlsSession<S>> for TlsArrivals<A> {
    fn next_due_ns(&self) -> Option<u64> {
        self.0.next_due_ns()
    }

    fn next(&mut self, now_ns: u64, recorder: &mut Recorder<S::Claim>) -> Option<u32> {
        self.0.next(now_ns, recorder)
    }

    fn hand_out(
        &mut self,
        place: u32,
        session: &mut TlsSession<S>,
        recorder: &mut Recorder<S::Claim>,
    ) {
        self.0.hand_out(place, session.inner_mut(), recorder);
    }

    fn look(&mut self, place: u32, session: &TlsSession<S>) {
        self.0.look(place, session.inner());
    }

    fn owed(&self, now_ns: u64) -> u64 {
        self.0.owed(now_ns)
    }

    fn settled(&self) -> bool {
        self.0.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<S::Claim>) {
        self.0.finish(now_ns, recorder);
    }
}
