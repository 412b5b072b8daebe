//! What speech servers say and want to hear, one module per dialect.
//!
//! A [`Dialect`] is made once for a trial, from the user's [`Options`]: it knows the request that opens a connection, the
//! messages that open a session, and how audio is packed. Each session gets a [`Transcription`] from it, which holds all
//! state that reading the server's messages needs, and turns them into [`Event`]s. Audio times are nanoseconds from
//! the first sample; the server's clock is never read.
//!
//! | dialect | module | final cursor | end |
//! |---|---|---|---|
//! | Deepgram and compatible servers | [`deepgram`] | `start` + `duration` | `Metadata`, or a close in order |
//! | `WhisperLive` | [`whisperlive`] | completed segments | a close in order |
//! | Wyoming | [`wyoming`] | the whole turn | `transcript` |
//! | Vosk | [`vosk`] | the nth answer is for the nth message | the answer to `eof` |
//! | `OpenAI` Realtime | [`openai_realtime`] | `audio_end_ms` of items, or the client's commits | all items done |
//! | vLLM realtime | [`vllm_realtime`] | none: inferred | `transcription.done` |
//! | Speechmatics | [`speechmatics`] | `end_time` | `EndOfTranscript` |
//! | `AssemblyAI` | [`assemblyai`] | end of final words | `Termination` |
//! | moshi | [`moshi`] | end of words, counted steps in silence | `Marker` |
//! | any other | [`template`]: a file says | a file says | a file says |

pub mod assemblyai;
pub mod connect;
mod cursor;
pub mod deepgram;
pub mod event;
mod json;
pub mod message;
pub mod moshi;
pub mod openai_realtime;
pub mod options;
pub mod speechmatics;
pub mod template;
pub mod vllm_realtime;
pub mod vosk;
pub mod whisperlive;
pub mod wyoming;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

pub use connect::{Connect, Transport};
pub use cursor::{OVERLAP_TOLERANCE_NS, WORD_GAP_MAX_NS};
pub use event::{Edge, Event, Fault, Kind, Word};
pub use message::{Form, Incoming, Message};
pub use options::{Field, Key, KeyPlace, OptionError, Options, Turns};

/// Nanoseconds in a microsecond.
const NS_PER_US: u64 = 1_000;

/// Nanoseconds in a millisecond.
const NS_PER_MS: u64 = 1_000_000;

/// The longest text that is put together of pieces.
const TEXT_MAX_BYTES: usize = 1 << 20;

/// How samples are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Signed 16-bit little-endian.
    S16le,
    /// 32-bit float little-endian, from -1 to 1.
    F32le,
    /// mu-law (ITU-T G.711), a byte a sample.
    Mulaw,
}

impl Encoding {
    /// Bytes of one sample.
    #[must_use]
    pub fn sample_bytes(self) -> usize {
        match self {
            Self::S16le => 2,
            Self::F32le => 4,
            Self::Mulaw => 1,
        }
    }
}

/// The audio that a dialect sends: one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audio {
    /// How samples are written.
    pub encoding: Encoding,
    /// Samples per second.
    pub rate_hz: u32,
    /// The length of the audio in one message, in nanoseconds.
    pub frame_ns: u64,
}

impl Audio {
    /// Bytes of a frame before it is packed.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        let samples = u128::from(self.frame_ns) * u128::from(self.rate_hz) / 1_000_000_000;
        usize::try_from(samples).unwrap_or(usize::MAX) * self.encoding.sample_bytes()
    }
}

/// What a server allows, as far as it is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// The shortest audio in one message, in ms.
    pub message_min_ms: Option<u64>,
    /// The longest audio in one message, in ms.
    pub message_max_ms: Option<u64>,
    /// How long the server waits for audio or a keep-alive before it closes, in ms.
    pub idle_ms: Option<u64>,
    /// How long a session may be, in ms.
    pub session_max_ms: Option<u64>,
}

/// When a session may send its first audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadyAt {
    /// As soon as the connection is open and the opening messages are written: no [`Event::Ready`] comes.
    Open,
    /// At [`Event::Ready`].
    Message,
}

/// Whether the final cursor moves where nobody speaks, so that lag can be told in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// It does.
    Decidable,
    /// It does not.
    Undecidable,
    /// Servers of this dialect differ: send 3 s of silence and look.
    Probe,
}

/// Where finals get their spans from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// The server's messages have audio times.
    Times,
    /// Each answer is for so much audio: counted.
    Answers,
    /// The whole turn that the client ended.
    Turn,
    /// Nothing: finals have no span, and the caller matches their text to the reference. They are pieces of one text: put
    /// them together as they are.
    Inferred,
}

/// Facts about a dialect that a plan needs before any session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Where finals get their spans from.
    pub cursor: Cursor,
    /// Whether silence is decidable.
    pub silence: Silence,
    /// When a session may send audio.
    pub ready_at: ReadyAt,
    /// Whether one connection carries one turn only, so that a session is a lane of connections.
    pub connection_per_turn: bool,
    /// Whether the server says when it is drained; else its close in order does, and [`Event::Drained`] comes with that.
    pub says_drained: bool,
    /// Whether frames of silence must follow the end, until [`Event::Drained`].
    pub silence_to_drain: bool,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            cursor: Cursor::Times,
            silence: Silence::Undecidable,
            ready_at: ReadyAt::Open,
            connection_per_turn: false,
            says_drained: true,
            silence_to_drain: false,
        }
    }
}

