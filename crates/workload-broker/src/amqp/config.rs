//! What a connection to an AMQP broker is to do.

use crate::dialect::Role;

/// How the broker keeps the messages of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// A durable classic queue with persistent messages.
    Classic,
    /// A classic queue that a restart of the broker removes, with messages that it need not write to disk.
    Transient,
    /// A quorum queue with one member.
    Quorum,
    /// A stream with one member: each reader gets every message from its offset on.
    Stream,
}

impl QueueKind {
    /// Whether the queue outlives the broker, and its messages as well.
    pub(super) fn is_durable(self) -> bool {
        self != Self::Transient
    }
}

/// What a new connection does about the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declare {
    /// Makes the queue unless it exists. One with other properties is an error.
    Make,
    /// The queue must exist. [`Amqp::depth`](super::Amqp::depth) is then known when the connection is ready.
    Check,
    /// Nothing.
    Trust,
}

/// Where a reader of a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// With the oldest message.
    First,
    /// With the newest chunk of messages.
    Last,
    /// With the next message that is published.
    Next,
    /// With the message of this offset.
    At(u64),
}

/// A connection's user, queue and part. It holds a password, so it has no `Debug`.
#[derive(Clone)]
pub struct AmqpConfig {
    /// Writer or reader.
    pub role: Role,
    /// The queue. Messages go to it by the default exchange, whose routing key is the queue's name.
    pub queue: String,
    /// Its kind, for [`Declare::Make`] and for the messages' delivery mode.
    pub kind: QueueKind,
    /// What to do about the queue.
    pub declare: Declare,
    /// A writer asks for the broker's confirms. Without them the broker answers nothing.
    pub confirms: bool,
    /// How many messages a reader may hold unsettled, at least 1. A stream's reader can get more at once, because
    /// RabbitMQ sends whole chunks.
    pub prefetch: u16,
    /// Where a stream's reader begins.
    pub offset: Offset,
    /// Ask for heartbeats of this many seconds; 0: for none. The machine has no clock: it answers each heartbeat with
    /// one.
    pub heartbeat_s: u16,
    /// The user.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// The virtual host.
    pub vhost: String,
}

impl AmqpConfig {
    /// The usual settings: RabbitMQ's own user, the queue is made, confirms, prefetch 512, no heartbeats.
    #[must_use]
    pub fn new(role: Role, queue: &str, kind: QueueKind) -> Self {
        Self {
            role,
            queue: queue.to_owned(),
            kind,
            declare: Declare::Make,
            confirms: true,
            prefetch: 512,
            offset: Offset::Next,
            heartbeat_s: 0,
            user: "guest".to_owned(),
            password: "guest".to_owned(),
            vhost: "/".to_owned(),
        }
    }

    /// What cannot be said in AMQP, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let short = [("queue", &self.queue), ("virtual host", &self.vhost)];
        if let Some((what, text)) = short.iter().find(|(_, text)| text.len() > 255) {
            return Err(format!(
                "the {what}'s name has {} bytes: AMQP allows 255",
                text.len()
            ));
        }
        if self.queue.is_empty() {
            return Err("the queue has no name: give it one".to_owned());
        }
        if self.prefetch == 0 {
            return Err(
                "prefetch 0 means no limit, which this client does not use: at least 1".to_owned(),
            );
        }
        // PLAIN separates them by NUL (RFC 4616), and the frame of the login must fit the least size.
        let login = [&self.user, &self.password];
        if login.iter().any(|text| text.contains('\0')) {
            return Err("user and password must not contain NUL".to_owned());
        }
        if login.iter().any(|text| text.len() > 1024) {
            return Err("user and password may have 1,024 bytes each".to_owned());
        }
        Ok(())
    }
}
