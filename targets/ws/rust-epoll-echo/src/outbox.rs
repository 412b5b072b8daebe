//! What a connection has to say and the kernel has not taken yet.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::{self, Errno};

use crate::intake::End;

/// A connection to the hub with more than this unsent loses what comes.
pub const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a batch in a queue takes beside its bytes, about: without it a queue of small ones would be many times that long.
const BATCH_OVERHEAD_BYTES: usize = 64;

/// Memory for what is unsent is kept for the next time up to this many bytes.
const BYTES_KEPT: usize = 16 * 1024;

/// Pieces written with one call.
const PIECES_PER_WRITE: usize = 32;

/// First the connection's own bytes, then batches that it shares with others.
#[derive(Debug, Default)]
pub struct Outbox {
    own: Vec<u8>,
    /// So many of `own` are written.
    own_written: usize,
    queue: VecDeque<Arc<Vec<u8>>>,
    /// So many of the first batch are written.
    queue_written: usize,
    /// What the whole batches of the queue weigh.
    queued_bytes: usize,
}

impl Outbox {
    /// Whether the kernel has everything.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.queue.is_empty()
    }

    /// Says `pieces` after all that is there: without a copy if the kernel takes them now.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn send(&mut self, socket: &OwnedFd, pieces: [&[u8]; 3]) -> Result<(), End> {
        let mut written = if self.is_empty() { write(socket, &pieces.map(IoSlice::new))?.unwrap_or(0) } else { 0 };
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        if written == all {
            return Ok(());
        }
        for piece in pieces {
            let skip = written.min(piece.len());
            written -= skip;
            self.push(&piece[skip..]);
        }
        // Until the kernel says that it is full: only then it will tell when it is so no more.
        self.flush(socket)
    }

    /// Puts bytes behind all that is there.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.queue.is_empty() {
            self.own.extend_from_slice(bytes);
        } else {
            self.enqueue(Arc::new(bytes.to_vec()));
        }
    }

    /// Puts a batch behind all that is there, unless there is too much; whether it did.
    pub fn offer(&mut self, batch: &Arc<Vec<u8>>) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.enqueue(Arc::clone(batch));
        }
        has_room
    }

    /// Whether there is not too much already.
    pub fn has_room(&self) -> bool {
        self.own.len() + self.queued_bytes <= QUEUE_BYTES_MAX
    }

    fn enqueue(&mut self, batch: Arc<Vec<u8>>) {
        self.queued_bytes += weight(&batch);
        self.queue.push_back(batch);
    }

    /// Writes until nothing is left or the kernel is full.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn flush(&mut self, socket: &OwnedFd) -> Result<(), End> {
        while !self.is_empty() {
            let mut pieces = [IoSlice::new(&[]); PIECES_PER_WRITE];
            pieces[0] = IoSlice::new(&self.own[self.own_written..]);
            let mut skip = self.queue_written;
            for (piece, batch) in pieces[1..].iter_mut().zip(&self.queue) {
                *piece = IoSlice::new(&batch[std::mem::take(&mut skip)..]);
            }
            match write(socket, &pieces)? {
                Some(written) => self.advance(written),
                None => break,
            }
        }
        Ok(())
    }

    /// Forgets what is written.
    fn advance(&mut self, mut written: usize) {
        let own = (self.own.len() - self.own_written).min(written);
        self.own_written += own;
        written -= own;
        if self.own_written == self.own.len() {
            self.own_written = 0;
            self.own.clear();
            self.own.shrink_to(BYTES_KEPT);
        }
        while let Some(batch) = self.queue.front() {
            let left = batch.len() - self.queue_written;
            if written < left {
                self.queue_written += written;
                break;
            }
            written -= left;
            self.queue_written = 0;
            self.queued_bytes -= weight(batch);
            self.queue.pop_front();
        }
    }
}

/// What a batch counts for in a queue.
fn weight(batch: &[u8]) -> usize {
    batch.len() + BATCH_OVERHEAD_BYTES
}

