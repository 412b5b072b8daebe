//! The file of a template, as TOML has it, and what of it can be wrong.

use std::collections::BTreeMap;

use plimsoll_core::secret::Secret;
use serde::Deserialize;
use serde_json::Value;

use super::super::event::Kind;
use super::super::options::OptionError;
use super::super::{Cursor, Encoding, Facts, Limits, ReadyAt, Silence};
use super::Rules;
use super::path::Path;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) path: String,
    #[serde(default)]
    pub(super) query: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    ready: Ready,
    #[serde(default)]
    spans: Spans,
    #[serde(default)]
    silence: FileSilence,
    #[serde(default)]
    limits: FileLimits,
    #[serde(default)]
    pub(super) audio: FileAudio,
    #[serde(default)]
    pub(super) send: Send,
    hear: Vec<Hear>,
    #[serde(default)]
    close: Vec<Close>,
}

#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Ready {
    #[default]
    Open,
    Message,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Spans {
    #[default]
    Times,
    Turn,
    Inferred,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileSilence {
    Decidable,
    #[default]
    Undecidable,
    Probe,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLimits {
    message_min_ms: Option<u64>,
    message_max_ms: Option<u64>,
    idle_ms: Option<u64>,
    session_max_ms: Option<u64>,
}

/// The audio.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileAudio {
    pub(super) encoding: FileEncoding,
    pub(super) rate_hz: u32,
    pub(super) frame_ms: u64,
    pub(super) message: Option<String>,
}

impl Default for FileAudio {
    fn default() -> Self {
        Self {
            encoding: FileEncoding::S16le,
            rate_hz: 16_000,
            frame_ms: 40,
            message: None,
        }
    }
}

/// How samples are written.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FileEncoding {
    S16le,
    F32le,
    Mulaw,
}

impl From<FileEncoding> for Encoding {
    fn from(encoding: FileEncoding) -> Self {
        match encoding {
            FileEncoding::S16le => Self::S16le,
            FileEncoding::F32le => Self::F32le,
            FileEncoding::Mulaw => Self::Mulaw,
        }
    }
}

/// The messages of the client.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Send {
    pub(super) opening: Vec<String>,
    pub(super) flush: Option<String>,
    pub(super) end: Option<String>,
    pub(super) keep_alive: Option<String>,
}

/// A rule, as the file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hear {
    #[serde(default)]
    when: BTreeMap<String, Value>,
    #[serde(default)]
    after_end: bool,
    events: Vec<What>,
    text: Option<String>,
    from: Option<OneOrMore>,
    to: Option<OneOrMore>,
    kind: Option<FileKind>,
    #[serde(default)]
    fatal: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// What a message means.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum What {
    Ready,
    Interim,
    Final,
    Progress,
    Received,
    SpeechStart,
    SpeechEnd,
    Drained,
    Error,
    Ignored,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileKind {
    Auth,
    Quota,
    Rate,
    TooFast,
    BadRequest,
    Idle,
    TimeLimit,
    Capacity,
    Internal,
}

impl From<FileKind> for Kind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::Auth => Self::Auth,
            FileKind::Quota => Self::Quota,
            FileKind::Rate => Self::Rate,
            FileKind::TooFast => Self::TooFast,
            FileKind::BadRequest => Self::BadRequest,
            FileKind::Idle => Self::Idle,
            FileKind::TimeLimit => Self::TimeLimit,
            FileKind::Capacity => Self::Capacity,
            FileKind::Internal => Self::Internal,
        }
    }
}

/// What a close means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Close {
    code: u16,
    #[serde(default)]
    reason: String,
    kind: FileKind,
}

impl Close {
    /// Whether a close is this one: its code, and a part of its reason.
    pub(super) fn is(&self, code: Option<u16>, reason: &str) -> bool {
        code == Some(self.code) && reason.contains(&self.reason)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind.into()
    }
}

/// The unit of a time of a message: the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    /// Messages of audio.
    Messages,
}

impl Unit {
    /// Seconds in one.
    pub(super) fn seconds(self, frame_ns: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a frame is some milliseconds")]
        match self {
            Self::Seconds => 1.0,
            Self::Milliseconds => 1e-3,
            Self::Messages => frame_ns as f64 / 1e9,
        }
    }
}

/// Times that are added up, such as a start and a duration.
pub(super) type Times = Vec<(Path, Unit)>;

/// A rule, ready for use.
#[derive(Debug)]
pub(super) struct Rule {
    when: Vec<(Path, Value)>,
    after_end: bool,
    pub(super) events: Vec<What>,
    pub(super) text: Option<Path>,
    pub(super) from: Option<Times>,
    pub(super) to: Option<Times>,
    kind: Kind,
    pub(super) is_fatal: bool,
}

impl Rule {
    /// Whether it is for this message. A list holds if one of its values does.
    pub(super) fn holds(&self, message: &Value, is_ending: bool) -> bool {
        let mut conditions = self.when.iter();
        (is_ending || !self.after_end)
            && conditions.all(|(path, expected)| match (path.find(message), expected) {
                (Some(found), Value::Array(any)) => any.iter().any(|one| is_equal(found, one)),
                (Some(found), expected) => is_equal(found, expected),
                (None, _) => false,
            })
    }

