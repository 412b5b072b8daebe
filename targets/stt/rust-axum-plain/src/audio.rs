//! The audio that waits for the next flush, and what becomes of it when it is too much.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use tokio::time::Instant;

use crate::config::OverflowPolicy;
use crate::messages::{FRAME_BYTES, Span};

/// The buffer is full, and the policy is to close: the frame was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// Numbers the frames of a session and holds those that wait.
///
/// Frames leave in the order of their numbers: those dropped before the buffer, the buffer, those dropped after it
/// (`drop_newest`). Each is one range, because nothing is kept between two drops on the same side.
#[derive(Debug)]
pub struct AudioBuffer {
    policy: OverflowPolicy,
    frames_max: usize,
    next_seq: u64,
    dropped_before: Option<Span>,
    pcm: BytesMut,
    /// When each buffered frame was received.
    arrivals: VecDeque<Instant>,
    dropped_after: Option<Span>,
}

impl AudioBuffer {
    pub fn new(policy: OverflowPolicy, frames_max: usize) -> Self {
        Self {
            policy,
            frames_max,
            next_seq: 1,
            dropped_before: None,
            pcm: BytesMut::new(),
            arrivals: VecDeque::new(),
            dropped_after: None,
        }
    }

    /// Takes the next frame. True if one was dropped for it, itself or the oldest, which will be named.
    pub fn push(&mut self, pcm: &[u8], now: Instant) -> Result<bool, Full> {
        let full = self.arrivals.len() == self.frames_max;
        if full && self.policy == OverflowPolicy::Close {
            return Err(Full);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        if full && self.policy == OverflowPolicy::DropNewest {
            extend(&mut self.dropped_after, seq, now);
            return Ok(true);
        }
        self.pcm.extend_from_slice(pcm);
        self.arrivals.push_back(now);
        let oldest_seq = self.oldest_seq();
        if full && let Some(received) = self.arrivals.pop_front() {
            self.pcm.advance(FRAME_BYTES);
            extend(&mut self.dropped_before, oldest_seq, received);
        }
        Ok(full)
    }

    /// Frames that wait.
    pub fn frames(&self) -> usize {
        self.arrivals.len()
    }

    /// Whether a tick would find anything to send or to name.
    pub fn is_waiting(&self) -> bool {
        !self.arrivals.is_empty() || self.dropped_before.is_some()
    }

    /// The dropped frames that come before the buffered ones. They are named before [`Self::take`].
    pub fn take_dropped(&mut self) -> Option<Span> {
        self.dropped_before.take()
    }

    /// The whole buffer as one batch, if it holds anything.
    pub fn take(&mut self) -> Option<(Span, Bytes)> {
        let oldest_seq = self.oldest_seq();
        let span = Span {
            oldest_seq,
            newest_seq: oldest_seq + self.arrivals.len() as u64 - 1,
            oldest_at: *self.arrivals.front()?,
            newest_at: *self.arrivals.back()?,
        };
        self.arrivals.clear();
        self.dropped_before = self.dropped_after.take();
        Some((span, self.pcm.split().freeze()))
    }

    fn oldest_seq(&self) -> u64 {
        let dropped_after = self.dropped_after.as_ref().map_or(0, Span::frames);
        self.next_seq - dropped_after - self.arrivals.len() as u64
    }
}

/// Lengthens a range of dropped frames by the frame that follows it.
fn extend(dropped: &mut Option<Span>, seq: u64, received: Instant) {
    let span =
        dropped.get_or_insert(Span { oldest_seq: seq, newest_seq: seq, oldest_at: received, newest_at: received });
    span.newest_seq = seq;
    span.newest_at = received;
}
