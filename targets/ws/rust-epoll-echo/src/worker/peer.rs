//! One client connection: first HTTP, then perhaps a WebSocket, at last a farewell.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::{self, Errno};
use rustix::net::{RecvFlags, Shutdown};

use crate::intake::{End, Intake};
use crate::outbox::Outbox;

/// Reads of a farewell in one turn.
const READS_PER_TURN: usize = 4;

/// A client connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) link: Link,
    pub(super) state: State,
}

/// Its socket, and what epoll has told of it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: OwnedFd,
    /// Epoll tells once when something has come; this remembers it until a read has found nothing more.
    pub(super) is_readable: bool,
    /// The client's end has come, behind what can still be read.
    pub(super) has_hung_up: bool,
}

#[derive(Debug)]
pub(super) enum State {
    Http(Http),
    WebSocket(Live),
    Farewell(Farewell),
}

/// The head of a request, as far as it has come, and when that is given up.
#[derive(Debug)]
pub(super) struct Http {
    pub(super) head: Vec<u8>,
    pub(super) until: Instant,
}

/// A WebSocket.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) intake: Intake,
    pub(super) outbox: Outbox,
    /// Whether it is one of the hub's.
    pub(super) is_member: bool,
}

impl Live {
    /// Back-pressure: an echo that the client has not taken keeps more from being read. A connection to the hub is read
    /// as long as its queue takes messages: behind it pongs would queue without end.
    pub(super) fn wants_to_read(&self) -> bool {
        if self.is_member { self.outbox.has_room() } else { self.outbox.is_empty() }
    }
}

/// A connection that is being closed so that the last bytes arrive.
///
/// Closing a socket with unread data sends a reset, and that makes the peer's kernel forget what it had received, the
/// close code among it. So what is left is written, the socket shut for writing, and read empty until the peer closes.
#[derive(Debug)]
pub(super) struct Farewell {
    pub(super) outbox: Outbox,
    pub(super) is_shut: bool,
    pub(super) until: Instant,
}

impl Link {
    /// Reads into `slots`; how many bytes, or `None` if nothing has come.
    pub(super) fn read(&mut self, slots: &mut [IoSliceMut<'_>; 2]) -> Result<Option<usize>, End> {
        let room = slots[0].len() + slots[1].len();
        let length = loop {
            match receive(&self.socket, slots) {
                Ok(0) => return Err(End::Gone),
                Ok(length) => break length,
                Err(Errno::AGAIN) => {
                    self.is_readable = false;
                    return Ok(None);
                }
                Err(Errno::INTR) => {}
                Err(_) => return Err(End::Gone),
            }
        };
        // Less than there was room for is all that there was; what comes from now on is told. An end that was told
        // already has still to be read.
        if length < room && !self.has_hung_up {
            self.is_readable = false;
        }
        Ok(Some(length))
    }

    /// Reads what a farewell drops; whether there may be more.
    pub(super) fn drop_input(&mut self, buffer: &mut [u8]) -> Result<bool, End> {
        for _ in 0..READS_PER_TURN {
            if !self.is_readable {
                return Ok(false);
            }
            self.read(&mut [IoSliceMut::new(&mut []), IoSliceMut::new(buffer)])?;
        }
        Ok(self.is_readable)
    }

    /// Shuts it for writing.
    pub(super) fn shut(&self) -> Result<(), End> {
        rustix::net::shutdown(&self.socket, Shutdown::Write).map_err(|_| End::Gone)
    }
}

/// One read. Usually only the second slot has room, and then there is a call that is a little cheaper.
fn receive(socket: &OwnedFd, slots: &mut [IoSliceMut<'_>; 2]) -> io::Result<usize> {
    let [first, second] = &mut *slots;
    if first.is_empty() {
        return rustix::net::recv(socket, &mut **second, RecvFlags::empty()).map(|(length, _)| length);
    }
    io::readv(socket, slots)
}
