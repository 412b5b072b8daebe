//! One thread and one event loop. Every answer goes through a queue in which it waits for its time, so that the server
//! which answers late is the same program as the honest one.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime};

use http_target::config::Config;
use http_target::metrics::Sums;
use rust_epoll_http::answer::{Manner, Status};
use rust_epoll_http::call::{Call, Resource};
use rust_epoll_http::h1::{CONTINUE, Request, Step};
use rust_epoll_http::worker::listen;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{self, Errno};
use rustix::net::SocketFlags;
use slab::Slab;

use crate::fault::{Fault, Kind};
use crate::lie::{Lie, Writer};
use crate::peer::Peer;

const BUFFER_BYTES: usize = 64 * 1024;
const EVENTS_PER_WAIT: usize = 1024;

/// How often connections are looked at that may have to be given up.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

/// Keys of what is no peer.
const LISTENER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As it was told to.
    Drained,
    /// As `FAULT=dies` has it.
    Died,
}

/// An answer that waits.
#[derive(Debug)]
struct Due {
    at: Instant,
    key: usize,
    serial: u64,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Answer(Request, Lie),
    /// What came is no request: the connection ends with this.
    Refusal(Status),
}

/// The whole state.
#[derive(Debug)]
pub struct Server {
    config: Config,
    fault: Fault,
    epoll: OwnedFd,
    listener: Option<OwnedFd>,
    _signals: UnixStream,
    peers: Slab<Peer>,
    /// In the order of time, because all wait equally long.
    due: VecDeque<Due>,
    sums: Sums,
    writer: Writer,
    buffer: Box<[u8]>,
    /// Whether the first `GET /` was answered, after which a dead server is dead.
    was_alive: bool,
    next_stop: Option<Instant>,
    dies_at: Option<Instant>,
    exit_at: Option<Instant>,
    sweep_at: Instant,
}

