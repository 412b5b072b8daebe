//! A broker's protocol as seen by a writer or a reader: bytes in, what they mean out.

/// What the bytes of a broker said.
#[derive(Debug, PartialEq)]
pub enum Heard<'a> {
    /// The connection can carry messages: greeting, login and preparations are over.
    Ready,
    /// The broker confirmed the message with this tag, or all up to it.
    Confirmed {
        /// As it was given to [`Dialect::publish`].
        tag: u64,
        /// All messages before it are confirmed as well.
        up_to: bool,
    },
    /// The broker refused a message (or, without a tag, one that it does not name).
    Refused {
        /// As it was given to [`Dialect::publish`].
        tag: Option<u64>,
        /// The broker's words.
        why: &'a str,
    },
    /// A message arrived. `handle` settles it.
    Delivered {
        /// The message as it was published.
        payload: &'a [u8],
        /// What [`Dialect::settle`] takes.
        handle: u64,
        /// The broker says that it may have come before.
        redelivered: bool,
    },
    /// The broker asks writers to wait (true), or to go on (false).
    Blocked(bool),
}

/// The peer broke the protocol, or ended the conversation with an error of its own. The connection is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub String);

/// One connection of a writer or of a reader. A machine is one of the two from its beginning.
pub trait Dialect: Send {
    /// Appends the first bytes of the connection; later steps of the greeting follow from [`Dialect::received`].
    fn open(&mut self, out: &mut Vec<u8>);
    /// Appends a message with this body. The broker's answer names `tag`. Only after [`Heard::Ready`]. [`Dialect::flush`]
    /// must follow before the bytes are written.
    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64);
    /// Appends the settlement of these messages (acknowledgement, commit or cursor; may be nothing). [`Dialect::flush`]
    /// must follow.
    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]);
    /// Completes what [`Dialect::publish`] and [`Dialect::settle`] began, for protocols that say one thing for several
    /// messages. Called once after the messages of one write, with the same `out`, and for a reader after each read, when
    /// its messages are settled that can be.
    fn flush(&mut self, _out: &mut Vec<u8>) {}
    /// Takes what arrived, in any pieces. Appends to `out` what the protocol wants answered (PONG, heartbeat).
    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault>;
    /// Appends a polite end of the connection.
    fn close(&mut self, out: &mut Vec<u8>);
    /// How many bytes of memory it holds because of what the broker sent. Asked after every read, so it counts nothing
    /// one by one.
    fn held_bytes(&self) -> usize;
}

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It publishes.
    Writer,
    /// It gets messages and settles them.
    Reader,
}

/// Who gets a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One of the readers. The broker keeps it until that reader has settled it.
    Queue,
    /// Each of the readers.
    Stream,
}
