//! The session machines of a trial.

use std::sync::{Arc, OnceLock};

use plimsoll_core::schedule::{SessionPlan, mix};
use plimsoll_core::session::{Account, Endpoint, NoArrivals, SessionMachines};

use crate::caller::Claim;
use crate::marks::{CALLER_BLOCK_BYTES, CALLER_MARK_BYTES};
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
    /// The samples of a block behind its mark, of a caller who speaks and of one who is silent.
    speech: Vec<u8>,
    silence: Vec<u8>,
}

impl Shared {
    /// The bytes of a whole message of audio.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_blocks as usize * CALLER_BLOCK_BYTES
    }

    /// The samples of a block behind its mark.
    pub(crate) fn samples(&self, speech: bool) -> &[u8] {
        if speech { &self.speech } else { &self.silence }
    }
}

/// Callers.
#[derive(Debug)]
pub struct Callers {
    shared: Arc<Shared>,
    tally: OnceLock<Tally>,
}

impl Callers {
    /// Callers that go to `endpoint`, and send `chunk_blocks` blocks of 20 ms in a message.
    #[must_use]
    pub fn new(endpoint: Endpoint, chunk_blocks: u32, providers: Providers) -> Self {
        let samples = CALLER_BLOCK_BYTES - CALLER_MARK_BYTES;
        // Loud enough for a detector of speech, and nothing that compresses.
        let noise = (0..samples as u64 / 2).flat_map(|at| {
            let drawn = mix(at).to_le_bytes();
            (i16::from_le_bytes([drawn[0], drawn[1]]) / 8).to_le_bytes()
        });
        Self {
            shared: Arc::new(Shared {
                endpoint,
                chunk_blocks: chunk_blocks.max(1),
                providers,
                speech: noise.collect(),
                silence: vec![0; samples],
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

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        CallerSession::new(&self.shared, plan)
    }

    fn settle(&self, claims: &[Claim], account: Account<'_>) {
        let tally = Tally::of(claims);
        account.ledger.own = tally.metrics();
        // A trial is settled once.
        let _ = self.tally.set(tally);
    }
}
