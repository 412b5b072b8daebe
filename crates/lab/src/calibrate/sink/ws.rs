//! Servers of workload `ws`: one of dialect `wse` that answers pings and discards messages, and one that sends every
//! message back.

use plimsoll_protocol::websocket::{Opcode, RawFrame, mask_in_place};
use serde_json::Value;

use super::{After, Speaker};

const READY: &[u8] = br#"{"c":"WSE","t":"server_ready","p":{"details":{}},"v":1}"#;
const HELLO: &[u8] = br#"{"c":"WSE","t":"server_hello","p":{},"v":1}"#;

/// Length of a pong on the wire: a header of 2 bytes, then a text of 115.
pub(in crate::calibrate) const PONG_BYTES: usize = 117;

/// A connection of dialect `wse`.
pub(super) struct Wse {
    /// Messages of this length are discarded unread.
    message_bytes: usize,
    frames: ClientFrames,
}

impl Wse {
    pub(super) fn new(message_bytes: usize) -> Self {
        Self {
            message_bytes,
            frames: ClientFrames::default(),
        }
    }
}

impl Speaker for Wse {
    fn opening(&mut self, out: &mut Vec<u8>) {
        RawFrame::server(Opcode::Text, READY).append_to(out);
    }

    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let message_bytes = self.message_bytes;
        self.frames.take(bytes, |frame| match frame.opcode {
            Opcode::Close => closed(frame, out),
            Opcode::Text if frame.payload.len() != message_bytes => {
                let message: Value =
                    serde_json::from_slice(frame.unmasked()).unwrap_or(Value::Null);
                if message["t"] == "ping" {
                    let pong = pong(&message["p"]["timestamp"]);
                    RawFrame::server(Opcode::Text, pong.as_bytes()).append_to(out);
                } else if message["t"] == "client_hello" {
                    RawFrame::server(Opcode::Text, HELLO).append_to(out);
                }
                After::GoOn
            }
            _ => After::GoOn,
        })
    }
}

fn pong(timestamp: &Value) -> String {
    format!(
        r#"{{"c":"WSE","t":"PONG","p":{{"client_timestamp":{timestamp},"server_timestamp":1700000000000,"latency":0}},"v":1}}"#
    )
}

/// A connection that sends its messages back.
#[derive(Default)]
pub(super) struct Echo {
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
fn closed(frame: Frame<'_>, out: &mut Vec<u8>) -> After {
    RawFrame::server(Opcode::Close, frame.unmasked()).append_to(out);
    After::Close
}

/// A frame from a client.
struct Frame<'a> {
    opcode: Opcode,
    mask: [u8; 4],
    payload: &'a mut [u8],
}

impl<'a> Frame<'a> {
    /// Its payload without the mask.
    fn unmasked(self) -> &'a [u8] {
        mask_in_place(self.payload, self.mask, 0);
        self.payload
    }
}

/// The frames of a client that follows the rules: whole messages, masked.
#[derive(Debug, Default)]
struct ClientFrames {
    /// The beginning of a frame that has not fully arrived.
    rest: Vec<u8>,
}

impl ClientFrames {
    /// Hands over each frame that is now complete, until one closes the connection.
    fn take(&mut self, bytes: &mut [u8], mut on_frame: impl FnMut(Frame<'_>) -> After) -> After {
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
    use plimsoll_protocol::websocket::append_client_frame;
    use plimsoll_workload_ws::Format;

    fn said(messages: &[(Opcode, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (opcode, payload) in messages {
            append_client_frame(&mut bytes, true, *opcode, payload, [1, 2, 3, 4]);
        }
        bytes
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

    #[test]
    fn only_the_pings_among_messages_are_answered() {
        let content = Format::Json.trade_update();
        let ping = Format::Json.ping(1_000_000_000_000_042);
        let mut bytes = said(&[
            (Opcode::Text, br#"{"t":"client_hello","p":{}}"#),
            (content.opcode, &content.bytes),
            (ping.opcode, &ping.bytes),
            (content.opcode, &content.bytes),
        ]);
        let (mut wse, mut out) = (Wse::new(content.bytes.len()), Vec::new());
        assert_eq!(wse.heard(&mut bytes, &mut out), After::GoOn);
        let hello = RawFrame::server(Opcode::Text, HELLO).to_vec();
        let pong = pong(&Value::from(1_000_000_000_000_042_u64));
        let pong = RawFrame::server(Opcode::Text, pong.as_bytes()).to_vec();
        assert_eq!(pong.len(), PONG_BYTES);
        assert_eq!(out, [hello, pong].concat());
    }
}
