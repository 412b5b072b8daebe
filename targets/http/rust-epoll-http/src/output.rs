//! What waits to be written: bytes that were made here, and pieces of the pattern, which stay where they are.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::AsFd;

use rustix::io::{self, Errno};

/// A piece of the pattern up to this length is copied: that costs less than a segment of its own.
const COPIED_BYTES_MAX: usize = 4096;

/// No answer is begun while so much that was made here waits: this bounds the memory of a client that does not read.
const MADE_BYTES_MAX: usize = 32 * 1024;

/// Nor while so many segments wait; as many are written with one call.
const SEGMENTS_MAX: usize = 64;

/// Memory is kept for the next time up to this many bytes.
const BYTES_KEPT: usize = 64 * 1024;

/// The client is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

#[derive(Debug, Clone, Copy)]
enum Segment {
    /// So many bytes of `made`.
    Made(usize),
    /// These bytes of the pattern.
    Pattern { from: usize, length: usize },
}

impl Segment {
    fn length(self) -> usize {
        match self {
            Self::Made(length) | Self::Pattern { length, .. } => length,
        }
    }
}

/// A queue of bytes.
#[derive(Debug, Default)]
pub struct Output {
    segments: VecDeque<Segment>,
    /// The bytes of all [`Segment::Made`], in their order; the first `stale` have been written.
    made: Vec<u8>,
    stale: usize,
    /// Bytes of the first segment that have been written.
    written: usize,
}

impl Output {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether another answer may be begun.
    pub fn has_room(&self) -> bool {
        self.segments.len() < SEGMENTS_MAX && self.made.len() - self.stale < MADE_BYTES_MAX
    }

    /// Appends what `make` appends.
    pub fn make<T>(&mut self, make: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let before = self.made.len();
        let result = make(&mut self.made);
        let length = self.made.len() - before;
        match self.segments.back_mut() {
            Some(Segment::Made(last)) => *last += length,
            _ if length > 0 => self.segments.push_back(Segment::Made(length)),
            _ => {}
        }
        result
    }

    /// Appends a piece of the pattern.
    pub fn pattern(&mut self, pattern: &[u8], from: usize, length: usize) {
        if length <= COPIED_BYTES_MAX {
            self.make(|bytes| bytes.extend_from_slice(&pattern[from..from + length]));
        } else {
            self.segments.push_back(Segment::Pattern { from, length });
        }
    }

    /// Writes until nothing is left or the kernel is full; how many bytes it took.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn flush(&mut self, socket: impl AsFd, pattern: &[u8]) -> Result<usize, Gone> {
        let mut all = 0;
        while !self.is_empty() {
            let written = match self.write(&socket, pattern) {
                Ok(written) => written,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                // A peer that is gone is an error and no signal: Rust programs ignore SIGPIPE.
                Err(_) => return Err(Gone),
            };
            all += written;
            self.advance(written);
        }
        Ok(all)
    }

    fn write(&self, socket: impl AsFd, pattern: &[u8]) -> io::Result<usize> {
        if let [Segment::Made(_)] = self.segments.as_slices().0
            && self.segments.len() == 1
        {
            // The usual case, by a call that is a little cheaper.
            return rustix::net::send(
                socket,
                &self.made[self.stale + self.written..],
                rustix::net::SendFlags::NOSIGNAL,
            );
        }
        let mut slices = [IoSlice::new(&[]); SEGMENTS_MAX];
        let used = self.slices(&mut slices, pattern);
        io::writev(socket, &slices[..used])
    }

    /// Points `slices` at the next bytes; how many of them it used.
    fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>], pattern: &'a [u8]) -> usize {
        let (mut skip, mut made) = (self.written, self.stale);
        let mut used = 0;
        for (segment, slice) in self.segments.iter().zip(slices) {
            let bytes = match *segment {
                Segment::Made(length) => {
                    made += length;
                    &self.made[made - length..made]
                }
                Segment::Pattern { from, length } => &pattern[from..from + length],
            };
            *slice = IoSlice::new(&bytes[std::mem::take(&mut skip)..]);
            used += 1;
        }
        used
    }

    /// Forgets what is written.
    fn advance(&mut self, count: usize) {
        self.written += count;
        while let Some(first) = self.segments.front()
            && self.written >= first.length()
        {
            self.written -= first.length();
            if let Some(Segment::Made(length)) = self.segments.pop_front() {
                self.stale += length;
            }
        }
        if self.segments.is_empty() {
            self.made.clear();
            self.made.shrink_to(BYTES_KEPT);
            self.stale = 0;
        } else if self.stale > MADE_BYTES_MAX {
            self.made.drain(..self.stale);
            self.stale = 0;
        }
    }

    /// All that waits, in one piece; for tests, and for servers that write by other means.
    pub fn take(&mut self, pattern: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !self.is_empty() {
            let mut slices = [IoSlice::new(&[]); SEGMENTS_MAX];
            let used = self.slices(&mut slices, pattern);
            let before = bytes.len();
            slices[..used].iter().for_each(|slice| bytes.extend_from_slice(slice));
            self.advance(bytes.len() - before);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    proptest! {
        #[test]
        fn bytes_leave_in_order(pieces in prop::collection::vec((any::<bool>(), 0..20_000_usize), 1..60), step in 1..30_000_usize) {
            let pattern = http_target::routes::pattern();
            let (socket, mut peer) = UnixStream::pair().expect("sockets");
            socket.set_nonblocking(true).expect("set");
            let mut output = Output::default();
            let mut expected = Vec::new();
            for (is_pattern, length) in pieces {
                if is_pattern {
                    output.pattern(&pattern, 3, length);
                    expected.extend_from_slice(&pattern[3..3 + length]);
                } else {
                    let bytes = vec![length.to_le_bytes()[0]; length];
                    output.make(|made| made.extend_from_slice(&bytes));
                    expected.extend(bytes);
                }
            }
            let mut seen = Vec::new();
            let mut buffer = vec![0; step];
            while seen.len() < expected.len() {
                output.flush(&socket, &pattern).expect("open");
                let length = peer.read(&mut buffer).expect("bytes");
                seen.extend_from_slice(&buffer[..length]);
            }
            prop_assert!(seen == expected);
            prop_assert!(output.is_empty() && output.made.is_empty() && output.written == 0);
        }
    }

    #[test]
    fn a_peer_that_is_gone() {
        let (socket, peer) = UnixStream::pair().expect("sockets");
        drop(peer);
        let mut output = Output::default();
        output.make(|bytes| bytes.push(1));
        assert_eq!(output.flush(&socket, &[]), Err(Gone));
    }
}
