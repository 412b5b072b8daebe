//! What a connection says before it carries messages: HELLO, AUTH, the declaration, and a reader's subscription.

use super::frame::{Flaw, Frame};
use super::setup::{Settling, Setup};
use super::wire::{
    Fields, Malformed, op, put_auth, put_declare, put_frame, put_hello, put_subscribe, read_error,
};
use crate::dialect::{Fault, Shape};

/// What was said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Hello = 1,
    Auth = 2,
    Declare = 3,
    Subscribe = 4,
    /// It is over.
    Ready = 5,
}

/// How a reader subscribes.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) settling: Settling,
    pub(super) prefetch: u32,
}

/// The greeting of a connection.
#[derive(Debug)]
pub(super) struct Greeting {
    setup: Setup,
    subscription: Option<Subscription>,
    step: Step,
    /// The broker's number of the subscription.
    number: u64,
}

/// What a frame came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Took<'a> {
    /// It is dealt with.
    Done,
    /// It was the last answer.
    Ready,
    /// The connection is ready, and the frame is its own.
    Frame(Frame<'a>),
}

impl Greeting {
    pub(super) fn new(setup: Setup, subscription: Option<Subscription>) -> Self {
        Self {
            setup,
            subscription,
            step: Step::Hello,
            number: 0,
        }
    }

    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The broker's number of the subscription.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Appends the first frame.
    pub(super) fn open(&self, out: &mut Vec<u8>) {
        put_hello(out, Step::Hello as u64);
    }

    /// Takes a frame: an answer of the greeting, or what may come at any time.
    #[inline]
    pub(super) fn take<'a>(
        &mut self,
        frame: Frame<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Took<'a>, Fault> {
        match frame.op {
            op::PING => {
                put_frame(out, op::PONG, frame.request, |_| {});
                Ok(Took::Done)
            }
            // News of other nodes and of groups of consumers.
            op::PONG | op::TOPOLOGY_UPDATE | op::ASSIGNMENT_CHANGED => Ok(Took::Done),
            op::GOING_AWAY => Err(Fault("Fibril: the broker is going away".to_owned())),
            op::REDIRECT => Err(Fault(
                "Fibril: the broker names another node as the owner".to_owned(),
            )),
            op::HELLO_ERR | op::AUTH_ERR | op::SUBSCRIBE_ERR => Err(error(frame.payload)),
            op::ERROR if self.step != Step::Ready || frame.request == 0 => {
                Err(error(frame.payload))
            }
            _ if self.step == Step::Ready => Ok(Took::Frame(frame)),
            _ => self.answered(&frame, out),
        }
    }

    fn answered<'a>(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Took<'a>, Fault> {
        if frame.request != self.step as u64 {
            return Err(Fault(format!(
                "Fibril: an answer to request {}, while {} is open",
                frame.request, self.step as u64
            )));
        }
        let next = self.next(frame).map_err(|_| {
            Fault(format!(
                "Fibril: opcode {} with {} bytes is no answer to {:?}",
                frame.op,
                frame.payload.len(),
                self.step
            ))
        })?;
        self.step = next;
        let request = next as u64;
        match next {
            Step::Auth => put_auth(out, request, &self.setup),
            Step::Declare => put_declare(out, request, &self.setup),
            Step::Subscribe => {
                if let Some(Subscription { settling, prefetch }) = &self.subscription {
                    put_subscribe(out, request, &self.setup, settling, *prefetch);
                }
            }
            Step::Hello => {}
            Step::Ready => return Ok(Took::Ready),
        }
        Ok(Took::Done)
    }

    /// Reads the answer to the step; what follows. Fields that may come behind those that we know are passed over: the
    /// protocol is young.
    fn next(&mut self, frame: &Frame<'_>) -> Result<Step, Malformed> {
        let mut fields = Fields::new(frame.payload);
        match (self.step, frame.op) {
            (Step::Hello, op::HELLO_OK) => {
                fields.magic(b"FHO1")?;
                if fields.u16()? == super::frame::VERSION {
                    Ok(Step::Auth)
                } else {
                    Err(Malformed)
                }
            }
            (Step::Auth, op::AUTH_OK) => Ok(Step::Declare),
            (Step::Declare, op::DECLARE_QUEUE_OK | op::DECLARE_PLEXUS_OK) => {
                let is_stream = frame.op == op::DECLARE_PLEXUS_OK;
                if is_stream != (self.setup.shape == Shape::Stream) {
                    return Err(Malformed);
                }
                fields.magic(if is_stream { b"FPK1" } else { b"FDK1" })?;
                let _status = fields.text()?;
                if fields.u32()? <= self.setup.partition {
                    return Err(Malformed);
                }
                Ok(if self.subscription.is_some() {
                    Step::Subscribe
                } else {
                    Step::Ready
                })
            }
            (Step::Subscribe, op::SUBSCRIBE_OK) => {
                fields.magic(b"FSO1")?;
                self.number = fields.u64()?;
                Ok(Step::Ready)
            }
            _ => Err(Malformed),
        }
    }
}

/// An error that ends the connection.
#[cold]
fn error(payload: &[u8]) -> Fault {
    match read_error(payload) {
        Ok((code, text)) => Fault(format!("Fibril: {text} ({code})")),
        Err(Malformed) => Fault("Fibril: an error that cannot be read".to_owned()),
    }
}

/// The end of the connection by a rule of framing.
#[cold]
pub(super) fn flaw(flaw: Flaw) -> Fault {
    Fault(format!("Fibril: {flaw}"))
}

/// A frame that has no place in the conversation.
#[cold]
pub(super) fn unexpected(frame: &Frame<'_>) -> Fault {
    Fault(format!(
        "Fibril: opcode {} with {} bytes has no place here",
        frame.op,
        frame.payload.len()
    ))
}
