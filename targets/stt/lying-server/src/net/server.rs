//! The poll loop: one thread moves bytes between sockets and connections, keeps time, and does what the process's lie demands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::connection::{Connection, Fate, World};
use super::foreign;
use crate::config::Config;
use crate::lies::process::Act;

const LISTENER: Token = Token(usize::MAX);
/// The longest sleep: a signal that arrives just before it is noticed after it.
const SLEEP_MAX_US: u64 = 100_000;
/// While stalled, how often a signal is looked for.
const STALL_SLICE_US: u64 = 10_000;
/// One read takes at most this much.
const READ_BYTES: usize = 64 << 10;

/// Why a server stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// It was asked to, and drained.
    Drained,
    /// `LIE=die`.
    Died,
}

/// One socket and its connection.
#[derive(Debug)]
struct Slot {
    stream: TcpStream,
    connection: Connection,
    /// The last read did not find the socket empty.
    readable: bool,
    /// The last write did not find the socket full.
    writable: bool,
    /// The kernel says that the client will send nothing more.
    peer_done: bool,
    /// The timer in the heap that counts; earlier ones are stale.
    timer_us: Option<u64>,
}

/// What became of a slot.
#[derive(Debug, PartialEq, Eq)]
enum Life {
    GoesOn,
    Ended,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    poll: Poll,
    listener: Option<TcpListener>,
    address: SocketAddr,
    /// The listener has connections that were not taken yet, for the lie is slow to accept.
    unaccepted: bool,
    /// `restart`: when to listen again.
    listen_again_us: Option<u64>,
    origin: Instant,
    slots: BTreeMap<usize, Slot>,
    next_slot: usize,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    world: World,
    buffer: Vec<u8>,
    /// Ends the thread of `burn_core` or `foreign_load`.
    stop_thread: Arc<AtomicBool>,
}

