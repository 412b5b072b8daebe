//! Machines whose sessions use TLS.

use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Account, Session, SessionMachines};

use crate::client::Client;
use crate::session::TlsSession;

/// Other machines, each of whose sessions goes over TLS.
#[derive(Debug)]
pub struct TlsMachines<'a, M> {
    machines: &'a M,
    client: &'a Client,
}

impl<'a, M> TlsMachines<'a, M> {
    /// These machines, with the connections of this client.
    #[must_use]
    pub fn new(machines: &'a M, client: &'a Client) -> Self {
        Self { machines, client }
    }
}

impl<M: SessionMachines> SessionMachines for TlsMachines<'_, M> {
    type Session = TlsSession<M::Session>;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        self.machines.plan(id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        TlsSession::new(self.machines.session(plan), self.client.clone())
    }

    fn settle(&self, claims: &[<Self::Session as Session>::Claim], account: Account<'_>) {
        self.machines.settle(claims, account);
    }
}
