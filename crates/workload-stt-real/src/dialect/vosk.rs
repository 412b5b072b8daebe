//! Vosk's WebSocket server.
//!
//! There is no published format but the source: <https://github.com/alphacep/vosk-server/blob/master/websocket/asr_server.py>
//! and the results of <https://github.com/alphacep/vosk-api/blob/master/src/vosk_api.h>.
//!
//! The server answers each message of audio with exactly one text, so the nth answer says how far it is. A `partial` is
//! what it hears of the utterance at hand; a `result` with `text` is an utterance that ended. Word times count from the
//! first sample.
//!
//! An empty `partial` says that no word was heard yet. A word shows some time after its first sample, so the final cursor
//! follows [`WORD_DELAY_NS`] behind.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

use super::connect::KeyRule;
use super::cursor::FinalCursor;
use super::json::{self, Raw};
use super::{
    Audio, Connect, Cursor, Dialect, Edge, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, NS_PER_MS, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, Word,
    or_fault, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "vosk";

/// A word shows in a partial at most so long after its first sample, if the server keeps up. An assumption: twice what our
/// own server of this dialect took (`real-pocketsphinx-5.1.1-captions.jsonl`: 0.47 and 0.53 s of audio). Vosk itself was
/// not tried.
pub const WORD_DELAY_NS: u64 = 1000 * NS_PER_MS;

/// The options of a trial.
#[derive(Debug)]
pub struct Vosk {
    setup: Setup,
}

impl Vosk {
    /// The dialect with these options. The server knows no keys, but what stands before it may, so a header is taken.
    ///
    /// # Errors
    /// If frames have a length that no server takes, or the options ask for turns by the client.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        options.refuse_client_turns(NAME)?;
        let opening = options.opening(json!({"config": {"sample_rate": 16000, "words": true}}))?;
        let key = KeyRule {
            header: Some(("Authorization", "Bearer ")),
            ..KeyRule::default()
        };
        let connect = Connect::websocket(options.path_or("/"), options.query_over(&[]));
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Answers,
                    silence: Silence::Decidable,
                    ready_at: ReadyAt::Open,
                    ..Facts::default()
                },
                limits: Limits::default(),
                audio: Audio {
                    encoding: Encoding::S16le,
                    rate_hz: 16_000,
                    frame_ns: options.frame_ns(NAME, 40, 10, 1000)?,
                },
                connect: connect.with_key(NAME, key, options.key.as_ref())?,
                opening: vec![Message::text(opening.to_string())],
            },
        })
    }
}

impl Dialect for Vosk {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session {
            frame_ns: self.setup.audio.frame_ns,
            answers: 0,
            last_seq: None,
            finals: FinalCursor::default(),
        })
    }
}

#[derive(Debug)]
struct Session {
    frame_ns: u64,
    answers: u64,
    /// How many messages of audio there were, once that is known.
    last_seq: Option<u64>,
    finals: FinalCursor,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, written_ns: u64, sink: &mut Sink<'_>) {
        let of_close = |code, _: &str| Kind::of_close(code);
        if let Some(text) = text_message(incoming, true, of_close, sink) {
            // Broken as it may be, it is the answer to a message.
            self.answers += 1;
            or_fault(self.read(text, written_ns, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        None
    }

    fn end(&mut self, last_seq: u64, _written_ns: u64) -> Option<Message> {
        self.last_seq = Some(last_seq);
        // The server compares the text, spaces included.
        Some(Message::text(r#"{"eof" : 1}"#))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    partial: Raw<'a>,
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    result: Raw<'a>,
    #[serde(borrow)]
    alternatives: Raw<'a>,
}

#[derive(Deserialize)]
struct WordFields<'a> {
    #[serde(borrow)]
    word: Raw<'a>,
    #[serde(borrow)]
    start: Raw<'a>,
    #[serde(borrow)]
    end: Raw<'a>,
}

impl Session {
    fn read(&mut self, text: &str, written_ns: u64, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let is_last = self.last_seq.is_some_and(|last| self.answers > last);
        let cursor_ns = match is_last {
            true => written_ns,
            false => self.answers.saturating_mul(self.frame_ns),
        };
        if !is_last {
            sink(Event::Received { upto_ns: cursor_ns });
        }
        let read = self.result(text, cursor_ns, sink);
        if is_last {
            sink(Event::Drained);
        }
        read
    }

    fn result(&mut self, text: &str, cursor_ns: u64, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let fields: Fields<'_> = json::object(text)?;
        if fields.partial.is_some() {
            let partial = json::text(fields.partial, "partial")?;
            if partial.is_empty() {
                let upto_ns = cursor_ns.saturating_sub(WORD_DELAY_NS);
                self.finals.progress(upto_ns, sink);
            } else {
                sink(Event::Interim {
                    cursor_ns: Some(cursor_ns),
                    text: &partial,
                });
            }
            return Ok(());
        }
        let best = best_of(&fields)?;
        let text = json::text(best.text, "text")?;
        let words = words(best.result)?;
        // All of the span was decoded, from where the last final ended.
        let from_ns = self.finals.at_ns().min(cursor_ns);
        self.finals.report(from_ns, cursor_ns, &text, &words, sink);
        if !text.is_empty() {
            sink(Event::Speech {
                edge: Edge::End,
                at_ns: words
                    .last()
                    .and_then(|word| word.to_ns)
                    .unwrap_or(cursor_ns),
            });
        }
        Ok(())
    }
}

/// With `max_alternatives` a result is a list of guesses, the best first.
fn best_of<'a>(fields: &Fields<'a>) -> Result<Fields<'a>, Fault> {
    if fields.alternatives.is_none() {
        return Ok(Fields { ..*fields });
    }
    let all: Vec<Fields<'a>> = json::part(fields.alternatives, "alternatives")?;
    all.into_iter().next().ok_or(Fault::Missing("alternatives"))
}

fn words(raw: Raw<'_>) -> Result<Vec<Word<'_>>, Fault> {
    if raw.is_none() {
        return Ok(Vec::new());
    }
    let words: Vec<WordFields<'_>> = json::part(raw, "result")?;
    let word = |fields: &WordFields<'_>| {
        Ok(Word {
            text: Cow::Owned(json::text(fields.word, "result.word")?.into_owned()),
            from_ns: Some(json::seconds(fields.start, "result.start")?),
            to_ns: Some(json::seconds(fields.end, "result.end")?),
        })
    };
    words.iter().map(word).collect()
}
