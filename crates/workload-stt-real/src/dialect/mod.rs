//! What speech servers say and want to hear, one module per dialect.
//!
//! A [`Dialect`] is made once for a trial, from the user's [`Options`]: it knows the request that opens a connection, the
//! messages that open a session, and how audio is packed. Each session gets a [`Transcription`] from it, which holds all
//! state that reading the server's messages needs, and turns them into [`Event`]s. Audio times are nanoseconds from
//! the first sample; the server's clock is never read.
//!
//! | dialect | module | final cursor |
//! |---|---|---|
//! | Deepgram and compatible servers | [`deepgram`] | `start` + `duration` |

pub mod deepgram;
pub mod event;
mod json;
pub mod message;
pub mod options;

use std::fmt;

pub use event::{Edge, Event, Fault, Kind, Word};
pub use message::{Form, Incoming, Message};
pub use options::{Connect, Field, Key, KeyPlace, OptionError, Options, Transport, Turns};

/// Nanoseconds in a microsecond.
pub(crate) const NS_PER_US: u64 = 1_000;

/// Nanoseconds in a millisecond.
pub(crate) const NS_PER_MS: u64 = 1_000_000;

/// How far the final cursor may seem to go back: a server's spans may overlap a little at their seams.
pub const OVERLAP_TOLERANCE_NS: u64 = 200 * NS_PER_MS;

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

/// What a server allows.
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

/// Whether the cursor moves where nobody speaks, so that lag can be told in silence.
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
    /// Each answer is for one message of audio: counted.
    Answers,
    /// The whole turn that the client ended.
    Turn,
    /// Nothing: finals have no span, and the caller matches their text to the reference.
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
    /// Whether the server says when it is drained; otherwise the end is its close.
    pub says_drained: bool,
}

/// A dialect with a user's options: the same for all sessions of a trial.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Its name, as `--dialect` takes it.
    fn name(&self) -> &'static str;

    /// Facts about the dialect.
    fn facts(&self) -> Facts;

    /// What the server allows, as far as it is published.
    fn limits(&self) -> Limits;

    /// The audio to send.
    fn audio(&self) -> Audio;

    /// The request that opens a connection.
    fn connect(&self) -> Connect;

    /// The header of a refused upgrade that gives the reason.
    fn refusal_header(&self) -> Option<&'static str> {
        None
    }

    /// What to send once the connection is open. `session` tells sessions apart where the server wants a name of each.
    fn opening(&self, session: u64) -> Vec<Message>;

    /// One frame of audio, encoded as [`Dialect::audio`] says, as a message. It holds nothing of a session, so a trial
    /// makes each once and all sessions share it.
    fn pack(&self, frame: &[u8]) -> Message;

    /// What holds an idle session open between its last frame and [`Event::Drained`].
    fn keep_alive(&self) -> Option<Message> {
        None
    }

    /// The state of a new session.
    fn transcription(&self) -> Box<dyn Transcription>;
}

/// What takes the events of a message, in their order.
pub type Sink<'s> = dyn FnMut(Event<'_>) + 's;

/// One session: what the server has said so far, as far as later messages depend on it.
pub trait Transcription: fmt::Debug + Send {
    /// Reads what came. `written_ns` is the audio time up to which this session wrote audio.
    ///
    /// Whatever comes, the session goes on and nothing panics; a broken message is an [`Event::Fault`].
    fn parse(&mut self, incoming: Incoming<'_>, written_ns: u64, sink: &mut Sink<'_>);

    /// Asks for finals of all audio so far, where turns are the client's.
    fn flush(&mut self, written_ns: u64) -> Option<Message>;

    /// The end of the audio: `last_seq` messages of audio were written. `None` where closing the connection is the end.
    fn end(&mut self, last_seq: u64, written_ns: u64) -> Option<Message>;
}

/// Makes a dialect of options.
type Make = fn(Options) -> Result<Box<dyn Dialect>, OptionError>;

/// All dialects, in the order in which users are told of them.
const DIALECTS: [(&str, Make); 1] = [(deepgram::NAME, |options| {
    Ok(Box::new(deepgram::Deepgram::new(options)?))
})];

/// The names of all dialects.
pub fn names() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|(name, _)| *name)
}

/// The dialect of this name, with these options.
///
/// # Errors
/// If there is no such dialect, or it cannot use the options.
pub fn by_name(name: &str, options: Options) -> Result<Box<dyn Dialect>, OptionError> {
    match DIALECTS.iter().find(|(known, _)| *known == name) {
        Some((_, make)) => make(options),
        None => Err(OptionError::UnknownDialect {
            name: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
        }),
    }
}

/// How far finals have come.
#[derive(Debug, Default)]
struct FinalCursor {
    at_ns: u64,
}

impl FinalCursor {
    /// Reports a final, with a fault before it if it goes back.
    fn report(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        text: &str,
        words: &[Word<'_>],
        sink: &mut Sink<'_>,
    ) {
        if to_ns < from_ns {
            return sink(Event::Fault(Fault::Reversed));
        }
        self.advance(to_ns, sink);
        sink(Event::Final {
            from_ns: Some(from_ns),
            to_ns: Some(to_ns),
            text,
            words,
        });
    }

    /// Moves on, or reports that it would have to go back.
    fn advance(&mut self, to_ns: u64, sink: &mut Sink<'_>) {
        if to_ns + OVERLAP_TOLERANCE_NS < self.at_ns {
            sink(Event::Fault(Fault::CursorBack));
        }
        self.at_ns = self.at_ns.max(to_ns);
    }
}

/// Hands the events of a message on, or the fault that kept it from being read.
fn or_fault(read: Result<(), Fault>, sink: &mut Sink<'_>) {
    if let Err(fault) = read {
        sink(Event::Fault(fault));
    }
}

/// Reports a refused upgrade or a close as most dialects have it: by its code alone. A close after [`Event::Drained`], or
/// a normal one, is no error.
fn report_over(kind: Option<Kind>, sink: &mut Sink<'_>) {
    match kind {
        Some(kind) => sink(Event::Error { kind, fatal: true }),
        None => sink(Event::Ignored),
    }
}
