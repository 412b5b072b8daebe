//! OpenAI's Realtime API, transcription sessions, and servers that speak it.
//!
//! Format: <https://developers.openai.com/api/docs/guides/realtime-transcription>,
//! <https://developers.openai.com/api/reference/resources/realtime/server-events> and `/client-events`.
//!
//! The server cuts the audio into items, each with an id: from `audio_start_ms` to `audio_end_ms` if its endpointing did
//! it, or whatever came since the last item if the client committed. The transcripts of items come in any order, so finals
//! do too: one that goes back is no fault.

use serde::Deserialize;
use serde_json::{Value, json};

use super::connect::KeyRule;
use super::json::{self, Raw};
use super::{
    Audio, Connect, Cursor, Dialect, Edge, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, Turns, append,
    base64_message, is_text, or_fault, report_error, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "openai-realtime";

/// The model where the user names none.
const MODEL: &str = "gpt-4o-transcribe";

/// The most items that may be unfinished.
const ITEMS_MAX: usize = 256;

pub(super) const KEY: KeyRule = KeyRule {
    header: Some(("Authorization", "Bearer ")),
    query: None,
    subprotocol: None,
};

/// The options of a trial.
#[derive(Debug)]
pub struct OpenAiRealtime {
    setup: Setup,
    turns: Turns,
}

impl OpenAiRealtime {
    /// The dialect with these options.
    ///
    /// # Errors
    /// If frames have a length that no server takes.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        let turn_detection = match options.turns {
            Turns::Server => json!({"type": "server_vad"}),
            Turns::Client => Value::Null,
        };
        let opening = options.opening(json!({
            "type": "session.update",
            "session": {
                "type": "transcription",
                "audio": {"input": {
                    "format": {"type": "audio/pcm", "rate": 24000},
                    "transcription": {
                        "model": options.model.as_deref().unwrap_or(MODEL),
                        "language": options.language,
                    },
                    "turn_detection": turn_detection,
                }},
            },
        }))?;
        let query = options.query_over(&[("intent", "transcription")]);
        let connect = Connect::websocket(options.path_or("/v1/realtime"), query);
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Times,
                    silence: Silence::Undecidable,
                    ready_at: ReadyAt::Message,
                    ..Facts::default()
                },
                limits: Limits::default(),
                audio: Audio {
                    encoding: Encoding::S16le,
                    rate_hz: 24_000,
                    frame_ns: options.frame_ns(NAME, 40, 10, 1000)?,
                },
                connect: connect.with_key(NAME, KEY, options.key.as_ref())?,
                opening: vec![Message::text(opening.to_string())],
            },
            turns: options.turns,
        })
    }
}

impl Dialect for OpenAiRealtime {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn pack(&self, frame: &[u8]) -> Message {
        base64_message(r#"{"type":"input_audio_buffer.append","audio":""#, frame)
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session {
            turns: self.turns,
            ..Session::default()
        })
    }
}

/// A stretch of audio on its way to a transcript.
#[derive(Debug)]
struct Item {
    id: Box<str>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    /// What came of it so far.
    text: String,
}

#[derive(Debug, Default)]
struct Session {
    turns: Turns,
    is_ready: bool,
    end: End,
    /// Items without a transcript.
    items: Vec<Item>,
    /// The end of the last item that the client committed.
    committed_ns: u64,
    /// The audio of the commits that the server has not confirmed yet.
    commits_ns: std::collections::VecDeque<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// The last commit is on its way.
    Committing,
    /// The server has seen it, or had nothing left to commit.
    Committed,
    Drained,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, written_ns: u64, sink: &mut Sink<'_>) {
        if let Some(text) = text_message(incoming, self.is_ready, kind_of_close, sink) {
            or_fault(self.read(text, written_ns, sink), sink);
            if self.end == End::Committed && self.items.is_empty() {
                self.end = End::Drained;
                sink(Event::Drained);
            }
        }
    }

    fn flush(&mut self, written_ns: u64) -> Option<Message> {
        (self.turns == Turns::Client).then(|| self.commit(written_ns))
    }

    fn end(&mut self, _last_seq: u64, written_ns: u64) -> Option<Message> {
        self.end = End::Committing;
        Some(self.commit(written_ns))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    item_id: Raw<'a>,
    #[serde(borrow)]
    audio_start_ms: Raw<'a>,
    #[serde(borrow)]
    audio_end_ms: Raw<'a>,
    #[serde(borrow)]
    delta: Raw<'a>,
    #[serde(borrow)]
    transcript: Raw<'a>,
    #[serde(borrow)]
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    code: Raw<'a>,
}

