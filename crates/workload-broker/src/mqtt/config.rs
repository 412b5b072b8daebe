//! What a connection to an MQTT broker is to do.

use super::packets::BODY_MAX_BYTES;
use crate::dialect::Role;

/// mosquitto's count of the messages that it keeps, its own retained ones included: a retained message of decimal
/// digits, renewed every `sys_interval` seconds.
pub const STORED_TOPIC: &str = "$SYS/broker/store/messages/count";

/// mosquitto's count of the messages that it dropped because a queue was full.
pub const DROPPED_TOPIC: &str = "$SYS/broker/publish/messages/dropped";

/// The number in a message of [`STORED_TOPIC`] or [`DROPPED_TOPIC`].
#[must_use]
pub fn count(payload: &[u8]) -> Option<u64> {
    std::str::from_utf8(payload).ok()?.trim().parse().ok()
}

/// How often a message arrives (section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Qos {
    /// QoS 0: no answer.
    AtMostOnce,
    /// QoS 1: PUBACK.
    AtLeastOnce,
    /// QoS 2: PUBREC, PUBREL, PUBCOMP.
    ExactlyOnce,
}

impl Qos {
    /// As it stands in packets.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce => 1,
            Self::ExactlyOnce => 2,
        }
    }
}

/// A connection's user, topic and part. It may hold a password, so it has no `Debug`.
#[derive(Clone)]
pub struct MqttConfig {
    /// Writer or reader.
    pub role: Role,
    /// The topic that a writer publishes to, or the filter that a reader subscribes to.
    pub topic: String,
    /// Readers with the same group share the messages (section 4.8.2). Without one each gets all.
    pub share: Option<String>,
    /// What a writer publishes with, or the most that a reader takes.
    pub qos: Qos,
    /// How many messages of QoS 1 and 2 a writer may have open, at least 1. The connection fails if the broker allows
    /// fewer.
    pub window: u16,
    /// How many messages of QoS 1 and 2 a reader may hold unsettled, at least 1 (receive maximum).
    pub prefetch: u16,
    /// The longest message that a writer publishes. The connection fails if the broker allows no such packet.
    pub body_bytes_max: usize,
    /// A writer names its topic once, and then a number of two bytes that stands for it.
    ///
    /// It saves the topic's length less 3 bytes per message, so nothing up to three bytes, and below 1 % of a message of
    /// 1 KiB with a topic of twelve. The broker must look the number up. Off unless somebody measures that it pays.
    pub topic_alias: bool,
    /// A reader also wants the message that the topic retains.
    pub retained: bool,
    /// Names the session; empty: the broker chooses a name.
    pub client_id: String,
    /// Forget an older session of this name.
    pub clean_start: bool,
    /// How long the broker keeps the session after the connection, in seconds; 0: not at all.
    pub session_expiry_s: u32,
    /// The user, if the broker wants one.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
}

impl MqttConfig {
    /// The usual settings: a new session that ends with the connection, window and prefetch 512, messages up to 8 MiB
    /// read and up to 1 MiB written, no user.
    #[must_use]
    pub fn new(role: Role, topic: &str, qos: Qos) -> Self {
        Self {
            role,
            topic: topic.to_owned(),
            share: None,
            qos,
            window: 512,
            prefetch: 512,
            body_bytes_max: 1 << 20,
            topic_alias: false,
            retained: false,
            client_id: String::new(),
            clean_start: true,
            session_expiry_s: 0,
            user: None,
            password: None,
        }
    }

    /// The filter of a reader.
    pub(super) fn filter(&self) -> String {
        match &self.share {
            Some(group) => format!("$share/{group}/{}", self.topic),
            None => self.topic.clone(),
        }
    }

    /// What cannot be said in MQTT, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let texts = [
            ("topic", Some(self.filter())),
            ("client id", Some(self.client_id.clone())),
            ("user", self.user.clone()),
            ("password", self.password.clone()),
        ];
        for (what, text) in texts {
            let text = text.unwrap_or_default();
            if text.len() > usize::from(u16::MAX) {
                return Err(format!(
                    "the {what} has {} bytes: MQTT allows 65,535",
                    text.len()
                ));
            }
            if text.contains('\0') {
                return Err(format!("the {what} contains NUL, which MQTT forbids"));
            }
        }
        let is_wild = |text: &str| text.contains(['+', '#']);
        if self.topic.is_empty() || self.role == Role::Writer && is_wild(&self.topic) {
            return Err("a writer's topic must not be empty or contain + or #".to_owned());
        }
        if let Some(group) = &self.share
            && (group.is_empty() || group.contains('/') || is_wild(group))
        {
            return Err("a share's name must not be empty or contain /, + or #".to_owned());
        }
        if self.window == 0 || self.prefetch == 0 {
            return Err("window and prefetch must be at least 1".to_owned());
        }
        if self.body_bytes_max > BODY_MAX_BYTES {
            return Err(format!(
                "messages may have {BODY_MAX_BYTES} bytes, not {}",
                self.body_bytes_max
            ));
        }
        Ok(())
    }
}
