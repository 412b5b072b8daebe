//! Asks the server how full a stream is and how far a consumer is. Not part of the load.

use serde::Deserialize;

use super::api;
use super::frame::{Frame, FrameReader, Message};
use super::link::{Link, Took};
use super::setup::{InvalidSetup, check_name};
use super::writer::{flaw, refuse_status};
use crate::Login;
use crate::decimal;
use crate::dialect::Fault;

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Whether JetStream is ready (`$JS.API.INFO`).
    Account,
    /// How much a stream keeps (`STREAM.INFO`).
    Stream {
        /// Its name.
        stream: String,
    },
    /// How far a consumer is (`CONSUMER.INFO`).
    Consumer {
        /// The stream's name.
        stream: String,
        /// Its name.
        consumer: String,
    },
    /// Removes a stream and its consumers (`STREAM.DELETE`).
    Delete {
        /// Its name.
        stream: String,
    },
}

/// What a stream keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct StreamDepth {
    /// How many messages. In a queue: those that are not settled.
    pub messages: u64,
    /// Their size with the store's own bytes.
    pub bytes: u64,
    /// The number of the last one, which counts all that were ever stored.
    pub last_seq: u64,
}

/// How far a consumer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ConsumerDepth {
    /// How many messages it has not delivered yet.
    pub num_pending: u64,
    /// How many are delivered and not settled.
    pub num_ack_pending: u64,
    /// How many of those were delivered more than once.
    pub num_redelivered: u64,
    /// How many pull requests wait.
    pub num_waiting: u64,
}

/// What an asker heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Questions can be asked.
    Ready,
    /// The answer to [`Question::Stream`].
    Stream(StreamDepth),
    /// The answer to [`Question::Consumer`].
    Consumer(ConsumerDepth),
    /// [`Question::Account`] or [`Question::Delete`] succeeded.
    Done,
    /// The server answered the question with this error.
    Failed(String),
}

#[derive(Deserialize)]
struct StreamInfo {
    state: StreamDepth,
}

/// A connection that asks, one question at a time.
#[derive(Debug)]
pub struct Asker {
    reader: FrameReader,
    link: Link,
    /// The number of the open question, if there is one, and what it is.
    open: Option<(u64, Question)>,
    asked: u64,
}

impl Asker {
    /// An asker. No other connection to this server may have its name.
    ///
    /// # Errors
    /// The name cannot be part of a subject.
    pub fn new(connection: &str, login: Option<Login>) -> Result<Self, InvalidSetup> {
        check_name("connection", connection)?;
        Ok(Self {
            reader: FrameReader::new(),
            link: Link::new(connection, login),
            open: None,
            asked: 0,
        })
    }

    /// Appends a question. Only after [`Told::Ready`]. It takes the place of one that was not answered.
    ///
    /// # Errors
    /// A name in it cannot be part of a subject.
    pub fn ask(&mut self, out: &mut Vec<u8>, question: Question) -> Result<(), InvalidSetup> {
        let subject = match &question {
            Question::Account => "$JS.API.INFO".to_owned(),
            Question::Stream { stream } => {
                check_name("stream", stream)?;
                format!("$JS.API.STREAM.INFO.{stream}")
            }
            Question::Consumer { stream, consumer } => {
                check_name("stream", stream)?;
                check_name("consumer", consumer)?;
                format!("$JS.API.CONSUMER.INFO.{stream}.{consumer}")
            }
            Question::Delete { stream } => {
                check_name("stream", stream)?;
                format!("$JS.API.STREAM.DELETE.{stream}")
            }
        };
        self.asked += 1;
        api::ask(out, &subject, &self.link.reply(&self.asked.to_string()));
        self.open = Some((self.asked, question));
        Ok(())
    }

    /// Takes what arrived, in any pieces.
    ///
    /// # Errors
    /// The connection is dead.
    pub fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        told: &mut dyn FnMut(Told),
    ) -> Result<(), Fault> {
        let mut rest = bytes;
        while let Some((used, frame)) = self.reader.next(rest).map_err(flaw)? {
            take(&mut self.link, &mut self.open, frame, out, told)?;
            rest = &rest[used..];
        }
        Ok(())
    }
}

fn take(
    link: &mut Link,
    open: &mut Option<(u64, Question)>,
    frame: Frame<'_>,
    out: &mut Vec<u8>,
    told: &mut dyn FnMut(Told),
) -> Result<(), Fault> {
    match link.take(frame, out)? {
        Took::Nothing => {}
        Took::Open => told(Told::Ready),
        Took::Complaint(why) => told(Told::Failed(why.to_owned())),
        Took::Message(message) => {
            let number = link.word(message.subject).and_then(decimal::read);
            // An answer that comes too late is nobody's.
            if let Some((_, question)) = open.take_if(|(asked, _)| Some(*asked) == number) {
                told(answer(&question, &message));
            }
        }
    }
    Ok(())
}

fn answer(question: &Question, message: &Message<'_>) -> Told {
    if let Err(Fault(why)) = refuse_status(message) {
        return Told::Failed(why);
    }
    let told = match question {
        Question::Stream { .. } => {
            api::answer(message.payload).map(|info: StreamInfo| Told::Stream(info.state))
        }
        Question::Consumer { .. } => api::answer(message.payload).map(Told::Consumer),
        Question::Account | Question::Delete { .. } => {
            api::answer(message.payload).map(|_: api::Done| Told::Done)
        }
    };
    told.unwrap_or_else(Told::Failed)
}
