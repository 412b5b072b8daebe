//! Puts a message together: its method, its content header, its body (specification, section 4.2.6).

use super::connection::BODY_MAX_BYTES;
use super::wire::{CLASS_BASIC, Fields, malformed};
use crate::dialect::Fault;

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A message for a reader.
    Delivery { number: u64, redelivered: bool },
    /// A message that the broker sends back, and why.
    Return { why: String },
}

/// A complete message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) what: What,
    pub(super) body: &'a [u8],
}

/// The message in progress. It keeps one buffer, for bodies that are torn or longer than a frame.
#[derive(Debug, Default)]
pub(super) struct Content {
    what: Option<What>,
    /// The body's size, when the header has come.
    size: Option<usize>,
    body: Vec<u8>,
    /// The last message was handed on out of `body`.
    handed_on: bool,
}

impl Content {
    /// Whether a message is in progress, so that no other method may come.
    pub(super) fn is_open(&self) -> bool {
        self.what.is_some()
    }

    /// The memory that it takes.
    pub(super) fn held_bytes(&self) -> usize {
        self.body.capacity()
    }

    /// A method announced a message.
    pub(super) fn begin(&mut self, what: What) {
        self.what = Some(what);
        self.size = None;
        if self.handed_on {
            self.handed_on = false;
            self.body.clear();
        }
    }

    /// A content header came. It completes a message without a body.
    pub(super) fn header(&mut self, payload: &[u8]) -> Result<Option<Message<'static>>, Fault> {
        if self.what.is_none() || self.size.is_some() {
            return Err(out_of_turn("content header"));
        }
        let mut fields = Fields::new(payload);
        let class = fields.u16();
        let weight = fields.u16();
        let size = fields.u64();
        // The flags of the properties follow. We need none of them, and the frame says where they end.
        let (Some(CLASS_BASIC), Some(0), Some(size), Some(_)) = (class, weight, size, fields.u16())
        else {
            return Err(malformed("content header"));
        };
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size <= BODY_MAX_BYTES)
            .ok_or_else(|| {
                Fault(format!(
                    "the broker announces a message of {size} bytes: this client takes {BODY_MAX_BYTES}"
                ))
            })?;
        if size == 0 {
            let body: &[u8] = &[];
            return Ok(self.what.take().map(|what| Message { what, body }));
        }
        self.size = Some(size);
        Ok(None)
    }

    /// A part of a body came. It completes a message if it is the last.
    #[inline]
    pub(super) fn body<'a>(
        &'a mut self,
        bytes: &'a [u8],
        ends_frame: bool,
    ) -> Result<Option<Message<'a>>, Fault> {
        let (Some(_), Some(size)) = (&self.what, self.size) else {
            return Err(out_of_turn("message body"));
        };
        if bytes.len() > size - self.body.len() {
            return Err(Fault(
                "a message of the broker is longer than its header says".to_owned(),
            ));
        }
        // The usual case: all of it in one piece, which is not copied.
        let is_whole = self.body.is_empty() && bytes.len() == size && ends_frame;
        if !is_whole {
            self.body.extend_from_slice(bytes);
            if self.body.len() < size || !ends_frame {
                return Ok(None);
            }
            self.handed_on = true;
        }
        let body = if is_whole { bytes } else { &self.body };
        self.size = None;
        Ok(self.what.take().map(|what| Message { what, body }))
    }
}

#[cold]
fn out_of_turn(what: &str) -> Fault {
    Fault(format!("the broker sent a {what} that belongs to nothing"))
}