impl Session {
    fn commit(&mut self, written_ns: u64) -> Message {
        self.commits_ns.push_back(written_ns);
        Message::text(r#"{"type":"input_audio_buffer.commit"}"#)
    }

    fn read(&mut self, text: &str, written_ns: u64, sink: &mut Sink<'_>) -> Result<(), Fault> {
        const TRANSCRIPTION: &str = "conversation.item.input_audio_transcription.";
        let fields: Fields<'_> = json::object(text)?;
        let kind = json::text(fields.kind, "type")?;
        if let Some(kind) = kind.strip_prefix(TRANSCRIPTION) {
            return self.transcription(kind, &fields, sink);
        }
        match &*kind {
            "session.updated" | "transcription_session.updated" if !self.is_ready => {
                self.is_ready = true;
                sink(Event::Ready);
            }
            "input_audio_buffer.speech_started" => {
                let at_ns = json::milliseconds(fields.audio_start_ms, "audio_start_ms")?;
                self.item(&fields)?.from_ns = Some(at_ns);
                sink(Event::Speech {
                    edge: Edge::Start,
                    at_ns,
                });
            }
            "input_audio_buffer.speech_stopped" => {
                let at_ns = json::milliseconds(fields.audio_end_ms, "audio_end_ms")?;
                self.item(&fields)?.to_ns = Some(at_ns);
                sink(Event::Speech {
                    edge: Edge::End,
                    at_ns,
                });
            }
            "input_audio_buffer.committed" => self.committed(&fields, written_ns, sink)?,
            "error" => self.error(&fields, sink)?,
            "session.created"
            | "session.updated"
            | "transcription_session.created"
            | "transcription_session.updated"
            | "conversation.created"
            | "conversation.item.created"
            | "conversation.item.added"
            | "conversation.item.done"
            | "conversation.item.deleted"
            | "conversation.item.retrieved"
            | "input_audio_buffer.cleared"
            | "input_audio_buffer.timeout_triggered"
            | "rate_limits.updated" => sink(Event::Ignored),
            _ => sink(Event::Unknown),
        }
        Ok(())
    }

    /// The item that a message is about; a new one if it is the first message about it.
    fn item(&mut self, fields: &Fields<'_>) -> Result<&mut Item, Fault> {
        let id = json::text(fields.item_id, "item_id")?;
        let known = self.items.iter().position(|item| *item.id == *id);
        let index = match known {
            Some(index) => index,
            None if self.items.len() >= ITEMS_MAX => return Err(Fault::Items),
            None => {
                self.items.push(Item {
                    id: (&*id).into(),
                    from_ns: None,
                    to_ns: None,
                    text: String::new(),
                });
                self.items.len() - 1
            }
        };
        Ok(&mut self.items[index])
    }

    /// An item whose end the server did not tell is one that the client committed.
    fn committed(
        &mut self,
        fields: &Fields<'_>,
        written_ns: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if self.item(fields)?.to_ns.is_none() {
            let to_ns = self.commits_ns.pop_front().unwrap_or(written_ns);
            let since_ns = std::mem::replace(&mut self.committed_ns, to_ns);
            let item = self.item(fields)?;
            item.from_ns = item.from_ns.or(Some(since_ns));
            item.to_ns = Some(to_ns);
            // A commit takes all audio, also what the server had begun another item for.
            self.items
                .retain(|item| item.to_ns.is_some() || !item.text.is_empty());
            self.settle_commit();
        } else if let Some(to_ns) = self.item(fields)?.to_ns {
            self.committed_ns = self.committed_ns.max(to_ns);
        }
        sink(Event::Ignored);
        Ok(())
    }

    /// The server has answered the oldest commit.
    fn settle_commit(&mut self) {
        if self.end == End::Committing && self.commits_ns.is_empty() {
            self.end = End::Committed;
        }
    }

    fn transcription(
        &mut self,
        kind: &str,
        fields: &Fields<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        match kind {
            "delta" => {
                let delta = json::text_or_empty(fields.delta, "delta")?;
                let item = self.item(fields)?;
                append(&mut item.text, &delta)?;
                sink(Event::Interim {
                    cursor_ns: item.to_ns,
                    text: &item.text,
                });
            }
            "completed" => {
                let transcript = json::text(fields.transcript, "transcript")?;
                let item = self.take_item(fields)?;
                if item
                    .from_ns
                    .zip(item.to_ns)
                    .is_some_and(|(from, to)| to < from)
                {
                    return Err(Fault::Reversed);
                }
                // An item that the server told nothing else of has no span.
                sink(Event::Final {
                    from_ns: item.from_ns,
                    to_ns: item.to_ns,
                    text: &transcript,
                    words: &[],
                });
            }
            "failed" => {
                let (kind, _) = kind_of_error(fields)?;
                self.take_item(fields)?;
                sink(Event::Error { kind, fatal: false });
            }
            "segment" => sink(Event::Ignored),
            _ => sink(Event::Unknown),
        }
        Ok(())
    }

    /// An item that is over.
    fn take_item(&mut self, fields: &Fields<'_>) -> Result<Item, Fault> {
        let id = self.item(fields)?.id.clone();
        let index = self.items.iter().position(|item| item.id == id);
        let index = index.ok_or(Fault::Missing("item_id"))?;
        Ok(self.items.remove(index))
    }

    fn error(&mut self, fields: &Fields<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let error: ErrorFields<'_> = json::part(fields.error, "error")?;
        if is_text(error.code, "input_audio_buffer_commit_empty") {
            // Nothing was left to commit.
            self.commits_ns.pop_front();
            self.settle_commit();
            sink(Event::Ignored);
            return Ok(());
        }
        match kind_of_error(fields)? {
            (kind, true) => report_error(self.is_ready, kind, sink),
            (kind, false) => sink(Event::Error { kind, fatal: false }),
        }
        Ok(())
    }
}

/// What an error is about, and whether it ends the session: mostly it does not.
fn kind_of_error(fields: &Fields<'_>) -> Result<(Kind, bool), Fault> {
    let error: ErrorFields<'_> = json::part(fields.error, "error")?;
    let code = json::text_or_empty(error.code, "error.code")?;
    let kind = json::text_or_empty(error.kind, "error.type")?;
    let known = kind_of_name(&code).or_else(|| kind_of_name(&kind));
    Ok(known.unwrap_or((Kind::BadRequest, false)))
}

fn kind_of_name(name: &str) -> Option<(Kind, bool)> {
    match name {
        "invalid_api_key" | "authentication_error" => Some((Kind::Auth, true)),
        "insufficient_quota" => Some((Kind::Quota, true)),
        "rate_limit_exceeded" | "rate_limit_error" => Some((Kind::Rate, false)),
        "session_expired" => Some((Kind::TimeLimit, true)),
        "server_error" | "internal_error" => Some((Kind::Internal, false)),
        _ => None,
    }
}

/// The reason of a close is the type and the code of an error, with a dot between.
fn kind_of_close(code: Option<u16>, reason: &str) -> Option<Kind> {
    let name = reason.rsplit('.').next().unwrap_or_default();
    let known = kind_of_name(name).map(|(kind, _)| kind);
    Kind::of_close(code).map(|kind| known.unwrap_or(kind))
}
