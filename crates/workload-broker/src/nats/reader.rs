//! A reader: pull requests to a consumer, and acknowledgements.
//!
//! It keeps as many messages requested as its prefetch leaves room for, as clients' `Consume` does (ADR-37): a new
//! request goes out when half of the prefetch is free. Messages that were delivered and not settled take room too.

use super::ack::AckSubject;
use super::api::{self, Begin, ConsumerCreated, Done};
use super::frame::{Frame, FrameReader, Message};
use super::headers::Headers;
use super::link::{INBOX_SID, Link, Took};
use super::setup::{InvalidSetup, Reading, Setup};
use super::unsettled::{UNSETTLED_MAX, Unsettled};
use super::write;
use super::writer::{flaw, refuse_status};
use crate::decimal;
use crate::dialect::{Dialect, Fault, Heard};

/// The last words of the subjects to which requests are answered.
const STREAM_CREATED: &str = "stream";
const CONSUMER_CREATED: &str = "consumer";
const DELETED: &str = "deleted";

/// A connection that reads a stream.
#[derive(Debug)]
pub struct Reader {
    reader: FrameReader,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Greeting,
    Stream,
    Consumer,
    Reads,
}

#[derive(Debug)]
struct State {
    setup: Setup,
    reading: Reading,
    prefetch: u32,
    link: Link,
    step: Step,
    /// The subscription to which messages come. An ordered consumer that lost its place gets a new one.
    sid: u64,
    /// A pull request up to the last word of its reply subject.
    pull_begin: Vec<u8>,
    /// How many messages are requested and have not come.
    requested: u32,
    unsettled: Unsettled,
    /// The next delivery of an ordered consumer.
    next_delivery: u64,
    /// The last message of the stream that an ordered consumer delivered, or that it begins behind.
    last_seq: u64,
    restarts: u32,
}

impl Reader {
    /// A reader that has at most `prefetch` messages requested or open.
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, reading: Reading, prefetch: u32) -> Result<Self, InvalidSetup> {
        setup.check()?;
        reading.check(setup.shape, prefetch)?;
        Ok(Self {
            reader: FrameReader::new(),
            state: State {
                link: Link::new(&setup.connection, setup.login.clone()),
                setup,
                reading,
                prefetch,
                step: Step::Greeting,
                sid: INBOX_SID,
                pull_begin: Vec::new(),
                requested: 0,
                unsettled: Unsettled::default(),
                next_delivery: 1,
                last_seq: 0,
                restarts: 0,
            },
        })
    }

    /// How often an ordered consumer lost its place and was made again. 0 for a shared one.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.state.restarts
    }
}

impl Dialect for Reader {
    /// Nothing: the server speaks first.
    fn open(&mut self, _: &mut Vec<u8>) {}

    /// Nothing: a reader has no messages to write.
    fn publish(&mut self, _: &mut Vec<u8>, _: &[u8], _: u64) {}