/// What a dialect with a user's options says of itself, apart from what its messages mean.
#[derive(Debug)]
pub struct Setup {
    /// Its name, as records have it.
    pub name: &'static str,
    /// Facts about the dialect.
    pub facts: Facts,
    /// What the server allows.
    pub limits: Limits,
    /// The audio to send.
    pub audio: Audio,
    /// The request that opens a connection.
    pub connect: Connect,
    /// What to send once the connection is open, unless [`Dialect::opening`] says otherwise.
    pub opening: Vec<Message>,
}

/// A dialect with a user's options: the same for all sessions of a trial.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// What it says of itself.
    fn setup(&self) -> &Setup;

    /// Its name, as records have it.
    fn name(&self) -> &str {
        self.setup().name
    }

    /// Facts about the dialect.
    fn facts(&self) -> Facts {
        self.setup().facts
    }

    /// What the server allows.
    fn limits(&self) -> Limits {
        self.setup().limits
    }

    /// The audio to send.
    fn audio(&self) -> Audio {
        self.setup().audio
    }

    /// The request that opens a connection.
    fn connect(&self) -> &Connect {
        &self.setup().connect
    }

    /// The header of a refused upgrade that gives the reason.
    fn refusal_header(&self) -> Option<&'static str> {
        None
    }

    /// What to send once the connection is open. `session` tells sessions apart where the server wants a name of each.
    fn opening(&self, _session: u64) -> Vec<Message> {
        self.setup().opening.clone()
    }

    /// One frame of audio, encoded as [`Dialect::audio`] says, as a message. It holds nothing of a session, so a trial
    /// makes each once and all sessions share it.
    fn pack(&self, frame: &[u8]) -> Message {
        Message::binary(frame)
    }

    /// What holds an idle session open between its last frame and [`Event::Drained`].
    fn keep_alive(&self) -> Option<Message> {
        None
    }

    /// The state of a new session, or of a new connection where each carries one turn.
    fn transcription(&self) -> Box<dyn Transcription>;
}

/// What takes the events of a message, in their order.
pub type Sink<'s> = dyn FnMut(Event<'_>) + 's;

/// One session: what the server has said so far, as far as later messages depend on it.
pub trait Transcription: fmt::Debug + Send {
    /// Reads what came. `written_ns` is the audio time up to which this session wrote audio.
    ///
    /// Whatever comes, the session goes on and nothing panics; a broken message is an [`Event::Fault`]. A close in order
    /// before [`Event::Drained`] is [`Event::Ignored`]: the caller knows whether it has asked for the end. A server may say
    /// more than once that it refuses a session or ends it with an error, in a message and with its close: the first is
    /// why. A message may give no event, when it repeats what is known.
    fn parse(&mut self, incoming: Incoming<'_>, written_ns: u64, sink: &mut Sink<'_>);

    /// Asks for finals of all audio so far, where turns are the client's and a message can ask for that.
    fn flush(&mut self, written_ns: u64) -> Option<Message>;

    /// The end of the audio: `last_seq` messages of audio were written. `None` where closing the connection is the end.
    fn end(&mut self, last_seq: u64, written_ns: u64) -> Option<Message>;
}

/// Makes a dialect of options.
type Make = fn(&Options) -> Result<Box<dyn Dialect>, OptionError>;

/// All dialects, in the order in which users are told of them.
const DIALECTS: [(&str, Make); 9] = [
    (deepgram::NAME, |options| {
        boxed(deepgram::Deepgram::new(options))
    }),
    (whisperlive::NAME, |options| {
        boxed(whisperlive::WhisperLive::new(options))
    }),
    (wyoming::NAME, |options| {
        boxed(wyoming::Wyoming::new(options))
    }),
    (vosk::NAME, |options| boxed(vosk::Vosk::new(options))),
    (openai_realtime::NAME, |options| {
        boxed(openai_realtime::OpenAiRealtime::new(options))
    }),
    (vllm_realtime::NAME, |options| {
        boxed(vllm_realtime::VllmRealtime::new(options))
    }),
    (speechmatics::NAME, |options| {
        boxed(speechmatics::Speechmatics::new(options))
    }),
    (assemblyai::NAME, |options| {
        boxed(assemblyai::AssemblyAi::new(options))
    }),
    (moshi::NAME, |options| boxed(moshi::Moshi::new(options))),
];

fn boxed<D: Dialect + 'static>(
    made: Result<D, OptionError>,
) -> Result<Box<dyn Dialect>, OptionError> {
    made.map(|dialect| -> Box<dyn Dialect> { Box::new(dialect) })
}

/// The names of all dialects.
pub const NAMES: [&str; DIALECTS.len()] = {
    let mut names = [""; DIALECTS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = DIALECTS[at].0;
        at += 1;
    }
    names
};

