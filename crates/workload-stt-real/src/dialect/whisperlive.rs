//! `WhisperLive`, a server around Whisper.
//!
//! There is no published format: the facts are from the source, <https://github.com/collabora/WhisperLive>,
//! `whisper_live/server.py`, `whisper_live/backend/base.py` and `faster_whisper_backend.py`.
//!
//! Each message has the last segments again, ten unless `send_last_n_segments` says otherwise, and a last one that is not
//! completed. A segment is final when it is completed. The server appends completed segments and never changes one, so
//! those of a message are the end of those that came before, and then new ones. A completed segment ends where the next
//! one begins, after the pause between them. There is no end: the server drops what is not completed, or not decoded yet,
//! and closes. It says little of what goes wrong: version 0.10.0 closes with 1000 for a first message that it does not
//! understand and for audio of an odd length (recordings `real-whisper-live-0.10.0-*.jsonl`).

use serde::Deserialize;
use serde_json::json;

use super::connect::KeyRule;
use super::cursor::FinalCursor;
use super::json::{self, Raw};
use super::{
    Audio, Connect, Cursor, Dialect, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, is_text, or_fault,
    report_error, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "whisperlive";

/// The model where the user names none: the one that the project's own client asks for.
const MODEL: &str = "small";

/// The most segments that a message may repeat.
const SEGMENTS_MAX: usize = 100;

const KEY: KeyRule = KeyRule {
    header: Some(("Authorization", "Bearer ")),
    query: Some("token"),
    subprotocol: None,
};

/// The options of a trial.
#[derive(Debug)]
pub struct WhisperLive {
    setup: Setup,
}

impl WhisperLive {
    /// The dialect with these options. `--param audio_format=float32` sends what servers before `audio_format` take.
    ///
    /// # Errors
    /// If frames have a length that no server takes, or the options ask for turns by the client.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        options.refuse_client_turns(NAME)?;
        let encoding = match options.param("audio_format") {
            None | Some("int16") => Encoding::S16le,
            Some("float32") => Encoding::F32le,
            Some(_) => {
                return Err(OptionError::Param {
                    name: "audio_format".to_owned(),
                    why: "this audio is not made here; give int16 or float32",
                });
            }
        };
        let opening = options.opening(json!({
            "uid": SESSION_MARK,
            "language": options.language,
            "task": "transcribe",
            "model": options.model.as_deref().unwrap_or(MODEL),
            "use_vad": true,
            "audio_format": "int16",
        }))?;
        let connect = Connect::websocket(options.path_or("/"), options.query_over(&[]));
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Times,
                    silence: Silence::Undecidable,
                    ready_at: ReadyAt::Message,
                    says_drained: false,
                    ..Facts::default()
                },
                limits: Limits {
                    // `max_connection_time` of the server, unless it was started with another.
                    session_max_ms: Some(600_000),
                    ..Limits::default()
                },
                audio: Audio {
                    encoding,
                    rate_hz: 16_000,
                    frame_ns: options.frame_ns(NAME, 40, 10, 1000)?,
                },
                connect: connect.with_key(NAME, KEY, options.key.as_ref())?,
                opening: vec![Message::text(opening.to_string())],
            },
        })
    }
}

/// Stands for the number of the session until it is known.
const SESSION_MARK: &str = "plimsoll-SESSION";

impl Dialect for WhisperLive {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn opening(&self, session: u64) -> Vec<Message> {
        let name = format!("plimsoll-{session}");
        let named = |message: &Message| {
            let text = String::from_utf8_lossy(&message.content);
            Message::text(text.replacen(SESSION_MARK, &name, 1))
        };
        self.setup.opening.iter().map(named).collect()
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session::default())
    }
}

