//! A worker: one thread, one event loop, one listener of its own at the common port. Workers share nothing that a request
//! touches.
//!
//! Sockets are in epoll once, edge-triggered, for as long as they live: no call changes what is waited for. A turn of a
//! connection is one read, of as much as the worker's buffer holds, and one write of all that answers it; a connection
//! that has more waits until the others have had their turns.

mod peer;
mod turn;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use slab::Slab;

use crate::date::Date;
use crate::output::Output;
use crate::server::{Counters, Server};
use peer::Peer;

/// Bytes that one read takes, and what is left of the one before: dozens of requests, and little enough to stay in the
/// second-level cache.
const BUFFER_BYTES: usize = 128 * 1024;

/// How long a parting may take.
const PARTING_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a connection is looked at that may have to be given up.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long nothing is accepted when that has failed, for want of descriptors most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// Connections that may wait to be accepted: a storm brings many at once. The kernel caps it at `somaxconn`.
const BACKLOG: i32 = 65_535;

/// Connections accepted in one go, so that a storm does not keep those that are open waiting.
const ACCEPTS_PER_GO: usize = 256;

/// Events taken with one call.
const EVENTS_PER_WAIT: usize = 1024;

/// Keys of what is no peer.
const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// What ends a connection, told by epoll.
const HANG_UP: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

/// Peers by key and serial number, in the order of time.
type Timers = VecDeque<(Instant, usize, u64)>;

