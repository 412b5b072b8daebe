//! What a `wse` server says.
//!
//! A message is a JSON object with a type `t` and a payload `p`; the server may put `WSE`, `S` or `U` before its brace, compress it (`C:` and zlib), or, on
//! a session that asked for it, send it as MessagePack (`M:`). Only what a load client must act on is read; other types are let pass.

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

use plimsoll_msgpack::Reader;
use plimsoll_protocol::paced::Message;

/// The most that a compressed message may be when it is unpacked: the server's own limit for messages.
const UNPACKED_MAX_BYTES: u64 = 1 << 20;

/// A message of the server, as far as it concerns a load client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// `server_ready`: the token was accepted.
    Ready,
    /// `server_hello`: the client's hello was taken.
    Hello,
    /// The answer to an application ping, with the ping's own timestamp.
    Pong(i64),
    /// The server asks whether we are still there.
    Ping,
    /// An error, with its code.
    Error(String),
    /// A message of a fan-out.
    Tick(Tick),
    /// Something else.
    Other,
}

/// What a message of a fan-out says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Tick {
    /// Its number, from 1.
    pub(crate) seq: u64,
    /// When its publisher was due to send it, in nanoseconds since the trial began.
    pub(crate) due_ns: u64,
    /// When its publisher wrote it.
    pub(crate) written_ns: u64,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    #[serde(borrow)]
    p: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct PongFields {
    client_timestamp: i64,
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
}

/// The types that are acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ready,
    Hello,
    Pong,
    Ping,
    Error,
    Tick,
    Other,
}

impl Kind {
    fn of(t: &str) -> Self {
        match t {
            // The server writes it in capitals; other clients take any case.
            _ if t.eq_ignore_ascii_case("pong") => Self::Pong,
            "ping" => Self::Ping,
            "fanout" => Self::Tick,
            "server_ready" => Self::Ready,
            "server_hello" => Self::Hello,
            "error" => Self::Error,
            _ => Self::Other,
        }
    }
}

/// Reads a message. `scratch` is where a compressed one is unpacked.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn hear(message: Message<'_>, scratch: &mut Vec<u8>) -> Result<Heard, &'static str> {
    let bytes = match message {
        Message::Text(text) => return of_text(text),
        Message::Binary(bytes) => bytes,
    };
    match bytes {
        [b'M', b':', packed @ ..] => of_msgpack(Reader::new(packed)),
        [b'C', b':', packed @ ..] => of_text(unpacked(packed, scratch)?),
        [0x78, ..] => of_text(unpacked(bytes, scratch)?),
        [0x80..=0x8F | 0xDE | 0xDF, ..] => of_msgpack(Reader::new(bytes)),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => of_text(text),
            Err(_) => Ok(Heard::Other),
        },
    }
}

fn unpacked<'a>(packed: &[u8], scratch: &'a mut Vec<u8>) -> Result<&'a str, &'static str> {
    scratch.clear();
    ZlibDecoder::new(packed)
        .take(UNPACKED_MAX_BYTES)
        .read_to_end(scratch)
        .map_err(|_| "compressed message that does not unpack")?;
    std::str::from_utf8(scratch).map_err(|_| "compressed message that is not UTF-8")
}

fn of_text(text: &str) -> Result<Heard, &'static str> {
    let prefixed = |prefix: &'static str| {
        text.strip_prefix(prefix)
            .filter(|rest| rest.starts_with('{'))
    };
    let json = ["WSE", "S", "U"]
        .into_iter()
        .find_map(prefixed)
        .unwrap_or(text);
    let envelope: Envelope<'_> =
        serde_json::from_str(json).map_err(|_| "message without a type")?;
    let p = envelope.p.map_or("null", RawValue::get);
    Ok(match Kind::of(&envelope.t) {
        Kind::Ready => Heard::Ready,
        Kind::Hello => Heard::Hello,
        Kind::Ping => Heard::Ping,
        Kind::Pong => serde_json::from_str(p)
            .map(|pong: PongFields| Heard::Pong(pong.client_timestamp))
            .map_err(|_| NO_TIMESTAMP)?,
        Kind::Error => {
            let error: Result<ErrorFields<'_>, _> = serde_json::from_str(p);
            Heard::Error(error.map_or_else(|_| NO_CODE.to_owned(), |error| error.code.into_owned()))
        }
        Kind::Tick => serde_json::from_str(p)
            .map(Heard::Tick)
            .map_err(|_| NO_TICK)?,
        Kind::Other => Heard::Other,
    })
}