#[derive(Debug, Default)]
struct Session {
    is_ready: bool,
    is_ending: bool,
    finals: FinalCursor,
    /// Start and end of the completed segments of the last message.
    completed: Vec<(u64, u64)>,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, _written_ns: u64, sink: &mut Sink<'_>) {
        if let Incoming::Closed { code, .. } = incoming
            && Kind::of_close(code).is_none()
            && self.is_ending
        {
            return sink(Event::Drained);
        }
        let of_close = |code, _: &str| Kind::of_close(code);
        if let Some(text) = text_message(incoming, self.is_ready, of_close, sink) {
            or_fault(self.read(text, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        None
    }

    fn end(&mut self, _last_seq: u64, _written_ns: u64) -> Option<Message> {
        self.is_ending = true;
        Some(Message::binary(*b"END_OF_AUDIO"))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    status: Raw<'a>,
    #[serde(borrow)]
    message: Raw<'a>,
    #[serde(borrow)]
    language: Raw<'a>,
    #[serde(borrow)]
    segments: Raw<'a>,
}

#[derive(Deserialize)]
struct Segment<'a> {
    #[serde(borrow)]
    start: Raw<'a>,
    #[serde(borrow)]
    end: Raw<'a>,
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    completed: Raw<'a>,
}

impl Session {
    fn read(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let fields: Fields<'_> = json::object(text)?;
        if fields.segments.is_some() {
            return self.segments(&json::part::<Vec<_>>(fields.segments, "segments")?, sink);
        }
        if fields.status.is_some() {
            match &*json::text(fields.status, "status")? {
                "WAIT" => report_error(self.is_ready, Kind::Capacity, sink),
                "ERROR" => report_error(self.is_ready, Kind::Internal, sink),
                "WARNING" => sink(Event::Ignored),
                _ => sink(Event::Unknown),
            }
        } else if is_text(fields.message, "SERVER_READY") {
            self.is_ready = true;
            sink(Event::Ready);
        } else if is_text(fields.message, "DISCONNECT") {
            report_error(self.is_ready, Kind::TimeLimit, sink);
        } else if fields.language.is_some() {
            sink(Event::Ignored);
        } else {
            sink(Event::Unknown);
        }
        Ok(())
    }

    fn segments(&mut self, segments: &[Segment<'_>], sink: &mut Sink<'_>) -> Result<(), Fault> {
        if segments.len() > SEGMENTS_MAX {
            return Err(Fault::Items);
        }
        let mut completed = Vec::with_capacity(segments.len());
        for segment in segments {
            if json::flag(segment.completed, "segments.completed")? {
                completed.push(segment.span()?);
            }
        }
        let known = self.known(&completed);
        let mut seen = 0;
        for segment in segments {
            let text = json::text(segment.text, "segments.text")?;
            let (from_ns, to_ns) = segment.span()?;
            if !json::flag(segment.completed, "segments.completed")? {
                sink(Event::Interim {
                    cursor_ns: Some(to_ns),
                    text: &text,
                });
                continue;
            }
            seen += 1;
            if seen > known {
                self.finals.report(from_ns, to_ns, &text, &[], sink);
            }
        }
        self.completed = completed;
        Ok(())
    }

    /// How many of these were in the last message: the longest end of that one which these begin with. If the server
    /// sent more new ones than it repeats, those before the cursor were.
    fn known(&self, completed: &[(u64, u64)]) -> usize {
        let longest = self.completed.len().min(completed.len());
        let overlap = (1..=longest)
            .rev()
            .find(|count| self.completed.ends_with(&completed[..*count]));
        overlap.unwrap_or_else(|| {
            let is_old = |(_, to_ns): &&(u64, u64)| *to_ns <= self.finals.at_ns();
            completed.iter().take_while(is_old).count()
        })
    }
}

impl Segment<'_> {
    /// Times are texts with three decimals; servers of other hands send numbers.
    fn span(&self) -> Result<(u64, u64), Fault> {
        Ok((
            json::seconds_or_text(self.start, "segments.start")?,
            json::seconds_or_text(self.end, "segments.end")?,
        ))
    }
}
