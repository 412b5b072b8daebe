//! What waits to be written to the inference server: small frames that were made here, and audio that stays where it is.

use std::collections::VecDeque;
use std::io::IoSlice;

/// Written bytes that may lie before the unwritten ones until these are moved forward.
const STALE_BYTES_MAX: usize = 64 * 1024;

/// A queue of bytes for `writev`. Pieces `B` of a body are handed back when they have been written.
#[derive(Debug)]
pub struct Output<B> {
    segments: VecDeque<Segment<B>>,
    /// The bytes of all [`Segment::Made`], in their order; the first `stale` have been written.
    made: Vec<u8>,
    stale: usize,
    /// Bytes of the first segment that have been written.
    written: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Segment<B> {
    /// So many bytes of `made`.
    Made(usize),
    /// A piece, without this many bytes at its beginning.
    Piece(B, usize),
}

impl<B: AsRef<[u8]>> Segment<B> {
    fn len(&self) -> usize {
        match self {
            Self::Made(length) => *length,
            Self::Piece(piece, from) => piece.as_ref().len() - from,
        }
    }
}

impl<B> Default for Output<B> {
    fn default() -> Self {
        Self { segments: VecDeque::new(), made: Vec::new(), stale: 0, written: 0, bytes: 0 }
    }
}

impl<B: AsRef<[u8]>> Output<B> {
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends what `make` appends.
    pub fn make(&mut self, make: impl FnOnce(&mut Vec<u8>)) {
        let before = self.made.len();
        make(&mut self.made);
        let length = self.made.len() - before;
        self.bytes += length;
        match self.segments.back_mut() {
            Some(Segment::Made(last)) => *last += length,
            _ => self.segments.push_back(Segment::Made(length)),
        }
    }

    /// Appends a piece, but for its first `from` bytes.
    pub fn piece(&mut self, piece: B, from: usize) {
        self.bytes += piece.as_ref().len() - from;
        self.segments.push_back(Segment::Piece(piece, from));
    }

    /// Points `slices` at the next bytes; returns how many of them it used.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let (mut skip, mut made) = (self.written, self.stale);
        let mut used = 0;
        for (segment, slice) in self.segments.iter().zip(slices) {
            let bytes = match segment {
                Segment::Made(length) => {
                    let bytes = &self.made[made..made + length];
                    made += length;
                    bytes
                }
                Segment::Piece(piece, from) => &piece.as_ref()[*from..],
            };
            *slice = IoSlice::new(&bytes[skip..]);
            skip = 0;
            used += 1;
        }
        used
    }

    /// `count` more bytes have been written. Gives back the pieces that are through.
    pub fn advance(&mut self, count: usize, mut done: impl FnMut(B)) {
        self.bytes -= count;
        self.written += count;
        while let Some(first) = self.segments.front()
            && self.written >= first.len()
        {
            self.written -= first.len();
            match self.segments.pop_front() {
                Some(Segment::Made(length)) => self.stale += length,
                Some(Segment::Piece(piece, _)) => done(piece),
                None => {}
            }
        }
        if self.segments.is_empty() {
            self.made.clear();
            self.stale = 0;
        } else if self.stale > STALE_BYTES_MAX {
            self.made.drain(..self.stale);
            self.stale = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Make(Vec<u8>),
        Piece(Vec<u8>, usize),
        Write(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = || prop::collection::vec(any::<u8>(), 1..3000);
        prop_oneof![
            bytes().prop_map(Step::Make),
            (bytes(), any::<prop::sample::Index>()).prop_map(|(bytes, from)| {
                let from = from.index(bytes.len());
                Step::Piece(bytes, from)
            }),
            (0..20_000_usize).prop_map(Step::Write),
        ]
    }

    proptest! {
        #[test]
        fn bytes_leave_in_order_and_pieces_come_back(steps in prop::collection::vec(step(), 1..100)) {
            let mut output = Output::default();
            let (mut given, mut written) = (Vec::new(), Vec::new());
            let (mut lent, mut returned) = (Vec::new(), Vec::new());
            for step in steps.into_iter().chain([Step::Write(usize::MAX)]) {
                match step {
                    Step::Make(bytes) => {
                        given.extend_from_slice(&bytes);
                        output.make(|made| made.extend_from_slice(&bytes));
                    }
                    Step::Piece(bytes, from) => {
                        given.extend_from_slice(&bytes[from..]);
                        lent.push(bytes.clone());
                        output.piece(bytes, from);
                    }
                    Step::Write(mut most) => {
                        while most > 0 && !output.is_empty() {
                            let mut slices = [IoSlice::new(&[]); 3];
                            let used = output.slices(&mut slices);
                            let bytes: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
                            let count = bytes.len().min(most);
                            written.extend_from_slice(&bytes[..count]);
                            output.advance(count, |piece| returned.push(piece));
                            most -= count;
                        }
                    }
                }
                prop_assert_eq!(output.len(), given.len() - written.len());
            }
            prop_assert_eq!(given, written);
            prop_assert_eq!(lent, returned);
        }
    }
}
