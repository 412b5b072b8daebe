//! A reader: a subscription, DELIVER and ACK.

use super::frame::FrameReader;
use super::greeting::{Greeting, Subscription, Took, flaw, unexpected};
use super::setup::{InvalidSetup, PREFETCH_MAX, Settling, Setup};
use super::wire::{ACK_TAGS_MAX, op, put_header, put_length, put_name, read_delivery};
use crate::dialect::{Dialect, Fault, Heard};

/// The flag of a delivery that may have come before. Our own broker sets it; Fibril's flags are 0.
const REDELIVERED: u32 = 1;

/// A connection that reads a queue or a stream.
#[derive(Debug)]
pub struct Reader {
    reader: FrameReader,
    greeting: Greeting,
    settles: bool,
    /// What an ACK has before the number of its tags.
    ack_begin: Vec<u8>,
}

impl Reader {
    /// A reader that has at most `prefetch` messages which it has not settled.
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, settling: Settling, prefetch: u32) -> Result<Self, InvalidSetup> {
        setup.check()?;
        settling.check(setup.shape)?;
        if !(1..=PREFETCH_MAX).contains(&prefetch) {
            return Err(InvalidSetup::Prefetch(prefetch));
        }
        let mut ack_begin = b"FAK1".to_vec();
        put_name(&mut ack_begin, &setup);
        Ok(Self {
            reader: FrameReader::new(),
            settles: settling != Settling::None,
            greeting: Greeting::new(setup, Some(Subscription { settling, prefetch })),
            ack_begin,
        })
    }

    /// The queue or stream that it reads.
    pub fn setup(&self) -> &Setup {
        self.greeting.setup()
    }
}

impl Dialect for Reader {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.greeting.open(out);
    }

    /// Nothing: a reader publishes no messages.
    fn publish(&mut self, _: &mut Vec<u8>, _: &[u8], _: u64) {}

    /// Appends an ACK that names all of them. The broker does not answer it.
    #[inline]
    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        if !self.settles {
            return;
        }
        for tags in handles.chunks(ACK_TAGS_MAX) {
            // Request 0: an error about it is one of the connection.
            put_header(out, op::ACK, 0, self.ack_begin.len() + 4 + 8 * tags.len());
            out.extend_from_slice(&self.ack_begin);
            put_length(out, tags.len());
            for tag in tags {
                out.extend_from_slice(&tag.to_be_bytes());
            }
        }
    }

    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let mut rest = bytes;
        while let Some((used, frame)) = self.reader.next(rest).map_err(flaw)? {
            match self.greeting.take(frame, out)? {
                Took::Done => {}
                Took::Ready => heard(Heard::Ready),
                Took::Frame(frame) if frame.op == op::DELIVER => {
                    let delivery = read_delivery(frame.payload).map_err(|_| unexpected(&frame))?;
                    if delivery.subscription != self.greeting.number() {
                        return Err(unexpected(&frame));
                    }
                    heard(Heard::Delivered {
                        payload: delivery.payload,
                        handle: delivery.tag,
                        redelivered: frame.flags & REDELIVERED != 0,
                    });
                }
                Took::Frame(frame) => return Err(unexpected(&frame)),
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
