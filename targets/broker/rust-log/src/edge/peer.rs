//! One client connection.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// The client is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Too little has come to tell.
    Unknown,
    Broker,
    Http,
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) socket: OwnedFd,
    pub(super) protocol: Protocol,
    /// Epoll tells once when something has come; this remembers it until a read has found nothing more.
    pub(super) is_readable: bool,
    /// The client's end has come, behind what can still be read.
    pub(super) has_hung_up: bool,
    /// The beginning of a frame, or of a head.
    pub(super) input: Vec<u8>,
    /// An HTTP answer, and how much of it is written. What the broker has to say is with the broker.
    pub(super) output: Vec<u8>,
    written: usize,
}

impl Peer {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            protocol: Protocol::Unknown,
            is_readable: false,
            has_hung_up: false,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
        }
    }

    /// Reads; how many bytes, or `None` if nothing has come.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Gone> {
        let length = loop {
            match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Gone),
                Ok((length, _)) => break length,
                Err(Errno::AGAIN) => {
                    self.is_readable = false;
                    return Ok(None);
                }
                Err(Errno::INTR) => {}
                Err(_) => return Err(Gone),
            }
        };
        // Less than there was room for is all that there was; what comes from now on is told. An end that was told
        // already has still to be read.
        if length < buffer.len() && !self.has_hung_up {
            self.is_readable = false;
        }
        Ok(Some(length))
    }

    /// Keeps these bytes for the next read.
    pub(super) fn keep(&mut self, rest: &[u8]) {
        self.input.clear();
        self.input.extend_from_slice(rest);
        // A connection at rest holds no memory of a long message.
        if rest.is_empty() {
            self.input.shrink_to(4096);
        }
    }

    /// Writes; how many bytes, or `None` if the kernel takes none.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<Option<usize>, Gone> {
        loop {
            match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Gone),
            }
        }
    }

    /// Writes the HTTP answer; whether that is all.
    pub(super) fn write_own(&mut self) -> Result<bool, Gone> {
        while self.written < self.output.len() {
            match self.write(&self.output[self.written..])? {
                Some(count) => self.written += count,
                None => return Ok(false),
            }
        }
        Ok(!self.output.is_empty())
    }
}
