//! A WebSocket client connection without I/O: handshake, pongs and closes, so that a session machine deals with messages only.

use std::ops::ControlFlow;

use plimsoll_core::bottleneck::UPGRADE_REFUSED;
use plimsoll_core::schedule::mix;
pub use plimsoll_core::session::Endpoint;

use crate::websocket::close::payload;
use crate::websocket::handshake::InvalidRequest;
use crate::websocket::{
    Decoder, Event, Handshake, Opcode, Outcome, append_client_frame, upgrade_request,
};

/// The longest message that a target may send.
const MESSAGE_MAX_BYTES: u32 = 1 << 20;

/// The mask of control messages. RFC 6455 asks for unpredictable masks to protect proxies from what a malicious page sends; a load client
/// sends only its own bytes, so a fixed mask is as good, and costs nothing.
const CONTROL_MASK: [u8; 4] = [0x4C, 0x4F, 0x41, 0x44];

/// Whether upgrade requests to this endpoint can be made.
///
/// # Errors
/// What is wrong with host, path or a field.
pub fn check(endpoint: &Endpoint) -> Result<(), InvalidRequest> {
    request(endpoint, [0; 16]).map(drop)
}

fn request(endpoint: &Endpoint, key: [u8; 16]) -> Result<Vec<u8>, InvalidRequest> {
    let headers: Vec<_> = endpoint
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    upgrade_request(&endpoint.host, &endpoint.path, key, &headers)
}

