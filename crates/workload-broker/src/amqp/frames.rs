//! Bytes to frames (specification, section 4.2.3).
//!
//! A frame that lies whole inside what one read gave is handed on as a borrow of it. A torn body is handed on in
//! pieces as it comes, so that it is copied once, into the message that it belongs to. Only other torn frames are
//! gathered here.

use super::wire::{
    CHANNEL, FRAME_END, FRAME_EXTRA_BYTES, FRAME_HEADER_BYTES, FRAME_MAX_BYTES, PROTOCOL_HEADER,
    kind,
};
use crate::dialect::Fault;

/// A larger buffer is given back after its frame: such frames are rare.
const KEPT_BUFFER_BYTES: usize = 4096;

/// A frame, or a part of a body frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A method with its arguments.
    Method { channel: u16, payload: &'a [u8] },
    /// A content header.
    Header { payload: &'a [u8] },
    /// A part of a body, possibly empty.
    Body { bytes: &'a [u8], ends_frame: bool },
    /// A heartbeat.
    Heartbeat,
}

/// Reads frames.
#[derive(Debug)]
pub(super) struct FrameReader {
    /// The beginning of a torn frame.
    partial: Vec<u8>,
    /// The frame in `partial` was handed on.
    handed_on: bool,
    /// What is left of a torn body frame, without its last octet.
    body_left: Option<usize>,
    frame_max: usize,
}

#[derive(Debug, Clone, Copy)]
struct FrameHeader {
    kind: u8,
    channel: u16,
    len: usize,
}

impl FrameReader {
    pub(super) fn new() -> Self {
        Self {
            partial: Vec::new(),
            handed_on: false,
            body_left: None,
            frame_max: FRAME_MAX_BYTES,
        }
    }

    /// Both sides agreed on this limit.
    pub(super) fn set_frame_max(&mut self, bytes: usize) {
        self.frame_max = bytes;
    }

    /// The memory that torn frames take.
    pub(super) fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }

    /// Takes the next frame or part from the front of `input`. `None`: all of `input` is taken, and there is no more.
    #[inline]
    pub(super) fn next<'p, 'i: 'p>(
        &'p mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Piece<'p>>, Fault> {
        if self.handed_on {
            self.forget();
        }
        if self.body_left.is_some() {
            return self.next_of_body(input);
        }
        if !self.partial.is_empty() {
            return self.next_of_torn(input);
        }
        let Some((head, rest)) = input.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            self.partial.extend_from_slice(input);
            *input = &[];
            return Ok(None);
        };
        let head = self.header(*head)?;
        if let Some((frame, rest)) = rest.split_at_checked(head.len + 1) {
            *input = rest;
            return whole(head, frame).map(Some);
        }
        if head.kind == kind::BODY {
            *input = rest;
            self.body_left = Some(head.len);
            return self.next_of_body(input);
        }
        self.partial.extend_from_slice(input);
        *input = &[];
        Ok(None)
    }

    fn forget(&mut self) {
        self.handed_on = false;
        self.partial.clear();
        if self.partial.capacity() > KEPT_BUFFER_BYTES {
            self.partial = Vec::new();
        }
    }

    fn next_of_body<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Piece<'i>>, Fault> {
        let left = self.body_left.unwrap_or(0);
        if left == 0 {
            let Some((end, rest)) = input.split_first() else {
                return Ok(None);
            };
            *input = rest;
            self.body_left = None;
            check_end(*end)?;
            return Ok(Some(Piece::Body {
                bytes: &[],
                ends_frame: true,
            }));
        }
        let (bytes, rest) = input.split_at(left.min(input.len()));
        if bytes.is_empty() {
            return Ok(None);
        }
        *input = rest;
        self.body_left = Some(left - bytes.len());
        Ok(Some(Piece::Body {
            bytes,
            ends_frame: false,
        }))
    }

    fn next_of_torn<'p, 'i: 'p>(
        &'p mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Piece<'p>>, Fault> {
        self.take_to(FRAME_HEADER_BYTES, input);
        let Some(head) = self.partial.first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let head = self.header(*head)?;
        if head.kind == kind::BODY {
            self.partial.clear();
            self.body_left = Some(head.len);
            return self.next_of_body(input);
        }
        let whole_len = head.len + FRAME_EXTRA_BYTES;
        self.take_to(whole_len, input);
        if self.partial.len() < whole_len {
            return Ok(None);
        }
        self.handed_on = true;
        whole(head, &self.partial[FRAME_HEADER_BYTES..]).map(Some)
    }

    /// Moves bytes of `input` until the torn frame has `len`.
    fn take_to(&mut self, len: usize, input: &mut &[u8]) {
        let missing = len.saturating_sub(self.partial.len());
        let (bytes, rest) = input.split_at(missing.min(input.len()));
        self.partial.extend_from_slice(bytes);
        *input = rest;
    }

    #[inline]
    fn header(&self, bytes: [u8; FRAME_HEADER_BYTES]) -> Result<FrameHeader, Fault> {
        let [kind, c0, c1, l0, l1, l2, l3] = bytes;
        let channel = u16::from_be_bytes([c0, c1]);
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > self.frame_max - FRAME_EXTRA_BYTES || !is_allowed(kind, channel, len) {
            return Err(self.explain(bytes));
        }
        Ok(FrameHeader { kind, channel, len })
    }

    #[cold]
    fn explain(&self, bytes: [u8; FRAME_HEADER_BYTES]) -> Fault {
        let [kind, c0, c1, l0, l1, l2, l3] = bytes;
        if bytes.starts_with(&PROTOCOL_HEADER[..4]) {
            // Section 4.2.2: a server answers so that speaks another version.
            return Fault("the broker speaks another version of AMQP than 0-9-1".to_owned());
        }
        Fault(format!(
            "the broker sent a frame of kind {kind} with {} bytes on channel {}: it is no AMQP 0-9-1, or over the limit \
             of {} bytes",
            u32::from_be_bytes([l0, l1, l2, l3]),
            u16::from_be_bytes([c0, c1]),
            self.frame_max
        ))
    }
}

/// Contents come on our channel, heartbeats are empty and on channel 0, methods come on both.
fn is_allowed(kind: u8, channel: u16, len: usize) -> bool {
    match kind {
        kind::METHOD => channel <= CHANNEL,
        kind::HEADER | kind::BODY => channel == CHANNEL,
        kind::HEARTBEAT => channel == 0 && len == 0,
        _ => false,
    }
}

#[inline]
fn whole(head: FrameHeader, payload_and_end: &[u8]) -> Result<Piece<'_>, Fault> {
    let (payload, end) = payload_and_end.split_at(head.len);
    check_end(end.first().copied().unwrap_or_default())?;
    Ok(match head.kind {
        kind::METHOD => Piece::Method {
            channel: head.channel,
            payload,
        },
        kind::HEADER => Piece::Header { payload },
        kind::BODY => Piece::Body {
            bytes: payload,
            ends_frame: true,
        },
        _ => Piece::Heartbeat,
    })
}

fn check_end(octet: u8) -> Result<(), Fault> {
    if octet == FRAME_END {
        return Ok(());
    }
    Err(Fault(format!(
        "a frame of the broker ends with {octet:#04x} and not with 0xce"
    )))
}
