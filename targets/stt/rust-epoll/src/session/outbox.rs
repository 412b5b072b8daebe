//! Bytes for the client, message by message, until the kernel has taken them.

use std::collections::VecDeque;

use crate::websocket;

/// Bytes that may wait before pongs are no longer added: a client that does not read them need not get them.
const PONG_BYTES_MAX: usize = 4 * 1024;

/// Memory that is kept while nothing waits; a partial has some 350 bytes.
const IDLE_BYTES_MAX: usize = 1024;

/// A queue of WebSocket frames. A message is unsent until its last byte is taken.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// How many of `bytes` have been taken.
    sent: usize,
    /// Where in `bytes` each unsent message ends.
    ends: VecDeque<usize>,
}

impl Outbox {
    /// Adds the text message that `write` appends.
    pub fn push_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        websocket::append_text(&mut self.bytes, write);
        self.ends.push_back(self.bytes.len());
    }

    /// Adds bytes that are no message: HTTP.
    pub fn push_raw(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
    }

    /// Adds a pong, unless too much waits already. It is no message.
    pub fn push_pong(&mut self, payload: &[u8]) {
        if self.unsent_bytes().len() < PONG_BYTES_MAX {
            websocket::append_control(&mut self.bytes, websocket::Opcode::Pong, payload);
        }
    }

    /// Adds the last frame.
    pub fn push_close(&mut self, code: Option<u16>) {
        let code = code.map(u16::to_be_bytes);
        websocket::append_control(&mut self.bytes, websocket::Opcode::Close, code.as_ref().map_or(&[], |code| code));
    }

    /// Messages that are not wholly taken.
    pub fn unsent(&self) -> usize {
        self.ends.len()
    }

    /// The bytes to write next.
    pub fn unsent_bytes(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// `count` more bytes have been taken.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        while self.ends.front().is_some_and(|end| *end <= self.sent) {
            self.ends.pop_front();
        }
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(IDLE_BYTES_MAX);
            self.sent = 0;
        } else if self.sent > IDLE_BYTES_MAX {
            // So that bytes taken do not pile up before those that wait.
            self.bytes.drain(..self.sent);
            self.ends.iter_mut().for_each(|end| *end -= self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_unsent_until_its_last_byte_is_taken() {
        let mut outbox = Outbox::default();
        for length in [200, 3000, 200] {
            outbox.push_text(|text| text.resize(text.len() + length, b'x'));
        }
        outbox.push_pong(b"hello");
        assert_eq!((outbox.unsent(), outbox.unsent_bytes().len()), (3, 204 + 3004 + 204 + 7));
        outbox.advance(203);
        assert_eq!(outbox.unsent(), 3);
        outbox.advance(1);
        assert_eq!((outbox.unsent(), outbox.unsent_bytes().len()), (2, 3004 + 204 + 7));
        outbox.advance(3000);
        assert_eq!(outbox.unsent(), 2);
        outbox.advance(4 + 204);
        assert_eq!((outbox.unsent(), outbox.unsent_bytes()), (0, &b"\x8A\x05hello"[..]));
        outbox.advance(7);
        assert_eq!(outbox.unsent_bytes(), b"");
        assert!(outbox.bytes.capacity() <= IDLE_BYTES_MAX);
    }

    #[test]
    fn pongs_do_not_pile_up() {
        let mut outbox = Outbox::default();
        (0..10_000).for_each(|_| outbox.push_pong(&[0; 125]));
        assert!(outbox.unsent_bytes().len() <= PONG_BYTES_MAX + 127);
    }
}
