//! One client connection.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};

use crate::answer::{self, Answer, Manner};
use crate::h1::{self, Intake, Step};
use crate::h2::frame::{Code, PREFACE};
use crate::h2::{self, Context};
use crate::output::{Gone, Output};

/// A client has so long to send the head of a request, from its first byte on.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// So long for the next piece of a body, or of a frame.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);

/// So long to take some of its answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// So long to begin another request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Reads of a parting in one turn.
const READS_PER_TURN: usize = 4;

/// A client connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) link: Link,
    pub(super) protocol: Protocol,
    /// What was read and not used: the beginning of a head or a frame, or more if an answer had no room.
    pub(super) input: Vec<u8>,
    /// What the kernel has not taken.
    pub(super) output: Output,
    /// There is more to be made of `input` as soon as there is room.
    pub(super) is_held_up: bool,
    /// Tells it from others that had its place.
    pub(super) serial: u64,
    /// When something was last read or written.
    pub(super) touched: Instant,
    /// When the head began of which `input` is a part.
    head_since: Option<Instant>,
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
pub(super) enum Protocol {
    /// Nothing has come, or the beginning of what every connection of HTTP/2 begins with.
    Unknown,
    H1(Intake),
    H2(Box<h2::Connection>),
    /// It is being closed so that the last bytes arrive: closing a socket with unread data sends a reset, and that makes
    /// the peer's kernel forget what it had received. So what is left is written, the socket shut for writing, and read
    /// empty until the peer closes.
    Parting {
        is_shut: bool,
    },
}

/// Why no more is made of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    NeedsInput,
    NeedsRoom,
    /// The connection ends behind what has been answered.
    Closes,
}

impl Link {
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

    /// Reads what a parting drops; whether there may be more.
    pub(super) fn drop_input(&mut self, buffer: &mut [u8]) -> Result<bool, Gone> {
        for _ in 0..READS_PER_TURN {
            if !self.is_readable {
                return Ok(false);
            }
            self.read(buffer)?;
        }
        Ok(self.is_readable)
    }

    /// Shuts it for writing.
    pub(super) fn shut(&self) -> Result<(), Gone> {
        rustix::net::shutdown(&self.socket, Shutdown::Write).map_err(|_| Gone)
    }
}

impl Peer {
    pub(super) fn new(socket: OwnedFd, serial: u64, now: Instant) -> Self {
        Self {
            link: Link { socket, is_readable: false, has_hung_up: false },
            protocol: Protocol::Unknown,
            input: Vec::new(),
            output: Output::default(),
            is_held_up: false,
            serial,
            touched: now,
            head_since: None,
        }
    }

    /// Makes answers of the input, as far as there is input and room.
    pub(super) fn process(&mut self, input: &mut &[u8], context: &mut Context<'_>, is_draining: bool) -> Stop {
        if matches!(self.protocol, Protocol::Unknown) && !self.recognise(input, context) {
            return if is_draining && input.is_empty() { Stop::Closes } else { Stop::NeedsInput };
        }
        match &mut self.protocol {
            Protocol::H1(intake) => process_h1(intake, input, context, is_draining),
            Protocol::H2(connection) => process_h2(connection, input, context, is_draining),
            Protocol::Unknown | Protocol::Parting { .. } => Stop::NeedsInput,
        }
    }

    /// Looks which protocol it is; whether that can be told.
    fn recognise(&mut self, input: &mut &[u8], context: &mut Context<'_>) -> bool {
        let seen = input.len().min(PREFACE.len());
        if input[..seen] != PREFACE[..seen] {
            self.protocol = Protocol::H1(Intake::default());
        } else if seen == PREFACE.len() {
            *input = &input[seen..];
            self.protocol = Protocol::H2(Box::new(h2::Connection::new(context.output)));
        } else {
            return false;
        }
        true
    }

    /// Remembers since when a head has been coming.
    pub(super) fn note_head(&mut self, now: Instant) {
        let is_head = match &self.protocol {
            Protocol::H1(intake) => intake.is_idle() && !self.input.is_empty(),
            Protocol::Unknown => !self.input.is_empty(),
            _ => false,
        };
        self.head_since = is_head.then(|| self.head_since.unwrap_or(now));
    }

    /// When it is to be given up, if nothing more happens.
    pub(super) fn deadline(&self) -> Instant {
        if !self.output.is_empty() {
            return self.touched + WRITE_TIMEOUT;
        }
        match (&self.protocol, self.head_since) {
            (_, Some(since)) => since + HEAD_TIMEOUT,
            (Protocol::H1(intake), _) if !intake.is_idle() => self.touched + PIECE_TIMEOUT,
            (Protocol::H2(connection), _) if !self.input.is_empty() || !connection.is_idle() => {
                self.touched + PIECE_TIMEOUT
            }
            _ => self.touched + IDLE_TIMEOUT,
        }
    }
}

fn process_h1(intake: &mut Intake, input: &mut &[u8], context: &mut Context<'_>, is_draining: bool) -> Stop {
    loop {
        if !context.output.has_room() {
            return Stop::NeedsRoom;
        }
        match intake.step(input, context.body_bytes_max) {
            Step::Wait if is_draining && intake.is_idle() && input.is_empty() => return Stop::Closes,
            Step::Wait => return Stop::NeedsInput,
            Step::Continue => context.output.make(|bytes| bytes.extend_from_slice(h1::CONTINUE)),
            Step::Request(request) => {
                let manner = Manner { closes: request.manner.closes || is_draining, ..request.manner };
                // Before it is answered: a client that has its answer finds it counted.
                context.counters.request();
                let server = context.server;
                let answer = answer::answer(request.call, context.scratch, |text| {
                    text.extend_from_slice(server.sums().render().as_bytes());
                });
                answer::write(context.output, context.pattern, context.date, &answer, manner);
                if manner.closes {
                    return Stop::Closes;
                }
            }
            Step::Refuse(status) => {
                context.counters.request();
                let manner = Manner { is_head: false, closes: true };
                answer::write(context.output, context.pattern, context.date, &Answer::status(status), manner);
                // What follows cannot be told from the rest of what was refused.
                return Stop::Closes;
            }
        }
    }
}

fn process_h2(
    connection: &mut h2::Connection,
    input: &mut &[u8],
    context: &mut Context<'_>,
    is_draining: bool,
) -> Stop {
    let needs_room = match connection.receive(input, context) {
        Ok(needs_room) => needs_room,
        Err(lost) => {
            connection.say_goodbye(lost.code, context.output);
            return Stop::Closes;
        }
    };
    let has_more = connection.pump(context);
    if is_draining {
        connection.say_goodbye(Code::No, context.output);
        if connection.is_idle() {
            return Stop::Closes;
        }
    }
    if needs_room || has_more { Stop::NeedsRoom } else { Stop::NeedsInput }
}
