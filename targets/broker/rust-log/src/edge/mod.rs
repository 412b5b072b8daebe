//! Sockets: one thread and one event loop on edge-triggered epoll, around the broker.
//!
//! A turn reads from each connection that has something, once; then the broker ends the turn, which writes the log with one
//! call; then each connection that has output gets one write. The disk is waited for by another thread.

mod peer;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use slab::Slab;

use crate::broker::{Broker, Now};
use crate::conduct::Conduct;
use crate::disk::Folder;
use crate::flusher::Flusher;
use crate::http;
use peer::{Peer, Protocol};

/// Bytes that one read takes at least: dozens of messages, and little enough to stay in the second-level cache.
const READ_BYTES: usize = 128 * 1024;

/// Connections that may wait to be accepted. The kernel caps it at `somaxconn`.
const BACKLOG: i32 = 1024;

/// Connections that are open at once; more are closed at once.
const PEERS_MAX: usize = 16_384;

/// How long nothing is accepted when that has failed, for want of descriptors most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// Events taken with one call.
const EVENTS_PER_WAIT: usize = 1024;

/// Keys of what is no peer.
const LISTENER: u64 = u64::MAX;
const HTTP_LISTENER: u64 = u64::MAX - 1;
const BELL: u64 = u64::MAX - 2;
const SIGNALS: u64 = u64::MAX - 3;

/// What ends a connection, told by epoll.
const HANG_UP: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

/// The event loop.
#[derive(Debug)]
pub struct Edge<C> {
    broker: Broker<Folder, C>,
    flusher: Flusher<Folder>,
    epoll: OwnedFd,
    listeners: Vec<OwnedFd>,
    _signals: UnixStream,
    peers: Slab<Peer>,
    /// Those that have something to read, and those that the broker does not want to read from now.
    readable: Vec<usize>,
    held: Vec<usize>,
    /// Kept for their memory.
    turn: Vec<usize>,
    touched: Vec<usize>,
    buffer: Box<[u8]>,
    started: Instant,
    accept_again_at: Option<Instant>,
    tick_at: Option<Instant>,
}

