//! The session machines of a trial.

use std::fmt;
use std::sync::{Arc, OnceLock};

use plimsoll_core::profile::Profile;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{self, Endpoint, NoArrivals, SessionMachines};
use plimsoll_speech::clip::Clip;
use plimsoll_speech::plan::FrameLength;

use crate::dialect::{Dialect, Silence};
use crate::frames::Frames;
use crate::script::Scripts;
use crate::session::StreamSession;
use crate::stream::Claim;
use crate::tally::{Reference, Tally};

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) endpoint: Endpoint,
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) frames: Frames,
    pub(crate) scripts: Scripts,
    /// Whether the final cursor moves in silence.
    pub(crate) silence_decidable: bool,
}

/// The frames are many.
impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("endpoint", &self.endpoint)
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// What `load` streams, or lanes of turns, say to a server of this dialect at `endpoint`.
    pub(crate) fn new(
        endpoint: Endpoint,
        dialect: Box<dyn Dialect>,
        (clips, frame): (&Arc<[Clip]>, FrameLength),
        load: u32,
        profile: &Profile,
    ) -> Self {
        let facts = dialect.facts();
        Self {
            frames: Frames::new(clips, frame, &*dialect),
            scripts: Scripts::new(clips, frame, (load, facts.connection_per_turn), profile),
            silence_decidable: facts.silence == Silence::Decidable,
            endpoint,
            dialect,
        }
    }
}

/// Streams of speech.
#[derive(Debug)]
pub(crate) struct Streams {
    shared: Arc<Shared>,
    profile: Profile,
    seed: u64,
    /// What an unloaded server got wrong, if that is known.
    unloaded: Option<Arc<[plimsoll_speech::errors::WordErrors]>>,
    tally: OnceLock<Tally>,
}

impl Streams {
    pub(crate) fn new(
        shared: Shared,
        (profile, seed): (&Profile, u64),
        unloaded: Option<Arc<[plimsoll_speech::errors::WordErrors]>>,
    ) -> Self {
        Self {
            shared: Arc::new(shared),
            profile: profile.clone(),
            seed,
            unloaded,
            tally: OnceLock::new(),
        }
    }

    /// What all sessions came to, after the trial is settled.
    #[must_use]
    pub(crate) fn tally(&self) -> Option<&Tally> {
        self.tally.get()
    }
}

impl SessionMachines for Streams {
    type Session = StreamSession;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, _sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        self.shared.scripts.plan(id, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        StreamSession::new(&self.shared, plan)
    }

    fn settle(&self, claims: &[Claim], account: session::Account<'_>) {
        let Shared {
            scripts, dialect, ..
        } = &*self.shared;
        let reference = Reference {
            scripts,
            profile: &self.profile,
            seed: self.seed,
        };
        let tally = Tally::of(
            claims,
            &reference,
            dialect.facts(),
            self.unloaded.as_deref(),
        );
        account.ledger.own = tally.metrics();
        // A trial is settled once.
        let _ = self.tally.set(tally);
    }
}
