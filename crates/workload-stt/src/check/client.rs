//! One session over one socket, as a client of the contract has it.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use plimsoll_conformance::socket::{self, Incoming, Socket};
use plimsoll_protocol::websocket::{Opcode, RawFrame};

use super::messages::{Ledger, Message, Partial, check_content};
use crate::synthetic::Synthetic;

pub(super) use plimsoll_conformance::socket::Connection;

/// The one path of the contract.
pub(super) const PATH: &str = "/ws/stt";

/// The message that begins a session.
pub(super) const START: &str = r#"{"type":"start"}"#;

/// A connection as nearly every case has it.
pub(super) fn usual() -> Connection {
    Connection {
        path: PATH.to_owned(),
        ..Connection::default()
    }
}

/// What a violation must lead to.
pub(super) const VIOLATION_ENDS: &str = "close 1002, 1003, 1007, 1008, 1009, 1011 or without a code, or the end of the connection, within 500 ms";

/// The close codes with which WebSocket libraries and gateways answer a violation.
const OF_VIOLATIONS: [u16; 6] = [1002, 1003, 1007, 1008, 1009, 1011];

/// A socket that knows which frames it sent, and which were named.
pub(super) struct Session {
    socket: Socket,
    /// The number in the formula of the synthetic frames.
    number: u64,
    sent: u64,
    ledger: Ledger,
    audio: Synthetic,
}

/// A session is a socket, too: most cases mix sentences of the contract with bare frames.
impl Deref for Session {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.socket
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }
}

impl Session {
    /// Makes an upgraded socket a session.
    pub(super) fn over(socket: Socket, number: u64) -> Self {
        Self {
            socket,
            number,
            sent: 0,
            ledger: Ledger::default(),
            audio: Synthetic::new(),
        }
    }

    /// The session's number in the formula of the synthetic frames.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Sends the start message.
    pub(super) fn start(&mut self) -> Result<(), String> {
        self.say(Opcode::Text, START.as_bytes())
    }

    /// The bytes of the next `count` synthetic frames, which count as sent from now on.
    pub(super) fn next_frames(&mut self, count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            self.sent += 1;
            let payload = self.audio.frame(self.number, self.sent);
            RawFrame::new(Opcode::Binary, payload).append_to(&mut bytes);
        }
        bytes
    }

    /// The payload of the next synthetic frame, which counts as sent from now on.
    pub(super) fn next_payload(&mut self) -> Vec<u8> {
        self.sent += 1;
        self.audio.frame(self.number, self.sent).to_vec()
    }

    /// Sends the next `count` synthetic frames in one write.
    pub(super) fn send_audio(&mut self, count: u64) -> Result<(), String> {
        let bytes = self.next_frames(count);
        self.send(&bytes)
    }

    /// The frames sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The next partial or error, entered in the ledger; a partial's content is checked.
    pub(super) fn next_message(&mut self, limit: Duration) -> Result<(Instant, Message), String> {
        match self.next_within(limit)? {
            None => Err(format!(
                "no message within {} ms; frames up to {} of {} were named",
                limit.as_millis(),
                self.ledger.named(),
                self.sent
            )),
            Some((at, Incoming::Text(text))) => {
                let message = Message::parse(&text)?;
                self.ledger.enter(&message, self.sent)?;
                if let Message::Partial(partial) = &message {
                    check_content(partial, self.number)?;
                }
                Ok((at, message))
            }
            Some((_, other)) => Err(format!("{} instead of a message", describe(&other))),
        }
    }

    /// The next message, which must be a partial.
    pub(super) fn next_partial(&mut self, limit: Duration) -> Result<(Instant, Partial), String> {
        match self.next_message(limit)? {
            (at, Message::Partial(partial)) => Ok((at, partial)),
            (_, message) => Err(format!("{} instead of a partial", message.summary())),
        }
    }

    /// The next partial, if one comes before `deadline`.
    pub(super) fn partial_before(
        &mut self,
        deadline: Instant,
    ) -> Result<Option<(Instant, Partial)>, String> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.next_within(left)? {
            None => Ok(None),
            Some(incoming) => {
                self.give_back(incoming);
                self.next_partial(Duration::ZERO).map(Some)
            }
        }
    }

    /// Whether every frame sent is named.
    pub(super) fn all_named(&self) -> bool {
        self.ledger.named() == self.sent
    }

    /// Reads until every frame sent is named, each once and in order; the messages, with their arrivals.
    ///
    /// `limit` is for each message.
    pub(super) fn until_all_named(
        &mut self,
        limit: Duration,
    ) -> Result<Vec<(Instant, Message)>, String> {
        let mut messages = Vec::new();
        while !self.all_named() {
            messages.push(self.next_message(limit)?);
        }
        Ok(messages)
    }

    /// Passes when the session ends within this time, as after a violation.
    pub(super) fn expect_violation_ends(&mut self, limit: Duration) -> Result<String, String> {
        match self.next_within(limit)? {
            None => Err(format!("no end within {} ms", limit.as_millis())),
            Some((_, incoming)) => {
                let seen = describe(&incoming);
                match incoming {
                    Incoming::Close(Some(code)) if OF_VIOLATIONS.contains(&code) => {
                        // The answer ends the closing handshake; the server may have gone already.
                        self.send_what_may_be_refused(&socket::close_frame(code));
                        Ok(seen)
                    }
                    // Some libraries close without a code.
                    Incoming::Close(None) | Incoming::End | Incoming::Reset => Ok(seen),
                    _ => Err(seen),
                }
            }
        }
    }

    /// Ends the session as a client should, and waits for the answer.
    pub(super) fn close(self) -> Result<(), String> {
        self.socket.close()
    }
}

/// What came, in words: messages of the contract by what they name.
pub(super) fn describe(incoming: &Incoming) -> String {
    match incoming {
        Incoming::Text(text) => match Message::parse(text) {
            Ok(message) => message.summary(),
            Err(error) => error,
        },
        other => socket::describe(other),
    }
}
