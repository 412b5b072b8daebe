//! What a connection is told before it begins.

use thiserror::Error;

use crate::Login;
use crate::dialect::Shape;

/// The longest name of a topic, a group or a cursor.
pub const NAME_MAX_BYTES: usize = 255;

/// The most messages that a reader may have and not have settled.
pub const PREFETCH_MAX: u32 = 65_536;

/// When a stream's messages are confirmed and delivered. The numbers are those of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Both at once.
    Ephemeral = 0,
    /// Delivered at once, confirmed when on disk.
    Speculative = 1,
    /// Both when on disk.
    Durable = 2,
}

/// The queue or stream of a trial, and what a connection needs for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The topic. The first connection that comes declares it.
    pub topic: String,
    /// The group; streams have none.
    pub group: Option<String>,
    /// The part of the topic that this connection uses.
    pub partition: u32,
    /// How many parts the topic has.
    pub partitions: u32,
    /// A queue keeps a message until it is settled; each reader of a stream gets every message.
    pub shape: Shape,
    /// The tier of a stream. A queue's is in the broker's configuration.
    pub tier: Tier,
    /// Who we are. Fibril's own examples have `fibril`, `fibril`.
    pub login: Login,
}

/// How a reader settles its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settling {
    /// The broker takes a message as settled when it has sent it. `settle` appends nothing.
    None,
    /// An acknowledgement names each message.
    Each,
    /// The same for a stream, and the broker remembers how far the reader of this name is. Such a reader begins with the
    /// oldest message; another reader of a stream with the next one.
    Cursor(String),
}

/// A setup that cannot work. The text says why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidSetup {
    /// A name is empty or too long.
    #[error("the {what} `{name}` must have 1 to 255 bytes")]
    Name {
        /// Which.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A stream has no group.
    #[error("a stream has no group: leave the group out")]
    StreamGroup,
    /// There is no such part.
    #[error("partition {partition} of {partitions}: partitions count from 0")]
    Partition {
        /// Which part.
        partition: u32,
        /// Of how many.
        partitions: u32,
    },
    /// A queue has no cursors.
    #[error("a queue has no cursors: choose a stream, or settle each message")]
    QueueCursor,
    /// The prefetch is 0 or above the limit.
    #[error("the prefetch is {0}, and must be from 1 to 65,536")]
    Prefetch(u32),
}

impl Setup {
    pub(super) fn check(&self) -> Result<(), InvalidSetup> {
        check_name("topic", &self.topic)?;
        check_name("user", &self.login.user)?;
        // The password's text must not be in an error.
        if self.login.password.len() > NAME_MAX_BYTES {
            return Err(InvalidSetup::Name {
                what: "password",
                name: "…".to_owned(),
            });
        }
        if let Some(group) = &self.group {
            check_name("group", group)?;
            if self.shape == Shape::Stream {
                return Err(InvalidSetup::StreamGroup);
            }
        }
        let Self {
            partition,
            partitions,
            ..
        } = *self;
        if partition >= partitions {
            return Err(InvalidSetup::Partition {
                partition,
                partitions,
            });
        }
        Ok(())
    }
}

impl Settling {
    pub(super) fn check(&self, shape: Shape) -> Result<(), InvalidSetup> {
        match self {
            Self::Cursor(_) if shape == Shape::Queue => Err(InvalidSetup::QueueCursor),
            Self::Cursor(name) => check_name("cursor", name),
            Self::None | Self::Each => Ok(()),
        }
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), InvalidSetup> {
    if (1..=NAME_MAX_BYTES).contains(&name.len()) {
        Ok(())
    } else {
        Err(InvalidSetup::Name {
            what,
            name: name.to_owned(),
        })
    }
}
