//! A broker's protocol as seen by a writer or a reader: bytes in, what they mean out.

/// What the bytes of a broker said.
#[derive(Debug, PartialEq)]
pub enum Heard<'a> {
    /// The connection can carry messages: greeting, login and preparations are over.
    Ready,
    /// The broker confirmed the message with this tag, or all up to it.
    Confirmed { tag: u64, up_to: bool },
    /// The broker refused a message (or, without a tag, one that it does not name).
    Refused { tag: Option<u64>, why: &'a str },
    /// A message arrived. `handle` settles it.
    Delivered {
        payload: &'a [u8],
        handle: u64,
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
    /// Appends a message with this body. The broker's answer names `tag`. Only after [`Heard::Ready`].
    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64);
    /// Appends the settlement of these messages (acknowledgement, commit or cursor; may be nothing).
    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]);
    /// Takes what arrived, in any pieces. Appends to `out` what the protocol wants answered (PONG, heartbeat).
    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault>;
    /// Appends a polite end of the connection.
    fn close(&mut self, out: &mut Vec<u8>);
}

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Writer,
    Reader,
}

/// How the broker keeps the messages, and what its answer is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Queue,
    Stream,
}
