//! The audio that waits for the next flush, and what becomes of it when it is too much.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};

use crate::messages::{FRAME_BYTES, Span};

/// What to do with a frame when the buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// Make room: the oldest buffered frame goes.
    DropOldest,
    /// Keep what is there: the new frame goes.
    DropNewest,
    /// End the session.
    Close,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the buffer, and so are all that were.
    Kept,
    /// A frame was dropped, this one or the oldest, and will be reported.
    Dropped,
    /// The policy asks to close the session; the frame was not accepted.
    Refused,
}

/// A buffer's whole content, on its way out.
#[derive(Debug)]
pub struct Batch {
    /// Which frames.
    pub span: Span,
    /// Their samples, one after the other.
    pub pcm: Bytes,
}

/// Numbers the frames of a session and holds those that wait.
///
/// Frames leave in the order of their numbers, in up to three contiguous ranges: dropped before the buffer, buffered,
/// dropped after it. Under `DropOldest` only the first kind of drop occurs, under `DropNewest` they first fall behind
/// the buffer, and are before it once it has been taken.
#[derive(Debug)]
pub struct AudioBuffer {
    policy: OverflowPolicy,
    frames_max: usize,
    /// Room to allocate at once: what one flush interval brings.
    frames_expected: usize,
    next_seq: u64,
    dropped_before: Option<Span>,
    pcm: BytesMut,
    /// When each buffered frame was received.
    arrivals: VecDeque<Instant>,
    dropped_after: Option<Span>,
}

impl AudioBuffer {
    /// An empty buffer for at most `frames_max` frames that usually holds up to `frames_expected`; allocates nothing yet.
    pub fn new(policy: OverflowPolicy, frames_max: usize, frames_expected: usize) -> Self {
        Self {
            policy,
            frames_max,
            frames_expected: frames_expected.min(frames_max),
            next_seq: 1,
            dropped_before: None,
            pcm: BytesMut::new(),
            arrivals: VecDeque::new(),
            dropped_after: None,
        }
    }

    /// Takes in the next frame.
    pub fn push(&mut self, now: Instant, frame: &[u8]) -> Pushed {
        debug_assert_eq!(frame.len(), FRAME_BYTES);
        let full = self.arrivals.len() == self.frames_max;
        match self.policy {
            OverflowPolicy::Close if full => return Pushed::Refused,
            OverflowPolicy::DropNewest if full => {
                extend(&mut self.dropped_after, self.next_seq, now);
                self.next_seq += 1;
                return Pushed::Dropped;
            }
            OverflowPolicy::DropOldest if full => {
                let oldest_seq = self.oldest_seq();
                if let Some(received) = self.arrivals.pop_front() {
                    self.pcm.advance(FRAME_BYTES);
                    extend(&mut self.dropped_before, oldest_seq, received);
                }
            }
            _ => {}
        }
        if self.pcm.is_empty() {
            self.pcm.reserve(self.frames_expected * FRAME_BYTES);
        }
        self.pcm.extend_from_slice(frame);
        self.arrivals.push_back(now);
        self.next_seq += 1;
        if full { Pushed::Dropped } else { Pushed::Kept }
    }

    /// Frames that wait.
    pub fn frames(&self) -> usize {
        self.arrivals.len()
    }

    /// Whether a tick would find anything to send or to report.
    pub fn is_waiting(&self) -> bool {
        !self.arrivals.is_empty() || self.dropped_before.is_some()
    }

    /// The dropped frames that come before the buffered ones. They must be reported before [`Self::take`].
    pub fn take_dropped(&mut self) -> Option<Span> {
        self.dropped_before.take()
    }

    /// Takes the whole buffer, if it holds anything.
    pub fn take(&mut self) -> Option<Batch> {
        assert!(self.dropped_before.is_none(), "dropped frames are named before those that follow them");
        let span = Span {
            oldest_seq: self.oldest_seq(),
            newest_seq: self.oldest_seq() + self.arrivals.len() as u64 - 1,
            oldest_at: *self.arrivals.front()?,
            newest_at: *self.arrivals.back()?,
        };
        self.arrivals.clear();
        self.dropped_before = self.dropped_after.take();
        Some(Batch { span, pcm: std::mem::take(&mut self.pcm).freeze() })
    }

    fn oldest_seq(&self) -> u64 {
        let dropped_after = self.dropped_after.as_ref().map_or(0, Span::frames);
        self.next_seq - dropped_after - self.arrivals.len() as u64
    }
}

/// Lengthens a range of dropped frames by the one that follows it.
fn extend(dropped: &mut Option<Span>, seq: u64, received: Instant) {
    match dropped {
        Some(span) => {
            debug_assert_eq!(seq, span.newest_seq + 1);
            span.newest_seq = seq;
            span.newest_at = received;
        }
        None => *dropped = Some(Span { oldest_seq: seq, newest_seq: seq, oldest_at: received, newest_at: received }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(policy: OverflowPolicy, frames: u8) -> (AudioBuffer, Vec<Pushed>) {
        let mut buffer = AudioBuffer::new(policy, 3, 3);
        let now = Instant::now();
        let pushed = (1..=frames).map(|n| buffer.push(now, &[n; FRAME_BYTES])).collect();
        (buffer, pushed)
    }

    fn range(span: &Span) -> (u64, u64) {
        (span.oldest_seq, span.newest_seq)
    }

    #[test]
    fn drop_oldest_reports_what_precedes_the_buffer() {
        let (mut buffer, pushed) = filled(OverflowPolicy::DropOldest, 5);
        assert_eq!(pushed, [Pushed::Kept, Pushed::Kept, Pushed::Kept, Pushed::Dropped, Pushed::Dropped]);
        assert_eq!(buffer.take_dropped().as_ref().map(range), Some((1, 2)));
        let batch = buffer.take().expect("three frames");
        assert_eq!(range(&batch.span), (3, 5));
        let expected: Vec<u8> = [3, 4, 5].into_iter().flat_map(|n| [n; FRAME_BYTES]).collect();
        assert_eq!(batch.pcm, expected);
        assert!(!buffer.is_waiting());
    }

    #[test]
    fn drop_newest_reports_what_follows_the_buffer_after_it() {
        let (mut buffer, _) = filled(OverflowPolicy::DropNewest, 5);
        assert_eq!(buffer.take_dropped(), None);
        assert_eq!(range(&buffer.take().expect("three frames").span), (1, 3));
        buffer.push(Instant::now(), &[6; FRAME_BYTES]);
        assert_eq!(buffer.take_dropped().as_ref().map(range), Some((4, 5)));
        assert_eq!(range(&buffer.take().expect("one frame").span), (6, 6));
    }

    #[test]
    fn close_refuses() {
        let (mut buffer, pushed) = filled(OverflowPolicy::Close, 4);
        assert_eq!(pushed[3], Pushed::Refused);
        assert_eq!(range(&buffer.take().expect("three frames").span), (1, 3));
    }
}
