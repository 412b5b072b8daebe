//! The same logical object in the formats that a `wse` server knows.
//!
//! What a server makes of a format is not to be told from how fast it takes it: one that hands on the bytes unread looks the fastest. So a format counts as
//! decoded only when a question in that very format was answered ([`ping`]); else it is *opaque*.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use super::payload::{Content, TRADE_UPDATE};
use plimsoll_msgpack::Writer;
use plimsoll_protocol::websocket::Opcode;

/// The level that clients of the WSE engine use.
const ZLIB_LEVEL: u32 = 6;

/// How a message is encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// JSON in a text message.
    #[default]
    Json,
    /// `M:` and MessagePack in a binary message, on an ordinary session, as some clients send it.
    MsgpackPrefixed,
    /// MessagePack in a binary message, on a session that asked for it.
    Msgpack,
    /// `C:` and zlib in a binary message.
    Zlib,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Json, Self::MsgpackPrefixed, Self::Msgpack, Self::Zlib];

    /// The format of that name, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::MsgpackPrefixed => "msgpack-prefixed",
            Self::Msgpack => "msgpack",
            Self::Zlib => "zlib",
        }
    }

    /// The message in this format.
    #[must_use]
    pub fn trade_update(self) -> Content {
        self.content(TRADE_UPDATE, || {
            Writer::default()
                .map(2)
                .text("t")
                .text("trade_update")
                .text("p")
                .map(8)
                .text("symbol")
                .text("ETH-USDC")
                .text("side")
                .text("buy")
                .text("price")
                .float(3187.42)
                .text("qty")
                .int(250)
                .text("ts")
                .int(1_700_000_000_000)
                .text("account")
                .text("bench-account-00007")
                .text("tags")
                .array(2)
                .text("algo")
                .text("limit")
                .text("score")
                .float(0.8731)
        })
    }

    /// An application ping in this format whose answer will carry `id`.
    #[must_use]
    pub fn ping(self, id: u64) -> Content {
        let json = format!(r#"{{"t":"ping","p":{{"timestamp":{id}}}}}"#);
        self.content(&json, || {
            Writer::default()
                .map(2)
                .text("t")
                .text("ping")
                .text("p")
                .map(1)
                .text("timestamp")
                .int(id)
        })
    }

    fn content(self, json: &str, msgpack: impl FnOnce() -> Writer) -> Content {
        let (opcode, bytes) = match self {
            Self::Json => (Opcode::Text, json.as_bytes().to_vec()),
            Self::Msgpack => (Opcode::Binary, msgpack().finish()),
            Self::MsgpackPrefixed => (Opcode::Binary, [&b"M:"[..], &msgpack().finish()].concat()),
            Self::Zlib => (Opcode::Binary, compressed(json.as_bytes())),
        };
        Content { opcode, bytes }
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(b"C:".to_vec(), Compression::new(ZLIB_LEVEL));
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_else(|_| unreachable!("writing into memory does not fail"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// What a decoder that is not ours makes of a message.
    fn decoded(format: Format, content: &Content) -> serde_json::Value {
        let bytes = content.bytes.as_slice();
        match format {
            Format::Json => serde_json::from_slice(bytes).unwrap(),
            Format::Msgpack => rmp_serde::from_slice(bytes).unwrap(),
            Format::MsgpackPrefixed => {
                rmp_serde::from_slice(bytes.strip_prefix(b"M:").unwrap()).unwrap()
            }
            Format::Zlib => {
                let mut text = String::new();
                let compressed = bytes.strip_prefix(b"C:").unwrap();
                flate2::read::ZlibDecoder::new(compressed)
                    .read_to_string(&mut text)
                    .unwrap();
                serde_json::from_str(&text).unwrap()
            }
        }
    }

    /// Fault 3: rows are compared that do not say the same.
    #[test]
    fn every_format_says_the_same() {
        let object: serde_json::Value = serde_json::from_str(TRADE_UPDATE).unwrap();
        let ping = serde_json::json!({"t": "ping", "p": {"timestamp": 1_000_000_000_000_042_u64}});
        for format in Format::ALL {
            let content = format.trade_update();
            assert_eq!(decoded(format, &content), object, "{}", format.name());
            let asked = format.ping(1_000_000_000_000_042);
            assert_eq!(decoded(format, &asked), ping, "{}", format.name());
            let text = format == Format::Json;
            assert_eq!(content.opcode == Opcode::Text, text);
        }
    }

    #[test]
    fn wire_sizes() {
        let bytes = |format: Format| format.trade_update().bytes.len();
        assert_eq!(bytes(Format::Json), 175);
        assert_eq!(bytes(Format::MsgpackPrefixed), bytes(Format::Msgpack) + 2);
        assert_eq!(bytes(Format::Msgpack), 137);
        assert!((130..175).contains(&bytes(Format::Zlib)));
    }
}
