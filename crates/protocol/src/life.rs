//! What becomes of a session: it opens or fails, and it dies or is finished.

use plimsoll_core::recorder::Recorder;
use plimsoll_core::session::Phase;

/// How far a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Connecting, or in the handshake.
    Opening,
    /// Carrying load.
    Open,
    /// It was open, and ended before the trial did: its frames still count.
    Died,
    /// It never opened.
    Failed,
    /// The trial is over.
    Finished,
}

impl Life {
    /// The same, as far as the engine needs it.
    #[must_use]
    pub fn phase(self) -> Phase {
        match self {
            Self::Opening => Phase::Opening,
            Self::Open => Phase::Open,
            Self::Died | Self::Failed | Self::Finished => Phase::Ended,
        }
    }

    /// Its connection is over, for this reason: it has failed or died. The first reason is the one.
    pub fn over<C>(&mut self, reason: &str, recorder: &mut Recorder<C>) {
        match self {
            Self::Opening => {
                recorder.session_failed(reason);
                *self = Self::Failed;
            }
            Self::Open => {
                recorder.session_died(reason);
                *self = Self::Died;
            }
            Self::Died | Self::Failed | Self::Finished => {}
        }
    }
}
