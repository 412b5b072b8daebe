//! The newest bytes of a log, in memory.
//!
//! A position is the number of bytes before it, and stays valid for as long as its bytes are kept. Each piece that was
//! appended in one go lies in one chunk, so it can be lent as a slice; chunks are given up from the oldest on.

use std::collections::VecDeque;

/// The usual size of a chunk: dozens of messages, and few chunks to look through.
const CHUNK_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
struct Chunk {
    /// The position of its first byte.
    base: u64,
    bytes: Vec<u8>,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

/// Bytes by position.
#[derive(Debug)]
pub struct Arena {
    chunks: VecDeque<Chunk>,
    /// The memory of a chunk that was given up, for the next one.
    spare: Vec<u8>,
    end: u64,
    /// The next piece begins a chunk.
    is_cut: bool,
}

impl Arena {
    /// An arena without bytes, whose next one has this position.
    pub fn new(start: u64) -> Self {
        Self { chunks: VecDeque::new(), spare: Vec::new(), end: start, is_cut: false }
    }

    /// The position behind the newest byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The position of the oldest byte that is kept.
    pub fn start(&self) -> u64 {
        self.chunks.front().map_or(self.end, |chunk| chunk.base)
    }

    /// How many bytes are kept.
    pub fn held(&self) -> u64 {
        self.end - self.start()
    }

    /// Appends what `write` appends, which is one piece of at most `most` bytes; its position.
    ///
    /// `write` is given the chunk, whose earlier bytes are other pieces, and must only append to it.
    pub fn append(&mut self, most: usize, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let has_room = |chunk: &Chunk| chunk.bytes.capacity() - chunk.bytes.len() >= most;
        if self.is_cut || !self.chunks.back().is_some_and(has_room) {
            self.is_cut = false;
            let mut bytes = std::mem::take(&mut self.spare);
            bytes.reserve_exact(most.max(CHUNK_BYTES));
            self.chunks.push_back(Chunk { base: self.end, bytes });
        }
        let at = self.end;
        if let Some(chunk) = self.chunks.back_mut() {
            write(&mut chunk.bytes);
            self.end = chunk.end();
        }
        at
    }

    /// The next piece begins a chunk, so that no chunk has bytes on both sides of this position.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// These bytes of one piece, if they are kept.
    pub fn get(&self, at: u64, length: usize) -> Option<&[u8]> {
        let index = self.chunks.partition_point(|chunk| chunk.base <= at).checked_sub(1)?;
        let chunk = &self.chunks[index];
        let from = usize::try_from(at - chunk.base).ok()?;
        chunk.bytes.get(from..from.checked_add(length)?)
    }

    /// All bytes from this position on, which must be kept, in as many slices as there are chunks.
    pub fn since(&self, at: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let first = self.chunks.partition_point(|chunk| chunk.end() <= at);
        self.chunks.range(first..).map(move |chunk| {
            let from = at.max(chunk.base);
            (from, &chunk.bytes[usize::try_from(from - chunk.base).unwrap_or(usize::MAX)..])
        })
    }

    /// Gives up chunks whose bytes all lie before this position.
    pub fn forget(&mut self, before: u64) {
        while let Some(chunk) = self.chunks.front()
            && chunk.end() <= before
            && (self.chunks.len() > 1 || self.is_cut)
            && let Some(Chunk { mut bytes, .. }) = self.chunks.pop_front()
        {
            bytes.clear();
            // Memory for one piece that was larger than others is not kept.
            if bytes.capacity() <= CHUNK_BYTES {
                self.spare = bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_piece_larger_than_a_chunk_lies_in_one() {
        let mut arena = Arena::new(5);
        let large = vec![1; CHUNK_BYTES + 1];
        assert_eq!(arena.append(1, |bytes| bytes.push(0)), 5);
        assert_eq!(arena.append(large.len(), |bytes| bytes.extend_from_slice(&large)), 6);
        assert_eq!(arena.get(6, large.len()).map(<[u8]>::len), Some(large.len()));
        assert_eq!(arena.get(6, large.len() + 1), None);
        assert_eq!(arena.get(4, 1), None);
        arena.forget(6);
        assert_eq!((arena.start(), arena.get(5, 1)), (6, None));
    }

    proptest! {
        #[test]
        fn bytes_stay_where_they_are(pieces in prop::collection::vec((0..700_000_usize, any::<bool>()), 1..12), start in 0..1000_u64) {
            let mut arena = Arena::new(start);
            let mut all = Vec::new();
            let mut places = Vec::new();
            for (number, (length, cuts)) in pieces.into_iter().enumerate() {
                if cuts {
                    arena.cut();
                }
                let piece = vec![u8::try_from(number).expect("few"); length];
                let at = arena.append(length, |bytes| bytes.extend_from_slice(&piece));
                prop_assert_eq!(at, start + all.len() as u64);
                all.extend_from_slice(&piece);
                places.push((at, piece));
            }
            prop_assert_eq!(arena.end(), start + all.len() as u64);
            for (at, piece) in &places {
                prop_assert_eq!(arena.get(*at, piece.len()), Some(&piece[..]));
                let since: Vec<u8> = arena.since(*at).flat_map(|(_, bytes)| bytes.to_vec()).collect();
                prop_assert!(since == all[usize::try_from(at - start).expect("small")..]);
            }
            let middle = start + all.len() as u64 / 2;
            arena.forget(middle);
            for (at, piece) in places.iter().filter(|(at, _)| *at >= middle) {
                prop_assert_eq!(arena.get(*at, piece.len()), Some(&piece[..]));
            }
        }
    }
}