    /// One `+ACK` for each, and a pull request if that makes room. An ordered consumer wants neither.
    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        if self.state.reading == Reading::Ordered {
            return;
        }
        for handle in handles {
            self.state.unsettled.settle(*handle, out);
        }
        self.state.pull(out);
    }

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

    /// Ends the subscription, so that the server delivers nothing more to it.
    fn close(&mut self, out: &mut Vec<u8>) {
        if self.state.sid != INBOX_SID {
            write::unsubscribe(out, self.state.sid);
        }
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes() + self.state.unsettled.held_bytes()
    }
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
                api::create_stream(out, &self.setup, &self.link.reply(STREAM_CREATED));
                self.step = Step::Stream;
                Ok(())
            }
            Took::Complaint(why) => {
                heard(Heard::Refused { tag: None, why });
                Ok(())
            }
            Took::Message(message) if message.sid == self.sid && self.sid != INBOX_SID => {
                self.came(&message, out, heard)
            }
            Took::Message(message) if message.sid == INBOX_SID => {
                self.answered(&message, out, heard)
            }
            // From the subscription of an ordered consumer that we gave up.
            Took::Message(_) => Ok(()),
        }
    }

    /// An answer to one of our requests.
    fn answered(
        &mut self,
        message: &Message<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let word = self.link.word(message.subject);
        if word == Some(DELETED.as_bytes()) {
            return Ok(());
        }
        refuse_status(message)?;
        match self.step {
            Step::Stream if word == Some(STREAM_CREATED.as_bytes()) => {
                api::answer::<Done>(message.payload).map_err(nats)?;
                self.create_consumer(Begin::Next, out);
                Ok(())
            }
            Step::Consumer if word == Some(CONSUMER_CREATED.as_bytes()) => {
                let created: ConsumerCreated = api::answer(message.payload).map_err(nats)?;
                if self.restarts == 0 {
                    self.last_seq = created.delivered.stream_seq;
                    heard(Heard::Ready);
                }
                self.step = Step::Reads;
                self.pull(out);
                Ok(())
            }
            _ => Err(nats("an answer to nothing".to_owned())),
        }
    }

    /// Subscribes to a new subject and has its messages requested to it.
    fn create_consumer(&mut self, begin: Begin, out: &mut Vec<u8>) {
        self.sid += 1;
        let name = self.consumer();
        write::subscribe(out, &self.link.reply(&format!("{}.*", self.sid)), self.sid);
        api::create_consumer(
            out,
            &self.setup,
            &self.reading,
            &name,
            begin,
            &self.link.reply(CONSUMER_CREATED),
        );
        let next = format!(
            "PUB $JS.API.CONSUMER.MSG.NEXT.{}.{name} ",
            self.setup.stream
        );
        let reply = self.link.reply(&format!("{}.", self.sid));
        self.pull_begin = [next.as_bytes(), &reply[..]].concat();
        self.next_delivery = 1;
        self.requested = 0;
        self.step = Step::Consumer;
    }

    fn consumer(&self) -> String {
        match &self.reading {
            Reading::Shared { consumer, .. } => consumer.clone(),
            Reading::Ordered => format!("{}-{}", self.setup.connection, self.sid),
        }
    }

    /// Requests messages if half of the prefetch is free, or if none is requested.
    fn pull(&mut self, out: &mut Vec<u8>) {
        if self.step != Step::Reads {
            return;
        }
        let taken = self.requested.saturating_add(self.unsettled.len());
        let room = self.prefetch.saturating_sub(taken);
        if room > 0 && (room >= self.prefetch.div_ceil(2) || self.requested == 0) {
            api::pull(out, &self.pull_begin, room);
            self.requested += room;
        }
    }

    /// Something came to the subscription: a message or a status.
    fn came(
        &mut self,
        message: &Message<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        if let Some(headers) = Headers::parse(message.headers)
            && let Some((code, text)) = headers.status()
        {
            return self.status(message, &headers, code, text, out);
        }
        if self.step != Step::Reads {
            return Err(nats("a message came before it was requested".to_owned()));
        }
        let reply = message.reply.unwrap_or_default();
        let ack = AckSubject::parse(reply)
            .ok_or_else(|| nats("a message has no reply subject of JetStream".to_owned()))?;
        self.requested = self.requested.saturating_sub(1);
        if self.reading == Reading::Ordered {
            if ack.consumer_seq != self.next_delivery {
                self.restart(out);
                return Ok(());
            }
            self.next_delivery += 1;
            self.last_seq = ack.stream_seq;
            heard(Heard::Delivered {
                payload: message.payload,
                handle: ack.stream_seq,
                redelivered: false,
            });
        } else {
            let handle = self.unsettled.keep(reply).ok_or_else(|| {
                nats(format!(
                    "more than {UNSETTLED_MAX} deliveries are not settled"
                ))
            })?;
            heard(Heard::Delivered {
                payload: message.payload,
                handle,
                redelivered: ack.delivered > 1,
            });
        }
        self.pull(out);
        Ok(())
    }

    /// The end of a pull request, or a sign of life (ADR-37, "Status handling").
    fn status(
        &mut self,
        message: &Message<'_>,
        headers: &Headers<'_>,
        code: u16,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let ends_in_peace = match code {
            100 => return Ok(()),
            404 | 408 => true,
            409 => text == "Batch Completed" || text.starts_with("Message Size Exceeds"),
            _ => false,
        };
        if !ends_in_peace {
            return Err(nats(format!("the consumer gives up, status {code} {text}")));
        }
        // What the request still wanted. A request that was refused at once has no such line; then it is all of it,
        // which is the last word of its reply subject.
        let unused = match headers.get("Nats-Pending-Messages") {
            Some(digits) => decimal::read(digits),
            None => message
                .subject
                .rsplit(|byte| *byte == b'.')
                .next()
                .and_then(decimal::read),
        };
        let unused = unused
            .and_then(|count| u32::try_from(count).ok())
            .ok_or_else(|| nats("a status does not say which request it ends".to_owned()))?;
        self.requested = self.requested.saturating_sub(unused);
        self.pull(out);
        Ok(())
    }

    /// A delivery of the ordered consumer is missing: makes a new one that begins behind the last good message
    /// (ADR-17).
    #[cold]
    fn restart(&mut self, out: &mut Vec<u8>) {
        write::unsubscribe(out, self.sid);
        let old = format!(
            "$JS.API.CONSUMER.DELETE.{}.{}",
            self.setup.stream,
            self.consumer()
        );
        api::ask(out, &old, &self.link.reply(DELETED));
        self.restarts = self.restarts.saturating_add(1);
        self.create_consumer(Begin::At(self.last_seq.saturating_add(1)), out);
    }
}

fn nats(why: String) -> Fault {
    Fault(format!("NATS: {why}"))
}
