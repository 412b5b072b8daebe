//! What a worker does for one connection when its turn has come: one read, and one write of all that answers it.

use std::time::{Instant, SystemTime};

use super::peer::{Peer, Protocol, Stop};
use super::{PARTING_TIMEOUT, Worker};
use crate::h2::Context;
use crate::output::Gone;

/// Times that the output is filled and written in one turn.
const ROUNDS_PER_TURN: usize = 16;

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There is nothing more to do until epoll tells.
    Done,
    /// There is, but first the others have their turns.
    Again,
    /// The connection is to be closed, carefully: something may still come that would make it a reset.
    Part,
}

impl Worker {
    /// Gives a peer its turn.
    pub(super) fn turn(&mut self, key: usize, now: Instant) {
        let is_parting = match self.peers.get(key) {
            None => return,
            Some(peer) => matches!(peer.protocol, Protocol::Parting { .. }),
        };
        match if is_parting { self.try_turn_parting(key) } else { self.try_turn(key, now) } {
            Ok(Turn::Done) => {}
            Ok(Turn::Again) => self.again.push_back(key),
            Ok(Turn::Part) => self.part(key, now),
            Err(Gone) => self.forget(key),
        }
    }

    fn try_turn(&mut self, key: usize, now: Instant) -> Result<Turn, Gone> {
        let Some(peer) = self.peers.get_mut(key) else { return Ok(Turn::Done) };
        if !peer.output.is_empty() {
            if peer.output.flush(&peer.link.socket, &self.server.pattern)? > 0 {
                peer.touched = now;
            }
            if !peer.output.is_empty() {
                // Back-pressure: what the client has not taken keeps more from being read.
                return Ok(Turn::Done);
            }
        }
        // A connection at rest has no memory for answers: it borrows the worker's.
        std::mem::swap(&mut peer.output, &mut self.output);
        let turn = self.work(key, now);
        if let Some(peer) = self.peers.get_mut(key)
            && peer.output.is_empty()
        {
            std::mem::swap(&mut peer.output, &mut self.output);
        }
        turn
    }

    fn work(&mut self, key: usize, now: Instant) -> Result<Turn, Gone> {
        let is_draining = self.exit_at.is_some();
        let Self { server, number, peers, buffer, date, scratch, .. } = self;
        let Some(peer) = peers.get_mut(key) else { return Ok(Turn::Done) };
        let mut filled = peer.input.len();
        buffer[..filled].copy_from_slice(&peer.input);
        peer.input.clear();
        if !peer.is_held_up
            && peer.link.is_readable
            && let Some(length) = peer.link.read(&mut buffer[filled..])?
        {
            filled += length;
            peer.touched = now;
        }
        date.refresh(SystemTime::now());
        let mut input = &buffer[..filled];
        let mut stop = Stop::NeedsRoom;
        for _ in 0..ROUNDS_PER_TURN {
            stop = process(peer, &mut input, server, *number, date, scratch, is_draining);
            if peer.output.flush(&peer.link.socket, &server.pattern)? > 0 {
                peer.touched = now;
            }
            if stop != Stop::NeedsRoom || !peer.output.is_empty() {
                break;
            }
        }
        if stop == Stop::Closes {
            let is_clean = input.is_empty() && !peer.link.is_readable && peer.output.is_empty();
            return if is_clean { Err(Gone) } else { Ok(Turn::Part) };
        }
        peer.input.extend_from_slice(input);
        peer.is_held_up = stop == Stop::NeedsRoom;
        peer.note_head(now);
        let goes_on = peer.output.is_empty() && (peer.is_held_up || peer.link.is_readable);
        Ok(if goes_on { Turn::Again } else { Turn::Done })
    }

    /// Ends a connection when its output is written and the client has seen it.
    fn part(&mut self, key: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        peer.protocol = Protocol::Parting { is_shut: false };
        peer.input = Vec::new();
        let until = self.exit_at.unwrap_or(now + PARTING_TIMEOUT);
        self.partings.push_back((until, key, peer.serial));
        self.turn(key, now);
    }

    fn try_turn_parting(&mut self, key: usize) -> Result<Turn, Gone> {
        let Some(peer) = self.peers.get_mut(key) else { return Ok(Turn::Done) };
        peer.output.flush(&peer.link.socket, &self.server.pattern)?;
        if let Protocol::Parting { is_shut } = &mut peer.protocol
            && peer.output.is_empty()
            && !*is_shut
        {
            *is_shut = true;
            peer.link.shut()?;
        }
        let has_more = peer.link.drop_input(&mut self.buffer)?;
        Ok(if has_more { Turn::Again } else { Turn::Done })
    }
}

/// [`Peer::process`], with what it needs.
fn process(
    peer: &mut Peer,
    input: &mut &[u8],
    server: &crate::server::Server,
    number: usize,
    date: &crate::date::Date,
    scratch: &mut Vec<u8>,
    is_draining: bool,
) -> Stop {
    let mut output = std::mem::take(&mut peer.output);
    let mut context = Context {
        output: &mut output,
        pattern: &server.pattern,
        date,
        scratch,
        body_bytes_max: server.config.body_bytes_max,
        server,
        counters: &server.counters[number],
    };
    let stop = peer.process(input, &mut context, is_draining);
    peer.output = output;
    stop
}
