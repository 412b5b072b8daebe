//! Wyoming, the protocol of Home Assistant's voice servers: <https://github.com/OHF-Voice/wyoming>.
//!
//! A line of JSON, then `data_length` bytes of JSON that belong to its `data`, then `payload_length` bytes. One connection is one turn.

use plimsoll_mock_server::http::Answer;
use serde_json::{Value, json};

use super::{Ask, Dialect, Framing, Incoming, Out, Refusal};
use crate::audio::{Encoding, Format};
use crate::scribe::{Event, text};

/// The version of the protocol that answers name.
const VERSION: &str = "1.10.2";
/// The longest line, and the most bytes behind it.
const EVENT_MAX_BYTES: usize = 1 << 20;

/// A connection.
#[derive(Debug, Default)]
pub struct Wyoming {
    /// What came and is no whole event yet.
    rest: Vec<u8>,
    rate_hz: u32,
    transcribed: bool,
}

/// An event of the client.
#[derive(Debug, PartialEq)]
struct Whole {
    kind: String,
    data: Value,
    payload: Vec<u8>,
}

/// What cannot be an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Broken;

impl Wyoming {
    /// The next event that has come wholly.
    fn next(&mut self) -> Result<Option<Whole>, Broken> {
        let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') else {
            let too_long = self.rest.len() > EVENT_MAX_BYTES;
            return if too_long { Err(Broken) } else { Ok(None) };
        };
        let header: Value = serde_json::from_slice(&self.rest[..end]).map_err(|_| Broken)?;
        let kind = header["type"].as_str().ok_or(Broken)?.to_owned();
        let length = |name: &str| match &header[name] {
            Value::Null => Ok(0),
            length => length
                .as_u64()
                .and_then(|length| usize::try_from(length).ok())
                .filter(|length| *length <= EVENT_MAX_BYTES)
                .ok_or(Broken),
        };
        let (data_bytes, payload_bytes) = (length("data_length")?, length("payload_length")?);
        let data_at = end + 1;
        let payload_at = data_at + data_bytes;
        let whole = payload_at + payload_bytes;
        if self.rest.len() < whole {
            return Ok(None);
        }
        let mut data = header["data"].clone();
        if data_bytes > 0 {
            let more: Value =
                serde_json::from_slice(&self.rest[data_at..payload_at]).map_err(|_| Broken)?;
            match (data.as_object_mut(), more) {
                (Some(data), Value::Object(more)) => data.extend(more),
                (_, more) => data = more,
            }
        }
        let payload = self.rest[payload_at..whole].to_vec();
        self.rest.drain(..whole);
        Ok(Some(Whole {
            kind,
            data,
            payload,
        }))
    }

    /// Takes what a client says of its audio.
    fn set_rate(&mut self, data: &Value, out: &mut Out) {
        let usual = data["width"] == 2 && data["channels"] == 1;
        let rate = data["rate"]
            .as_u64()
            .and_then(|rate| u32::try_from(rate).ok());
        match rate.filter(|rate| usual && Format::s16le(*rate).is_known()) {
            Some(rate_hz) => self.rate_hz = rate_hz,
            None => refuse_with(
                "give rate 16000, width 2 and channels 1",
                "audio-format",
                out,
            ),
        }
    }

    fn event(&mut self, event: Whole, asks: &mut Vec<Ask>, out: &mut Out) {
        match event.kind.as_str() {
            "describe" => write("info", &info(), out),
            "audio-start" => self.set_rate(&event.data, out),
            "audio-chunk" => {
                // Servers take chunks without a start: each says what it is.
                if self.rate_hz == 0 {
                    self.set_rate(&event.data, out);
                }
                if self.rate_hz > 0 {
                    asks.push(Ask::Audio(event.payload));
                }
            }
            "audio-stop" => asks.push(Ask::End),
            // `transcribe`, and what servers of the protocol do not know either.
            _ => {}
        }
    }
}

/// Writes an event as the `wyoming` package does: the data behind the line.
fn write(kind: &str, data: &Value, out: &mut Out) {
    let data = data.to_string();
    let line = json!({"type": kind, "version": VERSION, "data_length": data.len()});
    out.bytes(format!("{line}\n{data}").into_bytes());
}

