//! What a client hears.

use super::hpack::FieldList;
use super::violation::{ErrorCode, Malformed};

/// What a server sent. Borrows live until the callback returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The head of the final answer on this stream.
    Head {
        /// The stream.
        stream: u32,
        /// From 200 to 599.
        status: u16,
        /// Content-Length if it is present.
        content_length: Option<u64>,
        /// All fields.
        fields: &'a FieldList,
    },
    /// Bytes of its body, never none.
    Body {
        /// The stream.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The answer is complete and as long as it said. The stream is gone.
    End {
        /// The stream.
        stream: u32,
    },
    /// The answer breaks a rule; the connection lives. The stream is gone.
    Malformed {
        /// The stream.
        stream: u32,
        /// The rule.
        why: Malformed,
    },
    /// The server ended the stream. It is gone.
    Reset {
        /// The stream.
        stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// The server opens no more streams. [`Event::Dropped`] follows for each stream that it does not look at; the
    /// others will be answered.
    Goaway {
        /// The last stream that it looks at.
        last_stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// GOAWAY said that the server never looked at this request: it may be sent again. The stream is gone.
    Dropped {
        /// The stream.
        stream: u32,
    },
    /// The server's settings came.
    Settings {
        /// How many streams it allows at once; `None` if it sets no limit.
        max_concurrent_streams: Option<u32>,
    },
    /// The connection ended with this stream open. It is gone.
    Closed {
        /// The stream.
        stream: u32,
        /// Something of the answer had come.
        in_answer: bool,
    },
}
