//! Waiting for sockets, behind a trait.
//!
//! The engine needs very little from the kernel's readiness interfaces: register a socket once, edge-triggered for both
//! directions, and wait until something happens or a deadline passes. [`Epoll`] works wherever Linux does, and is the
//! only implementation so far.

mod epoll;

use std::io;
use std::os::fd::BorrowedFd;

pub use epoll::Epoll;

/// What happened to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The number with which the socket was registered.
    pub id: u32,
    /// There is something to read, or the peer closed.
    pub readable: bool,
    /// The peer closed its side, or the connection is broken: read to the end.
    pub hung_up: bool,
    /// There is room to write again, or a connection attempt has ended.
    pub writable: bool,
}

/// A way to wait for many sockets.
pub trait Readiness: Sized {
    /// Its name in results.
    const NAME: &'static str;

    /// A new instance, which watches nothing yet.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn new() -> io::Result<Self>;

    /// Watches a socket for both directions, edge-triggered, until it is closed.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn register(&mut self, socket: BorrowedFd<'_>, id: u32) -> io::Result<()>;

    /// Waits at most `timeout_ns` until something happens, and adds it to `events`. A timeout of zero does not wait.
    ///
    /// # Errors
    /// When the kernel refuses. An interrupting signal is not an error.
    fn wait(&mut self, timeout_ns: u64, events: &mut Vec<Event>) -> io::Result<()>;

    /// Adds what happened to `events`, without waiting.
    ///
    /// # Errors
    /// The same as for [`Readiness::wait`].
    fn look(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        self.wait(0, events)
    }
}
