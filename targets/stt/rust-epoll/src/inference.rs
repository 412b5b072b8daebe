//! A worker's way to the inference server: a few HTTP/2 connections of its own.
//!
//! They are read and written once per tick and not when they are ready, so that the answers and the batches of a tick cost
//! one system call each, however many they are.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

use crate::gateway::Gateway;
use crate::h2::{Connection, Event};
use crate::limit::Permit;
use crate::session::audio::{Pcm, Piece, Pool};

/// Pieces that one `writev` takes; the kernel would take 1024.
const SLICES_MAX: usize = 256;

/// The kernel gives a connection up when the server takes nothing for so long.
const SILENCE_MS_MAX: u32 = 10_000;

/// A request in flight.
#[derive(Debug)]
pub struct Request {
    /// Which connection.
    line: u32,
    /// Which stream of it.
    stream: u32,
    /// Whose.
    tag: u32,
    /// Its place among `MAX_INFLIGHT_JOBS`; given back with it.
    _job: Permit,
}

/// No connection has this number: the request was refused at once.
const NOWHERE: u32 = 0;

#[derive(Debug)]
struct Line {
    number: u32,
    place: usize,
    socket: OwnedFd,
    h2: Connection<Piece>,
}

/// The connections of one worker.
#[derive(Debug)]
pub struct Inference {
    gateway: Arc<Gateway>,
    /// Connections that take requests, and old ones that only finish what they have.
    lines: Vec<Line>,
    /// How many there should be, and whose turn it is.
    places: usize,
    turn: usize,
    last_number: u32,
    /// Requests for which there was no connection: they fail when events are next looked at.
    refused: Vec<u32>,
}

impl Inference {
    /// A client with `places` connections, each made when it is first needed.
    pub fn new(gateway: Arc<Gateway>, places: usize) -> Self {
        Self { gateway, lines: Vec::new(), places, turn: 0, last_number: NOWHERE, refused: Vec::new() }
    }

    /// Sends a batch. What becomes of it is told by [`Self::receive`], under the same tag.
    pub fn send(&mut self, tag: u32, job: Permit, pcm: Pcm, epoll: BorrowedFd<'_>, token: u64) -> Request {
        let place = self.turn % self.places;
        self.turn = place + 1;
        let takes = |line: &Line| line.place == place && line.h2.takes_requests();
        let index = self.lines.iter().position(takes).or_else(|| self.connect(place, epoll, token));
        let Some(line) = index.and_then(|index| self.lines.get_mut(index)) else {
            self.refused.push(tag);
            return Request { line: NOWHERE, stream: 0, tag, _job: job };
        };
        Request { line: line.number, stream: line.h2.request(tag, pcm), tag, _job: job }
    }

    /// Gives a request up: nothing more will be heard of it.
    pub fn cancel(&mut self, request: &Request, pool: &mut Pool) {
        self.refused.retain(|tag| *tag != request.tag);
        if let Some(line) = self.lines.iter_mut().find(|line| line.number == request.line) {
            line.h2.cancel(request.stream, |piece| pool.recycle(piece));
        }
    }

    /// Whether there are connections, which must then be looked after.
    pub fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Whether answers are awaited, or bytes wait to be written.
    pub fn is_busy(&self) -> bool {
        !self.refused.is_empty() || self.lines.iter().any(|line| !line.h2.is_idle())
    }

    /// Reads what has come and shows what became of requests.
    pub fn receive(&mut self, buffer: &mut [u8], pool: &mut Pool, mut event: impl FnMut(Event<'_>)) {
        let mut index = 0;
        while let Some(line) = self.lines.get_mut(index) {
            let is_well = line.receive(buffer, pool, &mut event);
            if is_well && (line.h2.takes_requests() || !line.h2.is_idle()) {
                index += 1;
            } else {
                self.lines.swap_remove(index).end(pool, &mut event);
            }
        }
        self.refused.drain(..).for_each(|tag| event(Event::Reset { tag }));
    }

    /// Writes what can be written. A broken connection is found out when it is next read.
    pub fn write(&mut self, pool: &mut Pool) {
        self.lines.iter_mut().for_each(|line| line.write(pool));
    }

    /// Begins to connect; what is written before that is done waits.
    fn connect(&mut self, place: usize, epoll: BorrowedFd<'_>, token: u64) -> Option<usize> {
        let socket = connect(self.gateway.inference_address()?).ok()?;
        // Tells when it is connected, when there is room again, and when the server hangs up. What comes in is looked for
        // in every tick, so it is not to wake anybody.
        let wanted = EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(epoll, &socket, EventData::new_u64(token), wanted).ok()?;
        self.last_number = self.last_number.wrapping_add(1).max(NOWHERE + 1);
        let h2 = Connection::new(self.gateway.target.clone());
        self.lines.push(Line { number: self.last_number, place, socket, h2 });
        Some(self.lines.len() - 1)
    }
}

fn connect(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_tcp_user_timeout(&socket, SILENCE_MS_MAX)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

impl Line {
    /// Reads what has come. False when the connection is lost.
    fn receive(&mut self, buffer: &mut [u8], pool: &mut Pool, event: &mut impl FnMut(Event<'_>)) -> bool {
        loop {
            match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return false,
                Ok((length, _)) => {
                    let received = self.h2.receive(&buffer[..length], event, &mut |piece| pool.recycle(piece));
                    if let Err(lost) = received {
                        eprintln!("the connection to inference is given up: {} ({:?})", lost.cause, lost.code);
                        return false;
                    }
                    if length < buffer.len() {
                        return true;
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
    }

    fn write(&mut self, pool: &mut Pool) {
        loop {
            let output = self.h2.output();
            if output.is_empty() {
                return;
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let used = output.slices(&mut slices);
            match rustix::io::writev(&self.socket, &slices[..used]) {
                Ok(written) => output.advance(written, |piece| pool.recycle(piece)),
                Err(Errno::INTR) => {}
                // Full, not connected yet, or broken.
                Err(_) => return,
            }
        }
    }

    fn end(self, pool: &mut Pool, event: &mut impl FnMut(Event<'_>)) {
        self.h2.fail(event, |piece| pool.recycle(piece));
    }
}