impl Server {
    /// Listens on `PORT` of every interface.
    ///
    /// # Errors
    /// The port is taken, or the kernel refuses sockets.
    pub fn bind(config: Config) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, config.port).into())?;
        let address = listener.local_addr()?;
        if let Some(bytes) = config.plan.receive_buffer_bytes() {
            // On the listener, because the window is agreed on before a connection is accepted.
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            socket2::SockRef::from(&listener).set_recv_buffer_size(bytes)?;
        }
        poll.registry()
            .register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener: Some(listener),
            address,
            unaccepted: false,
            listen_again_us: None,
            origin: Instant::now(),
            slots: BTreeMap::new(),
            next_slot: 0,
            timers: BinaryHeap::new(),
            world: World::new(config),
            buffer: vec![0; READ_BYTES],
            stop_thread: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `terminate` is set or the lie ends it.
    ///
    /// # Errors
    /// The kernel's poll failed.
    pub fn run(&mut self, terminate: &AtomicBool) -> io::Result<Stopped> {
        let mut events = Events::with_capacity(1024);
        while !terminate.load(Ordering::Relaxed) {
            self.wait(&mut events)?;
            if self.obey_the_lie(terminate) == Some(Stopped::Died) {
                return Ok(Stopped::Died);
            }
            self.serve(&events);
        }
        self.drain(&mut events)?;
        Ok(Stopped::Drained)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "microseconds since the start fit 64 bits for half a million years"
    )]
    fn now_us(&self) -> u64 {
        self.origin.elapsed().as_micros() as u64
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let now_us = self.now_us();
        let timer = self.timers.peek().map(|Reverse((due_us, _))| *due_us);
        let process = &self.world.process;
        let accept = self.unaccepted.then(|| process.accepts_at_us());
        let due_us = [timer, process.due_us(), self.listen_again_us, accept]
            .into_iter()
            .flatten()
            .min();
        let sleep_us = due_us.map_or(SLEEP_MAX_US, |due_us| due_us.saturating_sub(now_us));
        let timeout = Duration::from_micros(sleep_us.min(SLEEP_MAX_US));
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    fn serve(&mut self, events: &Events) {
        for event in events {
            if event.token() == LISTENER {
                self.unaccepted = true;
            } else {
                self.note(event);
                self.pump(event.token().0);
            }
        }
        self.accept();
        self.fire_timers();
    }

    fn fire_timers(&mut self) {
        let now_us = self.now_us();
        while let Some(Reverse((due_us, id))) = self.timers.peek().copied() {
            if due_us > now_us {
                break;
            }
            self.timers.pop();
            let slot = self.slots.get_mut(&id);
            if slot.is_some_and(|slot| slot.timer_us.take_if(|at| *at == due_us).is_some()) {
                self.pump(id);
            }
        }
    }

    fn note(&mut self, event: &Event) {
        if let Some(slot) = self.slots.get_mut(&event.token().0) {
            slot.readable |= event.is_readable() || event.is_error();
            slot.writable |= event.is_writable() || event.is_error();
            slot.peer_done |= event.is_read_closed() || event.is_error();
        }
    }

    fn accept(&mut self) {
        while self.unaccepted && self.world.process.accepts_at_us() <= self.now_us() {
            let Some(listener) = &self.listener else {
                self.unaccepted = false;
                return;
            };
            let mut stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        eprintln!("lying-server: cannot accept: {error}");
                    }
                    // The queue is empty, or no better for being asked at once: the next connection is a new event.
                    self.unaccepted = false;
                    return;
                }
            };
            self.world.process.accepted(self.now_us());
            let id = self.next_slot;
            self.next_slot += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registered = stream.set_nodelay(true).and_then(|()| {
                let registry = self.poll.registry();
                registry.register(&mut stream, Token(id), interest)
            });
            if let Err(error) = registered {
                eprintln!("lying-server: cannot take a connection: {error}");
                continue;
            }
            let slot = Slot {
                stream,
                connection: Connection::new(),
                readable: false,
                writable: true,
                peer_done: false,
                timer_us: None,
            };
            self.slots.insert(id, slot);
        }
    }

    /// Reads, advances and writes one connection as far as it goes now.
    fn pump(&mut self, id: usize) {
        let now_us = self.now_us();
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if slot.pump(now_us, &mut self.world, &mut self.buffer) == Life::Ended {
            slot.connection.leave(&mut self.world);
            self.slots.remove(&id);
            return;
        }
        if let Some(due_us) = slot.connection.due_us(now_us)
            && slot.timer_us.is_none_or(|at| due_us < at)
        {
            slot.timer_us = Some(due_us);
            self.timers.push(Reverse((due_us, id)));
        }
    }

    fn obey_the_lie(&mut self, terminate: &AtomicBool) -> Option<Stopped> {
        let now_us = self.now_us();
        match self.world.process.act(now_us) {
            None => {}
            Some(Act::Die) => return Some(Stopped::Died),
            Some(Act::StallUntil(until_us)) => {
                self.stall(until_us, terminate);
                // Most event loops look at their timers before their sockets: so a flush that the stall delayed has only the audio
                // that was read before it, and its newest frame has waited as long as the stall was.
                self.fire_timers();
            }
            Some(Act::RestartAt(at_us)) => {
                // Dropping the sockets closes them, as the end of a process would.
                self.slots.clear();
                self.timers.clear();
                self.listener = None;
                self.world.forget();
                self.listen_again_us = Some(at_us);
            }
            Some(Act::BurnCore) => {
                let stop = Arc::clone(&self.stop_thread);
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            Some(Act::ForeignLoad(sessions)) => {
                let stop = Arc::clone(&self.stop_thread);
                let port = self.address.port();
                std::thread::spawn(move || foreign::load(port, sessions, &stop));
            }
        }
        if self.listen_again_us.is_some_and(|at_us| at_us <= now_us) {
            self.listen_again(now_us);
        }
        None
    }

    /// Does nothing at all until then, except die when asked to.
    fn stall(&self, until_us: u64, terminate: &AtomicBool) {
        while !terminate.load(Ordering::Relaxed) {
            let left_us = until_us.saturating_sub(self.now_us());
            if left_us == 0 {
                return;
            }
            std::thread::sleep(Duration::from_micros(left_us.min(STALL_SLICE_US)));
        }
    }

    fn listen_again(&mut self, now_us: u64) {
        let listening = TcpListener::bind(self.address).and_then(|mut listener| {
            let registry = self.poll.registry();
            registry.register(&mut listener, LISTENER, Interest::READABLE)?;
            Ok(listener)
        });
        match listening {
            Ok(listener) => {
                self.listener = Some(listener);
                self.listen_again_us = None;
            }
            Err(error) => {
                eprintln!("lying-server: cannot listen again yet: {error}");
                self.listen_again_us = Some(now_us + SLEEP_MAX_US);
            }
        }
    }

    /// Answers what is in flight, closes every session, and returns when all are gone or the time is up.
    fn drain(&mut self, events: &mut Events) -> io::Result<()> {
        self.world.draining = true;
        let deadline_us = self.now_us() + self.world.config.drain_timeout_us;
        while self.now_us() < deadline_us {
            let ids: Vec<_> = self.slots.keys().copied().collect();
            for id in ids {
                let now_us = self.now_us();
                if let Some(slot) = self.slots.get_mut(&id) {
                    slot.connection.drain(now_us, &mut self.world);
                }
                self.pump(id);
            }
            if self.slots.is_empty() {
                break;
            }
            self.wait(events)?;
            self.serve(events);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_thread.store(true, Ordering::Relaxed);
    }
}

impl Slot {
    fn pump(&mut self, now_us: u64, world: &mut World, buffer: &mut [u8]) -> Life {
        let reading = self.read(now_us, world, buffer);
        self.connection.advance(now_us, world);
        if self.write().is_err() || reading == Life::Ended {
            return Life::Ended;
        }
        if !self.connection.unwritten().is_empty() {
            return Life::GoesOn;
        }
        match self.connection.fate() {
            Fate::Open => Life::GoesOn,
            Fate::Close => Life::Ended,
            Fate::HalfClose => {
                self.connection.half_closed();
                // Fails only when the client is gone already, which the next read tells.
                let _gone = self.stream.shutdown(Shutdown::Write);
                Life::GoesOn
            }
            Fate::Reset => {
                // Without lingering, closing sends a reset.
                let _gone = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
                Life::Ended
            }
        }
    }

    /// Reads what there is and is allowed.
    fn read(&mut self, now_us: u64, world: &mut World, buffer: &mut [u8]) -> Life {
        while self.readable {
            let allowance = self.connection.allowance_bytes(now_us);
            let limit = usize::try_from(allowance).map_or(buffer.len(), |a| a.min(buffer.len()));
            if limit == 0 {
                // A session that is never read again would outlive its client.
                let abandoned = self.peer_done && !self.connection.reads_later(now_us);
                return if abandoned { Life::Ended } else { Life::GoesOn };
            }
            match self.stream.read(&mut buffer[..limit]) {
                Ok(0) => return Life::Ended,
                Ok(bytes) => {
                    self.connection.received(now_us, &buffer[..bytes], world);
                    // The socket is empty; what comes later is a new event. Not so the end of the stream, which comes with the last.
                    self.readable = bytes == limit || self.peer_done;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Life::Ended,
            }
        }
        Life::GoesOn
    }

    fn write(&mut self) -> io::Result<()> {
        while self.writable && !self.connection.unwritten().is_empty() {
            match self.stream.write(self.connection.unwritten()) {
                Ok(bytes) => self.connection.wrote(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
