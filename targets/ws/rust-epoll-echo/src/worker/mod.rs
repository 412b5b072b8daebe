//! A worker: one thread, one event loop, one listener of its own at the common port. Workers share the hub and nothing
//! else; each counts for itself.
//!
//! Sockets are in epoll once, edge-triggered, for as long as they live: no call changes what is waited for. A turn of a
//! connection is one read, of as much as the worker's buffer holds, and one write of all that answers it; a connection that
//! has more waits until the others have had their turns.

mod peer;
mod turn;

use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use slab::Slab;

use crate::frame::CloseReason;
use crate::hub::Batch;
use crate::metrics::{Counter, Counters};
use crate::pool::Pool;
use crate::server::Server;
use peer::{Http, Link, Peer, State};

/// Bytes that one read takes: hundreds of small messages, and little enough to stay in the second-level cache.
pub const READ_BYTES: usize = 128 * 1024;

/// A client has so long to send the head of a request, and to begin another on the same connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a close may take that the client does not answer.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

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
    /// Those at the hub.
    members: BTreeSet<usize>,
    /// Those that have more to read.
    again: VecDeque<usize>,
    /// Who is to be given up when, in the order of time: requests that do not come, closes that are not answered.
    heads: VecDeque<(Instant, usize)>,
    farewells: VecDeque<(Instant, usize)>,
    /// When to end, whatever is left; once draining has begun.
    exit_at: Option<Instant>,
    /// Every read goes here first; so it stays in the cache.
    buffer: Box<[u8]>,
    pool: Pool,
    /// Kept for their memory.
    pongs: Vec<u8>,
    batches: Vec<Batch>,
}

impl Worker {
    /// Worker `number` of the server, which takes connections from `listener`.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(server: Arc<Server>, number: usize, listener: OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, server.hub.bell(number), EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self {
            server,
            number,
            epoll,
            listener: Some(listener),
            accept_again_at: None,
            peers: Slab::new(),
            members: BTreeSet::new(),
            again: VecDeque::new(),
            heads: VecDeque::new(),
            farewells: VecDeque::new(),
            exit_at: None,
            buffer: vec![0; READ_BYTES].into(),
            pool: Pool::default(),
            pongs: Vec::new(),
            batches: Vec::new(),
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
            self.deliver();
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
        let timers = [self.heads.front(), self.farewells.front()].into_iter().flatten().map(|(until, _)| *until);
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
        let until = now + HEAD_TIMEOUT;
        let link = Link { socket, is_readable: false, has_hung_up: false };
        let key = self.peers.insert(Peer { link, state: State::Http(Http { head: Vec::new(), until }) });
        let data = EventData::new_u64(key as u64);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if epoll::add(&self.epoll, &self.peers[key].link.socket, data, flags).is_err() {
            self.peers.remove(key);
            return;
        }
        self.heads.push_back((until, key));
    }

    /// Something has happened to a peer, or to one that had its place: then its successor reads once in vain.
    fn ready(&mut self, key: usize, flags: EventFlags, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        peer.link.has_hung_up |= flags.intersects(HANG_UP);
        peer.link.is_readable |= flags.intersects(HANG_UP | EventFlags::IN);
        self.turn(key, now);
    }

    /// Gives a peer its turn.
    fn turn(&mut self, key: usize, now: Instant) {
        match self.peers.get(key).map(|peer| &peer.state) {
            None => {}
            Some(State::Http(_)) => self.turn_http(key, now),
            Some(State::WebSocket(_)) => self.turn_websocket(key, now),
            Some(State::Farewell(_)) => self.turn_farewell(key),
        }
    }

    /// Passes on what has come for the hub's connections.
    fn deliver(&mut self) {
        if self.members.is_empty() {
            return;
        }
        self.server.hub.collect(self.number, &mut self.batches);
        if self.batches.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        for key in &self.members {
            let Some(Peer { link, state: State::WebSocket(live) }) = self.peers.get_mut(*key) else { continue };
            let (mut sent, mut dropped) = (0, 0);
            for batch in &self.batches {
                let count = if live.outbox.offer(&batch.bytes) { &mut sent } else { &mut dropped };
                *count += batch.messages;
            }
            let counters = &self.server.counters[self.number];
            counters.add(Counter::MessagesSent, sent);
            counters.add(Counter::MessagesDropped, dropped);
            if live.outbox.flush(&link.socket).is_err() {
                gone.push(*key);
            }
        }
        self.batches.clear();
        gone.into_iter().for_each(|key| self.forget(key));
    }

    /// Gives up whose time is over, and listens again if it is time to.
    fn give_up(&mut self, now: Instant) {
        while let Some(key) = pop_due(&mut self.heads, now) {
            match self.peers.get(key).map(|peer| &peer.state) {
                Some(State::Http(http)) if http.until <= now => self.forget(key),
                // It has asked for something meanwhile.
                Some(State::Http(http)) => self.heads.push_back((http.until, key)),
                _ => {}
            }
        }
        while let Some(key) = pop_due(&mut self.farewells, now) {
            if matches!(self.peers.get(key), Some(Peer { state: State::Farewell(it), .. }) if it.until <= now) {
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

    /// Has been called for: letters are collected at the end of the turn, but this may be the end.
    fn answer_bell(&mut self, now: Instant) {
        // Only empties it.
        let _ = io::read(self.server.hub.bell(self.number), &mut [0; 8]);
        if self.exit_at.is_some() || self.server.exit_at().is_none() {
            return;
        }
        self.exit_at = self.server.exit_at();
        // Closed, it is out of epoll.
        self.listener = None;
        self.deliver();
        let keys: Vec<usize> = self.peers.iter().map(|(key, _)| key).collect();
        for key in keys {
            match self.peers.get(key).map(|peer| &peer.state) {
                Some(State::Http(_)) => self.forget(key),
                Some(State::WebSocket(_)) => self.bid_farewell(key, Some(CloseReason::GoingAway.code()), now),
                Some(State::Farewell(_)) | None => {}
            }
        }
    }

    /// Whether nobody is left, or there is no more time for them.
    fn has_drained(&self, now: Instant) -> bool {
        self.exit_at.is_some_and(|exit_at| now >= exit_at || self.peers.is_empty())
    }

    /// Ends a connection without further words.
    fn forget(&mut self, key: usize) {
        if let Some(State::WebSocket(mut live)) = self.peers.try_remove(key).map(|peer| peer.state) {
            live.intake.end(&mut self.pool);
            self.leave(key);
        }
    }

    /// A WebSocket is open no more.
    fn leave(&mut self, key: usize) {
        self.counters().closed();
        if self.members.remove(&key) {
            self.server.hub.leave(self.number);
        }
    }
}

/// The next one whose time is over.
fn pop_due(queue: &mut VecDeque<(Instant, usize)>, now: Instant) -> Option<usize> {
    let (until, key) = *queue.front()?;
    if until > now {
        return None;
    }
    queue.pop_front();
    Some(key)
}
