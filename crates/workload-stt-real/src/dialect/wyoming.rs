//! Wyoming, the protocol of Rhasspy and Home Assistant: a byte stream over TCP.
//!
//! Format: <https://github.com/rhasspy/wyoming/blob/main/README.md>. A header is a line of JSON; `data_length` bytes of
//! JSON may follow, whose fields go over those of the header's `data`, and then `payload_length` bytes.
//!
//! One connection carries one turn: the client sends all its audio, and the transcript of all of it comes back. For what it
//! does not understand, wyoming-faster-whisper 3.8.1 closes the connection without a message (recordings
//! `real-wyoming-faster-whisper-3.8.1-*.jsonl`).

use serde::Deserialize;
use serde_json::json;

use super::json::{self, Raw};
use super::{
    Audio, Connect, Cursor, Dialect, Edge, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, append, or_fault,
};

/// The name of the dialect.
pub const NAME: &str = "wyoming";

/// The longest header, data or payload that is believed.
const PART_MAX_BYTES: usize = 1 << 20;

/// What audio is, in the data of the messages about it.
const FORMAT: &str = r#"{"rate":16000,"width":2,"channels":1}"#;

/// The options of a trial.
#[derive(Debug)]
pub struct Wyoming {
    setup: Setup,
}

impl Wyoming {
    /// The dialect with these options. A turn ends with its connection, whoever decides that, so `turns` has no effect.
    ///
    /// # Errors
    /// If frames have a length that no server takes, or there is a key.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        let mut data = json!({"language": options.language});
        if let Some(model) = &options.model {
            data["name"] = json!(model);
        }
        let transcribe = options.opening(json!({"type": "transcribe", "data": data}))?;
        let connect = Connect::tcp();
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Turn,
                    silence: Silence::Undecidable,
                    ready_at: ReadyAt::Open,
                    connection_per_turn: true,
                    ..Facts::default()
                },
                limits: Limits::default(),
                audio: Audio {
                    encoding: Encoding::S16le,
                    rate_hz: 16_000,
                    frame_ns: options.frame_ns(NAME, 40, 10, 1000)?,
                },
                connect: connect.with_key(
                    NAME,
                    super::connect::KeyRule::default(),
                    options.key.as_ref(),
                )?,
                opening: vec![
                    Message::bytes(format!("{transcribe}\n")),
                    Message::bytes(format!("{{\"type\":\"audio-start\",\"data\":{FORMAT}}}\n")),
                ],
            },
        })
    }
}

impl Dialect for Wyoming {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn pack(&self, frame: &[u8]) -> Message {
        let length = frame.len();
        let mut bytes =
            format!("{{\"type\":\"audio-chunk\",\"data\":{FORMAT},\"payload_length\":{length}}}\n")
                .into_bytes();
        bytes.extend_from_slice(frame);
        Message::bytes(bytes)
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session::default())
    }
}

/// Which part of a message comes next.
#[derive(Debug, Default)]
enum Part {
    #[default]
    Header,
    Data {
        header: Box<str>,
        bytes: usize,
        payload_bytes: usize,
    },
    Payload {
        left_bytes: usize,
    },
    /// A header could not be right: where the next message begins is unknown.
    Lost,
}

#[derive(Debug, Default)]
struct Session {
    part: Part,
    /// The beginning of a header or of data that has not come whole.
    begun: Vec<u8>,
    /// The pieces of a transcript so far.
    text: String,
    is_drained: bool,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, written_ns: u64, sink: &mut Sink<'_>) {
        match incoming {
            Incoming::Bytes(piece) => {
                let mut rest = piece;
                while !rest.is_empty() {
                    rest = self.take(rest, written_ns, sink);
                }
            }
            Incoming::Text(_) | Incoming::Binary(_) => sink(Event::Fault(Fault::Opcode)),
            Incoming::Refused { status, .. } => sink(Event::Refused {
                kind: Kind::of_status(status),
            }),
            Incoming::Closed { .. } if self.is_drained => sink(Event::Ignored),
            Incoming::Closed { .. } => sink(Event::Error {
                kind: Kind::Internal,
                fatal: true,
            }),
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        None
    }

    fn end(&mut self, _last_seq: u64, _written_ns: u64) -> Option<Message> {
        Some(Message::bytes(*b"{\"type\":\"audio-stop\"}\n"))
    }
}

#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    data: Raw<'a>,
    #[serde(borrow)]
    data_length: Raw<'a>,
    #[serde(borrow)]
    payload_length: Raw<'a>,
}

/// The fields of the data of all types of messages.
#[derive(Deserialize, Default)]
struct Data<'a> {
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
}