/// The dialect of this name, with these options.
///
/// # Errors
/// If there is no such dialect, or it cannot use the options.
pub fn by_name(name: &str, options: &Options) -> Result<Box<dyn Dialect>, OptionError> {
    match DIALECTS.iter().find(|(known, _)| *known == name) {
        Some((_, make)) => make(options),
        None => Err(OptionError::UnknownDialect {
            name: name.to_owned(),
            known: NAMES.join(", "),
        }),
    }
}

/// Hands on the fault that kept a message from being read.
fn or_fault(read: Result<(), Fault>, sink: &mut Sink<'_>) {
    if let Err(fault) = read {
        sink(Event::Fault(fault));
    }
}

/// The text of a text message. All else is reported: refusals, closes and messages of the wrong kind.
fn text_message<'a>(
    incoming: Incoming<'a>,
    is_ready: bool,
    kind_of_close: fn(Option<u16>, &str) -> Option<Kind>,
    sink: &mut Sink<'_>,
) -> Option<&'a str> {
    match incoming {
        Incoming::Text(text) => return Some(text),
        Incoming::Binary(_) | Incoming::Bytes(_) => sink(Event::Fault(Fault::Opcode)),
        Incoming::Refused { status, .. } => sink(Event::Refused {
            kind: Kind::of_status(status),
        }),
        Incoming::Closed { code, reason } => match kind_of_close(code, reason) {
            Some(kind) => report_error(is_ready, kind, sink),
            None => report_close(is_ready, sink),
        },
    }
    None
}

/// A close in order. Before the session was ready it is a refusal that the server does not explain.
fn report_close(is_ready: bool, sink: &mut Sink<'_>) {
    sink(match is_ready {
        true => Event::Ignored,
        false => Event::Refused {
            kind: Kind::Internal,
        },
    });
}

/// The bytes of a binary message; all else is reported as by [`text_message`].
fn binary_message<'a>(
    incoming: Incoming<'a>,
    is_ready: bool,
    sink: &mut Sink<'_>,
) -> Option<&'a [u8]> {
    match incoming {
        Incoming::Binary(bytes) => return Some(bytes),
        Incoming::Text(_) => sink(Event::Fault(Fault::Opcode)),
        other => {
            text_message(other, is_ready, |code, _| Kind::of_close(code), sink);
        }
    }
    None
}

/// An error that ends the session: before it was ready, it is a refusal.
fn report_error(is_ready: bool, kind: Kind, sink: &mut Sink<'_>) {
    sink(match is_ready {
        true => Event::Error { kind, fatal: true },
        false => Event::Refused { kind },
    });
}

/// Whether a field is this text.
fn is_text(raw: json::Raw<'_>, text: &str) -> bool {
    json::text(raw, "").is_ok_and(|value| value == text)
}

/// Adds a piece to a text that must not grow without end.
fn append(text: &mut String, piece: &str) -> Result<(), Fault> {
    if text.len() + piece.len() > TEXT_MAX_BYTES {
        return Err(Fault::Items);
    }
    text.push_str(piece);
    Ok(())
}

/// A JSON message whose last field is audio in base64; `head` ends with the quote before it.
fn base64_message(head: &str, frame: &[u8]) -> Message {
    let mut text = head.to_owned();
    BASE64.encode_string(frame, &mut text);
    text.push_str("\"}");
    Message::text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_knows_is_refused_with_those_that_there_are() {
        let error = by_name("deepgramm", &Options::default()).unwrap_err();
        let line = error.to_string();
        assert!(line.contains("\"deepgramm\"") && line.contains("deepgram, whisperlive, wyoming"));
        for name in NAMES {
            let options = Options {
                model: Some("m".to_owned()),
                ..Options::default()
            };
            assert_eq!(by_name(name, &options).unwrap().name(), name);
        }
    }

    #[test]
    fn no_key_and_no_parameter_is_shown() {
        for name in NAMES {
            let options = Options {
                key: Some(Key {
                    value: plimsoll_core::secret::Secret::new("canary"),
                    place: KeyPlace::Header,
                }),
                params: vec![Field::new("secret", "canary")],
                query: vec![Field::new("secret", "canary")],
                model: Some("m".to_owned()),
                ..Options::default()
            };
            let dialect = match by_name(name, &options) {
                Ok(dialect) => dialect,
                Err(error) => {
                    assert_eq!(
                        error.to_string(),
                        "wyoming takes no key in a header; leave it out"
                    );
                    by_name(
                        name,
                        &Options {
                            key: None,
                            ..options.clone()
                        },
                    )
                    .unwrap()
                }
            };
            let session = dialect.transcription();
            let shown = format!("{options:?}{dialect:?}{session:?}{:?}", dialect.opening(1));
            assert!(!shown.contains("canary"), "{shown}");
        }
    }

    #[test]
    fn audio_in_base64_is_one_json_message() {
        let message = base64_message(r#"{"audio":""#, &[0, 255, 16]);
        assert_eq!(message, Message::text(r#"{"audio":"AP8Q"}"#));
    }
}
