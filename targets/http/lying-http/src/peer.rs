//! One client connection.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rust_epoll_http::h1::Intake;
use rust_epoll_http::output::Output;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};

/// A client has so long for the rest of what it has begun to send.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);

/// So long to take some of its answers.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a connection that was shut is read empty.
const PARTING_TIMEOUT: Duration = Duration::from_secs(1);

/// Requests of a connection that are read before the first of them is answered.
const WAITING_MAX: usize = 64;

/// A client connection.
#[derive(Debug)]
pub struct Peer {
    /// Its socket.
    pub socket: OwnedFd,
    /// Epoll has told that something has come.
    pub is_readable: bool,
    /// Reads requests.
    pub intake: Intake,
    /// What was read and not used.
    pub input: Vec<u8>,
    /// What the kernel has not taken.
    pub output: Output,
    /// Requests read and not answered.
    pub waiting: usize,
    /// Answers given.
    pub answered: u64,
    /// A request of it was dropped: nothing more is answered, for it would be taken for that answer.
    pub is_mute: bool,
    /// No more requests are read.
    pub is_full: bool,
    /// It ends when its last answer is written.
    pub is_parting: bool,
    /// It was shut for writing, and is read empty until then: so the last answer is not lost by a reset.
    pub shut_until: Option<Instant>,
    /// There is more to be made of `input` as soon as requests are taken again.
    pub is_held_up: bool,
    /// Tells it from others that had its place.
    pub serial: u64,
    touched: Instant,
}

impl Peer {
    /// A new connection.
    pub fn new(socket: OwnedFd, serial: u64, now: Instant) -> Self {
        Self {
            socket,
            is_readable: false,
            intake: Intake::default(),
            input: Vec::new(),
            output: Output::default(),
            waiting: 0,
            answered: 0,
            is_mute: false,
            is_full: false,
            is_parting: false,
            shut_until: None,
            is_held_up: false,
            serial,
            touched: now,
        }
    }

    /// Reads; how many bytes, `None` if nothing has come, or an error at the end.
    pub fn read(&mut self, buffer: &mut [u8], now: Instant) -> Result<Option<usize>, Errno> {
        loop {
            match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Errno::CONNRESET),
                Ok((length, _)) => {
                    self.touched = now;
                    return Ok(Some(length));
                }
                Err(Errno::AGAIN) => {
                    self.is_readable = false;
                    return Ok(None);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what the kernel takes, and shuts the socket behind the last answer.
    pub fn flush(&mut self, pattern: &[u8], now: Instant) -> Result<(), Errno> {
        if self.output.flush(&self.socket, pattern).map_err(|_| Errno::CONNRESET)? > 0 {
            self.touched = now;
        }
        if self.is_parting && self.output.is_empty() && self.waiting == 0 && self.shut_until.is_none() {
            self.shut_until = Some(now + PARTING_TIMEOUT);
            rustix::net::shutdown(&self.socket, Shutdown::Write)?;
        }
        Ok(())
    }

    /// Back-pressure: a client that does not take its answers is not read.
    pub fn takes_requests(&self) -> bool {
        !self.is_full && !self.is_mute && self.output.is_empty() && self.waiting < WAITING_MAX
    }

    /// Whether nothing of it has begun.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.input.is_empty() && self.intake.is_idle() && self.output.is_empty()
    }

    /// Whether its time is over.
    pub fn is_over(&self, now: Instant) -> bool {
        let has_begun = !self.is_mute && (!self.input.is_empty() || !self.intake.is_idle());
        self.shut_until.is_some_and(|until| until <= now)
            || (has_begun && self.touched + PIECE_TIMEOUT <= now)
            || (!self.output.is_empty() && self.touched + WRITE_TIMEOUT <= now)
    }
}
