//! What a worker does for one connection when its turn has come.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::peer::{Farewell, Live, Peer, State};
use super::{FAREWELL_TIMEOUT, HEAD_TIMEOUT, Worker};
use crate::decoder::Counts;
use crate::frame::close_frame;
use crate::http::{self, HEAD_BYTES_MAX, Request, Wish};
use crate::hub::{Batch, Hub};
use crate::intake::{End, Sink};
use crate::metrics::{self, Counter, Counters};
use crate::outbox::Outbox;

/// Sends back what comes.
struct Echo<'a> {
    socket: &'a OwnedFd,
    outbox: &'a mut Outbox,
    counters: &'a Counters,
}

impl Sink for Echo<'_> {
    fn emit(&mut self, pieces: [&[u8]; 3], counts: Counts) -> Result<(), End> {
        // Before they are sent: who has the echo finds it counted.
        count_received(self.counters, counts);
        self.counters.add(Counter::MessagesSent, counts.messages);
        self.outbox.send(self.socket, pieces)
    }

    fn pongs(&mut self) -> Option<&mut Vec<u8>> {
        None
    }
}

/// Sends what comes to the hub; pongs stay out of it.
struct Publisher<'a> {
    hub: &'a Hub,
    worker: usize,
    pongs: &'a mut Vec<u8>,
    counters: &'a Counters,
}

impl Sink for Publisher<'_> {
    fn emit(&mut self, pieces: [&[u8]; 3], counts: Counts) -> Result<(), End> {
        count_received(self.counters, counts);
        if counts.messages > 0 {
            let batch = Batch { bytes: Arc::new(pieces.concat()), messages: counts.messages };
            self.hub.publish(self.worker, &batch);
        }
        Ok(())
    }

    fn pongs(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut *self.pongs)
    }
}

fn count_received(counters: &Counters, counts: Counts) {
    counters.add(Counter::MessagesReceived, counts.messages);
    counters.add(Counter::BytesReceived, counts.payload_bytes);
}

impl Worker {
    /// A WebSocket's turn: one read and its answer.
    pub(super) fn turn_websocket(&mut self, key: usize, now: Instant) {
        match self.try_turn_websocket(key) {
            Ok(true) => self.again.push_back(key),
            Ok(false) => {}
            Err(end) => self.end(key, &end, now),
        }
    }

    /// The turn itself; whether there should be another one soon.
    fn try_turn_websocket(&mut self, key: usize) -> Result<bool, End> {
        let Some(Peer { link, state: State::WebSocket(live) }) = self.peers.get_mut(key) else { return Ok(false) };
        live.outbox.flush(&link.socket)?;
        if !link.is_readable || !live.wants_to_read() {
            return Ok(false);
        }
        let Some(read_bytes) = link.read(&mut live.intake.slots(&mut self.buffer))? else { return Ok(false) };
        self.take_in(key, read_bytes)
    }

    /// Takes in what was read into the slots of a WebSocket; whether there should be another read soon.
    fn take_in(&mut self, key: usize, read_bytes: usize) -> Result<bool, End> {
        let Self { server, number, peers, buffer, pool, pongs, .. } = self;
        let Some(Peer { link, state: State::WebSocket(live) }) = peers.get_mut(key) else { return Ok(false) };
        let Live { intake, outbox, is_member } = live;
        let limit = server.config.message_bytes_max;
        let counters = &server.counters[*number];
        let taken = if *is_member {
            let mut sink = Publisher { hub: &server.hub, worker: *number, pongs, counters };
            let taken = intake.take_in(buffer, read_bytes, limit, pool, &mut sink);
            if !pongs.is_empty() {
                outbox.push(pongs);
                pongs.clear();
                outbox.flush(&link.socket)?;
            }
            taken
        } else {
            let mut sink = Echo { socket: &link.socket, outbox, counters };
            intake.take_in(buffer, read_bytes, limit, pool, &mut sink)
        };
        taken.map(|()| link.is_readable && live.wants_to_read())
    }

    /// Ends a WebSocket: with a close behind what it still has to say, if there is anybody to hear it.
    fn end(&mut self, key: usize, end: &End, now: Instant) {
        match end {
            End::Gone => self.forget(key),
            End::Stop(stop) => {
                // What this connection has published it shall have, too, before its close.
                self.deliver();
                self.bid_farewell(key, stop.code(), now);
            }
        }
    }

    /// Closes a WebSocket with a code.
    pub(super) fn bid_farewell(&mut self, key: usize, code: Option<u16>, now: Instant) {
        let Some(Peer { state: State::WebSocket(live), .. }) = self.peers.get_mut(key) else { return };
        live.intake.end(&mut self.pool);
        let mut outbox = std::mem::take(&mut live.outbox);
        let (bytes, length) = close_frame(code);
        outbox.push(&bytes[..length]);
        self.leave(key);
        self.part(key, outbox, now);
    }

    /// Ends a connection when `outbox` is written and the client has seen it.
    fn part(&mut self, key: usize, outbox: Outbox, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let until = self.exit_at.unwrap_or(now + FAREWELL_TIMEOUT);
        peer.state = State::Farewell(Farewell { outbox, is_shut: false, until });
        self.farewells.push_back((until, key));
        self.turn_farewell(key);
    }

