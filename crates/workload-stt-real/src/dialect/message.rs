//! Messages of the client, and what comes from the server, before anybody knows what it means.

use std::fmt;

use plimsoll_protocol::websocket::{Opcode, append_client_frame};

/// How a message goes to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A WebSocket text message.
    Text,
    /// A WebSocket binary message.
    Binary,
    /// Bytes of a TCP stream, as they are.
    Bytes,
}

/// A message of the client. It may hold a key, so `Debug` shows its size only.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// How it goes to the server.
    pub form: Form,
    /// The payload.
    pub content: Vec<u8>,
}

impl Message {
    /// A text message.
    #[must_use]
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            form: Form::Text,
            content: content.into().into_bytes(),
        }
    }

    /// A binary message.
    #[must_use]
    pub fn binary(content: impl Into<Vec<u8>>) -> Self {
        Self {
            form: Form::Binary,
            content: content.into(),
        }
    }

    /// Bytes of a stream.
    #[must_use]
    pub fn bytes(content: impl Into<Vec<u8>>) -> Self {
        Self {
            form: Form::Bytes,
            content: content.into(),
        }
    }

    /// Appends it as it goes on the wire: a masked WebSocket frame, or the bytes themselves.
    pub fn append_wire(&self, mask: [u8; 4], out: &mut Vec<u8>) {
        match self.form {
            Form::Text => append_client_frame(out, true, Opcode::Text, &self.content, mask),
            Form::Binary => append_client_frame(out, true, Opcode::Binary, &self.content, mask),
            Form::Bytes => out.extend_from_slice(&self.content),
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} bytes", self.form, self.content.len())
    }
}

/// What came from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A WebSocket text message.
    Text(&'a str),
    /// A WebSocket binary message.
    Binary(&'a [u8]),
    /// A piece of a TCP stream, cut anywhere.
    Bytes(&'a [u8]),
    /// The upgrade was refused.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The value of the header that [`Dialect::refusal_header`](super::Dialect::refusal_header) names; else empty.
        reason: &'a str,
    },
    /// The connection was closed by the server, in order.
    Closed {
        /// The code of the close frame; `None` without one, and on TCP.
        code: Option<u16>,
        /// The reason of the close frame.
        reason: &'a str,
    },
}