/// What came in.
#[derive(Debug, PartialEq)]
pub enum Incoming<'a> {
    /// The handshake succeeded.
    Opened,
    /// A text message.
    Text(&'a str),
    /// A binary message.
    Binary(&'a [u8]),
    /// The connection is over, for this reason. Nothing follows.
    Over(&'a str),
}

/// How a connection ended, where the target said so or broke a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The upgrade was answered with this status.
    Refused(u16),
    /// The answer to the upgrade was neither a correct upgrade nor a correct refusal.
    BadHandshake,
    /// A close frame came, with this code if it had one.
    Closed(Option<u16>),
    /// A frame broke RFC 6455.
    Violation,
}

/// The connection.
#[derive(Debug)]
pub struct Connection {
    stage: Stage,
    /// Control bytes to be written: the request, pongs, closes, and what [`Connection::queue`] added.
    out: Vec<u8>,
    /// A close frame was queued by [`Connection::begin_close`]: the one that answers it is not answered.
    closing: bool,
    ending: Option<Ending>,
    /// The reason in the target's close frame.
    close_reason: Box<str>,
}

#[derive(Debug)]
enum Stage {
    Handshake(Box<Handshake>),
    Open(Decoder),
    Over,
}

impl Connection {
    /// A connection that will ask to be upgraded. `endpoint` must have passed [`check`].
    #[must_use]
    pub fn new(endpoint: &Endpoint, seed: u64) -> Self {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&mix(seed).to_le_bytes());
        key[8..].copy_from_slice(&mix(seed ^ 1).to_le_bytes());
        Self {
            stage: Stage::Handshake(Box::new(Handshake::new(key))),
            out: request(endpoint, key).unwrap_or_default(),
            closing: false,
            ending: None,
            close_reason: Box::default(),
        }
    }

    /// How it ended; `None` while it has not, or when only its socket did.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The reason in the close frame that came; empty if there was none. The target chooses the text, so it is for a protocol
    /// that gives it a meaning, and may hold whatever the target was sent.
    #[must_use]
    pub fn close_reason(&self) -> &str {
        &self.close_reason
    }

    /// Bytes to be written before anything else.
    #[must_use]
    pub fn control(&self) -> &[u8] {
        &self.out
    }

    /// The first `count` control bytes were written.
    pub fn control_sent(&mut self, count: usize) {
        self.out.drain(..count);
        if self.out.is_empty() && self.out.capacity() > 256 {
            // The request is the longest thing ever queued here; thousands of sessions need not keep its room.
            self.out = Vec::new();
        }
    }

    /// Queues a whole message as control bytes.
    pub fn queue(&mut self, opcode: Opcode, message: &[u8]) {
        append_client_frame(&mut self.out, true, opcode, message, CONTROL_MASK);
    }

    /// Queues whole, masked frames as control bytes, and empties `frames`.
    pub fn queue_frames(&mut self, frames: &mut Vec<u8>) {
        self.out.append(frames);
    }

    /// Queues a close frame and goes on reading, so that the target can answer it and close its side first: the side that closes first keeps the port
    /// for a minute.
    pub fn begin_close(&mut self, code: u16) {
        if matches!(self.stage, Stage::Open(_)) && !self.closing {
            self.queue(Opcode::Close, &payload(code, ""));
            self.closing = true;
        }
    }

    /// Queues a close frame; nothing is read after that.
    pub fn close(&mut self, code: u16) {
        self.begin_close(code);
        self.stage = Stage::Over;
    }

    /// The memory that it takes by what the target sent or does not read.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let incoming = match &self.stage {
            Stage::Handshake(handshake) => handshake.held_bytes(),
            Stage::Open(decoder) => decoder.held_bytes(),
            Stage::Over => 0,
        };
        incoming + self.out.capacity()
    }

    /// Its socket is gone: lets go of all that is held.
    pub fn abandon(&mut self) {
        self.stage = Stage::Over;
        self.out = Vec::new();
    }

    /// Bytes came in.
    pub fn received(&mut self, bytes: &[u8], mut on_incoming: impl FnMut(Incoming<'_>)) {
        let mut rest = bytes;
        if let Stage::Handshake(handshake) = &mut self.stage {
            let over = match handshake.feed(bytes) {
                Ok(None) => return,
                Ok(Some(Outcome::Upgraded { leftover_offset })) => {
                    rest = &bytes[leftover_offset..];
                    None
                }
                Ok(Some(Outcome::Refused { status, .. })) => Some((
                    Ending::Refused(status),
                    format!("{UPGRADE_REFUSED}{status}"),
                )),
                Err(error) => Some((Ending::BadHandshake, format!("bad handshake: {error}"))),
            };
            if let Some((ending, reason)) = over {
                self.stage = Stage::Over;
                self.ending = Some(ending);
                on_incoming(Incoming::Over(&reason));
                return;
            }
            self.stage = Stage::Open(Decoder::new(MESSAGE_MAX_BYTES));
            on_incoming(Incoming::Opened);
        }
        let Stage::Open(decoder) = &mut self.stage else {
            return;
        };
        let (out, closing) = (&mut self.out, self.closing);
        let close_reason = &mut self.close_reason;
        let mut closed = None;
        let decoded = decoder.decode(rest, |event| {
            match event {
                Event::Text(text) => on_incoming(Incoming::Text(text)),
                Event::Binary(binary) => on_incoming(Incoming::Binary(binary)),
                Event::Ping(ping) => {
                    append_client_frame(out, true, Opcode::Pong, ping, CONTROL_MASK);
                }
                Event::Pong(_) => {}
                Event::Close(close) => {
                    if !closing {
                        let answer = close.code.map_or(Vec::new(), |code| payload(code, ""));
                        append_client_frame(out, true, Opcode::Close, &answer, CONTROL_MASK);
                    }
                    let reason = match close.code {
                        Some(code) => format!("closed by the target with code {code}"),
                        None => "closed by the target without a code".to_owned(),
                    };
                    *close_reason = close.reason.into();
                    closed = Some((Ending::Closed(close.code), reason));
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        let over = match decoded {
            Err(violation) => Some((
                Ending::Violation,
                format!("WebSocket violation: {violation}"),
            )),
            Ok(_) => closed,
        };
        if let Some((ending, reason)) = over {
            self.stage = Stage::Over;
            self.ending = Some(ending);
            on_incoming(Incoming::Over(&reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::websocket::RawFrame;
    use crate::websocket::handshake::{accept_for, key_text};

    fn endpoint() -> Endpoint {
        Endpoint {
            host: "127.0.0.1:3000".to_owned(),
            path: "/ws".to_owned(),
            headers: vec![("Authorization".to_owned(), "Bearer x".to_owned())],
        }
    }

    fn accept(request: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(request).unwrap();
        let key = text
            .lines()
            .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
            .unwrap();
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
            accept_for(key)
        )
        .into_bytes()
    }

    fn feed(connection: &mut Connection, bytes: &[u8]) -> Vec<String> {
        let mut seen = Vec::new();
        connection.received(bytes, |incoming| seen.push(format!("{incoming:?}")));
        seen
    }

    fn opened() -> Connection {
        let mut connection = Connection::new(&endpoint(), 7);
        let answer = accept(connection.control());
        connection.control_sent(connection.control().len());
        assert_eq!(feed(&mut connection, &answer), ["Opened"]);
        connection
    }

    #[test]
    fn messages_behind_the_handshake_in_one_read_are_not_lost() {
        let mut connection = Connection::new(&endpoint(), 7);
        let mut answer = accept(connection.control());
        RawFrame::server(Opcode::Text, b"hello").append_to(&mut answer);
        assert_eq!(
            feed(&mut connection, &answer),
            ["Opened", "Text(\"hello\")"]
        );
    }

    #[test]
    fn pings_are_answered_and_never_shown() {
        let mut connection = opened();
        let ping = RawFrame::server(Opcode::Ping, b"abc").to_vec();
        assert!(feed(&mut connection, &ping).is_empty());
        let mut expected = Vec::new();
        append_client_frame(&mut expected, true, Opcode::Pong, b"abc", CONTROL_MASK);
        assert_eq!(connection.control(), expected);
    }

    #[test]
    fn every_end_has_its_reason() {
        let mut refused = Connection::new(&endpoint(), 7);
        assert_eq!(
            feed(&mut refused, b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n\r\n"),
            ["Over(\"upgrade refused with status 503\")"]
        );
        let close = RawFrame::server(Opcode::Close, &payload(1001, "")).to_vec();
        assert_eq!(
            feed(&mut opened(), &close),
            ["Over(\"closed by the target with code 1001\")"]
        );
        let masked = RawFrame::new(Opcode::Text, b"x").to_vec();
        let seen = feed(&mut opened(), &masked);
        assert!(seen[0].contains("WebSocket violation"), "{seen:?}");
    }

    #[test]
    fn the_ending_is_told_without_its_words() {
        let mut refused = Connection::new(&endpoint(), 7);
        feed(&mut refused, b"HTTP/1.1 503 Busy\r\n\r\n");
        assert_eq!(refused.ending(), Some(Ending::Refused(503)));
        let mut closed = opened();
        assert_eq!(closed.ending(), None);
        let close = RawFrame::server(Opcode::Close, &payload(1011, "NET-0001")).to_vec();
        assert_eq!(closed.close_reason(), "");
        assert_eq!(
            feed(&mut closed, &close),
            ["Over(\"closed by the target with code 1011\")"]
        );
        assert_eq!(closed.ending(), Some(Ending::Closed(Some(1011))));
        assert_eq!(closed.close_reason(), "NET-0001");
    }

    #[test]
    fn a_close_that_we_began_is_not_answered_again() {
        let mut connection = opened();
        connection.begin_close(1000);
        let said = connection.control().to_vec();
        assert_eq!(said[0], 0x88);
        connection.begin_close(1000);
        let close = RawFrame::server(Opcode::Close, &payload(1000, "")).to_vec();
        assert_eq!(
            feed(&mut connection, &close),
            ["Over(\"closed by the target with code 1000\")"]
        );
        assert_eq!(connection.control(), said);
    }

    #[test]
    fn what_a_target_makes_it_hold_is_counted_and_let_go() {
        let mut connection = opened();
        let before = connection.held_bytes();
        // A message of 64 KiB that lacks its end, and pings whose pongs are not written.
        let ping = RawFrame::server(Opcode::Ping, &[0; 100]).to_vec();
        for _ in 0..100 {
            feed(&mut connection, &ping);
        }
        let pongs = connection.held_bytes() - before;
        assert!(pongs >= 100 * 100, "{pongs}");
        let message = RawFrame::server(Opcode::Binary, &[0; 65_536]).to_vec();
        feed(&mut connection, &message[..65_000]);
        let held = connection.held_bytes() - before;
        assert!((pongs + 60_000..400_000).contains(&held), "{held}");
        connection.abandon();
        assert_eq!(connection.held_bytes(), 0);
    }

    #[test]
    fn keys_differ_between_seeds() {
        let key = |seed| {
            let connection = Connection::new(&endpoint(), seed);
            String::from_utf8(connection.control().to_vec()).unwrap()
        };
        assert_ne!(key(1), key(2));
        assert_eq!(key(1), key(1));
        assert_eq!(key_text([0; 16]).len(), 24);
    }
}