/// A socket that listens at the port, beside those of the other workers: the kernel spreads connections over them.
///
/// # Errors
/// What the kernel says.
pub fn listen(port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    // Linux hands it on to what is accepted, so that a connection costs no call for it.
    sockopt::set_tcp_nodelay(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A worker's whole state.
#[derive(Debug)]
pub struct Worker {
    server: Arc<Server>,
    /// Which of the server's.
    number: usize,
    epoll: OwnedFd,
    /// Closed when draining begins.
    listener: Option<OwnedFd>,
    /// Accepting failed; not before then again.
    accept_again_at: Option<Instant>,
    peers: Slab<Peer>,
    /// The serial number of the next peer.
    serial: u64,
    /// Those that have more to do.
    again: VecDeque<usize>,
    /// When to look at each peer, and when to give up those that part.
    checks: Timers,
    partings: Timers,
    /// When to end, whatever is left; once draining has begun.
    exit_at: Option<Instant>,
    /// Every read goes here first; so it stays in the cache.
    buffer: Box<[u8]>,
    /// Lent to the peer whose turn it is.
    output: Output,
    date: Date,
    /// Kept for its memory.
    scratch: Vec<u8>,
}

impl Worker {
    /// Worker `number` of the server, which takes connections from `listener`.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(server: Arc<Server>, number: usize, listener: OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &server.bells[number], EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self {
            server,
            number,
            epoll,
            listener: Some(listener),
            accept_again_at: None,
            peers: Slab::new(),
            serial: 0,
            again: VecDeque::new(),
            checks: VecDeque::new(),
            partings: VecDeque::new(),
            exit_at: None,
            buffer: vec![0; BUFFER_BYTES].into(),
            output: Output::default(),
            date: Date::default(),
            scratch: Vec::new(),
        })
    }

    /// Serves until the server has drained.
    ///
    /// # Errors
    /// When epoll fails, which it does not.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), self.sleep().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            let now = Instant::now();
            // First those that have waited since the last turn.
            for _ in 0..self.again.len() {
                if let Some(key) = self.again.pop_front() {
                    self.turn(key, now);
                }
            }
            for event in &events {
                // By value: the kernel's struct is packed.
                let (data, flags) = (event.data, event.flags);
                match data.u64() {
                    LISTENER => self.accept(now),
                    BELL => self.answer_bell(now),
                    key => self.ready(usize::try_from(key).unwrap_or(usize::MAX), flags, now),
                }
            }
            self.give_up(now);
            if self.has_drained(now) {
                return Ok(());
            }
        }
    }

    /// How long there is nothing to do.
    fn sleep(&self) -> Option<Timespec> {
        if !self.again.is_empty() {
            return Some(Timespec::default());
        }
        let timers = [self.checks.front(), self.partings.front()].into_iter().flatten().map(|(until, ..)| *until);
        let next = timers.chain(self.accept_again_at).chain(self.exit_at).min()?;
        Timespec::try_from(next.saturating_duration_since(Instant::now())).ok()
    }

    fn counters(&self) -> &Counters {
        &self.server.counters[self.number]
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS_PER_GO {
            let Some(listener) = &self.listener else { return };
            match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => self.welcome(socket, now),
                Err(Errno::AGAIN) => return,
                // A client that has left already.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    // The listener stays readable, so it must not be listened to for a while.
                    if epoll::delete(&self.epoll, listener).is_ok() {
                        self.accept_again_at = Some(now + ACCEPT_PAUSE);
                    }
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd, now: Instant) {
        self.serial += 1;
        let key = self.peers.insert(Peer::new(socket, self.serial, now));
        let data = EventData::new_u64(key as u64);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if epoll::add(&self.epoll, &self.peers[key].link.socket, data, flags).is_err() {
            self.peers.remove(key);
            return;
        }
        self.counters().accepted();
        self.checks.push_back((now + CHECK_INTERVAL, key, self.serial));
    }

    /// Something has happened to a peer, or to one that had its place: then its successor reads once in vain.
    fn ready(&mut self, key: usize, flags: EventFlags, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        peer.link.has_hung_up |= flags.intersects(HANG_UP);
        peer.link.is_readable |= flags.intersects(HANG_UP | EventFlags::IN);
        // A socket that can be written to, as it could before, is no news.
        if peer.link.is_readable || !peer.output.is_empty() || peer.is_held_up {
            self.turn(key, now);
        }
    }

    /// Gives up whose time is over, and listens again if it is time to.
    fn give_up(&mut self, now: Instant) {
        while let Some((key, serial)) = pop_due(&mut self.checks, now) {
            match self.peers.get(key) {
                Some(peer) if peer.serial != serial => {}
                Some(peer) if peer.deadline() <= now => self.forget(key),
                Some(_) => self.checks.push_back((now + CHECK_INTERVAL, key, serial)),
                None => {}
            }
        }
        while let Some((key, serial)) = pop_due(&mut self.partings, now) {
            if self.peers.get(key).is_some_and(|peer| peer.serial == serial) {
                self.forget(key);
            }
        }
        if self.accept_again_at.is_some_and(|at| at <= now) {
            self.accept_again_at = None;
            if let Some(listener) = &self.listener {
                // If this fails, there is no way to go on: the listener would be deaf.
                epoll::add(&self.epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)
                    .expect("room for one more in epoll");
            }
        }
    }

    /// Draining begins: connections at rest end, the others when they have been answered.
    fn answer_bell(&mut self, now: Instant) {
        // Only empties it.
        let _ = io::read(&self.server.bells[self.number], &mut [0; 8]);
        if self.exit_at.is_some() || self.server.exit_at().is_none() {
            return;
        }
        self.exit_at = self.server.exit_at();
        // Those that the kernel has accepted already shall be served. Closed, the listener is out of epoll.
        self.accept(now);
        self.listener = None;
        let keys: Vec<usize> = self.peers.iter().map(|(key, _)| key).collect();
        for key in keys {
            if let Some(peer) = self.peers.get_mut(key) {
                // What has come before the end is answered.
                peer.link.is_readable = true;
                self.turn(key, now);
            }
        }
    }

    /// Whether nobody is left, or there is no more time for them.
    fn has_drained(&self, now: Instant) -> bool {
        self.exit_at.is_some_and(|exit_at| now >= exit_at || self.peers.is_empty())
    }

    /// Ends a connection without further words.
    fn forget(&mut self, key: usize) {
        if self.peers.try_remove(key).is_some() {
            self.counters().closed();
        }
    }
}

/// The next one whose time is over.
fn pop_due(timers: &mut Timers, now: Instant) -> Option<(usize, u64)> {
    let (until, key, serial) = *timers.front()?;
    if until > now {
        return None;
    }
    timers.pop_front();
    Some((key, serial))
}