/// A socket that listens at the port.
fn listen(port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Linux hands it on to what is accepted, so that a connection costs no call for it.
    sockopt::set_tcp_nodelay(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

impl<C: Conduct> Edge<C> {
    /// Listens at both ports (the second one is optional: 0). `signals` becomes readable when it is time to end.
    ///
    /// # Errors
    /// What the kernel says, for instance that a port is taken.
    pub fn new(broker: Broker<Folder, C>, port: u16, http_port: u16, signals: UnixStream) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flusher = Flusher::start()?;
        let mut listeners = vec![listen(port)?];
        if http_port != 0 && http_port != port {
            listeners.push(listen(http_port)?);
        }
        for (listener, key) in listeners.iter().zip([LISTENER, HTTP_LISTENER]) {
            epoll::add(&epoll, listener, EventData::new_u64(key), EventFlags::IN)?;
        }
        epoll::add(&epoll, &*flusher.bell, EventData::new_u64(BELL), EventFlags::IN)?;
        epoll::add(&epoll, &signals, EventData::new_u64(SIGNALS), EventFlags::IN)?;
        Ok(Self {
            // Room for what is left of a read, and a whole read more.
            buffer: vec![0; broker.frame_bytes_max() + READ_BYTES].into(),
            broker,
            flusher,
            epoll,
            listeners,
            _signals: signals,
            peers: Slab::new(),
            readable: Vec::new(),
            held: Vec::new(),
            turn: Vec::new(),
            touched: Vec::new(),
            started: Instant::now(),
            accept_again_at: None,
            tick_at: None,
        })
    }

    /// Serves until it is told to end; then all that was written is on disk.
    ///
    /// # Errors
    /// When the log cannot be written, flushed or read.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), self.sleep().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.stand_still();
            for event in &events {
                // By value: the kernel's struct is packed.
                let (data, flags) = (event.data, event.flags);
                match data.u64() {
                    LISTENER => self.accept(0),
                    HTTP_LISTENER => self.accept(1),
                    BELL => self.end_flush()?,
                    SIGNALS => return self.end(),
                    key => self.ready(usize::try_from(key).unwrap_or(usize::MAX), flags),
                }
            }
            self.take_turn()?;
        }
    }

    /// What time it is.
    fn now(&self) -> Now {
        let ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { ns, ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX) }
    }

    /// How long there is nothing to do.
    fn sleep(&self) -> Option<Timespec> {
        if !self.readable.is_empty() || self.broker.has_work() {
            return Some(Timespec::default());
        }
        let due = [self.broker.due_ns(), self.broker.conduct.pause_at()].into_iter().flatten();
        let due = due.filter_map(|ns| self.started.checked_add(Duration::from_nanos(ns)));
        let next = due.chain(self.accept_again_at).chain(self.tick_at).min()?;
        Timespec::try_from(next.saturating_duration_since(Instant::now())).ok()
    }

    /// A lying broker stops for a while: nothing is accepted, read, written or flushed anew.
    fn stand_still(&mut self) {
        let now = self.now();
        if let Some(pause) = self.broker.conduct.pause(now.ns) {
            std::thread::sleep(pause);
        }
    }

    /// Reads from all that have something, writes the log, and writes to all that get something.
    fn take_turn(&mut self) -> io::Result<()> {
        let now = self.now();
        self.listen_again();
        if let Some(interval) = self.broker.conduct.tick() {
            let at = *self.tick_at.get_or_insert_with(Instant::now);
            if at <= Instant::now() {
                self.broker.look_again();
                self.tick_at = Some(Instant::now() + interval);
            }
        }
        // Those that have more join the list again, for the next turn.
        let mut keys = std::mem::take(&mut self.turn);
        keys.append(&mut self.readable);
        keys.append(&mut self.held);
        for key in keys.drain(..) {
            self.read(key, now)?;
        }
        self.turn = keys;
        self.broker.finish_turn(now)?;
        if !self.flusher.is_busy()
            && let Some(flush) = self.broker.flush()
        {
            self.flusher.begin(flush);
        }
        let mut touched = std::mem::take(&mut self.touched);
        self.broker.take_touched(&mut touched);
        for key in touched.drain(..) {
            self.write(key);
        }
        self.touched = touched;
        Ok(())
    }

    /// The disk has caught up with what was flushed.
    fn end_flush(&mut self) -> io::Result<()> {
        while let Some(result) = self.flusher.ended() {
            let position = result?;
            let now = self.now();
            self.broker.flushed_until(position, now);
        }
        Ok(())
    }

    /// The end: what came is written and flushed, and nobody is told.
    fn end(mut self) -> io::Result<()> {
        let now = self.now();
        self.broker.finish_turn(now)?;
        if let Some(result) = self.flusher.wait() {
            self.broker.flushed_until(result?, now);
        }
        if let Some(flush) = self.broker.flush() {
            flush.run()?;
        }
        Ok(())
    }

    fn accept(&mut self, listener: usize) {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(&self.listeners[listener], flags) {
                Ok(socket) => self.welcome(socket),
                Err(Errno::AGAIN) => return,
                // A client that has left already.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    // The listeners stay readable, so they must not be listened to for a while.
                    for listener in &self.listeners {
                        let _ = epoll::delete(&self.epoll, listener);
                    }
                    self.accept_again_at = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn listen_again(&mut self) {
        if self.accept_again_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.accept_again_at = None;
        for (listener, key) in self.listeners.iter().zip([LISTENER, HTTP_LISTENER]) {
            // Fails only if it is there.
            let _ = epoll::add(&self.epoll, listener, EventData::new_u64(key), EventFlags::IN);
        }
    }

    fn welcome(&mut self, socket: OwnedFd) {
        if self.peers.len() >= PEERS_MAX {
            return;
        }
        let key = self.peers.insert(Peer::new(socket));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if epoll::add(&self.epoll, &self.peers[key].socket, EventData::new_u64(key as u64), flags).is_err() {
            self.peers.remove(key);
        }
    }

    /// Something has happened to a peer, or to one that had its place: then its successor reads once in vain.
    fn ready(&mut self, key: usize, flags: EventFlags) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        peer.has_hung_up |= flags.intersects(HANG_UP);
        if flags.intersects(HANG_UP | EventFlags::IN) && !std::mem::replace(&mut peer.is_readable, true) {
            self.readable.push(key);
        }
        if flags.contains(EventFlags::OUT) {
            self.write(key);
        }
    }

    /// One read, and what the broker makes of it.
    fn read(&mut self, key: usize, now: Now) -> io::Result<()> {
        let Some(peer) = self.peers.get_mut(key).filter(|peer| peer.is_readable) else { return Ok(()) };
        if peer.protocol == Protocol::Broker && !self.broker.takes_input(key) {
            self.held.push(key);
            return Ok(());
        }
        let kept = peer.input.len();
        self.buffer[..kept].copy_from_slice(&peer.input);
        let until = self.buffer.len().min(kept + READ_BYTES);
        let length = match peer.read(&mut self.buffer[kept..until]) {
            Ok(Some(length)) => kept + length,
            Ok(None) => return Ok(()),
            Err(_) => {
                self.forget(key);
                return Ok(());
            }
        };
        if peer.is_readable {
            self.readable.push(key);
        }
        if peer.protocol == Protocol::Unknown
            && let Some(is_http) = http::is_http(&self.buffer[..length])
        {
            peer.protocol = if is_http { Protocol::Http } else { Protocol::Broker };
            if !is_http {
                self.broker.open(key);
            }
        }
        match peer.protocol {
            Protocol::Broker => {
                let taken = self.broker.receive(key, &self.buffer[..length], now)?;
                peer.keep(&self.buffer[taken..length]);
            }
            Protocol::Http => {
                if let Some(wish) = http::parse(&self.buffer[..length])
                    && peer.output.is_empty()
                {
                    peer.output = http::answer(wish, || self.broker.queues());
                    self.write(key);
                } else {
                    // What follows a request is not looked at.
                    let is_answered = !peer.output.is_empty();
                    peer.keep(if is_answered { &[] } else { &self.buffer[..length] });
                }
            }
            Protocol::Unknown => peer.keep(&self.buffer[..length]),
        }
        Ok(())
    }

    /// Writes what waits for a peer, as far as the kernel takes it, and ends the connection behind its last word.
    fn write(&mut self, key: usize) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let is_over = match peer.protocol {
            Protocol::Broker => loop {
                let output = self.broker.output(key);
                if output.is_empty() {
                    break self.broker.is_over(key);
                }
                match peer.write(output) {
                    Ok(Some(count)) => self.broker.wrote(key, count),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            },
            Protocol::Http => peer.write_own().unwrap_or(true),
            Protocol::Unknown => false,
        };
        if is_over {
            self.forget(key);
        }
    }

    /// Ends a connection.
    fn forget(&mut self, key: usize) {
        if let Some(peer) = self.peers.try_remove(key)
            && peer.protocol == Protocol::Broker
        {
            self.broker.close(key);
        }
    }
}
