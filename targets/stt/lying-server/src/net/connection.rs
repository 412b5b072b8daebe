//! One connection, without I/O: bytes and time in, bytes and a fate out. The one place where the honest session and the lies meet.

use tungstenite::http::StatusCode;

use super::http::{Asked, read_request, respond};
use super::metrics::{Counters, Gauges, render};
use super::websocket::{Said, ServerSocket};
use crate::config::Config;
use crate::honest::messages::{Partial, close};
use crate::honest::reference::Answer;
use crate::honest::session::{Event, Session};
use crate::lies::incoming::Incoming;
use crate::lies::outgoing::{Outgoing, Utterance};
use crate::lies::process::ProcessLie;
use crate::lies::{Lie, Plan};

/// With more than this unwritten, a session says nothing more until its client has read. Above the largest frame by default.
const OUTBOX_BYTES: usize = 4 << 20;
/// How long a client may take to answer our close frame before its connection is closed all the same.
const CLOSE_TIMEOUT_US: u64 = 500_000;

/// What all connections share.
#[derive(Debug)]
pub struct World {
    /// The environment.
    pub config: Config,
    /// See [`Counters`].
    pub counters: Counters,
    /// See [`Gauges`].
    pub gauges: Gauges,
    /// The lie of the process.
    pub process: ProcessLie,
    /// The server is shutting down.
    pub draining: bool,
    chance: fastrand::Rng,
    recent: RecentAnswers,
}

impl World {
    /// The world of a process that has just begun.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            counters: Counters::default(),
            gauges: Gauges::default(),
            process: ProcessLie::new(config.plan, config.seed),
            draining: false,
            chance: fastrand::Rng::with_seed(config.seed),
            recent: RecentAnswers::default(),
        }
    }

    /// Forgets what a restarted process would not know.
    pub fn forget(&mut self) {
        self.counters = Counters::default();
        self.gauges = Gauges::default();
        self.recent = RecentAnswers::default();
    }
}

/// The last answers of two different sessions, so that any session finds one of another's.
#[derive(Debug, Default)]
struct RecentAnswers {
    last: Option<(u64, Answer)>,
    before: Option<(u64, Answer)>,
}

impl RecentAnswers {
    fn note(&mut self, session: u64, answer: Answer) {
        if self.last.is_some_and(|(other, _)| other != session) {
            self.before = self.last;
        }
        self.last = Some((session, answer));
    }

    fn of_another_than(&self, session: u64) -> Option<Answer> {
        [self.last, self.before]
            .into_iter()
            .flatten()
            .find(|(other, _)| *other != session)
            .map(|(_, answer)| answer)
    }
}

/// What the server must do with a connection once all its bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Keep it.
    Open,
    /// Close it.
    Close,
    /// Shut its sending half and call [`Connection::half_closed`].
    HalfClose,
    /// Reset it.
    Reset,
}

/// A session and what stands between it and its client.
#[derive(Debug)]
struct Talk {
    number: u64,
    plan: Plan,
    socket: ServerSocket,
    session: Session,
    outgoing: Outgoing,
    incoming: Incoming,
    /// The sending half is shut: what is said goes nowhere.
    silent: bool,
    /// Whether the gauge of requests in flight counts this session.
    job_counted: bool,
}

#[derive(Debug)]
enum State {
    /// The head of the request is coming.
    Request(Vec<u8>),
    Session(Box<Talk>),
    /// `never_upgrade`: nothing comes of it.
    Ignored,
    /// A close frame is written; what still comes is not looked at.
    Closing {
        deadline_us: u64,
    },
    /// Nothing is left but to write the last bytes.
    Over,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    outbound: Vec<u8>,
    written: usize,
    fate: Fate,
}

