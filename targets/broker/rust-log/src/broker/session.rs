//! A connection: what it has said so far, and what waits to be written to it.

use std::io;

use super::{Broker, Now, OUTPUT_BYTES_MAX, UNFLUSHED_BYTES_MAX};
use crate::answer;
use crate::conduct::Conduct;
use crate::frame::{self, FIELDS_BYTES_MAX, code, cut, op};
use crate::segment::Disk;

/// How far the greeting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Hello,
    Auth,
    Open,
}

#[derive(Debug)]
pub(super) struct Session {
    /// Tells it from others that had its place.
    pub(super) serial: u64,
    pub(super) stage: Stage,
    pub(super) output: Vec<u8>,
    /// So much of the output is written.
    pub(super) written: usize,
    /// Where its last message went: the next one goes there, too, most likely.
    pub(super) last: Option<(Vec<u8>, usize)>,
    pub(super) subscriptions: Vec<usize>,
    /// It ends when its output is written.
    pub(super) is_ending: bool,
    pub(super) is_touched: bool,
}

impl Session {
    pub(super) fn has_room(&self) -> bool {
        self.output.len() - self.written < OUTPUT_BYTES_MAX
    }
}

impl<D: Disk, C: Conduct> Broker<D, C> {
    /// The longest frame that a client may send, with its header.
    pub fn frame_bytes_max(&self) -> usize {
        frame::HEADER_BYTES + self.payload_bytes_max()
    }

    fn payload_bytes_max(&self) -> usize {
        self.settings.sizes.message_bytes_max + FIELDS_BYTES_MAX
    }

    /// A client has connected; the edge knows it by this key.
    pub fn open(&mut self, key: usize) {
        if self.sessions.len() <= key {
            self.sessions.resize_with(key + 1, || None);
        }
        self.serial += 1;
        self.sessions[key] = Some(Session {
            serial: self.serial,
            stage: Stage::Hello,
            output: Vec::new(),
            written: 0,
            last: None,
            subscriptions: Vec::new(),
            is_ending: false,
            is_touched: false,
        });
    }

    /// A client is gone. What it had not settled goes to others.
    pub fn close(&mut self, key: usize) {
        let Some(session) = self.sessions.get_mut(key).and_then(Option::take) else { return };
        for subscription in session.subscriptions {
            self.end_subscription(subscription);
        }
    }

    /// Takes in whole frames off the front of what a client sent; how many bytes that were. The edge gives the rest
    /// again, with more behind it.
    ///
    /// # Errors
    /// When the log cannot be read, which ends the broker. What the client does wrong ends its connection.
    pub fn receive(&mut self, key: usize, bytes: &[u8], now: Now) -> io::Result<usize> {
        let most = self.payload_bytes_max();
        let mut taken = 0;
        while self.is_listening(key) {
            match cut(&bytes[taken..], most) {
                Ok(None) => return Ok(taken),
                Ok(Some((frame, length))) => {
                    self.take_request(key, &frame, now)?;
                    taken += length;
                }
                Err(_) => {
                    self.end(key, 0, code::BAD_REQUEST, "this is no frame of version 1, or it is too long");
                }
            }
        }
        // What follows an error is not looked at.
        Ok(bytes.len())
    }

    fn is_listening(&self, key: usize) -> bool {
        matches!(self.sessions.get(key), Some(Some(session)) if !session.is_ending)
    }

    /// Answers with an error, behind which the connection ends.
    pub(super) fn end(&mut self, key: usize, request: u64, code: u16, text: &str) {
        self.refuse(key, op::ERROR, request, code, text);
        if let Some(Some(session)) = self.sessions.get_mut(key) {
            session.is_ending = true;
        }
    }

    /// Answers with an error.
    pub(super) fn refuse(&mut self, key: usize, op: u16, request: u64, code: u16, text: &str) {
        self.answer(key, |output| answer::put_error(output, op, request, code, text));
    }

    /// Answers.
    pub(super) fn answer(&mut self, key: usize, put: impl FnOnce(&mut Vec<u8>)) {
        if let Some(Some(session)) = self.sessions.get_mut(key) {
            put(&mut session.output);
            self.touch(key);
        }
    }

    /// Whether the edge should read from this client: not while it does not take what it is sent, and not while the
    /// disk is far behind.
    pub fn takes_input(&self, key: usize) -> bool {
        let is_behind = self.disk_wanted > self.log.flushed() && self.is_disk_far_behind();
        matches!(self.sessions.get(key), Some(Some(session)) if session.has_room() && !session.is_ending && !is_behind)
    }

    /// Whether so much waits for the disk that nothing is read until it is there.
    pub fn is_disk_far_behind(&self) -> bool {
        self.log.written() - self.log.flushed() > UNFLUSHED_BYTES_MAX
    }

    /// What waits to be written to this client.
    pub fn output(&self, key: usize) -> &[u8] {
        match self.sessions.get(key) {
            Some(Some(session)) => &session.output[session.written..],
            _ => &[],
        }
    }

    /// So much of it was written.
    pub fn wrote(&mut self, key: usize, count: usize) {
        /// Memory is kept for the next time up to this many bytes.
        const BYTES_KEPT: usize = 64 * 1024;
        let Some(Some(session)) = self.sessions.get_mut(key) else { return };
        let was_full = !session.has_room();
        session.written += count;
        if session.written >= session.output.len() {
            session.output.clear();
            session.output.shrink_to(BYTES_KEPT);
            session.written = 0;
        } else if session.written > OUTPUT_BYTES_MAX {
            session.output.drain(..session.written);
            session.written = 0;
        }
        if was_full && session.has_room() {
            // There may be more for its readers.
            let channels: Vec<usize> =
                session.subscriptions.iter().map(|key| self.subscriptions[*key].channel).collect();
            channels.into_iter().for_each(|index| self.wake(index));
        }
    }

    /// Whether the connection has said its last.
    pub fn is_over(&self, key: usize) -> bool {
        matches!(self.sessions.get(key), Some(Some(session)) if session.is_ending && session.written == session.output.len())
    }

    /// Moves the keys of clients with new output to `keys`.
    pub fn take_touched(&mut self, keys: &mut Vec<usize>) {
        for key in &self.touched {
            if let Some(Some(session)) = self.sessions.get_mut(*key) {
                session.is_touched = false;
            }
        }
        keys.append(&mut self.touched);
    }

    /// Whether any channel waits to be looked at by [`Broker::finish_turn`].
    pub fn has_work(&self) -> bool {
        !self.woken.is_empty() || !self.unsettled.is_empty()
    }
}
