//! The server's side of a WebSocket connection, for the sink of a calibration. It costs as little as possible, so it
//! trusts the client: it expects whole masked messages and checks no rule that the engine's own client keeps.

use plimsoll_core::profile::Profile;
use plimsoll_core::speaker::{After, Speaker};

use crate::websocket::handshake::accept_for;
use crate::websocket::{Opcode, RawFrame, mask_in_place};

/// A connection that begins with an upgrade.
#[derive(Debug)]
pub struct Upgraded<S> {
    /// The upgrade request so far; `None` once it is answered.
    request: Option<Vec<u8>>,
    /// What follows the answer at once.
    greeting: Vec<u8>,
    speaker: S,
}

impl<S: Speaker> Upgraded<S> {
    /// A speaker that hears what comes after the upgrade.
    pub fn new(speaker: S) -> Self {
        Self::greeting(Vec::new(), speaker)
    }

    /// The same, and the server speaks first.
    pub fn greeting(greeting: Vec<u8>, speaker: S) -> Self {
        Self {
            request: Some(Vec::new()),
            greeting,
            speaker,
        }
    }
}

impl<S: Speaker> Speaker for Upgraded<S> {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let Some(mut request) = self.request.take() else {
            return self.speaker.heard(bytes, out);
        };
        request.extend_from_slice(bytes);
        let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else {
            self.request = Some(request);
            return After::GoOn;
        };
        let Some(accept) = accept_in(&request[..end]) else {
            return After::Close;
        };
        out.extend_from_slice(
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            )
            .as_bytes(),
        );
        out.append(&mut self.greeting);
        match &mut request[end + 4..] {
            [] => After::GoOn,
            rest => self.speaker.heard(rest, out),
        }
    }

    fn unasked(&mut self, now_ns: u64, profile: &Profile, out: &mut Vec<u8>) {
        if self.request.is_none() {
            self.speaker.unasked(now_ns, profile, out);
        }
    }
}

fn accept_in(request: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(request).ok()?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))
        .map(|(_, key)| accept_for(key.trim()))
}

/// A server that sends every message back, and closes when asked to.
#[derive(Debug, Default)]
pub struct Echo {
    frames: ClientFrames,
}

impl Speaker for Echo {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        self.frames.take(bytes, |frame| match frame.opcode {
            Opcode::Close => closed(frame, out),
            opcode => {
                RawFrame::server(opcode, frame.unmasked()).append_to(out);
                After::GoOn
            }
        })
    }
}

/// Answers a close and ends the connection, because the side that closes first is the one that remembers the port.
pub fn closed(frame: Frame<'_>, out: &mut Vec<u8>) -> After {
    RawFrame::server(Opcode::Close, frame.unmasked()).append_to(out);
    After::Close
}

/// A frame from a client.
#[derive(Debug)]
pub struct Frame<'a> {
    /// What it is.
    pub opcode: Opcode,
    mask: [u8; 4],
    payload: &'a mut [u8],
}

impl<'a> Frame<'a> {
    /// The length of its payload, in bytes.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.payload.len()
    }

    /// Its payload without the mask.
    #[must_use]
    pub fn unmasked(self) -> &'a [u8] {
        mask_in_place(self.payload, self.mask, 0);
        self.payload
    }
}

/// The frames of a client that follows the rules: whole messages, masked.
#[derive(Debug, Default)]
pub struct ClientFrames {
    /// The beginning of a frame that has not fully arrived.
    rest: Vec<u8>,
}