/// One vectored write; `None` if the kernel takes nothing now. A peer that is gone is an error and no signal: Rust programs
/// ignore SIGPIPE.
fn write(socket: &OwnedFd, pieces: &[IoSlice<'_>]) -> Result<Option<usize>, End> {
    loop {
        match io::writev(socket, pieces) {
            Ok(written) => return Ok(Some(written)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(_) => return Err(End::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn pair() -> (OwnedFd, UnixStream) {
        let (one, two) = UnixStream::pair().expect("sockets");
        one.set_nonblocking(true).expect("set");
        (one.into(), two)
    }

    fn reads(peer: &mut UnixStream, expected: &[u8]) {
        let mut seen = vec![0; expected.len()];
        peer.read_exact(&mut seen).expect("bytes");
        assert!(seen == expected, "other bytes");
    }

    #[test]
    fn what_the_kernel_takes_is_not_kept() {
        let (socket, mut peer) = pair();
        let mut outbox = Outbox::default();
        outbox.send(&socket, [b"one", b"", b"two"]).expect("written");
        assert!(outbox.is_empty() && outbox.own.capacity() == 0);
        reads(&mut peer, b"onetwo");
    }

    #[test]
    fn what_it_does_not_take_comes_later_and_in_order() {
        let (socket, mut peer) = pair();
        let mut outbox = Outbox::default();
        let long: Vec<u8> = (0..3_000_000_u32).map(|index| index.to_le_bytes()[0] ^ index.to_le_bytes()[1]).collect();
        outbox.send(&socket, [b"begin", &long, b"middle"]).expect("written");
        assert!(!outbox.is_empty());
        outbox.send(&socket, [b"", b"more", b""]).expect("kept");
        let batch = Arc::new(b"batch".to_vec());
        assert!(outbox.offer(&batch));
        outbox.push(b"end");
        let reader = std::thread::spawn(move || {
            reads(&mut peer, &[&b"begin"[..], &long, b"middlemorebatchend"].concat());
        });
        while !outbox.is_empty() {
            outbox.flush(&socket).expect("written");
            std::thread::yield_now();
        }
        reader.join().expect("the same bytes");
        assert_eq!((outbox.queued_bytes, outbox.queue_written, outbox.own_written), (0, 0, 0));
        assert!(outbox.own.capacity() <= BYTES_KEPT);
    }

    #[test]
    fn a_queue_that_is_too_long_takes_nothing() {
        let (socket, mut peer) = pair();
        let mut outbox = Outbox::default();
        let batch = Arc::new(vec![7; 4 * 1024 * 1024]);
        let taken = (0..10).take_while(|_| outbox.offer(&batch)).count();
        assert_eq!(taken, 4, "the one that goes over the limit, too");
        let reader = std::thread::spawn(move || {
            let mut seen = 0;
            let mut bytes = vec![0; 1 << 20];
            while seen < 4 * 4 * 1024 * 1024 {
                seen += peer.read(&mut bytes).expect("bytes");
            }
        });
        while !outbox.is_empty() {
            outbox.flush(&socket).expect("written");
            std::thread::yield_now();
        }
        assert!(outbox.offer(&batch));
        reader.join().expect("all of it");
    }

    #[test]
    fn small_batches_and_own_bytes_take_room_too() {
        let mut outbox = Outbox::default();
        let batch = Arc::new(vec![0x82, 0]);
        let taken = (0..1_000_000).take_while(|_| outbox.offer(&batch)).count();
        assert!((200_000..300_000).contains(&taken), "{taken}");
        let mut outbox = Outbox::default();
        outbox.push(&vec![7; QUEUE_BYTES_MAX + 1]);
        assert!(!outbox.has_room() && !outbox.offer(&batch));
    }

    #[test]
    fn a_peer_that_is_gone() {
        let (socket, peer) = pair();
        drop(peer);
        let mut outbox = Outbox::default();
        assert_eq!(outbox.send(&socket, [b"x", b"", b""]), Err(End::Gone));
    }
}
