//! A writer: PUB, with a reply subject for each message if the server is to confirm.

use super::api::{self, Done, PubAck};
use super::frame::{Frame, FrameReader, Message};
use super::headers::Headers;
use super::link::{Link, Took};
use super::setup::{InvalidSetup, Setup};
use crate::decimal;
use crate::dialect::{Dialect, Fault, Heard};

/// The last word of the subject to which the creation of the stream is answered.
const CREATED: &str = "created";

/// A connection that publishes to a stream.
#[derive(Debug)]
pub struct Writer {
    reader: FrameReader,
    state: State,
}

#[derive(Debug)]
struct State {
    setup: Setup,
    link: Link,
    is_ready: bool,
    /// PUB up to the tag, or up to the size if nothing is confirmed.
    publish_begin: Vec<u8>,
    confirms: bool,
    pub_ack_begin: Vec<u8>,
}

impl Writer {
    /// A writer. If it `confirms`, the server answers each message with a `PubAck`, which names the tag. If not, it
    /// answers none, and nobody learns of a message that it could not store.
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, confirms: bool) -> Result<Self, InvalidSetup> {
        setup.check()?;
        let link = Link::new(&setup.connection, setup.login.clone());
        let mut publish_begin = format!("PUB {} ", setup.subject).into_bytes();
        if confirms {
            publish_begin.extend_from_slice(&link.reply(""));
        }
        Ok(Self {
            reader: FrameReader::new(),
            state: State {
                pub_ack_begin: api::pub_ack_begin(&setup.stream),
                setup,
                link,
                is_ready: false,
                publish_begin,
                confirms,
            },
        })
    }
}

impl Dialect for Writer {
    /// Nothing: the server speaks first.
    fn open(&mut self, _: &mut Vec<u8>) {}

    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        out.reserve(self.state.publish_begin.len() + body.len() + 48);
        out.extend_from_slice(&self.state.publish_begin);
        if self.state.confirms {
            decimal::write(out, tag);
            out.push(b' ');
        }
        decimal::write(out, body.len() as u64);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
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
            self.state.take(frame, out, heard)?;
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

/// The end of the connection by a rule of the protocol.
pub(super) fn flaw(flaw: super::Flaw) -> Fault {
    Fault(format!("NATS: {flaw}"))
}

impl State {
    fn take(
        &mut self,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        match self.link.take(frame, out)? {
            Took::Nothing => Ok(()),
            Took::Open => {
                api::create_stream(out, &self.setup, &self.link.reply(CREATED));
                Ok(())
            }
            Took::Complaint(why) => {
                heard(Heard::Refused { tag: None, why });
                Ok(())
            }
            Took::Message(message) => self.message(message, heard),
        }
    }

    fn message(
        &mut self,
        message: Message<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let Some(word) = self.link.word(message.subject) else {
            return Err(Fault("NATS: a writer got a foreign message".to_owned()));
        };
        if self.is_ready {
            self.answered(word, message, heard)
        } else if word == CREATED.as_bytes() {
            refuse_status(&message)?;
            api::answer::<Done>(message.payload).map_err(|why| Fault(format!("NATS: {why}")))?;
            self.is_ready = true;
            heard(Heard::Ready);
            Ok(())
        } else {
            Err(Fault("NATS: an answer to nothing".to_owned()))
        }
    }

    fn answered(
        &self,
        word: &[u8],
        message: Message<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let tag = decimal::read(word)
            .ok_or_else(|| Fault("NATS: the answer to a message names no tag".to_owned()))?;
        if let Some((code, text)) = Headers::parse(message.headers).and_then(|h| h.status()) {
            // 503 has no text: no stream keeps this subject.
            let why = if code == 503 {
                "no stream keeps this subject (503)"
            } else {
                text
            };
            heard(Heard::Refused {
                tag: Some(tag),
                why,
            });
            return Ok(());
        }
        match api::pub_ack(&self.pub_ack_begin, message.payload) {
            Some(PubAck::Stored) => heard(Heard::Confirmed { tag, up_to: false }),
            Some(PubAck::Refused(why)) => heard(Heard::Refused {
                tag: Some(tag),
                why: &why,
            }),
            None => return Err(Fault("NATS: a PubAck is not what it must be".to_owned())),
        }
        Ok(())
    }
}

/// A status in place of an answer: nobody answers these requests.
pub(super) fn refuse_status(message: &Message<'_>) -> Result<(), Fault> {
    match Headers::parse(message.headers).and_then(|headers| headers.status()) {
        None => Ok(()),
        Some((code, text)) => Err(Fault(format!(
            "NATS: JetStream does not answer, status {code} {text}"
        ))),
    }
}