fn refuse_with(text: &str, code: &str, out: &mut Out) {
    write("error", &json!({"text": text, "code": code}), out);
    out.drop_line();
}

/// What the server is, for clients that look for one.
fn info() -> Value {
    let attribution = json!({"name": "Plimsoll", "url": ""});
    let version = env!("CARGO_PKG_VERSION");
    let model = json!({
        "name": "mock", "attribution": attribution, "installed": true, "description": "knows its clips",
        "version": version, "languages": ["en"],
    });
    json!({
        "asr": [{
            "name": "plimsoll-mock-stt", "attribution": attribution, "installed": true,
            "description": "a mock", "version": version, "models": [model], "supports_transcript_streaming": false,
        }],
        "tts": [], "handle": [], "intent": [], "wake": [], "mic": [], "snd": [],
    })
}

impl Dialect for Wyoming {
    fn framing(&self) -> Framing {
        Framing::Stream
    }

    fn format(&self) -> Format {
        Format {
            encoding: Encoding::S16le,
            rate_hz: self.rate_hz,
        }
    }

    fn client_turns(&self) -> bool {
        true
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        let bytes = match incoming {
            Incoming::Text(text) => text.as_bytes(),
            Incoming::Binary(bytes) | Incoming::Bytes(bytes) => bytes,
        };
        self.rest.extend_from_slice(bytes);
        loop {
            match self.next() {
                Ok(Some(event)) => self.event(event, asks, out),
                Ok(None) => return,
                Err(Broken) => return out.drop_line(),
            }
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        if let Event::Final(told) = event {
            self.transcribed = true;
            // The text begins with a blank, as that of faster-whisper does.
            let text = format!(" {}", text(&told.words));
            write("transcript", &json!({"text": text, "language": "en"}), out);
        }
    }

    fn goodbye(&mut self, _heard_ms: u64, out: &mut Out) {
        if !self.transcribed {
            write("transcript", &json!({"text": "", "language": "en"}), out);
        }
        out.drop_line();
    }

    fn refused(&self, _refusal: Refusal) -> Option<Answer> {
        None
    }

    fn refuse(&mut self, refusal: Refusal, _heard: &str, out: &mut Out) {
        let (text, code) = match refusal {
            Refusal::Key => ("give a valid key", "unauthorized"),
            Refusal::Rate => ("too many requests", "rate-limited"),
            Refusal::Capacity => ("all places are taken", "capacity"),
        };
        refuse_with(text, code, out);
    }

    fn fail(&mut self, out: &mut Out) {
        refuse_with("failed on demand", "internal", out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asks(bytes: &[u8], piece: usize) -> (Vec<Ask>, Out) {
        let (mut wyoming, mut asks, mut out) = (Wyoming::default(), Vec::new(), Out::default());
        for piece in bytes.chunks(piece) {
            wyoming.take(Incoming::Bytes(piece), &mut asks, &mut out);
        }
        (asks, out)
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let bytes = b"{\"type\":\"transcribe\",\"data\":{\"language\":\"en\"}}\n\
            {\"type\":\"audio-start\",\"data_length\":40}\n{\"rate\":16000,\"width\":2,\"channels\":1   }\
            {\"type\":\"audio-chunk\",\"data\":{\"rate\":16000},\"payload_length\":4}\na\nbc\
            {\"type\":\"audio-stop\"}\n";
        for piece in 1..bytes.len() {
            let (asks, out) = asks(bytes, piece);
            assert_eq!(asks, [Ask::Audio(b"a\nbc".to_vec()), Ask::End], "{piece}");
            assert!(out.0.is_empty());
        }
    }

    #[test]
    fn what_is_no_event_ends_the_line() {
        for bytes in [
            "hello\n",
            "{}\n",
            "{\"type\":\"audio-chunk\",\"payload_length\":-1}\n",
            "{\"type\":\"audio-chunk\",\"payload_length\":99999999}\n",
            "{\"type\":\"audio-start\",\"data\":{\"rate\":44100,\"width\":2,\"channels\":1}}\n",
            "{\"type\":\"audio-chunk\",\"payload_length\":1}\nx",
        ] {
            assert!(asks(bytes.as_bytes(), 5).1.closes(), "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes: Vec<u8>, piece in 1_usize..50) {
            let _ = asks(&bytes, piece);
        }
    }
}
