//! What a connection is told before it begins.

use thiserror::Error;

use super::command::command;
use crate::Login;

/// The longest name of a stream, a group or a reader.
pub const NAME_MAX_BYTES: usize = 64;

/// The largest prefetch.
pub const PREFETCH_MAX: u32 = 65_536;

/// How the server writes its replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// As it does unless asked otherwise.
    Resp2,
    /// With maps and more (`HELLO 3`).
    Resp3,
}

/// The stream of a trial. All connections of a trial have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The stream's key.
    pub key: String,
    /// How replies are written.
    pub version: Version,
    /// Who we are.
    pub login: Option<Login>,
}

/// When a writer's message counts as confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirm {
    /// Never: `CLIENT REPLY OFF`. Nobody learns of a message that the server could not store.
    Never,
    /// With the reply to `XADD`. What that is worth depends on `appendfsync`.
    Reply,
    /// With the reply to a `WAITAOF 1 0 0` behind it: the server has synced it to its disk. From Redis 7.2 on, and in
    /// Valkey.
    Fsync,
}

/// How a reader gets its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// As part of a group (`XREADGROUP`). The messages are shared among those who name the same one.
    Group {
        /// The group's name. It is created by the first reader that comes, and begins with the stream's first message.
        group: String,
        /// This reader's name. After a crash it gets back what that name had open.
        consumer: String,
        /// Settled messages are deleted, or the stream only grows. Not with several groups: others need them too.
        deletes: bool,
    },
    /// On its own (`XREAD`), from the first message after its beginning on. Nothing is settled.
    Own,
}

/// A setup that cannot work. The text says why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidSetup {
    /// A name is empty or too long.
    #[error("the {what} `{name}` must have 1 to 64 bytes")]
    Name {
        /// Of what.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The prefetch is 0 or above the limit.
    #[error("the prefetch is {0}, and must be from 1 to 65,536")]
    Prefetch(u32),
}

impl Setup {
    pub(super) fn check(&self) -> Result<(), InvalidSetup> {
        check_name("key", &self.key)
    }

    /// Appends what makes us known, and how many replies follow.
    pub(super) fn greet(&self, out: &mut Vec<u8>) -> usize {
        let login = self
            .login
            .as_ref()
            .map(|login| (login.user.as_bytes(), login.password.as_bytes()));
        match (self.version, login) {
            (Version::Resp2, None) => return 0,
            (Version::Resp2, Some((user, password))) => command(out, &[b"AUTH", user, password]),
            (Version::Resp3, None) => command(out, &[b"HELLO", b"3"]),
            (Version::Resp3, Some((user, password))) => {
                command(out, &[b"HELLO", b"3", b"AUTH", user, password]);
            }
        }
        1
    }
}

impl Reading {
    pub(super) fn check(&self, prefetch: u32) -> Result<(), InvalidSetup> {
        if !(1..=PREFETCH_MAX).contains(&prefetch) {
            return Err(InvalidSetup::Prefetch(prefetch));
        }
        match self {
            Self::Own => Ok(()),
            Self::Group {
                group, consumer, ..
            } => {
                check_name("group", group)?;
                check_name("reader", consumer)
            }
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
