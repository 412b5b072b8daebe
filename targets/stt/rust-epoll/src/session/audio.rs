//! The audio that waits for the next flush, in small chunks that go round: from the worker's pool to a session, from
//! there to the inference connection, and when the kernel has taken them, back to the pool.
//!
//! So a session owns no more memory than the audio that it holds (on average half an interval's), and the chunk that it
//! gets next is one that was in use a moment ago, and is still in the cache.

use std::collections::VecDeque;
use std::time::Instant;

use crate::messages::{FRAME_BYTES, Span};

/// Frames in a chunk: 6,400 bytes, a fifth of a second.
const CHUNK_FRAMES: usize = 10;

/// Chunks that the pool keeps for the next need (13 MB); more go back to the allocator.
const POOL_CHUNKS_MAX: usize = 2048;

type Chunk = Box<[u8; CHUNK_FRAMES * FRAME_BYTES]>;

/// Chunks that nobody uses.
#[derive(Debug, Default)]
pub struct Pool(Vec<Chunk>);

impl Pool {
    fn take(&mut self) -> Chunk {
        self.0.pop().unwrap_or_else(|| Box::new([0; _]))
    }

    fn give(&mut self, chunk: Chunk) {
        if self.0.len() < POOL_CHUNKS_MAX {
            self.0.push(chunk);
        }
    }

    /// Takes back what has been sent, or given up.
    pub fn recycle(&mut self, piece: Piece) {
        self.give(piece.chunk);
    }
}

/// A part of a batch: whole frames that lie side by side.
#[derive(Debug)]
pub struct Piece {
    chunk: Chunk,
    from: usize,
    to: usize,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.chunk[self.from..self.to]
    }
}

/// A whole buffer's samples, on their way out.
pub type Pcm = VecDeque<Piece>;

/// What to do with a frame when the buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// The oldest frame makes room.
    DropOldest,
    /// The new frame goes.
    DropNewest,
    /// The session ends.
    Close,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It is in the buffer.
    Kept,
    /// It is accepted, at the cost of itself or of the oldest.
    Dropped,
    /// It is not accepted: the session must end.
    Refused,
}

/// Numbers the frames and keeps those that wait. In the order of their numbers they are: dropped before those that are
/// kept, kept, dropped after them.
#[derive(Debug)]
pub struct AudioBuffer {
    policy: OverflowPolicy,
    frames_max: usize,
    chunks: VecDeque<Chunk>,
    /// Frames of the first chunk that are gone.
    gone: usize,
    /// Whole frames that are kept, one after the other from there.
    frames: usize,
    /// Bytes of the frame that is being received, in the place behind them.
    open_bytes: usize,
    /// When the kept frames were received, in runs: those of one read have one time.
    arrivals: VecDeque<(Instant, usize)>,
    next_seq: u64,
    dropped_before: Option<Span>,
    dropped_after: Option<Span>,
}

impl AudioBuffer {
    /// An empty buffer of at most `frames_max` frames.
    pub fn new(policy: OverflowPolicy, frames_max: usize) -> Self {
        Self {
            policy,
            frames_max,
            chunks: VecDeque::new(),
            gone: 0,
            frames: 0,
            open_bytes: 0,
            arrivals: VecDeque::new(),
            next_seq: 1,
            dropped_before: None,
            dropped_after: None,
        }
    }

    /// Frames that wait.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Whether a tick would find something to send or to report.
    pub fn is_waiting(&self) -> bool {
        self.frames > 0 || self.dropped_before.is_some()
    }

    /// The place of the next `length` bytes of the frame that is being received.
    pub fn place(&mut self, length: usize, pool: &mut Pool) -> &mut [u8] {
        let slot = self.gone + self.frames;
        if slot / CHUNK_FRAMES == self.chunks.len() {
            self.chunks.push_back(pool.take());
        }
        let at = slot % CHUNK_FRAMES * FRAME_BYTES + self.open_bytes;
        self.open_bytes += length;
        assert!(self.open_bytes <= FRAME_BYTES, "a frame has its declared length");
        &mut self.chunks[slot / CHUNK_FRAMES][at..at + length]
    }