fn of_msgpack(message: Reader<'_>) -> Result<Heard, &'static str> {
    let t = message.field("t").and_then(Reader::text);
    let field = |name| message.field("p").and_then(|p| p.field(name));
    let number = |name| field(name).and_then(|value| u64::try_from(value.int()?).ok());
    Ok(match Kind::of(t.ok_or("message without a type")?) {
        Kind::Ready => Heard::Ready,
        Kind::Hello => Heard::Hello,
        Kind::Ping => Heard::Ping,
        Kind::Pong => {
            let timestamp = field("client_timestamp").and_then(Reader::int);
            Heard::Pong(timestamp.ok_or(NO_TIMESTAMP)?)
        }
        Kind::Error => Heard::Error(
            field("code")
                .and_then(Reader::text)
                .unwrap_or(NO_CODE)
                .to_owned(),
        ),
        Kind::Tick => {
            let tick = || {
                Some(Tick {
                    seq: number("seq")?,
                    due_ns: number("due_ns")?,
                    written_ns: number("written_ns")?,
                })
            };
            Heard::Tick(tick().ok_or(NO_TICK)?)
        }
        Kind::Other => Heard::Other,
    })
}

const NO_TIMESTAMP: &str = "pong without the ping's timestamp";
const NO_TICK: &str = "message of a fan-out without its numbers";
const NO_CODE: &str = "no code";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn text(text: &str) -> Result<Heard, &'static str> {
        hear(Message::Text(text), &mut Vec::new())
    }

    fn binary(bytes: &[u8]) -> Result<Heard, &'static str> {
        hear(Message::Binary(bytes), &mut Vec::new())
    }

    #[test]
    fn the_messages_of_a_session() {
        let ready = r#"{"c":"WSE","id":"1","p":{"details":{"connection_id":"x","features":{},"server_time":"t","user_id":"u","version":1}},"seq":1,"t":"server_ready","ts":"t","v":1}"#;
        assert_eq!(text(ready), Ok(Heard::Ready));
        let hello = r#"{"t":"server_hello","p":{"limits":{"max_message_size":1048576}},"ping_interval":25000}"#;
        assert_eq!(text(hello), Ok(Heard::Hello));
        let pong = r#"{"c":"WSE","t":"PONG","p":{"client_timestamp":1000000000000042,"server_timestamp":1700000000000,"latency":3},"v":1}"#;
        assert_eq!(text(pong), Ok(Heard::Pong(1_000_000_000_000_042)));
        let ping = r#"{"c":"WSE","t":"ping","p":{"server_time":"2025-01-01T00:00:00Z"}}"#;
        assert_eq!(text(ping), Ok(Heard::Ping));
        let refused = r#"{"c":"WSE","p":{"code":"AUTH_FAILED","message":"m","timestamp":"t"},"t":"error","v":1}"#;
        assert_eq!(text(refused), Ok(Heard::Error("AUTH_FAILED".to_owned())));
        assert_eq!(text(r#"{"t":"presence"}"#), Ok(Heard::Other));
        let tick = r#"U{"t":"fanout","p":{"seq":7,"due_ns":8,"written_ns":9,"data":"x"}}"#;
        let expected = Tick {
            seq: 7,
            due_ns: 8,
            written_ns: 9,
        };
        assert_eq!(text(tick), Ok(Heard::Tick(expected)));
    }

    #[test]
    fn prefixes_compression_and_msgpack_say_the_same() {
        let message =
            json!({"c": "WSE", "t": "PONG", "p": {"latency": 1.5, "client_timestamp": 42}});
        let json = message.to_string();
        let pong = Ok(Heard::Pong(42));
        for prefix in ["", "WSE", "S", "U"] {
            assert_eq!(text(&format!("{prefix}{json}")), pong, "{prefix}");
        }
        assert_eq!(binary(json.as_bytes()), pong);
        let packed = rmp_serde::to_vec(&message).unwrap();
        assert_eq!(binary(&packed), pong);
        assert_eq!(binary(&[&b"M:"[..], &packed].concat()), pong);
        let mut zlib = Vec::new();
        flate2::read::ZlibEncoder::new(json.as_bytes(), flate2::Compression::default())
            .read_to_end(&mut zlib)
            .unwrap();
        assert_eq!(binary(&zlib), pong);
        assert_eq!(binary(&[&b"C:"[..], &zlib].concat()), pong);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert_eq!(text("{"), Err("message without a type"));
        assert_eq!(text(r#"{"p":{}}"#), Err("message without a type"));
        assert_eq!(text(r#"{"t":"PONG","p":{}}"#), Err(NO_TIMESTAMP));
        assert_eq!(text(r#"{"t":"PONG"}"#), Err(NO_TIMESTAMP));
        assert_eq!(text(r#"{"t":"fanout","p":{"seq":1}}"#), Err(NO_TICK));
        assert_eq!(
            binary(b"C:x"),
            Err("compressed message that does not unpack")
        );
        assert_eq!(binary(&[0x80]), Err("message without a type"));
        // 0x4D is the integer 77 to a MessagePack decoder: what the server makes of `M:` on a session of that format.
        assert_eq!(binary(b"M:\x4D"), Err("message without a type"));
        assert_eq!(binary(&[0xFF]), Ok(Heard::Other));
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), prefix in "(M:|C:|x|)") {
            let _ = binary(&[prefix.as_bytes(), &bytes].concat());
        }

        #[test]
        fn timestamps_come_back(id in any::<i64>()) {
            let message = json!({"t": "pong", "p": {"client_timestamp": id}});
            prop_assert_eq!(text(&message.to_string()), Ok(Heard::Pong(id)));
            prop_assert_eq!(binary(&rmp_serde::to_vec(&message).unwrap()), Ok(Heard::Pong(id)));
        }
    }
}
