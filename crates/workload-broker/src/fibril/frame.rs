//! Bytes into frames.
//!
//! A frame is a header of 20 bytes and a payload. The header is `u32` length of the payload, `u16` version 1, `u16`
//! opcode, `u32` flags, `u64` request id, all big-endian (Fibril, `crates/protocol/src/v1/frame.rs`).

use thiserror::Error;

use super::wire::Fields;

/// The longest message that is read.
pub const MESSAGE_MAX_BYTES: usize = 16 * 1024 * 1024;

/// What a payload may have besides the message: names, headers, numbers.
const FIELDS_MAX_BYTES: usize = 64 * 1024;

/// The longest payload that is read.
const PAYLOAD_MAX_BYTES: usize = MESSAGE_MAX_BYTES + FIELDS_MAX_BYTES;

/// The length of each frame's header.
pub(super) const HEADER_BYTES: usize = 20;

/// The only version.
pub(super) const VERSION: u16 = 1;

/// Memory for a frame that came in pieces is kept for the next one up to this many bytes.
const KEPT_BYTES: usize = 64 * 1024;

/// A whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is.
    pub op: u16,
    /// Fibril's are 0. Our own broker sets the lowest bit of a delivery that may have come before.
    pub flags: u32,
    /// An answer has that of its request.
    pub request: u64,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// The bytes are not frames of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flaw {
    /// Another version than 1.
    #[error("a frame has version {0}, not 1")]
    Version(u16),
    /// A payload over the limit.
    #[error("a frame announces {0} bytes, over the limit of {PAYLOAD_MAX_BYTES}")]
    TooLong(u32),
}

/// Cuts what arrives, in any pieces, into frames. A frame that arrives whole is not copied.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The beginning of a frame.
    kept: Vec<u8>,
    /// `kept` is a whole frame, which was lent.
    is_lent: bool,
}

impl FrameReader {
    /// A reader at the beginning of a frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its memory: at most a frame.
    pub fn held_bytes(&self) -> usize {
        self.kept.capacity()
    }

    /// The next frame, and how many of these bytes it used. Without a frame all of them are used, and kept.
    ///
    /// # Errors
    /// The bytes are not frames of this protocol.
    #[inline]
    pub fn next<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(usize, Frame<'a>)>, Flaw> {
        if std::mem::take(&mut self.is_lent) {
            self.kept.clear();
            self.kept.shrink_to(KEPT_BYTES);
        }
        if !self.kept.is_empty() {
            return self.complete(bytes);
        }
        if let Some(length) = whole_length(bytes)?
            && let Some(whole) = bytes.get(..length)
        {
            return Ok(Some((length, parse(whole))));
        }
        self.kept.extend_from_slice(bytes);
        Ok(None)
    }

    /// Takes as many bytes as the frame that has begun still needs.
    fn complete<'a>(&'a mut self, bytes: &[u8]) -> Result<Option<(usize, Frame<'a>)>, Flaw> {
        let mut used = 0;
        loop {
            let wanted = whole_length(&self.kept)?.unwrap_or(HEADER_BYTES);
            let missing = wanted - self.kept.len();
            if missing == 0 {
                self.is_lent = true;
                return Ok(Some((used, parse(&self.kept))));
            }
            let taken = missing.min(bytes.len() - used);
            if taken == 0 {
                return Ok(None);
            }
            self.kept.extend_from_slice(&bytes[used..used + taken]);
            used += taken;
        }
    }
}

/// The length of the frame that begins here, if its header is whole. What is wrong with a header is told as soon as it
/// is there.
#[inline]
fn whole_length(bytes: &[u8]) -> Result<Option<usize>, Flaw> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let announced = u32::from_be_bytes(*length);
    let length = usize::try_from(announced)
        .ok()
        .filter(|length| *length <= PAYLOAD_MAX_BYTES)
        .ok_or(Flaw::TooLong(announced))?;
    let Some((version, _)) = rest.split_first_chunk::<2>() else {
        return Ok(None);
    };
    match u16::from_be_bytes(*version) {
        VERSION if bytes.len() >= HEADER_BYTES => Ok(Some(HEADER_BYTES + length)),
        VERSION => Ok(None),
        other => Err(Flaw::Version(other)),
    }
}

/// Reads a frame, whose header is whole.
#[inline]
fn parse(whole: &[u8]) -> Frame<'_> {
    let (header, payload) = whole.split_at(HEADER_BYTES);
    let mut fields = Fields::new(&header[6..]);
    // The header is as long as these three, so none is missing.
    let op = fields.u16().unwrap_or_default();
    let flags = fields.u32().unwrap_or_default();
    let request = fields.u64().unwrap_or_default();
    Frame {
        op,
        flags,
        request,
        payload,
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
