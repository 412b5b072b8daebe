//! The slot for a session's one request: "at most one in flight" as a matter of types.
//!
//! A request can only be put in flight through [`Idle`], an `Idle` can only be had from an empty slot, and using it
//! consumes it. A second request while one is in flight is therefore not a case to be checked for; it cannot be written.

use std::time::{Duration, Instant};

use crate::messages::Span;

/// Empty, or holding the request in flight. `R` is whatever stands for the request: a future in the gateway, a token in
/// a test.
#[derive(Debug)]
pub struct Slot<R>(Option<InFlight<R>>);

/// A request and the batch that it carries; whoever holds the one holds the other.
#[derive(Debug)]
pub struct InFlight<R> {
    /// The request itself. Dropping it gives it up.
    pub request: R,
    /// The frames of the batch.
    pub span: Span,
    /// When the request was sent.
    pub sent_at: Instant,
    /// When to give it up.
    pub deadline: Instant,
    /// How late the flush of this batch was.
    pub flush_lateness: Duration,
}

/// The right to put one request in flight.
#[derive(Debug)]
pub struct Idle<'a, R>(&'a mut Option<InFlight<R>>);

impl<R> Default for Slot<R> {
    /// An empty slot.
    fn default() -> Self {
        Self(None)
    }
}

impl<R> Slot<R> {
    /// The right to begin a request, if none is in flight.
    pub fn idle(&mut self) -> Option<Idle<'_, R>> {
        self.0.is_none().then_some(Idle(&mut self.0))
    }

    /// The request in flight, if any.
    pub fn busy(&self) -> Option<&InFlight<R>> {
        self.0.as_ref()
    }

    /// The request in flight, to be driven.
    pub fn request_mut(&mut self) -> Option<&mut R> {
        self.0.as_mut().map(|in_flight| &mut in_flight.request)
    }

    /// Takes the request and its batch out, which makes the slot idle: it was answered, or it is given up.
    pub fn settle(&mut self) -> Option<InFlight<R>> {
        self.0.take()
    }
}

impl<R> Idle<'_, R> {
    /// Puts `in_flight` in the slot.
    pub fn begin(self, in_flight: InFlight<R>) {
        *self.0 = Some(in_flight);
    }
}