impl Session {
    /// Reads one part, or as much of it as there is; what is left of the piece comes back.
    fn take<'a>(&mut self, piece: &'a [u8], written_ns: u64, sink: &mut Sink<'_>) -> &'a [u8] {
        match &mut self.part {
            Part::Header => {
                let Some(end) = piece.iter().position(|byte| *byte == b'\n') else {
                    self.keep(piece, sink);
                    return &[];
                };
                let mut line = std::mem::take(&mut self.begun);
                line.extend_from_slice(&piece[..end]);
                let read = self.header(&line, written_ns, sink);
                or_fault(read, sink);
                &piece[end + 1..]
            }
            Part::Data { bytes, .. } => {
                let missing = *bytes - self.begun.len();
                let Some((now, rest)) = piece.split_at_checked(missing) else {
                    self.begun.extend_from_slice(piece);
                    return &[];
                };
                let mut data = std::mem::take(&mut self.begun);
                data.extend_from_slice(now);
                let read = self.data(&data, written_ns, sink);
                or_fault(read, sink);
                rest
            }
            Part::Payload { left_bytes } => {
                let now = piece.len().min(*left_bytes);
                *left_bytes -= now;
                if *left_bytes == 0 {
                    self.part = Part::Header;
                }
                &piece[now..]
            }
            Part::Lost => &[],
        }
    }

    fn keep(&mut self, piece: &[u8], sink: &mut Sink<'_>) {
        if self.begun.len() + piece.len() > PART_MAX_BYTES {
            return self.lose(sink);
        }
        self.begun.extend_from_slice(piece);
    }

    fn lose(&mut self, sink: &mut Sink<'_>) {
        self.part = Part::Lost;
        self.begun = Vec::new();
        sink(Event::Fault(Fault::Framing));
        sink(Event::Error {
            kind: Kind::Internal,
            fatal: true,
        });
    }

    /// A line that is no header is passed over: what follows may be one.
    fn header(&mut self, line: &[u8], written_ns: u64, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let line = std::str::from_utf8(line).map_err(|_| Fault::Json)?;
        let header: Header<'_> = json::object(line)?;
        let (Ok(bytes), Ok(payload_bytes)) = (
            length(header.data_length, "data_length"),
            length(header.payload_length, "payload_length"),
        ) else {
            self.lose(sink);
            return Ok(());
        };
        if bytes > 0 {
            self.part = Part::Data {
                header: line.into(),
                bytes,
                payload_bytes,
            };
            return Ok(());
        }
        self.part = after(payload_bytes);
        self.message(&header, &Data::default(), written_ns, sink)
    }

    fn data(&mut self, data: &[u8], written_ns: u64, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let Part::Data {
            header,
            payload_bytes,
            ..
        } = std::mem::take(&mut self.part)
        else {
            return Ok(());
        };
        self.part = after(payload_bytes);
        let header: Header<'_> = json::object(&header)?;
        let data = std::str::from_utf8(data).map_err(|_| Fault::Json)?;
        self.message(&header, &json::object(data)?, written_ns, sink)
    }

    fn message(
        &mut self,
        header: &Header<'_>,
        data: &Data<'_>,
        written_ns: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let inline = match header.data {
            Some(_) => json::part(header.data, "data")?,
            None => Data::default(),
        };
        let text = data.text.or(inline.text);
        let timestamp = data.timestamp.or(inline.timestamp);
        let edge = |edge| {
            let at_ns = json::milliseconds(timestamp, "timestamp");
            // The timestamp is optional, and worth nothing if it is missing.
            timestamp.map_or(Ok(Event::Ignored), |_| {
                Ok(Event::Speech {
                    edge,
                    at_ns: at_ns?,
                })
            })
        };
        match &*json::text(header.kind, "type")? {
            "transcript" => {
                sink(Event::Final {
                    from_ns: Some(0),
                    to_ns: Some(written_ns),
                    text: &json::text(text, "text")?,
                    words: &[],
                });
                self.is_drained = true;
                sink(Event::Drained);
            }
            "transcript-chunk" => {
                let text = json::text(text, "text")?;
                append(&mut self.text, &text)?;
                sink(Event::Interim {
                    cursor_ns: None,
                    text: &self.text,
                });
            }
            "voice-started" => sink(edge(Edge::Start)?),
            "voice-stopped" => sink(edge(Edge::End)?),
            "error" => sink(Event::Error {
                kind: Kind::Internal,
                fatal: true,
            }),
            "transcript-start" | "transcript-stop" | "info" | "pong" => sink(Event::Ignored),
            _ => sink(Event::Unknown),
        }
        Ok(())
    }
}

fn after(payload_bytes: usize) -> Part {
    match payload_bytes {
        0 => Part::Header,
        left_bytes => Part::Payload { left_bytes },
    }
}

/// A length of what follows a header: none if the field is missing.
fn length(raw: Raw<'_>, name: &'static str) -> Result<usize, Fault> {
    let length = raw.map_or(Ok(0), |_| json::whole(raw, name))?;
    match usize::try_from(length) {
        Ok(length) if length <= PART_MAX_BYTES => Ok(length),
        _ => Err(Fault::Framing),
    }
}
