//! The session machines of tests `rest` and `speak`: a pool of connections that stay open, as REST clients have.

use std::sync::{Arc, OnceLock};

use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Account, Endpoint, SessionMachines, Share};
use plimsoll_workload_http::schedule::{Rates, Schedule};

use super::account::Book;
use super::arrivals::Requests;
use super::request::{Form, Kind};
use super::session::{RestSession, Shared};
use crate::caller::Claim;
use crate::load::VoiceLoad;
use crate::machines::settled;
use crate::tally::Tally;

/// Connections that share the requests of a trial.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    load: VoiceLoad,
    kind: Kind,
    rates: Rates,
    profile: Profile,
    tally: OnceLock<Tally>,
}

impl Pool {
    /// A pool that asks for this so many times a second.
    pub(crate) fn new(
        endpoint: &Endpoint,
        (load, kind): (&VoiceLoad, Kind),
        per_second: u32,
        profile: &Profile,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                form: Form::new(endpoint, &load.providers),
                book: Book::Ledger,
            }),
            load: load.clone(),
            kind,
            rates: Rates {
                measured: per_second,
                warm_up: per_second,
                spacing: load.spacing,
                whole_seconds: false,
            },
            profile: profile.clone(),
            tally: OnceLock::new(),
        }
    }

    /// What all requests came to, after the trial is settled.
    pub(crate) fn tally(&self) -> Option<&Tally> {
        self.tally.get()
    }
}

impl SessionMachines for Pool {
    type Session = RestSession;
    type Arrivals = Requests;

    fn session(&self, plan: &SessionPlan) -> RestSession {
        RestSession::new(&self.shared, plan, [].into())
    }

    fn arrivals(
        &self,
        share: Share,
        sessions: u32,
        profile: &Profile,
        seed: u64,
    ) -> Option<Requests> {
        let schedule = Schedule::new(self.rates, share, profile, seed);
        Some(Requests::new(self.kind, seed, schedule, sessions))
    }

    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        let tally = settled(&self.load, &self.profile, claims, account);
        // A trial is settled once.
        let _ = self.tally.set(tally);
    }
}
