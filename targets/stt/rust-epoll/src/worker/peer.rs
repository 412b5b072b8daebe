//! One client connection: first HTTP, then perhaps a session, at last a farewell.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::inference::Request;
use crate::limit::Permit;
use crate::metrics::Tally;
use crate::session::audio::Pool;
use crate::session::outbox::Outbox;
use crate::session::{CloseReason, Rules, Session};
use crate::websocket::{Decoder, Mask, Sink, Stop};

/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// A client connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) socket: OwnedFd,
    /// Whether epoll tells when something has come.
    pub(super) is_watched: bool,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    /// The head of a request, as far as it has come, and when that is given up.
    Http {
        head: Vec<u8>,
        until: Instant,
    },
    /// Boxed, so that a place in the table of peers is small.
    Session(Box<Live>),
    Farewell(Farewell),
}

/// A session and its end of the WebSocket.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: Session<Request>,
    pub(super) decoder: Decoder,
    /// The first message, as far as it has come.
    text: Vec<u8>,
    _permit: Permit,
}

impl Live {
    pub(super) fn new(session: Session<Request>, permit: Permit) -> Box<Self> {
        Box::new(Self { session, decoder: Decoder::default(), text: Vec::new(), _permit: permit })
    }

    /// Takes in what was read.
    pub(super) fn take_in(
        &mut self,
        bytes: &[u8],
        rules: &Rules,
        now: Instant,
        pool: &mut Pool,
        tally: &mut Tally,
    ) -> Result<(), Stop> {
        let Self { session, decoder, text, .. } = self;
        decoder.decode(bytes, &mut Intake { session, text, rules, now, pool, tally })
    }
}

/// Puts what the decoder finds where it belongs.
struct Intake<'a> {
    session: &'a mut Session<Request>,
    text: &'a mut Vec<u8>,
    rules: &'a Rules,
    now: Instant,
    pool: &'a mut Pool,
    tally: &'a mut Tally,
}

impl Sink for Intake<'_> {
    fn announced(&mut self, is_text: bool, message_bytes: u64, is_last: bool) -> Result<(), CloseReason> {
        self.session.on_announced(is_text, message_bytes, is_last)
    }

    fn payload(&mut self, is_text: bool, masked: &[u8], mask: Mask) {
        if is_text {
            let at = self.text.len();
            self.text.resize(at + masked.len(), 0);
            mask.apply(masked, &mut self.text[at..]);
        } else if let Some(place) = self.session.place(masked.len(), self.pool) {
            mask.apply(masked, place);
        }
    }

    fn complete(&mut self, is_text: bool) -> Result<(), CloseReason> {
        if is_text {
            // There is at most one text in a session, so its memory is not kept.
            let text = std::mem::take(self.text);
            self.session.on_start(self.rules, self.now, &text)
        } else {
            self.session.on_frame(self.now, self.pool, self.tally)
        }
    }

    fn ping(&mut self, payload: &[u8]) {
        self.session.outbox.push_pong(payload);
    }
}

/// A connection that is being closed so that the last bytes arrive.
///
/// Closing a socket with unread data sends a reset, and that makes the peer's kernel forget what it had received, the
/// close code among it. So what is left is written, the socket shut for writing, and read empty until the peer
/// closes, for [`FAREWELL`] at most.
#[derive(Debug)]
pub(super) struct Farewell {
    rest: Outbox,
    is_shut: bool,
    pub(super) until: Instant,
}

impl Farewell {
    pub(super) fn new(rest: Outbox, now: Instant) -> Self {
        Self { rest, is_shut: false, until: now + FAREWELL }
    }

    /// Goes on; true when it is over.
    pub(super) fn is_over(&mut self, socket: &OwnedFd, now: Instant, buffer: &mut [u8]) -> bool {
        if now >= self.until || write(socket, &mut self.rest).is_err() {
            return true;
        }
        if !self.is_shut && self.rest.unsent_bytes().is_empty() {
            self.is_shut = true;
            if rustix::net::shutdown(socket, Shutdown::Write).is_err() {
                return true;
            }
        }
        loop {
            match read(socket, buffer) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(Gone) => return true,
            }
        }
    }

    /// Whether something has not been written yet.
    pub(super) fn is_held_up(&self) -> bool {
        !self.is_shut
    }
}

/// The connection has ended.
#[derive(Debug)]
pub(super) struct Gone;

/// Reads what has come, as far as there is room; `None` if nothing has.
pub(super) fn read(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Option<usize>, Gone> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Err(Gone),
            Ok((length, _)) => return Ok(Some(length)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(_) => return Err(Gone),
        }
    }
}

/// Writes as much as the kernel takes.
pub(super) fn write(socket: &OwnedFd, outbox: &mut Outbox) -> Result<(), Gone> {
    while !outbox.unsent_bytes().is_empty() {
        match rustix::net::send(socket, outbox.unsent_bytes(), SendFlags::NOSIGNAL) {
            Ok(length) => outbox.advance(length),
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(_) => return Err(Gone),
        }
    }
    Ok(())
}