    /// The frame is there as a whole.
    pub fn commit(&mut self, now: Instant, pool: &mut Pool) -> Committed {
        assert_eq!(self.open_bytes, FRAME_BYTES, "only whole frames are committed");
        self.open_bytes = 0;
        let is_full = self.frames == self.frames_max;
        match self.policy {
            OverflowPolicy::Close if is_full => return Committed::Refused,
            OverflowPolicy::DropNewest if is_full => {
                // Its place is that of the next one.
                extend(&mut self.dropped_after, self.next_seq, now);
                self.next_seq += 1;
                return Committed::Dropped;
            }
            OverflowPolicy::DropOldest if is_full => self.drop_oldest(pool),
            _ => {}
        }
        self.frames += 1;
        self.next_seq += 1;
        match self.arrivals.back_mut() {
            Some((at, count)) if *at == now => *count += 1,
            _ => self.arrivals.push_back((now, 1)),
        }
        if is_full { Committed::Dropped } else { Committed::Kept }
    }

    fn drop_oldest(&mut self, pool: &mut Pool) {
        let oldest_seq = self.oldest_seq();
        let Some((at, count)) = self.arrivals.front_mut() else { return };
        extend(&mut self.dropped_before, oldest_seq, *at);
        *count -= 1;
        if *count == 0 {
            self.arrivals.pop_front();
        }
        self.frames -= 1;
        self.gone += 1;
        if self.gone == CHUNK_FRAMES {
            self.gone = 0;
            self.chunks.pop_front().into_iter().for_each(|chunk| pool.give(chunk));
        }
    }

    /// The dropped frames that come before those that are kept; they must be reported before [`Self::take`].
    pub fn take_dropped(&mut self) -> Option<Span> {
        self.dropped_before.take()
    }

    /// Takes all whole frames, if there are any.
    pub fn take(&mut self, pool: &mut Pool) -> Option<(Span, Pcm)> {
        assert!(self.dropped_before.is_none(), "dropped frames are named before those that follow them");
        let span = Span {
            oldest_seq: self.oldest_seq(),
            newest_seq: self.oldest_seq() + self.frames as u64 - 1,
            oldest_at: self.arrivals.front()?.0,
            newest_at: self.arrivals.back()?.0,
        };
        let (begin, end) = (self.gone, self.gone + self.frames);
        let mut pcm = Pcm::with_capacity(self.chunks.len());
        let mut open = None;
        for (index, chunk) in self.chunks.drain(..).enumerate() {
            let first = index * CHUNK_FRAMES;
            if self.open_bytes > 0 && end / CHUNK_FRAMES == index {
                open = Some(copy_open(&chunk, end % CHUNK_FRAMES, self.open_bytes, pool));
            }
            let from = begin.max(first) - first;
            let to = end.min(first + CHUNK_FRAMES).saturating_sub(first);
            if from < to {
                pcm.push_back(Piece { chunk, from: from * FRAME_BYTES, to: to * FRAME_BYTES });
            } else {
                pool.give(chunk);
            }
        }
        self.chunks.extend(open);
        (self.gone, self.frames) = (0, 0);
        self.arrivals.clear();
        self.dropped_before = self.dropped_after.take();
        Some((span, pcm))
    }

    /// Gives everything back; the buffer is not used any more.
    pub fn discard(&mut self, pool: &mut Pool) {
        self.chunks.drain(..).for_each(|chunk| pool.give(chunk));
        (self.gone, self.frames, self.open_bytes) = (0, 0, 0);
    }

    fn oldest_seq(&self) -> u64 {
        let dropped_after = self.dropped_after.as_ref().map_or(0, Span::frames);
        self.next_seq - dropped_after - self.frames as u64
    }
}

/// A new first chunk with the beginning of the frame that is being received. Rare: clients write whole frames.
fn copy_open(chunk: &Chunk, slot: usize, open_bytes: usize, pool: &mut Pool) -> Chunk {
    let mut copy = pool.take();
    copy[..open_bytes].copy_from_slice(&chunk[slot * FRAME_BYTES..][..open_bytes]);
    copy
}

