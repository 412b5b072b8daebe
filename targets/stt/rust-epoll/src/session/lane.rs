//! "At most one request in flight", by having only one pass.
//!
//! A session is born with one [`Pass`]. Sending a request takes the pass away, by value, and there is no way to make or
//! copy one outside this module; it lies with the request until that is settled. A second request would need a second
//! pass, so it is not forbidden by a check: it cannot be written.

use std::time::{Duration, Instant};

use crate::messages::Span;

/// The right to have a request in flight.
#[derive(Debug)]
pub struct Pass(());

/// A request and the batch that it carries.
#[derive(Debug)]
pub struct Flight<R> {
    /// What stands for the request, to give it up.
    pub request: R,
    /// The frames of the batch.
    pub span: Span,
    /// When it was sent.
    pub sent_at: Instant,
    /// When it is given up.
    pub deadline: Instant,
    /// How late its flush was.
    pub flush_lateness: Duration,
    /// Comes back when the request is settled.
    pub pass: Pass,
}

/// Holds the pass, or the request that took it.
#[derive(Debug)]
pub enum Lane<R> {
    /// Nothing is in flight.
    Free(Pass),
    /// A request is.
    Taken(Flight<R>),
    /// Only within [`Self::launch`] and [`Self::settle`].
    Changing,
}

impl<R> Default for Lane<R> {
    /// A free lane: the only place where a pass is made.
    fn default() -> Self {
        Self::Free(Pass(()))
    }
}

impl<R> Lane<R> {
    /// The request in flight.
    pub fn flight(&self) -> Option<&Flight<R>> {
        match self {
            Self::Taken(flight) => Some(flight),
            _ => None,
        }
    }

    /// Launches what `launch` makes with the pass. Does nothing when the pass is away.
    pub fn launch(&mut self, launch: impl FnOnce(Pass) -> Flight<R>) {
        *self = match std::mem::replace(self, Self::Changing) {
            Self::Free(pass) => Self::Taken(launch(pass)),
            other => other,
        };
    }

    /// Takes the request out, answered or given up, and the pass back.
    pub fn settle(&mut self) -> Option<Settled<R>> {
        match std::mem::replace(self, Self::Changing) {
            Self::Taken(Flight { request, span, sent_at, flush_lateness, pass, .. }) => {
                *self = Self::Free(pass);
                Some(Settled { request, span, sent_at, flush_lateness })
            }
            other => {
                *self = other;
                None
            }
        }
    }
}

/// What is left of a [`Flight`].
#[derive(Debug)]
#[allow(missing_docs, reason = "as there")]
pub struct Settled<R> {
    pub request: R,
    pub span: Span,
    pub sent_at: Instant,
    pub flush_lateness: Duration,
}
