//! What a connection reads, without I/O: where the next read goes, and what becomes of it.
//!
//! Reads go into the worker's one buffer, which stays in the cache. A frame whose end has not come gets memory of its own,
//! of exactly its size; the next read fills that first and the worker's buffer behind it, with one vectored call. Only a
//! header that is cut is copied back, at most 13 bytes.

use std::io::IoSliceMut;

use crate::decoder::{Counts, Decoder, Pause};
use crate::frame::{CLIENT_HEADER_BYTES_MAX, Stop};
use crate::pool::Pool;

/// How a connection ends.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// With a close.
    Stop(Stop),
    /// Without: the client is gone.
    Gone,
}

impl From<Stop> for End {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// What becomes of what is decoded.
pub trait Sink {
    /// Frames that answer what was read, in this order, and how many messages came with them.
    ///
    /// # Errors
    /// When there is nobody to answer.
    fn emit(&mut self, pieces: [&[u8]; 3], counts: Counts) -> Result<(), End>;

    /// Where pongs go, if not among the echoes.
    fn pongs(&mut self) -> Option<&mut Vec<u8>>;
}

/// A frame whose end has not come.
#[derive(Debug, Default)]
struct Pending {
    /// From the pool; longer than the frame.
    bytes: Vec<u8>,
    filled_bytes: usize,
    /// 0 when there is none.
    frame_bytes: usize,
}

/// Where in the stream of frames the last read has ended.
#[derive(Debug, Default)]
pub struct Intake {
    decoder: Decoder,
    pending: Pending,
    /// A header whose end has not come.
    tail: [u8; CLIENT_HEADER_BYTES_MAX],
    tail_bytes: u8,
}

impl Intake {
    /// Where the next read goes: into both, one after the other.
    pub fn slots<'a>(&'a mut self, buffer: &'a mut [u8]) -> [IoSliceMut<'a>; 2] {
        let Pending { bytes, filled_bytes, frame_bytes } = &mut self.pending;
        let tail = &self.tail[..usize::from(self.tail_bytes)];
        buffer[..tail.len()].copy_from_slice(tail);
        [IoSliceMut::new(&mut bytes[*filled_bytes..*frame_bytes]), IoSliceMut::new(&mut buffer[tail.len()..])]
    }

    /// Takes in that `read_bytes` have been put into the slots over `buffer`.
    ///
    /// # Errors
    /// When there is nothing more to be read: after a violation or a close, or when `sink` fails.
    pub fn take_in(
        &mut self,
        buffer: &mut [u8],
        read_bytes: usize,
        message_bytes_max: usize,
        pool: &mut Pool,
        sink: &mut impl Sink,
    ) -> Result<(), End> {
        let missing_bytes = self.pending.frame_bytes - self.pending.filled_bytes;
        if read_bytes < missing_bytes {
            self.pending.filled_bytes += read_bytes;
            return Ok(());
        }
        let input_bytes = usize::from(std::mem::take(&mut self.tail_bytes)) + read_bytes - missing_bytes;
        let Pending { mut bytes, frame_bytes, .. } = std::mem::take(&mut self.pending);
        let (frame, input) = (&mut bytes[..frame_bytes], &mut buffer[..input_bytes]);
        let decoded = self.decode(frame, input, message_bytes_max, pool, sink);
        pool.give_back(bytes);
        decoded
    }

    /// Gives back what is held for a frame that will not be completed.
    pub fn end(&mut self, pool: &mut Pool) {
        pool.give_back(std::mem::take(&mut self.pending).bytes);
    }

    /// Decodes a frame that is complete now, which may be empty, and what was read behind it.
    fn decode(
        &mut self,
        frame: &mut [u8],
        input: &mut [u8],
        message_bytes_max: usize,
        pool: &mut Pool,
        sink: &mut impl Sink,
    ) -> Result<(), End> {
        let mut counts = Counts::default();
        // Usually an echo, which goes out with those of the input.
        let mut ahead: &[u8] = &[];
        if !frame.is_empty() {
            let decoded = self.decoder.decode(frame, message_bytes_max, sink.pongs(), &mut counts);
            match decoded.pause {
                Pause::Starved(_) => ahead = &frame[..decoded.ready],
                Pause::Assembled => {
                    sink.emit([&[], &[], self.decoder.assembled()], std::mem::take(&mut counts))?;
                    self.decoder.clear_assembled();
                }
                Pause::Stopped(stop) => {
                    sink.emit([&frame[..decoded.ready], &[], &[]], counts)?;
                    return Err(stop.into());
                }
            }
        }
        let mut rest = input;
        loop {
            let decoded = self.decoder.decode(rest, message_bytes_max, sink.pongs(), &mut counts);
            let (done, undone) = std::mem::take(&mut rest).split_at_mut(decoded.taken);
            let pieces = [ahead, &done[..decoded.ready], self.decoder.assembled()];
            if pieces.iter().any(|piece| !piece.is_empty()) {
                sink.emit(pieces, std::mem::take(&mut counts))?;
            }
            self.decoder.clear_assembled();
            ahead = &[];
            match decoded.pause {
                Pause::Starved(frame_bytes) => {
                    self.keep(undone, frame_bytes, pool);
                    return Ok(());
                }
                Pause::Assembled => rest = undone,
                Pause::Stopped(stop) => return Err(stop.into()),
            }
        }
    }

    /// Keeps the beginning of a frame for the next read.
    fn keep(&mut self, begun: &[u8], frame_bytes: Option<usize>, pool: &mut Pool) {
        match frame_bytes {
            None => {
                self.tail[..begun.len()].copy_from_slice(begun);
                // At most 13: with one byte more the header would be complete.
                self.tail_bytes = begun.len().to_le_bytes()[0];
            }
            Some(frame_bytes) => {
                let mut bytes = pool.take(frame_bytes);
                bytes[..begun.len()].copy_from_slice(begun);
                self.pending = Pending { bytes, filled_bytes: begun.len(), frame_bytes };
            }
        }
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
