//! What a server said, in the same words for all dialects.
//!
//! All times are audio times: nanoseconds from the first sample of the session. A server's times are rounded to whole
//! microseconds, so that 1.2 s is the same time whether it came as text, as a float of 32 bits or of 64.

use std::borrow::Cow;

use serde::Serialize;

/// A word with its times, as far as the server gives them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Word<'a> {
    /// The word, as the server writes it.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    /// Its start, in audio time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// Its end, in audio time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
}

/// What a part of a server's message means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// The server takes audio now.
    Ready,
    /// Text that may change.
    Interim {
        /// The audio time up to which it speaks; `None` where the dialect does not say.
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor_ns: Option<u64>,
        /// The text.
        text: &'a str,
    },
    /// Text of a span that is not sent again. The text may be empty: then the server heard no words there.
    Final {
        /// The start of the span; `None` where it must be inferred from the words.
        #[serde(skip_serializing_if = "Option::is_none")]
        from_ns: Option<u64>,
        /// The end of the span; `None` where it must be inferred from the words.
        #[serde(skip_serializing_if = "Option::is_none")]
        to_ns: Option<u64>,
        /// The text.
        text: &'a str,
        /// Its words with their times; empty where the dialect gives none.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        words: &'a [Word<'a>],
    },
    /// No later final will have words before this time.
    Progress {
        /// The final cursor, in audio time.
        upto_ns: u64,
    },
    /// The server has this much audio.
    Received {
        /// The end of what it has, in audio time.
        upto_ns: u64,
    },
    /// The server's endpointing: speech starts or ends.
    Speech {
        /// Which of the two.
        edge: Edge,
        /// Where, in audio time.
        at_ns: u64,
    },
    /// All audio is transcribed; nothing follows.
    Drained,
    /// The server did not take the session.
    Refused {
        /// Why.
        kind: Kind,
    },
    /// The server reports an error.
    Error {
        /// What it is about.
        kind: Kind,
        /// Whether the session is over.
        fatal: bool,
    },
    /// A message of a known type with nothing that matters here.
    Ignored,
    /// A message of a type that the dialect does not know. It is counted, and no fault: servers gain types.
    Unknown,
    /// The message breaks the dialect. The session goes on.
    Fault(Fault),
}

/// One side of a stretch of speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    /// Speech starts.
    Start,
    /// Speech ends.
    End,
}

/// What a refusal or an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The key is missing or wrong, or may not do this.
    Auth,
    /// The account has used up what it may use.
    Quota,
    /// Too many requests or sessions for this account.
    Rate,
    /// Audio comes faster than the server takes it.
    TooFast,
    /// The server does not understand the client, or does not have what it asks for.
    BadRequest,
    /// No audio for too long.
    Idle,
    /// The session is as long as the server lets sessions be.
    TimeLimit,
    /// The server is full.
    Capacity,
    /// A fault of the server, or one that it does not explain.
    Internal,
}

impl Kind {
    /// Its name in ledgers and in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::Rate => "rate",
            Self::TooFast => "too-fast",
            Self::BadRequest => "bad-request",
            Self::Idle => "idle",
            Self::TimeLimit => "time-limit",
            Self::Capacity => "capacity",
            Self::Internal => "internal",
        }
    }

    /// The kind of an HTTP status that refuses an upgrade (RFC 9110, section 15).
    #[must_use]
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 | 407 => Self::Auth,
            402 => Self::Quota,
            429 => Self::Rate,
            503 => Self::Capacity,
            400..500 => Self::BadRequest,
            _ => Self::Internal,
        }
    }

    /// The kind of a close code that is the same in every dialect (RFC 6455, section 7.4.1); `None` for a normal end.
    #[must_use]
    pub fn of_close(code: Option<u16>) -> Option<Self> {
        match code {
            None | Some(1000 | 1001 | 1005) => None,
            Some(1002 | 1003 | 1007..=1010) => Some(Self::BadRequest),
            Some(1013) => Some(Self::Capacity),
            Some(_) => Some(Self::Internal),
        }
    }
}

/// How a message breaks its dialect. Fields are named as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(tag = "fault", content = "field", rename_all = "kebab-case")]
pub enum Fault {
    /// Not JSON, or not a JSON object.
    #[error("a message is no JSON object")]
    Json,
    /// Not MessagePack, or not a map.
    #[error("a message is no MessagePack map")]
    MessagePack,
    /// A binary message where the dialect has text, or the reverse.
    #[error("a binary message where text is due, or text where binary is due")]
    Opcode,
    /// A header of a byte stream that cannot be right, such as a length beyond the limit. The stream cannot be read on.
    #[error("the header of a message cannot be right")]
    Framing,
    /// A field that this type of message needs is missing.
    #[error("a message lacks `{0}`")]
    Missing(&'static str),
    /// A field has a value of another type than it should.
    #[error("`{0}` of a message has the wrong type")]
    Mistyped(&'static str),
    /// A time is negative, not a number, or longer than any session.
    #[error("`{0}` of a message is no audio time")]
    Time(&'static str),
    /// A span that ends before it starts.
    #[error("a final ends before it starts")]
    Reversed,
    /// The final cursor goes back. What the message says is reported all the same.
    #[error("the cursor goes back")]
    CursorBack,
    /// More open items than a server can have: ids that are never finished.
    #[error("more unfinished items than one session can have")]
    Items,
}
