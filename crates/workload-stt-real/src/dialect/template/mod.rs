//! A dialect that a file describes: for a server that speaks none of the others (`docs/stt-real/template.md`).
//!
//! The file has the messages of the client, with placeholders, and rules that say what the server's messages mean. The
//! first rule whose conditions hold applies; a message without a rule is [`Event::Unknown`]. Unlike the other dialects
//! this one reads a message as a whole before it looks at it, and allocates for that.

mod file;
mod path;

use base64::Engine as _;
use plimsoll_core::secret::Secret;
use serde_json::Value;

use self::file::{File, Rule, What};
use self::path::{Path, fill};
use super::cursor::FinalCursor;
use super::{
    Audio, BASE64, Connect, Cursor, Dialect, Edge, Event, Fault, Field, Incoming, Kind, Message,
    OptionError, Options, Setup, Sink, Transcription, Turns, json, or_fault, report_close,
    report_error, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "template";

/// A template with the options of a trial.
#[derive(Debug)]
pub struct Template {
    setup: Setup,
    turns: Turns,
    opening: Vec<Secret>,
    /// What stands before and after the audio in a text message; `None` where audio is binary.
    around_audio: Option<(Secret, Secret)>,
    flush: Option<Secret>,
    end: Option<Secret>,
    keep_alive: Option<Secret>,
    /// The rules never change, and faults name their paths, so all sessions of the process share them.
    rules: &'static Rules,
}

/// What the server's messages mean.
#[derive(Debug)]
pub(super) struct Rules {
    spans: Cursor,
    hear: Vec<Rule>,
    closes: Vec<file::Close>,
}

impl Template {
    /// Reads the text of a template.
    ///
    /// # Errors
    /// What is wrong with the file, or with the options.
    pub fn parse(text: &str, options: &Options) -> Result<Self, OptionError> {
        let file = File::parse(text)?;
        // A key may be anywhere in them.
        let filled = |text: &str| fill(text, options).map(Secret::new);
        let fields = |fields: &std::collections::BTreeMap<String, String>| {
            fields
                .iter()
                // Some servers want a key, and others of the same dialect do not.
                .filter(|(_, value)| options.key.is_some() || !value.contains("{key}"))
                .map(|(name, value)| Ok(Field::new(name, path::plain(value, options)?)))
                .collect::<Result<Vec<_>, OptionError>>()
        };
        let own = fields(&file.query)?;
        let own: Vec<_> = own
            .iter()
            .map(|field| (field.name.as_str(), field.value.expose()))
            .collect();
        let mut connect = Connect::websocket(
            options.path_or(&file.path),
            options.query_and_params_over(&own),
        );
        connect.headers = fields(&file.headers)?;
        let messages = |text: &Option<String>| text.as_deref().map(filled).transpose();
        let flush = messages(&file.send.flush)?;
        if flush.is_none() {
            options.refuse_client_turns(NAME)?;
        }
        let frame_ns = options.frame_ns(NAME, file.audio.frame_ms, 1, 10_000)?;
        let around_audio = match messages(&file.audio.message)? {
            Some(text) => Some(file::around(text.expose())?),
            None => None,
        };
        let opening = file.send.opening.iter().map(|text| filled(text));
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: file.facts(),
                limits: file.limits(),
                audio: Audio {
                    encoding: file.audio.encoding.into(),
                    rate_hz: file.audio.rate_hz,
                    frame_ns,
                },
                connect,
                opening: Vec::new(),
            },
            turns: options.turns,
            opening: opening.collect::<Result<_, _>>()?,
            around_audio,
            flush,
            end: messages(&file.send.end)?,
            keep_alive: messages(&file.send.keep_alive)?,
            rules: file.into_rules()?,
        })
    }
}

impl Dialect for Template {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn opening(&self, session: u64) -> Vec<Message> {
        let number = session.to_string();
        let messages = self.opening.iter();
        messages
            .map(|text| Message::text(text.expose().replace("{session}", &number)))
            .collect()
    }

    fn pack(&self, frame: &[u8]) -> Message {
        match &self.around_audio {
            None => Message::binary(frame),
            Some((before, after)) => {
                let mut text = before.expose().to_owned();
                BASE64.encode_string(frame, &mut text);
                text.push_str(after.expose());
                Message::text(text)
            }
        }
    }

    fn keep_alive(&self) -> Option<Message> {
        self.keep_alive.as_ref().map(message_of)
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session {
            rules: self.rules,
            frame_ns: self.setup.audio.frame_ns,
            flush: self.flush.clone().filter(|_| self.turns == Turns::Client),
            end: self.end.clone(),
            is_ready: self.setup.facts.ready_at == super::ReadyAt::Open,
            stage: Stage::Open,
            finals: FinalCursor::default(),
        })
    }
}

