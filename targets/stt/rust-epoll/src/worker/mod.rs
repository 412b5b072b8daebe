//! A worker: one thread, one event loop, one listener of its own at the common port, its own connections to the inference
//! server. Workers share counters with a ceiling and nothing else.
//!
//! A started session is not watched by epoll. It is read when its timer says so: at its flush, and evenly in between at
//! most `READ_PACE_MS` apart. Timers are due in ticks of [`TICK`], and a tick does everything at once: answers are read,
//! sessions are read and flushed, their batches written together.

mod peer;
mod turn;

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use slab::Slab;

use crate::gateway::{Drain, Gateway};
use crate::inference::Inference;
use crate::metrics::Tally;
use crate::session::audio::Pool;
use crate::wheel::Wheel;
use peer::{Farewell, Peer, State};

/// What happens in the same tick happens at once. A flush is late by half of it on average, which the latency budget
/// does not notice, and the cost of waking up is shared by all that is due.
const TICK: Duration = Duration::from_millis(5);

/// Longest sleep while there is a connection to the inference server: its pings are answered when it is read.
const SLEEP_MAX: Duration = Duration::from_millis(250);

/// A client has so long to send the head of a request, and to begin another on the same connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that may wait to be accepted: many sessions start at once. The kernel caps it at `somaxconn`.
const BACKLOG: i32 = 4096;

/// Connections accepted in one go, so that a burst does not keep the sessions waiting.
const ACCEPTS_PER_TURN: usize = 64;

/// Timers looked after in one go. In a gateway that is late, batches are written and answers, connects and violations seen
/// in between: were all of thousands of sessions read first, the connection to the inference server would stand idle
/// meanwhile, and an overload would become a collapse.
const TURNS_PER_GO: usize = 64;

/// What the kernel may hold for a client that does not read, in bytes before it doubles that: some messages, not the
/// megabytes to which it would let the buffer grow. What it does not take is counted against `OUTBOX_MESSAGES`.
const SEND_BUFFER_BYTES: usize = 16 * 1024;

/// Bytes that one read takes: of a session some eight frames of a hundred that would fit.
const READ_BYTES: usize = 64 * 1024;

/// Keys of what is no peer.
const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
const INFERENCE: u64 = u64::MAX - 2;