    /// A farewell's turn.
    pub(super) fn turn_farewell(&mut self, key: usize) {
        match self.try_turn_farewell(key) {
            Ok(true) => self.again.push_back(key),
            Ok(false) => {}
            Err(_) => self.forget(key),
        }
    }

    /// The turn itself; whether there should be another one soon.
    fn try_turn_farewell(&mut self, key: usize) -> Result<bool, End> {
        let Some(Peer { link, state: State::Farewell(farewell) }) = self.peers.get_mut(key) else { return Ok(false) };
        farewell.outbox.flush(&link.socket)?;
        if farewell.outbox.is_empty() && !farewell.is_shut {
            link.shut()?;
            farewell.is_shut = true;
        }
        link.drop_input(&mut self.buffer)
    }

    /// The turn of a connection that speaks HTTP.
    pub(super) fn turn_http(&mut self, key: usize, now: Instant) {
        let Some(Peer { link, state: State::Http(asking) }) = self.peers.get_mut(key) else { return };
        if !link.is_readable {
            return;
        }
        let buffer = &mut self.buffer[..HEAD_BYTES_MAX];
        let read = link.read(&mut [IoSliceMut::new(&mut []), IoSliceMut::new(buffer)]);
        match read {
            Ok(Some(length)) => asking.head.extend_from_slice(&self.buffer[..length]),
            Ok(None) => return,
            Err(_) => return self.forget(key),
        }
        if link.is_readable {
            self.again.push_back(key);
        }
        let mut bytes = std::mem::take(&mut asking.head);
        loop {
            let request = match http::parse(&bytes) {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(http::Malformed) => {
                    self.answer(key, "400 Bad Request", "", "", false, now);
                    return;
                }
            };
            bytes.drain(..request.head_bytes);
            if let Wish::WebSocket(accept, is_member) = request.wish {
                return self.open(key, &accept, is_member, &bytes, now);
            }
            if !self.grant(key, &request, now) {
                return;
            }
        }
        if let Some(Peer { state: State::Http(asking), .. }) = self.peers.get_mut(key) {
            asking.head = bytes;
        }
    }

    /// Answers a request for anything but a WebSocket; whether another may follow.
    fn grant(&mut self, key: usize, request: &Request, now: Instant) -> bool {
        let keeps_alive = request.keeps_alive;
        if request.asks_for_websocket {
            self.counters().add(Counter::ConnectionsRefused, 1);
        }
        match request.wish {
            Wish::Health => self.answer(key, "200 OK", TEXT, "ok\n", keeps_alive, now),
            Wish::Metrics => {
                let text = metrics::render(self.server.counters.iter());
                self.answer(key, "200 OK", PROMETHEUS, &text, keeps_alive, now)
            }
            Wish::NoUpgrade | Wish::WebSocket(..) => {
                self.answer(key, "426 Upgrade Required", UPGRADE, "", keeps_alive, now)
            }
            Wish::NotAllowed => self.answer(key, "405 Method Not Allowed", "allow: GET\r\n", "", keeps_alive, now),
        }
    }

    /// Answers a request. If the client may not send another, or has not taken the answer, that is the end; whether it
    /// is not.
    fn answer(&mut self, key: usize, status: &str, fields: &str, body: &str, keeps_alive: bool, now: Instant) -> bool {
        let Some(Peer { link, state: State::Http(asking) }) = self.peers.get_mut(key) else { return false };
        let mut outbox = Outbox::default();
        if outbox.send(&link.socket, [&http::response(status, fields, body, keeps_alive), &[], &[]]).is_err() {
            self.forget(key);
            return false;
        }
        // The next request has as long as the first.
        asking.until = now + HEAD_TIMEOUT;
        let goes_on = keeps_alive && outbox.is_empty();
        if !goes_on {
            self.part(key, outbox, now);
        }
        goes_on
    }

    /// Opens a WebSocket; `more` is what the client has sent behind its request.
    fn open(&mut self, key: usize, accept: &[u8; 28], is_member: bool, more: &[u8], now: Instant) {
        if is_member {
            // What was published before it came is not for the new one.
            self.deliver();
        }
        let counters = self.counters();
        counters.add(Counter::ConnectionsAccepted, 1);
        counters.add(Counter::ConnectionsOpen, 1);
        if is_member {
            self.members.insert(key);
            self.server.hub.join(self.number);
        }
        let Some(peer) = self.peers.get_mut(key) else { return };
        let mut live = Live { is_member, ..Live::default() };
        let greeted = live.outbox.send(&peer.link.socket, [http::SWITCH_BEGIN, accept, http::SWITCH_END]);
        peer.state = State::WebSocket(live);
        // No longer than what was read of the request, and the buffer holds more than that.
        self.buffer[..more.len()].copy_from_slice(more);
        match greeted.and_then(|()| self.take_in(key, more.len())) {
            Ok(_) => self.turn_websocket(key, now),
            Err(end) => self.end(key, &end, now),
        }
    }
}

const TEXT: &str = "content-type: text/plain; charset=utf-8\r\n";
const PROMETHEUS: &str = "content-type: text/plain; version=0.0.4; charset=utf-8\r\n";
const UPGRADE: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n";
