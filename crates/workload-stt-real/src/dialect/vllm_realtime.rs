//! vLLM's realtime transcription.
//!
//! There is no published format but the source: `vllm/entrypoints/openai/realtime/protocol.py` and `connection.py` of
//! <https://github.com/vllm-project/vllm>.
//!
//! The names are OpenAI's, the meaning is not: one generation runs from a first commit with `final` false to a last one
//! with `final` true, and its text comes in deltas that are never taken back. A delta is what a model's step gave, and may
//! end within a word. No message has a time, so finals have no span.

use serde::Deserialize;
use serde_json::json;

use super::json::{self, Raw};
use super::openai_realtime::KEY;
use super::{
    Audio, Connect, Cursor, Dialect, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, base64_message,
    or_fault, report_error, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "vllm-realtime";

/// The options of a trial.
#[derive(Debug)]
pub struct VllmRealtime {
    setup: Setup,
}

impl VllmRealtime {
    /// The dialect with these options.
    ///
    /// # Errors
    /// If there is no model, frames have a length that no server takes, or the options ask for turns by the client.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        options.refuse_client_turns(NAME)?;
        let model = options.model.as_deref().ok_or(OptionError::Needs {
            dialect: NAME,
            what: "the name of the model that the server serves; give it with --model",
        })?;
        let opening = options.opening(json!({"type": "session.update", "model": model}))?;
        let query = options.query_over(&[]);
        let connect = Connect::websocket(options.path_or("/v1/realtime"), query);
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Inferred,
                    silence: Silence::Undecidable,
                    ready_at: ReadyAt::Message,
                    ..Facts::default()
                },
                limits: Limits::default(),
                audio: Audio {
                    encoding: Encoding::S16le,
                    rate_hz: 16_000,
                    frame_ns: options.frame_ns(NAME, 40, 10, 1000)?,
                },
                connect: connect.with_key(NAME, KEY, options.key.as_ref())?,
                // They may be written before `session.created` comes: the server reads them after it.
                opening: vec![
                    Message::text(opening.to_string()),
                    Message::text(r#"{"type":"input_audio_buffer.commit","final":false}"#),
                ],
            },
        })
    }
}

impl Dialect for VllmRealtime {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn pack(&self, frame: &[u8]) -> Message {
        base64_message(r#"{"type":"input_audio_buffer.append","audio":""#, frame)
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session::default())
    }
}

#[derive(Debug, Default)]
struct Session {
    is_ready: bool,
    /// How much text the deltas had.
    heard_bytes: usize,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, _written_ns: u64, sink: &mut Sink<'_>) {
        let of_close = |code, _: &str| Kind::of_close(code);
        if let Some(text) = text_message(incoming, self.is_ready, of_close, sink) {
            or_fault(self.read(text, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        None
    }

    fn end(&mut self, _last_seq: u64, _written_ns: u64) -> Option<Message> {
        Some(Message::text(
            r#"{"type":"input_audio_buffer.commit","final":true}"#,
        ))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    delta: Raw<'a>,
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    error: Raw<'a>,
    #[serde(borrow)]
    code: Raw<'a>,
}

impl Session {
    fn read(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let fields: Fields<'_> = json::object(text)?;
        match &*json::text(fields.kind, "type")? {
            "session.created" => {
                self.is_ready = true;
                sink(Event::Ready);
            }
            "session.updated" => sink(Event::Ignored),
            "transcription.delta" => {
                let delta = json::text(fields.delta, "delta")?;
                self.heard_bytes += delta.len();
                report(&delta, sink);
            }
            "transcription.done" => {
                let whole = json::text(fields.text, "text")?;
                // What no delta had; all of it, if the server sends none.
                report(whole.get(self.heard_bytes..).unwrap_or_default(), sink);
                sink(Event::Drained);
            }
            "error" => self.error(&fields, sink)?,
            _ => sink(Event::Unknown),
        }
        Ok(())
    }

    fn error(&self, fields: &Fields<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        json::text(fields.error, "error")?;
        match &*json::text_or_empty(fields.code, "code")? {
            // The generation is over, and no other was begun.
            "processing_error" => report_error(self.is_ready, Kind::Internal, sink),
            _ => sink(Event::Error {
                kind: Kind::BadRequest,
                fatal: false,
            }),
        }
        Ok(())
    }
}

fn report(text: &str, sink: &mut Sink<'_>) {
    if !text.is_empty() {
        sink(Event::Final {
            from_ns: None,
            to_ns: None,
            text,
            words: &[],
        });
    }
}