/// A socket that listens at the port, beside those of the other workers: the kernel spreads connections over them.
///
/// # Errors
/// What the kernel says.
pub fn listen(port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    // Linux hands both on to what is accepted, so that a session costs no calls for them.
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A worker's whole state.
#[derive(Debug)]
pub struct Worker {
    gateway: Arc<Gateway>,
    /// Which of the gateway's.
    number: usize,
    epoll: OwnedFd,
    listener: OwnedFd,
    /// Accepting failed, for want of descriptors most likely; not before this tick again.
    accept_again_at: Option<u64>,
    peers: Slab<Peer>,
    /// By peer: when it wants to be looked after.
    wheel: Wheel,
    /// Tick 0.
    origin: Instant,
    inference: Inference,
    pool: Pool,
    tally: Tally,
    drain: Option<Drain>,
    /// Every read goes here first; so it stays in the cache.
    buffer: Box<[u8]>,
    /// Peers whose timers are due.
    due: VecDeque<u32>,
    /// Kept for its memory.
    answered: Vec<u32>,
}

impl Worker {
    /// Worker `number` of the gateway, which takes connections from `listener`.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(gateway: Arc<Gateway>, number: usize, listener: OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &gateway.workers[number].bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let inference = Inference::new(Arc::clone(&gateway), gateway.config.inference_connections);
        Ok(Self {
            gateway,
            number,
            epoll,
            listener,
            accept_again_at: None,
            peers: Slab::new(),
            wheel: Wheel::default(),
            origin: Instant::now(),
            inference,
            pool: Pool::default(),
            tally: Tally::default(),
            drain: None,
            buffer: vec![0; READ_BYTES].into(),
            due: VecDeque::new(),
            answered: Vec::new(),
        })
    }

    /// Serves until the gateway has drained.
    ///
    /// # Errors
    /// When epoll fails, which it does not.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(1024);
        let mut last_tick = 0;
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), self.sleep().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            let now = Instant::now();
            let mut is_stirred = false;
            for event in &events {
                // By value: the kernel's struct is packed.
                let data = event.data;
                match data.u64() {
                    LISTENER => self.accept(now),
                    BELL => self.drain(now),
                    INFERENCE => is_stirred = true,
                    key => self.ready(usize::try_from(key).unwrap_or(usize::MAX), now),
                }
            }
            let tick = self.tick_at(now);
            if is_stirred || tick > last_tick {
                self.receive_answers();
            }
            if tick > last_tick {
                last_tick = tick;
                self.listen_again(tick);
                self.wheel.advance(tick, &mut self.due);
                self.gateway.workers[self.number].published.store(&self.tally);
            }
            self.look_after_due(now);
            self.inference.write(&mut self.pool);
            if self.has_drained(now) {
                return Ok(());
            }
        }
    }

    /// The tick in which `time` lies.
    fn tick_at(&self, time: Instant) -> u64 {
        let ticks = time.saturating_duration_since(self.origin).as_nanos() / TICK.as_nanos();
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// The first tick that begins at or after `time`.
    fn tick_after(&self, time: Instant) -> u64 {
        let ticks = time.saturating_duration_since(self.origin).as_nanos().div_ceil(TICK.as_nanos());
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    fn set_timer(&mut self, key: usize, time: Instant) {
        let tick = self.tick_after(time);
        self.wheel.set(u32::try_from(key).unwrap_or(u32::MAX), tick);
    }

    /// How long there is nothing to do.
    fn sleep(&self) -> Option<Timespec> {
        if !self.due.is_empty() {
            return Some(Timespec::default());
        }
        let now = Instant::now();
        let next_tick = self.tick_at(now) + 1;
        let tick = match self.wheel.next() {
            _ if self.inference.is_busy() => Some(next_tick),
            timer => [timer, self.accept_again_at].into_iter().flatten().min(),
        };
        let until_tick = tick.map(|tick| {
            let ticks = u32::try_from(tick.saturating_sub(self.tick_at(now))).unwrap_or(u32::MAX);
            let begin = u32::try_from(now.duration_since(self.origin).as_nanos() % TICK.as_nanos()).unwrap_or(0);
            (TICK * ticks).saturating_sub(Duration::from_nanos(begin.into()))
        });
        let look = self.inference.has_lines().then_some(SLEEP_MAX);
        let exit = self.drain.map(|drain| drain.exit_at.saturating_duration_since(now));
        let sleep = [until_tick, look, exit].into_iter().flatten().min()?;
        Timespec::try_from(sleep).ok()
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS_PER_TURN {
            match rustix::net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => self.welcome(socket, now),
                Err(Errno::AGAIN) => return,
                // A client that has left already.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    // The listener stays readable, so it must not be listened to for a while.
                    if epoll::delete(&self.epoll, &self.listener).is_ok() {
                        self.accept_again_at = Some(self.tick_after(now + SLEEP_MAX));
                    }
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd, now: Instant) {
        let until = now + HEAD_TIMEOUT;
        let peer = Peer { socket, is_watched: true, state: State::Http { head: Vec::new(), until } };
        let key = self.peers.insert(peer);
        let data = EventData::new_u64(key as u64);
        if epoll::add(&self.epoll, &self.peers[key].socket, data, EventFlags::IN).is_err() {
            self.peers.remove(key);
            return;
        }
        self.set_timer(key, until);
        // Most clients have sent their request by the time they are accepted.
        self.ready(key, now);
    }

    /// Something has come from a peer, or from one that had its place.
    fn ready(&mut self, key: usize, now: Instant) {
        match self.peers.get(key).map(|peer| &peer.state) {
            None => {}
            Some(State::Http { .. }) => self.turn_http(key, now),
            Some(State::Session(_)) => self.turn_session(key, now),
            Some(State::Farewell(_)) => self.turn_farewell(key, now),
        }
    }

    /// Accepts connections again, if it is time to.
    fn listen_again(&mut self, tick: u64) {
        if self.accept_again_at.is_some_and(|at| at <= tick) {
            self.accept_again_at = None;
            // If this fails, there is no way to go on: the listener would be deaf.
            epoll::add(&self.epoll, &self.listener, EventData::new_u64(LISTENER), EventFlags::IN)
                .expect("room for one more in epoll");
        }
    }

    /// Gives the next ones whose timers are due their turn.
    fn look_after_due(&mut self, now: Instant) {
        for _ in 0..TURNS_PER_GO {
            let Some(key) = self.due.pop_front() else { return };
            let key = key as usize;
            match self.peers.get(key).map(|peer| &peer.state) {
                Some(State::Http { until, .. }) if *until <= now => self.forget(key),
                Some(State::Http { until, .. }) => self.set_timer(key, *until),
                Some(State::Session(_)) => self.turn_session(key, now),
                Some(State::Farewell(_)) => self.turn_farewell(key, now),
                None => {}
            }
        }
    }

    /// Reads what the inference server has answered, and tells the sessions.
    fn receive_answers(&mut self) {
        // Read now and not at the beginning of the turn: the time that a request took ends here.
        let now = Instant::now();
        let Self { gateway, peers, inference, pool, tally, buffer, answered, .. } = self;
        let rules = &gateway.config.rules;
        inference.receive(buffer, pool, |event| {
            let (tag, answer) = turn::read_answer(event);
            if let Some(State::Session(live)) = peers.get_mut(tag as usize).map(|peer| &mut peer.state) {
                drop(live.session.on_answer(rules, now, answer, tally));
                answered.push(tag);
            }
        });
        let mut answered = std::mem::take(&mut self.answered);
        for key in answered.drain(..) {
            self.speak(key as usize, now);
        }
        self.answered = answered;
    }

    /// Begins to drain, when the bell says so.
    fn drain(&mut self, now: Instant) {
        // Only empties it; what it says is known by `draining`.
        let _ = io::read(&self.gateway.workers[self.number].bell, &mut [0; 8]);
        let Some(drain) = self.gateway.draining() else { return };
        if self.drain.replace(drain).is_some() {
            return;
        }
        let sessions: Vec<usize> = self
            .peers
            .iter_mut()
            .filter_map(|(key, peer)| match &mut peer.state {
                State::Session(live) => {
                    live.session.drain(drain.give_up_at);
                    Some(key)
                }
                _ => None,
            })
            .collect();
        for key in sessions {
            self.turn_session(key, now);
        }
    }

    /// Whether nobody is left, or there is no more time for them. Mere HTTP connections are not waited for.
    fn has_drained(&self, now: Instant) -> bool {
        self.drain.is_some_and(|drain| {
            let is_idle = |(_, peer): (usize, &Peer)| matches!(peer.state, State::Http { .. });
            now >= drain.exit_at || self.peers.iter().all(is_idle)
        })
    }

    /// This session's share of the jitter: every `RandomState` hashes differently, and evenly.
    fn jitter(&self) -> Duration {
        let share = RandomState::new().hash_one(()) as f64 / 2_f64.powi(64);
        self.gateway.config.flush_phase_jitter.mul_f64(share)
    }

    /// Ends a connection without further words.
    fn forget(&mut self, key: usize) {
        self.wheel.clear(u32::try_from(key).unwrap_or(u32::MAX));
        if let Some(peer) = self.peers.try_remove(key)
            && let State::Session(mut live) = peer.state
            && let Some(request) = live.session.end(&mut self.pool)
        {
            self.inference.cancel(&request, &mut self.pool);
        }
    }

    /// Ends a connection when `farewell` is through.
    fn bid_farewell(&mut self, key: usize, farewell: Farewell, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if let State::Session(mut live) = std::mem::replace(&mut peer.state, State::Farewell(farewell))
            && let Some(request) = live.session.end(&mut self.pool)
        {
            self.inference.cancel(&request, &mut self.pool);
        }
        self.turn_farewell(key, now);
    }

    /// Has epoll tell, or not tell, when something has come from a peer.
    fn watch(&mut self, key: usize, wanted: bool) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        if peer.is_watched != wanted {
            let data = EventData::new_u64(key as u64);
            let changed = match wanted {
                true => epoll::add(self.epoll.as_fd(), &peer.socket, data, EventFlags::IN),
                false => epoll::delete(self.epoll.as_fd(), &peer.socket),
            };
            peer.is_watched = if changed.is_ok() { wanted } else { !wanted };
        }
    }
}
