//! What carries a session's messages: a WebSocket or a bare TCP stream, without I/O.

use plimsoll_core::session::Endpoint;
use plimsoll_protocol::connection::{self, Connection, Ending};
use plimsoll_protocol::websocket::close;

use crate::dialect::{Incoming, Message, Transport};
use crate::frames::MASK;

/// The link.
#[derive(Debug)]
pub(crate) enum Link {
    WebSocket(Connection),
    /// Bytes to be written; nothing is read after the end.
    Tcp {
        out: Vec<u8>,
        over: bool,
    },
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Came<'a> {
    /// Messages can be sent from now on.
    Opened,
    /// A message, or a piece of the stream.
    Message(Incoming<'a>),
    /// The connection is over without a word in the dialect, for this reason.
    Broken(&'a str),
}

impl Link {
    pub(crate) fn new(transport: Transport, endpoint: &Endpoint, seed: u64) -> Self {
        match transport {
            Transport::WebSocket => Self::WebSocket(Connection::new(endpoint, seed)),
            Transport::Tcp => Self::Tcp {
                out: Vec::new(),
                over: false,
            },
        }
    }

    /// Whether messages can be sent as soon as the connection is established.
    pub(crate) fn opens_at_once(&self) -> bool {
        matches!(self, Self::Tcp { .. })
    }

    /// Queues a whole message before the next frame of audio.
    pub(crate) fn queue(&mut self, message: &Message) {
        match self {
            Self::WebSocket(connection) => {
                let mut frame = Vec::new();
                message.append_wire(MASK, &mut frame);
                connection.queue_frames(&mut frame);
            }
            Self::Tcp { out, .. } => message.append_wire(MASK, out),
        }
    }

    /// Bytes to be written before anything else.
    pub(crate) fn control(&self) -> &[u8] {
        match self {
            Self::WebSocket(connection) => connection.control(),
            Self::Tcp { out, .. } => out,
        }
    }

    /// The first bytes of these were written.
    pub(crate) fn control_sent(&mut self, count: usize) {
        match self {
            Self::WebSocket(connection) => connection.control_sent(count),
            Self::Tcp { out, .. } => drop(out.drain(..count)),
        }
    }

    /// Bytes came.
    pub(crate) fn received(&mut self, bytes: &[u8], mut on: impl FnMut(Came<'_>)) {
        let connection = match self {
            Self::Tcp { over: true, .. } => return,
            Self::Tcp { .. } => return on(Came::Message(Incoming::Bytes(bytes))),
            Self::WebSocket(connection) => connection,
        };
        let mut broken = None;
        connection.received(bytes, |incoming| match incoming {
            connection::Incoming::Opened => on(Came::Opened),
            connection::Incoming::Text(text) => on(Came::Message(Incoming::Text(text))),
            connection::Incoming::Binary(binary) => on(Came::Message(Incoming::Binary(binary))),
            connection::Incoming::Over(reason) => broken = Some(reason.to_owned()),
        });
        let Some(reason) = broken else {
            return;
        };
        match connection.ending() {
            Some(Ending::Refused(status)) => {
                on(Came::Message(Incoming::Refused { status, reason: "" }))
            }
            Some(Ending::Closed(code)) => {
                on(Came::Message(Incoming::Closed { code, reason: "" }));
            }
            Some(Ending::BadHandshake | Ending::Violation) | None => on(Came::Broken(&reason)),
        }
    }

    /// Ends the connection in order; nothing is read after that.
    pub(crate) fn close(&mut self) {
        match self {
            Self::WebSocket(connection) => connection.close(close::NORMAL),
            Self::Tcp { over, .. } => *over = true,
        }
    }

    /// The socket is gone.
    pub(crate) fn abandon(&mut self) {
        match self {
            Self::WebSocket(connection) => connection.abandon(),
            Self::Tcp { out, over } => (*out, *over) = (Vec::new(), true),
        }
    }

    /// The memory that it takes by what the server sent or does not read.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::WebSocket(connection) => connection.held_bytes(),
            Self::Tcp { out, .. } => out.capacity(),
        }
    }
}
