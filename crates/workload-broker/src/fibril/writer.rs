//! A writer: PUBLISH, and what the broker says to it.

use super::frame::{Frame, FrameReader};
use super::greeting::{Greeting, Took, flaw, unexpected};
use super::setup::{InvalidSetup, Setup};
use super::wire::{Fields, Malformed, op, put_header, put_length, put_name, read_error};
use crate::dialect::{Dialect, Fault, Heard};

/// What stands between the name and the payload, in bytes: whether to confirm, content type, headers, time, key,
/// partitioning.
const MIDDLE_BYTES: usize = 1 + 1 + 4 + 8 + 1 + 8;

/// A connection that publishes to a queue or a stream.
///
/// A message's request id is its tag and 1: errors that name no request have 0.
#[derive(Debug)]
pub struct Writer {
    reader: FrameReader,
    state: State,
    /// What a PUBLISH has before the length of its message.
    begin: Vec<u8>,
}

#[derive(Debug)]
struct State {
    greeting: Greeting,
    confirms: bool,
}

impl Writer {
    /// A writer. If it `confirms`, the broker answers each message when it is as safe as the tier says. If not, the broker
    /// answers only messages that it refuses.
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, confirms: bool) -> Result<Self, InvalidSetup> {
        setup.check()?;
        let mut begin = b"FPB1".to_vec();
        put_name(&mut begin, &setup);
        begin.push(u8::from(confirms));
        // No content type, no headers, no time (the message has its own), no key, no partitioning.
        begin.extend_from_slice(&[0; MIDDLE_BYTES - 1]);
        Ok(Self {
            reader: FrameReader::new(),
            state: State {
                greeting: Greeting::new(setup, None),
                confirms,
            },
            begin,
        })
    }
}

impl Dialect for Writer {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.state.greeting.open(out);
    }

    /// Appends a PUBLISH. The tag must be below `u64::MAX`.
    #[inline]
    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        // Its length before the message, and the mark of no time to live behind it.
        let length = self.begin.len() + 4 + body.len() + 1;
        out.reserve(super::frame::HEADER_BYTES + length);
        put_header(out, op::PUBLISH, tag.wrapping_add(1), length);
        out.extend_from_slice(&self.begin);
        put_length(out, body.len());
        out.extend_from_slice(body);
        out.push(0);
    }

    /// Nothing: a writer gets no messages.
    fn settle(&mut self, _: &mut Vec<u8>, _: &[u64]) {}

    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let mut rest = bytes;
        while let Some((used, frame)) = self.reader.next(rest).map_err(flaw)? {
            match self.state.greeting.take(frame, out)? {
                Took::Done => {}
                Took::Ready => heard(Heard::Ready),
                Took::Frame(frame) => self.state.answered(&frame, heard)?,
            }
            rest = &rest[used..];
        }
        Ok(())
    }

    /// Nothing: a client ends by closing the connection.
    fn close(&mut self, _: &mut Vec<u8>) {}

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }
}

impl State {
    #[inline]
    fn answered(&self, frame: &Frame<'_>, heard: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault> {
        let tag = frame.request.wrapping_sub(1);
        match frame.op {
            op::PUBLISH_OK if self.confirms && frame.request != 0 => {
                read_offset(frame.payload).map_err(|_| unexpected(frame))?;
                heard(Heard::Confirmed { tag, up_to: false });
                Ok(())
            }
            // The greeting takes errors without a request.
            op::ERROR => {
                let (_, why) = read_error(frame.payload).map_err(|_| unexpected(frame))?;
                heard(Heard::Refused {
                    tag: Some(tag),
                    why,
                });
                Ok(())
            }
            _ => Err(unexpected(frame)),
        }
    }
}

/// Reads the payload of a `PUBLISH_OK`: the message's number in the queue or stream.
fn read_offset(payload: &[u8]) -> Result<u64, Malformed> {
    let mut fields = Fields::new(payload);
    fields.magic(b"FPO1")?;
    let offset = fields.u64()?;
    fields.end()?;
    Ok(offset)
}
