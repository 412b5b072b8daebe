//! What a worker does for one connection when its time has come.

use std::time::{Duration, Instant};

use super::peer::{self, Farewell, Gone, Live, State};
use super::{HEAD_TIMEOUT, TICK, Worker};
use crate::failure::Failure;
use crate::gateway::Gateway;
use crate::h2::Event;
use crate::http::{self, Wish};
use crate::inference::{Inference, Request};
use crate::limit::Permit;
use crate::messages::Inference as Answer;
use crate::metrics;
use crate::session::audio::Pcm;
use crate::session::outbox::Outbox;
use crate::session::{Carrier, CloseReason, Session};
use crate::websocket::Stop;

/// Reads of one session in one turn: a client that sends faster than real time must not keep the others waiting.
const READS_PER_TURN: usize = 4;

/// How often a farewell that the client does not take is tried again.
const FAREWELL_PACE: Duration = Duration::from_millis(50);

/// How a session ends.
enum End {
    Closing(CloseReason),
    Closed(Option<u16>),
    Gone,
}

impl From<Stop> for End {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Violation(reason) => Self::Closing(reason),
            Stop::Closed(code) => Self::Closed(code),
        }
    }
}

impl From<CloseReason> for End {
    fn from(reason: CloseReason) -> Self {
        Self::Closing(reason)
    }
}

impl From<Gone> for End {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

/// What sends a session's batch.
struct Way<'a> {
    gateway: &'a Gateway,
    inference: &'a mut Inference,
    epoll: std::os::fd::BorrowedFd<'a>,
    tag: u32,
}

impl Carrier for Way<'_> {
    type Job = Permit;
    type Request = Request;

    fn job(&mut self) -> Option<Permit> {
        self.gateway.jobs.take()
    }

    fn send(&mut self, job: Permit, pcm: Pcm) -> Request {
        self.inference.send(self.tag, job, pcm, self.epoll, super::INFERENCE)
    }
}

/// Whose request has ended, and how.
pub(super) fn read_answer(event: Event<'_>) -> (u32, Result<Answer<'_>, Failure>) {
    match event {
        Event::Answer { tag, status: 200, body } => (tag, Answer::parse(body)),
        Event::Answer { tag, status, .. } => (tag, Err(Failure::status(status))),
        Event::TooLong { tag } => (tag, Err(Failure::parse("inference answer: too long"))),
        Event::Reset { tag } => (tag, Err(Failure::RESET)),
    }
}

impl Worker {
    /// A session's turn: reads, does what is due, writes.
    pub(super) fn turn_session(&mut self, key: usize, now: Instant) {
        match self.try_turn_session(key, now) {
            Ok(next) => {
                if self.gateway.config.read_pace.is_some() && self.is_started(key) {
                    self.watch(key, false);
                }
                self.set_timer(key, next);
            }
            Err(end) => self.end_session(key, end, now),
        }
    }

    /// Writes what a session has to say, out of turn: its timer, and with it the pace of its reads, stays as it is.
    pub(super) fn speak(&mut self, key: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let State::Session(live) = &mut peer.state else { return };
        let outbox = &mut live.session.outbox;
        if peer::write(&peer.socket, outbox).is_err() {
            self.end_session(key, End::Gone, now);
        } else if live.session.is_drained() {
            self.end_session(key, CloseReason::GoingAway.into(), now);
        }
    }

    /// The turn itself; when the next one should be.
    fn try_turn_session(&mut self, key: usize, now: Instant) -> Result<Instant, End> {
        let Self { gateway, peers, inference, pool, tally, buffer, epoll, .. } = self;
        let rules = &gateway.config.rules;
        let Some(peer) = peers.get_mut(key) else { return Err(End::Gone) };
        let State::Session(live) = &mut peer.state else { return Err(End::Gone) };
        let mut is_more_waiting = true;
        for _ in 0..READS_PER_TURN {
            let length = peer::read(&peer.socket, buffer)?.unwrap_or(0);
            live.take_in(&buffer[..length], rules, now, pool, tally)?;
            // Less than there was room for is all that there was.
            is_more_waiting = length == buffer.len();
            if !is_more_waiting {
                break;
            }
        }
        let session = &mut live.session;
        if session.wake_at() <= now {
            let tag = u32::try_from(key).unwrap_or(u32::MAX);
            let mut way = Way { gateway, inference, epoll: std::os::fd::AsFd::as_fd(epoll), tag };
            if let Some(given_up) = session.on_wake(rules, now, &mut way, pool, tally)? {
                inference.cancel(&given_up, pool);
            }
        }
        peer::write(&peer.socket, &mut session.outbox)?;
        if session.is_drained() {
            return Err(CloseReason::GoingAway.into());
        }
        Ok(next_turn(session, gateway.config.read_pace, now, is_more_waiting))
    }

    fn is_started(&self, key: usize) -> bool {
        matches!(self.peers.get(key).map(|peer| &peer.state), Some(State::Session(live)) if live.session.is_started())
    }

    /// Ends a session: with a close behind what it still has to say, if there is anybody to hear it.
    fn end_session(&mut self, key: usize, end: End, now: Instant) {
        let code = match end {
            End::Gone => return self.forget(key),
            End::Closing(reason) => Some(reason.code()),
            End::Closed(code) => code,
        };
        let Some(State::Session(live)) = self.peers.get_mut(key).map(|peer| &mut peer.state) else { return };
        let mut rest = std::mem::take(&mut live.session.outbox);
        rest.push_close(code);
        self.bid_farewell(key, Farewell::new(rest, now), now);
    }