impl Server {
    /// A server that listens.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new(config: Config, fault: Fault, signals: UnixStream) -> io::Result<Self> {
        // By default Linux wakes up to 50 µs late, to wake less often.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let listener = listen(config.port)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &signals, EventData::new_u64(SIGNALS), EventFlags::IN)?;
        let now = Instant::now();
        Ok(Self {
            epoll,
            listener: Some(listener),
            _signals: signals,
            peers: Slab::new(),
            due: VecDeque::new(),
            sums: Sums::default(),
            writer: Writer::default(),
            buffer: vec![0; BUFFER_BYTES].into(),
            was_alive: false,
            next_stop: fault.stop.map(|(_, every)| now + every),
            dies_at: fault.die_after.map(|after| now + after),
            exit_at: None,
            sweep_at: now + SWEEP_INTERVAL,
            config,
            fault,
        })
    }

    /// Serves until it is told to end, or dies.
    ///
    /// # Errors
    /// When epoll fails, which it does not.
    pub fn run(mut self) -> io::Result<End> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&self.sleep())) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            self.stop_if_it_is_time();
            let now = Instant::now();
            if self.dies_at.is_some_and(|at| at <= now) {
                return Ok(End::Died);
            }
            self.writer.date.refresh(SystemTime::now());
            for event in &events {
                // By value: the kernel's struct is packed.
                let (data, flags) = (event.data, event.flags);
                match data.u64() {
                    LISTENER => self.accept(),
                    SIGNALS => self.drain(now),
                    key => self.ready(usize::try_from(key).unwrap_or(usize::MAX), flags),
                }
            }
            self.answer_due();
            self.sweep(now);
            if self.exit_at.is_some_and(|at| at <= now || self.peers.is_empty()) {
                return Ok(End::Drained);
            }
        }
    }

    /// How long there is nothing to do.
    fn sleep(&self) -> Timespec {
        let timers = [self.due.front().map(|due| due.at), self.next_stop, self.dies_at, self.exit_at];
        let next = timers.into_iter().flatten().fold(self.sweep_at, Instant::min);
        Timespec::try_from(next.saturating_duration_since(Instant::now())).unwrap_or_default()
    }

    /// Everything waits: nothing is accepted, read or written.
    fn stop_if_it_is_time(&mut self) {
        let (Some(at), Some((length, every))) = (self.next_stop, self.fault.stop) else { return };
        if at > Instant::now() {
            return;
        }
        std::thread::sleep((at + length).saturating_duration_since(Instant::now()));
        let mut next = at + every;
        while next <= Instant::now() {
            next += every;
        }
        self.next_stop = Some(next);
    }

    fn accept(&mut self) {
        while let Some(listener) = &self.listener {
            match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    self.sums.accepted += 1;
                    self.sums.open += 1;
                    let key = self.peers.insert(Peer::new(socket, self.sums.accepted, Instant::now()));
                    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                    if epoll::add(&self.epoll, &self.peers[key].socket, EventData::new_u64(key as u64), flags).is_err()
                    {
                        self.forget(key);
                    }
                }
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                // Without descriptors, too: the listener tells again.
                Err(_) => return,
            }
        }
    }

    fn ready(&mut self, key: usize, flags: EventFlags) {
        if let Some(peer) = self.peers.get_mut(key) {
            peer.is_readable |=
                flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            self.turn(key);
        }
    }

    /// Writes what waits, and reads requests, as long as there are.
    fn turn(&mut self, key: usize) {
        if self.try_turn(key).is_err() {
            self.forget(key);
        }
    }

    fn try_turn(&mut self, key: usize) -> Result<(), Errno> {
        loop {
            let Some(peer) = self.peers.get_mut(key) else { return Ok(()) };
            let now = Instant::now();
            peer.flush(&self.writer.pattern, now)?;
            if peer.shut_until.is_some() || peer.is_mute {
                // Dropped; its end is waited for.
                while peer.is_readable {
                    peer.read(&mut self.buffer, now)?;
                }
                return Ok(());
            }
            if !peer.takes_requests() {
                return Ok(());
            }
            let mut filled = peer.input.len();
            self.buffer[..filled].copy_from_slice(&peer.input);
            if !peer.is_held_up {
                if !peer.is_readable {
                    return Ok(());
                }
                let Some(length) = peer.read(&mut self.buffer[filled..], now)? else { return Ok(()) };
                filled += length;
            }
            // As exactly as this process can know it.
            self.take_in(key, filled, now);
        }
    }

    /// Takes the requests out of the buffer.
    fn take_in(&mut self, key: usize, filled: usize, now: Instant) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut input = &buffer[..filled];
        let mut needs_more = false;
        while !needs_more
            && let Some(peer) = self.peers.get_mut(key)
            && peer.takes_requests()
        {
            match peer.intake.step(&mut input, self.config.body_bytes_max) {
                Step::Wait => needs_more = true,
                Step::Continue => peer.output.make(|bytes| bytes.extend_from_slice(CONTINUE)),
                Step::Request(request) => self.plan(key, request, now),
                Step::Refuse(status) => {
                    self.sums.requests += 1;
                    peer.is_full = true;
                    self.queue(key, What::Refusal(status), now);
                }
            }
        }
        if let Some(peer) = self.peers.get_mut(key) {
            peer.is_held_up = !needs_more;
            peer.input.clear();
            if !peer.is_full && !peer.is_mute {
                peer.input.extend_from_slice(input);
            }
        }
        self.buffer = buffer;
    }

    /// Decides what becomes of a request.
    fn plan(&mut self, key: usize, request: Request, now: Instant) {
        self.sums.requests += 1;
        let Some(peer) = self.peers.get_mut(key) else { return };
        let is_load = !matches!(request.call, Call::Get(Resource::Metrics | Resource::Health));
        let (mut lie, mut is_dropped) = (Lie::Truth, false);
        if self.fault.kind == Kind::Dead {
            is_dropped = request.call != Call::Get(Resource::Health) && self.was_alive;
            self.was_alive |= request.call == Call::Get(Resource::Root);
            is_dropped |= !matches!(request.call, Call::Get(Resource::Health | Resource::Root));
        } else if is_load && self.fault.strikes() {
            match self.fault.kind {
                Kind::Fast503 => lie = Lie::Unavailable,
                Kind::Drop => is_dropped = true,
                Kind::ShortBody => lie = Lie::Short,
                Kind::WrongBody => lie = Lie::Wrong,
                Kind::ExtraAnswer => lie = Lie::Twice,
                _ => {}
            }
        }
        peer.is_mute |= is_dropped;
        peer.is_full |= request.manner.closes || lie == Lie::Short;
        if !is_dropped {
            self.queue(key, What::Answer(request, lie), now);
        }
    }

    fn queue(&mut self, key: usize, what: What, now: Instant) {
        if let Some(peer) = self.peers.get_mut(key) {
            peer.waiting += 1;
            self.due.push_back(Due { at: now + self.fault.delay, key, serial: peer.serial, what });
        }
    }

    /// Gives the answers whose time has come.
    fn answer_due(&mut self) {
        while let Some(due) = self.due.front()
            && due.at <= Instant::now()
            && let Some(due) = self.due.pop_front()
        {
            // Another may have its place by now.
            if self.peers.get(due.key).is_some_and(|peer| peer.serial == due.serial) {
                self.answer(due.key, due.what);
                self.turn(due.key);
                self.close_early(due.key);
            }
        }
    }

    fn answer(&mut self, key: usize, what: What) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        peer.waiting -= 1;
        peer.answered += 1;
        peer.is_parting |= match what {
            What::Answer(request, lie) => {
                let closes = request.manner.closes || self.exit_at.is_some();
                peer.is_full |= closes;
                let request = Request { manner: Manner { closes, ..request.manner }, ..request };
                self.writer.write(&mut peer.output, request, lie, self.sums)
            }
            What::Refusal(status) => {
                self.writer.refuse(&mut peer.output, status);
                true
            }
        };
    }

    /// Closes a connection that has had its number of answers, without a word.
    fn close_early(&mut self, key: usize) {
        if let (Some(peer), Some(answers)) = (self.peers.get(key), self.fault.close_after)
            && peer.answered >= answers
            && peer.is_idle()
        {
            self.forget(key);
        }
    }

    /// Draining begins: connections at rest end, the others when they have been answered.
    fn drain(&mut self, now: Instant) {
        if self.exit_at.is_some() {
            return;
        }
        // The last twentieth is for the exit itself.
        self.exit_at = Some(now + self.config.drain_timeout.mul_f64(0.95));
        self.accept();
        // Closed, it is out of epoll.
        self.listener = None;
        let keys: Vec<usize> = self.peers.iter().map(|(key, _)| key).collect();
        for key in keys {
            if let Some(peer) = self.peers.get_mut(key) {
                // What has come before the end is answered.
                peer.is_readable = true;
                self.turn(key);
            }
            if self.peers.get(key).is_some_and(|peer| peer.is_idle() && !peer.is_parting) {
                self.forget(key);
            }
        }
    }

    /// Gives up whose time is over.
    fn sweep(&mut self, now: Instant) {
        if self.sweep_at > now {
            return;
        }
        self.sweep_at = now + SWEEP_INTERVAL;
        let over: Vec<usize> = self.peers.iter().filter(|(_, peer)| peer.is_over(now)).map(|(key, _)| key).collect();
        over.into_iter().for_each(|key| self.forget(key));
    }

    fn forget(&mut self, key: usize) {
        if self.peers.try_remove(key).is_some() {
            self.sums.open -= 1;
        }
    }
}