/// Lengthens a range of dropped frames by the one behind it.
fn extend(dropped: &mut Option<Span>, seq: u64, at: Instant) {
    let first = Span { oldest_seq: seq, newest_seq: seq, oldest_at: at, newest_at: at };
    let span = dropped.get_or_insert(first);
    (span.newest_seq, span.newest_at) = (seq, at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn push(buffer: &mut AudioBuffer, pool: &mut Pool, byte: u8) -> Committed {
        buffer.place(FRAME_BYTES, pool).fill(byte);
        buffer.commit(Instant::now(), pool)
    }

    fn range(span: &Span) -> (u64, u64) {
        (span.oldest_seq, span.newest_seq)
    }

    fn frames(pcm: &Pcm) -> Vec<u8> {
        let bytes: Vec<u8> = pcm.iter().flat_map(|piece| piece.as_ref().to_vec()).collect();
        let (frames, rest) = bytes.as_chunks::<FRAME_BYTES>();
        assert!(rest.is_empty() && frames.iter().all(|frame| frame.iter().all(|byte| *byte == frame[0])));
        frames.iter().map(|frame| frame[0]).collect()
    }

    #[test]
    fn drop_oldest_loses_what_is_before_the_buffer() {
        let (mut buffer, mut pool) = (AudioBuffer::new(OverflowPolicy::DropOldest, 3), Pool::default());
        let committed: Vec<_> = (1..=5).map(|byte| push(&mut buffer, &mut pool, byte)).collect();
        assert_eq!(committed[2..], [Committed::Kept, Committed::Dropped, Committed::Dropped]);
        assert_eq!(buffer.take_dropped().as_ref().map(range), Some((1, 2)));
        let (span, pcm) = buffer.take(&mut pool).expect("three frames");
        assert_eq!((range(&span), frames(&pcm)), ((3, 5), vec![3, 4, 5]));
        assert!(!buffer.is_waiting());
        assert!(buffer.take(&mut pool).is_none());
    }

    #[test]
    fn drop_newest_loses_what_is_behind_the_buffer() {
        let (mut buffer, mut pool) = (AudioBuffer::new(OverflowPolicy::DropNewest, 3), Pool::default());
        for byte in 1..=5 {
            push(&mut buffer, &mut pool, byte);
        }
        assert_eq!(buffer.take_dropped(), None);
        let (span, pcm) = buffer.take(&mut pool).expect("three frames");
        assert_eq!((range(&span), frames(&pcm)), ((1, 3), vec![1, 2, 3]));
        push(&mut buffer, &mut pool, 6);
        assert_eq!(buffer.take_dropped().as_ref().map(range), Some((4, 5)));
        let (span, pcm) = buffer.take(&mut pool).expect("a frame");
        assert_eq!((range(&span), frames(&pcm)), ((6, 6), vec![6]));
    }

    #[test]
    fn close_refuses() {
        let (mut buffer, mut pool) = (AudioBuffer::new(OverflowPolicy::Close, 3), Pool::default());
        let committed: Vec<_> = (1..=4).map(|byte| push(&mut buffer, &mut pool, byte)).collect();
        assert_eq!(committed[2..], [Committed::Kept, Committed::Refused]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// A frame, in parts of these sizes and the rest.
        Frame(Vec<usize>),
        Take,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => prop::collection::vec(1..300_usize, 0..3).prop_map(Step::Frame),
            1 => Just(Step::Take),
        ]
    }

    proptest! {
        /// Frames may be taken while the next one is half there, whatever chunk it is in.
        #[test]
        fn frames_come_out_as_they_went_in(steps in prop::collection::vec(step(), 1..200), take_between: bool) {
            let (mut buffer, mut pool) = (AudioBuffer::new(OverflowPolicy::DropOldest, 1000), Pool::default());
            let (mut next, mut given, mut taken) = (0_u8, Vec::new(), Vec::new());
            let mut take = |buffer: &mut AudioBuffer, pool: &mut Pool| {
                if let Some((_, pcm)) = buffer.take(pool) {
                    taken.extend(frames(&pcm));
                    pcm.into_iter().for_each(|piece| pool.recycle(piece));
                }
            };
            for step in steps {
                match step {
                    Step::Frame(parts) => {
                        next = next.wrapping_add(1);
                        let mut left = FRAME_BYTES;
                        for part in parts {
                            let part = part.min(left);
                            buffer.place(part, &mut pool).fill(next);
                            left -= part;
                            if take_between {
                                take(&mut buffer, &mut pool);
                            }
                        }
                        buffer.place(left, &mut pool).fill(next);
                        prop_assert_eq!(buffer.commit(Instant::now(), &mut pool), Committed::Kept);
                        given.push(next);
                    }
                    Step::Take => take(&mut buffer, &mut pool),
                }
            }
            take(&mut buffer, &mut pool);
            prop_assert_eq!(given, taken);
        }
    }
}