    /// A farewell's turn.
    pub(super) fn turn_farewell(&mut self, key: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let State::Farewell(farewell) = &mut peer.state else { return };
        if farewell.is_over(&peer.socket, now, &mut self.buffer) {
            return self.forget(key);
        }
        let next = if farewell.is_held_up() { farewell.until.min(now + FAREWELL_PACE) } else { farewell.until };
        self.watch(key, true);
        self.set_timer(key, next);
    }

    /// The turn of a connection that speaks HTTP.
    pub(super) fn turn_http(&mut self, key: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let State::Http { head, .. } = &mut peer.state else { return };
        match peer::read(&peer.socket, &mut self.buffer) {
            Ok(Some(length)) => head.extend_from_slice(&self.buffer[..length]),
            Ok(None) => return,
            Err(Gone) => return self.forget(key),
        }
        let mut bytes = std::mem::take(head);
        loop {
            let request = match http::parse(&bytes, self.gateway.config.auth_token.as_deref()) {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(http::Malformed) => return self.answer_last(key, "400 Bad Request", "", now),
            };
            bytes.drain(..request.head_bytes);
            let mut answer = Outbox::default();
            let mut respond = |status, fields, body: &str| {
                answer.push_raw(|bytes| http::respond(bytes, status, fields, body, request.keeps_alive));
            };
            match request.wish {
                Wish::Session(accept) => return self.admit(key, &accept, &bytes, now),
                Wish::Health if self.drain.is_some() => respond("503 Service Unavailable", "", "draining\n"),
                Wish::Health => respond("200 OK", "", "ok\n"),
                Wish::Metrics => {
                    respond("200 OK", "content-type: text/plain; version=0.0.4; charset=utf-8\r\n", &self.metrics());
                }
                Wish::Unauthorized => respond("401 Unauthorized", "www-authenticate: Bearer\r\n", ""),
                Wish::NoUpgrade => {
                    respond("426 Upgrade Required", "upgrade: websocket\r\nsec-websocket-version: 13\r\n", "");
                }
                Wish::Unknown => respond("404 Not Found", "", ""),
            }
            let Some(peer) = self.peers.get_mut(key) else { return };
            if peer::write(&peer.socket, &mut answer).is_err() {
                return self.forget(key);
            }
            if !request.keeps_alive || !answer.unsent_bytes().is_empty() {
                return self.bid_farewell(key, Farewell::new(answer, now), now);
            }
            // The next request has as long as the first.
            if let State::Http { until, .. } = &mut peer.state {
                *until = now + HEAD_TIMEOUT;
            }
        }
        if let Some(State::Http { head, .. }) = self.peers.get_mut(key).map(|peer| &mut peer.state) {
            *head = bytes;
        }
    }

    fn metrics(&self) -> String {
        let workers = &self.gateway.workers;
        // This worker's own counts as they are now, not as of the last tick.
        workers[self.number].published.store(&self.tally);
        let published = workers.iter().map(|worker| &worker.published);
        metrics::render(published, self.gateway.sessions.taken(), self.gateway.jobs.taken())
    }

    /// Refuses and ends the connection.
    fn answer_last(&mut self, key: usize, status: &str, fields: &str, now: Instant) {
        let mut answer = Outbox::default();
        answer.push_raw(|bytes| http::respond(bytes, status, fields, "", false));
        self.bid_farewell(key, Farewell::new(answer, now), now);
    }

    /// Opens a session, if there is room; `more` is what the client has sent behind its request.
    fn admit(&mut self, key: usize, accept: &[u8; 28], more: &[u8], now: Instant) {
        let permit = if self.drain.is_some() { None } else { self.gateway.sessions.take() };
        let Some(permit) = permit else {
            self.tally.rejected();
            return self.answer_last(key, "503 Service Unavailable", "retry-after: 1\r\n", now);
        };
        self.tally.session();
        let jitter = self.jitter();
        let Self { gateway, peers, pool, tally, .. } = self;
        let rules = &gateway.config.rules;
        let Some(peer) = peers.get_mut(key) else { return };
        let mut live = Live::new(Session::new(rules, jitter, now), permit);
        live.session.outbox.push_raw(|bytes| http::switch(bytes, accept));
        let taken_in = live.take_in(more, rules, now, pool, tally);
        peer.state = State::Session(live);
        match taken_in {
            Ok(()) => self.turn_session(key, now),
            Err(stop) => self.end_session(key, stop.into(), now),
        }
    }
}

/// When a session wants its next turn: at what is due next, and in between so often that reads are evenly spaced and no
/// longer than `pace` apart. So the last read before a flush is the flush's own.
fn next_turn(session: &Session<Request>, pace: Option<Duration>, now: Instant, is_more_waiting: bool) -> Instant {
    if is_more_waiting {
        return now + TICK;
    }
    let due = session.wake_at();
    let left = due.saturating_duration_since(now);
    match pace {
        Some(pace) if session.is_started() && left > pace => {
            let turns = left.as_nanos().div_ceil(pace.as_nanos());
            now + left / u32::try_from(turns).unwrap_or(u32::MAX)
        }
        _ => due,
    }
}