#[derive(Debug)]
struct Session {
    rules: &'static Rules,
    frame_ns: u64,
    flush: Option<Secret>,
    end: Option<Secret>,
    is_ready: bool,
    stage: Stage,
    finals: FinalCursor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The end was sent.
    Ending,
    Drained,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, written_ns: u64, sink: &mut Sink<'_>) {
        if let Incoming::Closed { code, reason } = incoming {
            let mut closes = self.rules.closes.iter();
            let known = closes.find(|close| close.is(code, reason));
            match known.map(|close| close.kind()).or(Kind::of_close(code)) {
                Some(kind) => report_error(self.is_ready, kind, sink),
                None if self.stage == Stage::Ending => {
                    self.stage = Stage::Drained;
                    sink(Event::Drained);
                }
                None => report_close(self.is_ready, sink),
            }
        } else if let Some(text) = text_message(incoming, self.is_ready, |_, _| None, sink) {
            or_fault(self.read(text, written_ns, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        self.flush.as_ref().map(message_of)
    }

    fn end(&mut self, last_seq: u64, _written_ns: u64) -> Option<Message> {
        self.stage = Stage::Ending;
        let text = self.end.as_ref()?;
        Some(Message::text(
            text.expose().replace("{last_seq}", &last_seq.to_string()),
        ))
    }
}

impl Session {
    fn read(&mut self, text: &str, written_ns: u64, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let message: Value = serde_json::from_str(text).map_err(|_| Fault::Json)?;
        if !message.is_object() {
            return Err(Fault::Json);
        }
        let rules = self.rules;
        let mut hear = rules.hear.iter();
        let Some(rule) = hear.find(|rule| rule.holds(&message, self.stage != Stage::Open)) else {
            sink(Event::Unknown);
            return Ok(());
        };
        for what in &rule.events {
            self.report(*what, rule, &message, written_ns, sink)?;
        }
        Ok(())
    }

    fn report(
        &mut self,
        what: What,
        rule: &Rule,
        message: &Value,
        written_ns: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let time = |times: &file::Times| self.time(times, message);
        match what {
            What::Ready => {
                self.is_ready = true;
                sink(Event::Ready);
            }
            What::Interim => sink(Event::Interim {
                cursor_ns: rule.to.as_ref().map(time).transpose()?,
                text: text_at(rule.text.as_ref(), message)?,
            }),
            What::Final => self.report_final(rule, message, written_ns, sink)?,
            What::Progress => {
                let upto_ns = time(rule.need_to())?;
                self.finals.progress(upto_ns, sink);
            }
            What::Received => sink(Event::Received {
                upto_ns: time(rule.need_to())?,
            }),
            What::SpeechStart | What::SpeechEnd => sink(Event::Speech {
                edge: match what {
                    What::SpeechStart => Edge::Start,
                    _ => Edge::End,
                },
                at_ns: time(rule.need_to())?,
            }),
            What::Drained => {
                self.stage = Stage::Drained;
                sink(Event::Drained);
            }
            What::Error if rule.is_fatal => report_error(self.is_ready, rule.kind(), sink),
            What::Error => sink(Event::Error {
                kind: rule.kind(),
                fatal: false,
            }),
            What::Ignored => sink(Event::Ignored),
        }
        Ok(())
    }

    fn report_final(
        &mut self,
        rule: &Rule,
        message: &Value,
        written_ns: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let text = text_at(rule.text.as_ref(), message)?;
        let (from_ns, to_ns) = match self.rules.spans {
            Cursor::Turn => (self.finals.at_ns(), written_ns),
            Cursor::Inferred => {
                sink(Event::Final {
                    from_ns: None,
                    to_ns: None,
                    text,
                    words: &[],
                });
                return Ok(());
            }
            _ => {
                let to_ns = self.time(rule.need_to(), message)?;
                let from = rule.from.as_ref().map(|from| self.time(from, message));
                (from.transpose()?.unwrap_or(self.finals.at_ns()), to_ns)
            }
        };
        self.finals.report(from_ns, to_ns, text, &[], sink);
        Ok(())
    }

    /// The sum of some times of a message.
    fn time(&self, times: &file::Times, message: &Value) -> Result<u64, Fault> {
        let mut sum_ns = 0_u64;
        for (path, unit) in times {
            let value = path.need(message)?;
            // Some servers write times as texts.
            let number = value
                .as_f64()
                .or_else(|| value.as_str()?.trim().parse().ok())
                .ok_or(Fault::Mistyped(path.name()))?;
            let seconds = number * unit.seconds(self.frame_ns);
            sum_ns += json::ns_of_seconds(seconds, path.name())?;
        }
        Ok(sum_ns)
    }
}

fn message_of(text: &Secret) -> Message {
    Message::text(text.expose())
}

fn text_at<'a>(path: Option<&Path>, message: &'a Value) -> Result<&'a str, Fault> {
    let Some(path) = path else { return Ok("") };
    let value = path.need(message)?;
    value.as_str().ok_or(Fault::Mistyped(path.name()))
}

#[cfg(test)]
mod tests;
