//! What a connection is told before it begins.

use thiserror::Error;

use super::unsettled::UNSETTLED_MAX;
use crate::Login;
use crate::dialect::Shape;

/// The longest name of a stream, a consumer or a connection.
pub const NAME_MAX_BYTES: usize = 64;

/// How JetStream keeps a stream's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// In files. With the server's `sync_interval: always` a `PubAck` follows the sync; otherwise it says that the
    /// page cache has the message.
    File,
    /// In files, written after the `PubAck` (`persist_mode: async`, from server 2.12).
    FileLater,
    /// In memory.
    Memory,
}

/// The stream of a trial, and this connection to it. All connections of a trial have the same but for `connection`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The stream's name. It is created by the first connection that comes.
    pub stream: String,
    /// The subject that it keeps.
    pub subject: String,
    /// A queue keeps a message until it is settled (`workqueue`), a stream for good (`limits`).
    pub shape: Shape,
    /// Where it keeps them.
    pub keeping: Keeping,
    /// A name that no other connection to this server has. It is in the subjects of our answers, and nobody else may
    /// hear those.
    pub connection: String,
    /// Who we are.
    pub login: Option<Login>,
}

/// How a reader gets its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// From a durable consumer with explicit acknowledgement. Readers that name the same one share the messages.
    Shared {
        /// The consumer's name. It is created by the first reader that comes.
        consumer: String,
        /// How many messages of this consumer may be open, at all its readers together (`max_ack_pending`).
        unsettled_max: u32,
        /// After how long a message that was delivered and not settled is delivered again, in nanoseconds; `None`: as the
        /// server does by itself, after 30 s.
        ack_wait_ns: Option<u64>,
    },
    /// From an ordered consumer of its own, which begins with the next message and wants no acknowledgement.
    Ordered,
}

/// A setup that cannot work. The text says why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidSetup {
    /// A name of a thing is empty, too long, or has a character that subjects cannot have.
    #[error("the {what} `{name}` must have 1 to 64 letters, digits, `-` or `_`")]
    Name {
        /// Which.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The subject is not made of such names.
    #[error(
        "the subject `{0}` must be 1 to 64 letters, digits, `-`, `_`, and single dots between them"
    )]
    Subject(String),
    /// A number is 0 or above the limit.
    #[error("{what} is {number}, and must be from 1 to 65,536")]
    Number {
        /// Which.
        what: &'static str,
        /// The number.
        number: u32,
    },
    /// A queue cannot be read in order by each.
    #[error("a queue has no ordered consumers: choose a stream, or a shared consumer")]
    OrderedQueue,
}

impl Setup {
    pub(super) fn check(&self) -> Result<(), InvalidSetup> {
        check_name("stream", &self.stream)?;
        check_name("connection", &self.connection)?;
        let is_subject = self.subject.len() <= NAME_MAX_BYTES
            && self.subject.split('.').all(|word| is_name(word.as_bytes()));
        if is_subject {
            Ok(())
        } else {
            Err(InvalidSetup::Subject(self.subject.clone()))
        }
    }
}

impl Reading {
    pub(super) fn check(&self, shape: Shape, prefetch: u32) -> Result<(), InvalidSetup> {
        check_number("the prefetch", prefetch)?;
        match self {
            Self::Ordered if shape == Shape::Queue => Err(InvalidSetup::OrderedQueue),
            Self::Ordered => Ok(()),
            Self::Shared {
                consumer,
                unsettled_max,
                ..
            } => {
                check_name("consumer", consumer)?;
                check_number("the number of open messages", *unsettled_max)
            }
        }
    }
}

fn check_number(what: &'static str, number: u32) -> Result<(), InvalidSetup> {
    if (1..=UNSETTLED_MAX).contains(&number) {
        Ok(())
    } else {
        Err(InvalidSetup::Number { what, number })
    }
}

pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), InvalidSetup> {
    if is_name(name.as_bytes()) {
        Ok(())
    } else {
        Err(InvalidSetup::Name {
            what,
            name: name.to_owned(),
        })
    }
}

fn is_name(name: &[u8]) -> bool {
    (1..=NAME_MAX_BYTES).contains(&name.len())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