impl Connection {
    /// A connection just accepted.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Request(Vec::new()),
            outbound: Vec::new(),
            written: 0,
            fate: Fate::Open,
        }
    }

    /// Bytes that may be read now.
    #[must_use]
    pub fn allowance_bytes(&self, now_us: u64) -> u64 {
        match &self.state {
            State::Session(talk) => talk.incoming.allowance_bytes(now_us),
            _ => u64::MAX,
        }
    }

    /// Whether an allowance of 0 will grow.
    #[must_use]
    pub fn reads_later(&self, now_us: u64) -> bool {
        matches!(&self.state, State::Session(talk) if talk.incoming.due_us(now_us).is_some())
    }

    /// Bytes came.
    pub fn received(&mut self, now_us: u64, bytes: &[u8], world: &mut World) {
        match &mut self.state {
            State::Request(head) => {
                head.extend_from_slice(bytes);
                self.answer_request(now_us, world);
            }
            State::Session(talk) => {
                talk.incoming.took(now_us, bytes.len() as u64);
                talk.socket.received(bytes);
                self.hear(now_us, world);
            }
            State::Ignored | State::Closing { .. } | State::Over => {}
        }
    }

    /// Does what is due. To be called after [`Connection::received`], at [`Connection::due_us`], and when bytes were written.
    pub fn advance(&mut self, now_us: u64, world: &mut World) {
        match &mut self.state {
            State::Session(_) => self.advance_session(now_us, world),
            State::Closing { deadline_us } if *deadline_us <= now_us => self.finish(),
            _ => {}
        }
    }

    /// When [`Connection::advance`] or a further read next has something to do.
    #[must_use]
    pub fn due_us(&self, now_us: u64) -> Option<u64> {
        match &self.state {
            State::Session(talk) => {
                let speech = talk.outgoing.due_us().filter(|_| !self.outbox_full());
                [talk.session.due_us(), speech, talk.incoming.due_us(now_us)]
                    .into_iter()
                    .flatten()
                    .min()
            }
            State::Closing { deadline_us } => Some(*deadline_us),
            State::Request(_) | State::Ignored | State::Over => None,
        }
    }

    /// The server shuts down: answer what is in flight, then close. What the lies still hold back is dropped.
    pub fn drain(&mut self, now_us: u64, world: &mut World) {
        match &mut self.state {
            State::Session(talk) => {
                talk.session.drain();
                self.advance(now_us, world);
                if let State::Session(talk) = &self.state
                    && !talk.session.in_flight()
                {
                    self.close(now_us, close::GOING_AWAY, world);
                }
            }
            State::Request(_) | State::Ignored => self.finish(),
            State::Closing { .. } | State::Over => {}
        }
    }

    /// Bytes for the socket.
    #[must_use]
    pub fn unwritten(&self) -> &[u8] {
        &self.outbound[self.written..]
    }

    /// The socket took that many bytes.
    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.outbound.len() {
            self.outbound.clear();
            // An oversized frame's room is not kept.
            self.outbound.shrink_to(64 << 10);
            self.written = 0;
        }
    }

    /// What to do once nothing is unwritten.
    #[must_use]
    pub fn fate(&self) -> Fate {
        self.fate
    }

    /// The sending half is shut; the session goes on listening.
    pub fn half_closed(&mut self) {
        self.fate = Fate::Open;
        if let State::Session(talk) = &mut self.state {
            talk.silent = true;
        }
    }

    /// The connection is gone, or about to be: takes it out of the gauges.
    pub fn leave(&mut self, world: &mut World) {
        if let State::Session(talk) = &mut self.state {
            world.gauges.sessions = world.gauges.sessions.saturating_sub(1);
            count_job(talk, false, world);
        }
        self.state = State::Over;
    }

    fn answer_request(&mut self, now_us: u64, world: &mut World) {
        let State::Request(head) = &self.state else {
            return;
        };
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        let answer = match read_request(head) {
            Asked::MoreBytes => return,
            Asked::Session { .. } if world.draining => respond(unavailable, "draining\n"),
            Asked::Session { .. } if world.process.ignores_upgrade() => {
                self.state = State::Ignored;
                return;
            }
            Asked::Session {
                response,
                head_bytes,
            } => {
                let early = head[head_bytes..].to_vec();
                self.outbound.extend_from_slice(&response);
                self.open_session(now_us, world);
                self.received(now_us, &early, world);
                return;
            }
            Asked::Health if world.draining => respond(unavailable, "draining\n"),
            Asked::Health => respond(StatusCode::OK, "ok\n"),
            Asked::Metrics => respond(StatusCode::OK, &metrics(world)),
            Asked::Refused(status) => respond(status, ""),
        };
        self.outbound.extend_from_slice(&answer);
        self.finish();
    }

    fn open_session(&mut self, now_us: u64, world: &mut World) {
        let number = world.counters.sessions_total;
        world.counters.sessions_total += 1;
        world.gauges.sessions += 1;
        let jitter_us = match world.config.flush_phase_jitter_us {
            0 => 0,
            limit_us => world.chance.u64(..limit_us),
        };
        // Until the start message has come there is nothing to lie about.
        let honest = Plan::of(Lie::None);
        self.state = State::Session(Box::new(Talk {
            number,
            plan: world.config.plan.for_session(number),
            socket: ServerSocket::new(),
            session: Session::new(world.config.rules, jitter_us, now_us),
            outgoing: Outgoing::new(honest, now_us),
            incoming: Incoming::new(honest, now_us),
            silent: false,
            job_counted: false,
        }));
    }

    fn hear(&mut self, now_us: u64, world: &mut World) {
        let State::Session(talk) = &mut self.state else {
            return;
        };
        let ending = loop {
            let heard = match talk.socket.next_said() {
                None => break None,
                Some(Said::Binary(payload)) => {
                    let accepted = talk.session.binary(&payload);
                    world.counters.frames_total += u64::from(accepted.is_ok());
                    accepted
                }
                Some(Said::Text(text)) => {
                    let started = talk.session.text(now_us, &text);
                    if started.is_ok() {
                        talk.outgoing = Outgoing::new(talk.plan, now_us);
                        talk.incoming = Incoming::new(talk.plan, now_us);
                        world.process.session_started(now_us);
                    }
                    started
                }
                Some(Said::Violation(code)) => Err(code),
                Some(Said::Closed) => break Some(None),
            };
            if let Err(code) = heard {
                break Some(Some(code));
            }
        };
        self.collect();
        match ending {
            None => {}
            Some(Some(code)) => self.close(now_us, code, world),
            // The client closed, and its close is answered in what was just collected.
            Some(None) => {
                self.leave(world);
                self.finish();
            }
        }
    }

    fn advance_session(&mut self, now_us: u64, world: &mut World) {
        let State::Session(talk) = &mut self.state else {
            return;
        };
        let mut closing = None;
        while let Some(event) = talk.session.advance(now_us) {
            match event {
                Event::Answer(partial) => answer(talk, now_us, *partial, world),
                Event::TickDeferred => world.counters.ticks_deferred += 1,
                Event::Close(code) => {
                    closing = Some(code);
                    break;
                }
            }
        }
        count_job(talk, talk.session.in_flight(), world);
        self.speak(now_us, world);
        if let Some(code) = closing {
            self.close(now_us, code, world);
        }
    }

    /// Says what is due, unless the client is far behind with reading.
    fn speak(&mut self, now_us: u64, world: &mut World) {
        while !self.outbox_full() && self.fate == Fate::Open {
            let State::Session(talk) = &mut self.state else {
                return;
            };
            let Some(utterance) = talk.outgoing.next(now_us) else {
                return;
            };
            match utterance {
                Utterance::Partial(_) | Utterance::Noise(_) if talk.silent => {}
                Utterance::Partial(text) => {
                    world.counters.partials_total += 1;
                    talk.socket.send_text(text);
                    self.collect();
                }
                Utterance::Noise(text) => {
                    talk.socket.send_text(text);
                    self.collect();
                }
                Utterance::HalfClose => self.fate = Fate::HalfClose,
                Utterance::ResetMidFrame(text) => {
                    talk.socket.send_text(text);
                    let before = self.outbound.len();
                    self.collect();
                    let frame_bytes = self.outbound.len() - before;
                    self.outbound.truncate(before + frame_bytes / 2);
                    self.leave(world);
                    self.fate = Fate::Reset;
                }
            }
        }
    }

    /// Sends a close frame and waits a moment for the client's, so that ours is not lost to a reset.
    fn close(&mut self, now_us: u64, code: u16, world: &mut World) {
        if let State::Session(talk) = &mut self.state {
            if !talk.silent {
                talk.socket.send_close(code);
                self.collect();
            }
            self.leave(world);
            self.state = State::Closing {
                deadline_us: now_us + CLOSE_TIMEOUT_US,
            };
        }
    }

    fn finish(&mut self) {
        self.state = State::Over;
        self.fate = Fate::Close;
    }

    /// Moves what the WebSocket has for the client to the connection's own bytes.
    fn collect(&mut self) {
        if let State::Session(talk) = &mut self.state {
            self.outbound.append(&mut talk.socket.take_outbound());
        }
    }

    fn outbox_full(&self) -> bool {
        self.unwritten().len() > OUTBOX_BYTES
    }
}

impl Default for Connection {
    fn default() -> Self {
        Self::new()
    }
}

fn answer(talk: &mut Talk, now_us: u64, partial: Partial, world: &mut World) {
    world.process.answered();
    let others = world.recent.of_another_than(talk.number);
    world.recent.note(talk.number, partial.answer());
    talk.outgoing.answer(now_us, partial, others);
}

fn count_job(talk: &mut Talk, in_flight: bool, world: &mut World) {
    let jobs = &mut world.gauges.jobs_inflight;
    match (talk.job_counted, in_flight) {
        (false, true) => *jobs += 1,
        (true, false) => *jobs = jobs.saturating_sub(1),
        _ => {}
    }
    talk.job_counted = in_flight;
}

fn metrics(world: &World) -> String {
    let mut counters = world.counters;
    counters.frames_total = world.process.frames_total(counters.frames_total);
    render(&counters, world.gauges)
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
