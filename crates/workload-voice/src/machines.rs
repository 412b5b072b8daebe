//! The session machines of a trial.

use std::sync::{Arc, OnceLock};

use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Account, Endpoint, NoArrivals, SessionMachines};
use plimsoll_workload::Crash;

use crate::back::Back;
use crate::caller::Claim;
use crate::load::{Leaves, Test, VoiceLoad};
use crate::marks::CALLER_BLOCK_BYTES;
use crate::rest::{Kind, RequestRecord};
use crate::session::CallerSession;
use crate::tally::Tally;

/// What all callers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) endpoint: Endpoint,
    pub(crate) load: VoiceLoad,
    /// How many sessions the trial has, for what a session's number says.
    sessions: u32,
    profile: Profile,
}

impl Shared {
    /// The bytes of a whole message of audio.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.load.chunk_blocks as usize * CALLER_BLOCK_BYTES
    }

    /// How a session with this seed crosses the kill of its gateway, if the load has one.
    pub(crate) fn back(&self, seed: u64) -> Option<Back> {
        let crash = self.load.crash();
        crash.map(|_| Back::after(Crash::at_ns(&self.profile.window()), seed))
    }

    /// When session `id` hangs up.
    pub(crate) fn leaves(&self, id: u32) -> Leaves {
        self.load.leaves((id, self.sessions), &self.profile)
    }
}

/// Callers.
#[derive(Debug)]
pub struct Callers {
    shared: Arc<Shared>,
    tally: OnceLock<Tally>,
}

impl Callers {
    /// The callers of such a load at `endpoint`.
    pub(crate) fn new(
        endpoint: Endpoint,
        load: &VoiceLoad,
        callers: u32,
        profile: &Profile,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                endpoint,
                load: load.clone(),
                sessions: load.sessions(callers, profile),
                profile: profile.clone(),
            }),
            tally: OnceLock::new(),
        }
    }

    /// What all turns came to, after the trial is settled.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.tally.get()
    }
}

impl SessionMachines for Callers {
    type Session = CallerSession;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        self.shared.load.plan((id, sessions), profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        CallerSession::new(&self.shared, plan)
    }

    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        let Shared { load, profile, .. } = &*self.shared;
        let tally = settled(load, profile, claims, account);
        // A trial is settled once.
        let _ = self.tally.set(tally);
    }
}

/// What all sessions of a trial came to. The ledger gets the workload's own metrics.
pub(crate) fn settled(
    load: &VoiceLoad,
    profile: &Profile,
    claims: &[Claim],
    account: Account<'_>,
) -> Tally {
    let trouble = load.trouble(&profile.window());
    let mut tally = Tally::of(claims, trouble.map(|(_, end_ns)| end_ns));
    if let Some(began_ns) = account.began_ns {
        tally.split_overhead(claims, began_ns);
    }
    match (load.test, tally.requests.first()) {
        (Test::Rest, _) => {
            let requests = RequestRecord::of_frames(Kind::Root, account.ledger, account.latency);
            tally.requests = vec![requests];
        }
        // It is the same as in a conversation.
        (Test::Speak, Some(speak)) => tally.first_audio = speak.answer,
        _ => {}
    }
    account.ledger.own = tally.metrics();
    tally
}
