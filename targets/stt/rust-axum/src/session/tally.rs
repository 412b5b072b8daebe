//! What a session counts by itself between two folds into the shared metrics, so that a frame touches no shared memory.

use std::time::Duration;

use crate::failure::FailureKind;

/// Why a tick with audio to flush did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// The session's request has not come back.
    InFlight,
    /// The gateway has `MAX_INFLIGHT_JOBS` requests in flight.
    Jobs,
    /// The client has not taken `OUTBOX_MESSAGES` messages.
    Outbox,
}

impl Deferral {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::InFlight, Self::Jobs, Self::Outbox];

    /// The label in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::InFlight => "inflight",
            Self::Jobs => "jobs",
            Self::Outbox => "outbox",
        }
    }
}

/// Counts since the last fold. Folded after every event but a frame, so each kind of measurement occurs at most once.
#[derive(Debug, Default, PartialEq)]
pub struct Tally {
    /// Frames accepted.
    pub frames: u64,
    /// Frames dropped by the overflow policy.
    pub frames_dropped: u64,
    /// `partial` messages.
    pub partials: u64,
    /// `error` messages by [`FailureKind`].
    pub errors: [u64; FailureKind::ALL.len()],
    /// Ticks deferred by [`Deferral`].
    pub deferred: [u64; Deferral::ALL.len()],
    /// Frames and lateness of the flush that took place.
    pub flush: Option<(u64, Duration)>,
    /// Duration of the request that ended.
    pub inference: Option<Duration>,
}

impl Tally {
    /// Counts a deferred tick.
    pub fn defer(&mut self, reason: Deferral) {
        self.deferred[reason as usize] += 1;
    }
}