    /// The end of its span; the file was checked for it.
    pub(super) fn need_to(&self) -> &Times {
        const NONE: &Times = &Vec::new();
        self.to.as_ref().unwrap_or(NONE)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    fn new(rule: Hear, spans: Spans) -> Result<Self, OptionError> {
        let times = |times: Option<OneOrMore>| match times {
            None => Ok(None),
            Some(OneOrMore::One(one)) => Ok(Some(vec![time(&one)?])),
            Some(OneOrMore::More(more)) => {
                let all: Result<Times, _> = more.iter().map(|one| time(one)).collect();
                all.map(Some)
            }
        };
        let when = rule.when.into_iter();
        let made = Self {
            when: when
                .map(|(path, value)| Ok((Path::parse(&path)?, value)))
                .collect::<Result<_, OptionError>>()?,
            after_end: rule.after_end,
            events: rule.events,
            text: rule.text.as_deref().map(Path::parse).transpose()?,
            from: times(rule.from)?,
            to: times(rule.to)?,
            kind: rule.kind.map_or(Kind::Internal, Kind::from),
            is_fatal: rule.fatal,
        };
        made.check(spans)?;
        Ok(made)
    }

    fn check(&self, spans: Spans) -> Result<(), OptionError> {
        let needs_to = self.events.iter().any(|what| match what {
            What::Final => matches!(spans, Spans::Times),
            What::Progress | What::Received | What::SpeechStart | What::SpeechEnd => true,
            _ => false,
        });
        let needs_text = |what: &What| matches!(what, What::Interim | What::Final);
        let wrong = if self.events.is_empty() {
            "has no events; give at least ignored"
        } else if needs_to && self.to.as_ref().is_none_or(Vec::is_empty) {
            "has no time; give to"
        } else if self.events.iter().any(needs_text) && self.text.is_none() {
            "has no text; give text"
        } else {
            return Ok(());
        };
        let events = &self.events;
        Err(OptionError::Template(format!(
            "a rule for {events:?} {wrong}"
        )))
    }
}

/// Numbers are equal as numbers: 1 is 1.0.
fn is_equal(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        #[expect(
            clippy::float_cmp,
            reason = "the file has the very number that the server sends"
        )]
        (Some(found), Some(expected)) => found == expected,
        _ => found == expected,
    }
}

/// A path and its unit: `start s`, `audio_end_ms ms`, `seq_no messages`.
fn time(text: &str) -> Result<(Path, Unit), OptionError> {
    let (path, unit) = text.rsplit_once(' ').unwrap_or((text, ""));
    let unit = match unit {
        "s" => Unit::Seconds,
        "ms" => Unit::Milliseconds,
        "messages" => Unit::Messages,
        _ => {
            return Err(OptionError::Template(format!(
                "{text:?} has no unit; write the path, a space, and s, ms or messages"
            )));
        }
    };
    Ok((Path::parse(path)?, unit))
}

/// What stands before and after the audio in its message.
pub(super) fn around(text: &str) -> Result<(Secret, Secret), OptionError> {
    match text.split_once("{audio}") {
        Some((before, after)) => Ok((Secret::new(before), Secret::new(after))),
        None => Err(OptionError::Template(
            "the message of the audio lacks {audio}; write it where the base64 goes".to_owned(),
        )),
    }
}

impl File {
    /// # Errors
    /// What is wrong with it, and where.
    pub(super) fn parse(text: &str) -> Result<Self, OptionError> {
        toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            let what = error.message().replace('\n', " ");
            OptionError::Template(format!("line {line}: {what}"))
        })
    }

    pub(super) fn facts(&self) -> Facts {
        let mut events = self.hear.iter().flat_map(|rule| &rule.events);
        Facts {
            cursor: self.spans.into(),
            silence: match self.silence {
                FileSilence::Decidable => Silence::Decidable,
                FileSilence::Undecidable => Silence::Undecidable,
                FileSilence::Probe => Silence::Probe,
            },
            ready_at: match self.ready {
                Ready::Open => ReadyAt::Open,
                Ready::Message => ReadyAt::Message,
            },
            says_drained: events.any(|what| *what == What::Drained),
            ..Facts::default()
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            message_min_ms: self.limits.message_min_ms,
            message_max_ms: self.limits.message_max_ms,
            idle_ms: self.limits.idle_ms,
            session_max_ms: self.limits.session_max_ms,
        }
    }

    /// The rules, for the life of the process.
    ///
    /// # Errors
    /// If a rule cannot be right.
    pub(super) fn into_rules(self) -> Result<&'static Rules, OptionError> {
        let spans = self.spans;
        let hear = self.hear.into_iter().map(|rule| Rule::new(rule, spans));
        let hear: Vec<Rule> = hear.collect::<Result<_, _>>()?;
        let mut events = hear.iter().flat_map(|rule| &rule.events);
        if self.ready == Ready::Message && !events.any(|what| *what == What::Ready) {
            return Err(OptionError::Template(
                "ready = \"message\", and no rule has the event ready; add one".to_owned(),
            ));
        }
        Ok(Box::leak(Box::new(Rules {
            spans: spans.into(),
            hear,
            closes: self.close,
        })))
    }
}

impl From<Spans> for Cursor {
    fn from(spans: Spans) -> Self {
        match spans {
            Spans::Times => Self::Times,
            Spans::Turn => Self::Turn,
            Spans::Inferred => Self::Inferred,
        }
    }
}
