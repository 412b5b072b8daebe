//! The session machines of a trial.

use std::sync::{Arc, OnceLock};

use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Account, Endpoint, NoArrivals, SessionMachines};

use crate::caller::Claim;
use crate::load::{Leaves, VoiceLoad};
use crate::marks::CALLER_BLOCK_BYTES;
use crate::session::CallerSession;
use crate::tally::Tally;
use crate::wire::Providers;

/// What all callers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) endpoint: Endpoint,
    /// Blocks that one message carries.
    pub(crate) chunk_blocks: u32,
    pub(crate) providers: Providers,
    load: VoiceLoad,
    /// How many sessions the trial has, for what a session's number says.
    sessions: u32,
    profile: Profile,
}

impl Shared {
    /// The bytes of a whole message of audio.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_blocks as usize * CALLER_BLOCK_BYTES
    }

    /// When session `id` hangs up.
    pub(crate) fn leaves(&self, id: u32) -> Leaves {
        let of = (id, self.sessions);
        // The seed moves only when it comes.
        self.load.visit(of, &self.profile, 0).1
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
                chunk_blocks: load.chunk_blocks,
                providers: load.providers.clone(),
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
        self.shared.load.visit((id, sessions), profile, seed).0
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        CallerSession::new(&self.shared, plan)
    }

    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        let Shared { load, profile, .. } = &*self.shared;
        let trouble = load.trouble(&profile.window());
        let tally = Tally::of(claims, trouble.map(|(_, end_ns)| end_ns));
        account.ledger.own = tally.metrics();
        // A trial is settled once.
        let _ = self.tally.set(tally);
    }
}