impl ClientFrames {
    /// Hands over each frame that is now complete, until one closes the connection.
    pub fn take(
        &mut self,
        bytes: &mut [u8],
        mut on_frame: impl FnMut(Frame<'_>) -> After,
    ) -> After {
        if self.rest.is_empty() {
            let (taken, after) = each_frame(bytes, &mut on_frame);
            self.rest.extend_from_slice(&bytes[taken..]);
            return after;
        }
        self.rest.extend_from_slice(bytes);
        let (taken, after) = each_frame(&mut self.rest, &mut on_frame);
        self.rest.drain(..taken);
        after
    }
}

/// Hands over each complete frame, and returns how many bytes they took. Anything that is not a client's frame ends the
/// connection.
fn each_frame(bytes: &mut [u8], on_frame: &mut impl FnMut(Frame<'_>) -> After) -> (usize, After) {
    let mut taken = 0;
    while let Some((header_bytes, payload_bytes)) = lengths(&bytes[taken..]) {
        let frame = &mut bytes[taken..taken + header_bytes + payload_bytes];
        let (header, payload) = frame.split_at_mut(header_bytes);
        let mask = header.last_chunk::<4>().copied().unwrap_or_default();
        let Some(opcode) = Opcode::from_bits(header[0]) else {
            return (taken, After::Close);
        };
        taken += header_bytes + payload_bytes;
        let frame = Frame {
            opcode,
            mask,
            payload,
        };
        if on_frame(frame) == After::Close {
            return (taken, After::Close);
        }
    }
    (taken, After::GoOn)
}

/// The lengths of header and payload of the frame that these bytes begin with; `None` if it is not complete.
fn lengths(bytes: &[u8]) -> Option<(usize, usize)> {
    const MASK_BYTES: usize = 4;
    let (length_bytes, payload_bytes) = match bytes.get(1)? & 0x7F {
        126 => (
            2,
            u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?).into(),
        ),
        127 => (8, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        short => (0, short.into()),
    };
    let header_bytes = 2 + length_bytes + MASK_BYTES;
    let payload_bytes = usize::try_from(payload_bytes).ok()?;
    let whole = bytes.len() >= header_bytes.checked_add(payload_bytes)?;
    whole.then_some((header_bytes, payload_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::websocket::append_client_frame;

    fn said(messages: &[(Opcode, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (opcode, payload) in messages {
            append_client_frame(&mut bytes, true, *opcode, payload, [1, 2, 3, 4]);
        }
        bytes
    }

    #[test]
    fn a_request_may_come_in_pieces_with_a_message_behind_it() {
        let mut connection = Upgraded::greeting(b"\x81\x02hi".to_vec(), Echo::default());
        let mut out = Vec::new();
        let mut first = *b"GET / HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        assert_eq!(connection.heard(&mut first, &mut out), After::GoOn);
        assert!(out.is_empty());
        let mut second = *b"\r\n\x81\x81\0\0\0\0x";
        assert_eq!(connection.heard(&mut second, &mut out), After::GoOn);
        // The example of RFC 6455, section 1.3.
        let answer = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        let expected = [answer.as_bytes(), b"\x81\x02hi", b"\x81\x01x"].concat();
        assert!(
            out.ends_with(&expected),
            "{:?}",
            String::from_utf8_lossy(&out)
        );
        let mut no_key = *b"GET / HTTP/1.1\r\n\r\n";
        let mut connection = Upgraded::new(Echo::default());
        assert_eq!(connection.heard(&mut no_key, &mut out), After::Close);
    }

    #[test]
    fn echoes_come_back_however_they_are_cut() {
        let long = vec![b'x'; 70_000];
        let messages: [(Opcode, &[u8]); 4] = [
            (Opcode::Text, b"one"),
            (Opcode::Binary, &long[..200]),
            (Opcode::Binary, &long),
            (Opcode::Text, b""),
        ];
        let expected: Vec<u8> = messages
            .iter()
            .flat_map(|(opcode, payload)| RawFrame::server(*opcode, payload).to_vec())
            .collect();
        for piece in [1, 7, 1_000, 200_000] {
            let (mut echo, mut out) = (Echo::default(), Vec::new());
            for bytes in said(&messages).chunks_mut(piece) {
                assert_eq!(echo.heard(bytes, &mut out), After::GoOn);
            }
            assert!(out == expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_close_is_answered_and_is_the_end() {
        let (mut echo, mut out) = (Echo::default(), Vec::new());
        let mut bytes = said(&[(Opcode::Close, &[3, 232]), (Opcode::Text, b"late")]);
        assert_eq!(echo.heard(&mut bytes, &mut out), After::Close);
        assert_eq!(out, [0x88, 2, 3, 232]);
    }
}
