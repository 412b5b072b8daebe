//! A server of dialect `wse` that answers pings and discards messages.

use plimsoll_protocol::server::{ClientFrames, Upgraded, closed};
use plimsoll_protocol::websocket::{Opcode, RawFrame};
use plimsoll_workload::calibrate::{After, Speaker};
use serde_json::Value;

const READY: &[u8] = br#"{"c":"WSE","t":"server_ready","p":{"details":{}},"v":1}"#;
const HELLO: &[u8] = br#"{"c":"WSE","t":"server_hello","p":{},"v":1}"#;

/// Length of a pong on the wire: a header of 2 bytes, then a text of 115.
pub(super) const PONG_BYTES: usize = 117;

/// A connection of dialect `wse`.
pub(super) struct Wse {
    /// Messages of this length are discarded unread.
    message_bytes: usize,
    frames: ClientFrames,
}

impl Wse {
    /// A connection that begins with its upgrade.
    pub(super) fn upgraded(message_bytes: usize) -> Upgraded<Self> {
        let ready = RawFrame::server(Opcode::Text, READY).to_vec();
        Upgraded::greeting(ready, Self::new(message_bytes))
    }

    fn new(message_bytes: usize) -> Self {
        Self {
            message_bytes,
            frames: ClientFrames::default(),
        }
    }
}

impl Speaker for Wse {
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After {
        let message_bytes = self.message_bytes;
        self.frames.take(bytes, |frame| match frame.opcode {
            Opcode::Close => closed(frame, out),
            Opcode::Text if frame.payload_bytes() != message_bytes => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use plimsoll_protocol::websocket::append_client_frame;

    fn said(messages: &[(Opcode, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (opcode, payload) in messages {
            append_client_frame(&mut bytes, true, *opcode, payload, [1, 2, 3, 4]);
        }
        bytes
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
