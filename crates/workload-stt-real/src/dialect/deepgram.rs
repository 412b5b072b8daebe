//! Deepgram's live API, version 1, and servers that speak it.
//!
//! Format: <https://developers.deepgram.com/reference/speech-to-text/listen-streaming>; end, flush and keep-alive:
//! <https://developers.deepgram.com/docs/close-stream>, `/docs/finalize` and `/docs/audio-keep-alive`; codes of errors:
//! <https://developers.deepgram.com/docs/stt-troubleshooting-websocket-data-and-net-errors>.
//!
//! A `Results` message speaks of the span from `start` on, `duration` long. A final with an empty transcript says that
//! nobody spoke there.
//!
//! Compatible servers differ. WhisperLiveKit 0.2.26 (recordings `real-whisperlivekit-0.2.26-*.jsonl`) greets with a
//! `Metadata`, says nothing in silence, sends interims of no length at a time that is not theirs, refuses `Finalize` with
//! a message of type `Error` and close 4400, and closes with 1011 after 30 s without audio. Its earlier versions have no
//! `Metadata` at the end. So a `Metadata` is the end only after `CloseStream`, a close in order is the end too, and an
//! interim of no length has no cursor.

use serde::Deserialize;

use super::connect::KeyRule;
use super::cursor::FinalCursor;
use super::json::{self, Raw};
use super::{
    Audio, Connect, Cursor, Dialect, Edge, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, Turns, Word,
    or_fault, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "deepgram";

/// The model where the user names none.
const MODEL: &str = "nova-3";

const KEY: KeyRule = KeyRule {
    header: Some(("Authorization", "Token ")),
    query: Some("token"),
    subprotocol: Some("token"),
};

/// The options of a trial.
#[derive(Debug)]
pub struct Deepgram {
    setup: Setup,
    turns: Turns,
}

impl Deepgram {
    /// The dialect with these options. `encoding` and `sample_rate` may be given as parameters: `mulaw` is sent as such.
    ///
    /// # Errors
    /// If frames have a length that no server takes, or the audio is of a kind that is not made here.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        let query = options.query_and_params_over(&[
            ("model", options.model.as_deref().unwrap_or(MODEL)),
            ("language", &options.language),
            ("encoding", "linear16"),
            ("sample_rate", "16000"),
            ("channels", "1"),
            ("interim_results", "true"),
            ("endpointing", "300"),
        ]);
        let encoding = match options.param("encoding") {
            None | Some("linear16") => Encoding::S16le,
            Some("mulaw") => Encoding::Mulaw,
            Some(_) => {
                return Err(OptionError::Param {
                    name: "encoding".to_owned(),
                    why: "this audio is not made here; give linear16 or mulaw",
                });
            }
        };
        let rate_hz = match options.param("sample_rate") {
            None | Some("16000") => 16_000,
            Some("8000") => 8_000,
            Some("24000") => 24_000,
            Some(_) => {
                return Err(OptionError::Param {
                    name: "sample_rate".to_owned(),
                    why: "this audio is not made here; give 8000, 16000 or 24000",
                });
            }
        };
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Times,
                    silence: Silence::Probe,
                    ready_at: ReadyAt::Open,
                    ..Facts::default()
                },
                limits: Limits {
                    idle_ms: Some(10_000),
                    ..Limits::default()
                },
                audio: Audio {
                    encoding,
                    rate_hz,
                    frame_ns: options.frame_ns(NAME, 40, 10, 1000)?,
                },
                connect: Connect::websocket(options.path_or("/v1/listen"), query).with_key(
                    NAME,
                    KEY,
                    options.key.as_ref(),
                )?,
                opening: Vec::new(),
            },
            turns: options.turns,
        })
    }
}

impl Dialect for Deepgram {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn refusal_header(&self) -> Option<&'static str> {
        Some("dg-error")
    }

    fn keep_alive(&self) -> Option<Message> {
        Some(Message::text(r#"{"type":"KeepAlive"}"#))
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session {
            turns: self.turns,
            finals: FinalCursor::default(),
            stage: Stage::Open,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// `CloseStream` was sent.
    Ending,
    Drained,
}

#[derive(Debug)]
struct Session {
    turns: Turns,
    finals: FinalCursor,
    stage: Stage,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, _written_ns: u64, sink: &mut Sink<'_>) {
        if let Incoming::Closed { code, .. } = incoming
            && Kind::of_close(code).is_none()
            && self.stage == Stage::Ending
        {
            self.stage = Stage::Drained;
            return sink(Event::Drained);
        }
        if let Some(text) = text_message(incoming, true, kind_of_close, sink) {
            or_fault(self.read(text, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        (self.turns == Turns::Client).then(|| Message::text(r#"{"type":"Finalize"}"#))
    }

    fn end(&mut self, _last_seq: u64, _written_ns: u64) -> Option<Message> {
        self.stage = Stage::Ending;
        Some(Message::text(r#"{"type":"CloseStream"}"#))
    }
}

/// The fields of all types of messages.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    start: Raw<'a>,
    #[serde(borrow)]
    duration: Raw<'a>,
    #[serde(borrow)]
    is_final: Raw<'a>,
    #[serde(borrow)]
    speech_final: Raw<'a>,
    #[serde(borrow)]
    channel: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    last_word_end: Raw<'a>,
}

#[derive(Deserialize)]
struct Channel<'a> {
    #[serde(borrow)]
    alternatives: Raw<'a>,
}

#[derive(Deserialize)]
struct Alternative<'a> {
    #[serde(borrow)]
    transcript: Raw<'a>,
    #[serde(borrow)]
    words: Raw<'a>,
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
    fn read(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let fields: Fields<'_> = json::object(text)?;
        match &*json::text(fields.kind, "type")? {
            "Results" => self.results(&fields, sink)?,
            "SpeechStarted" => sink(Event::Speech {
                edge: Edge::Start,
                at_ns: json::seconds(fields.timestamp, "timestamp")?,
            }),
            "UtteranceEnd" => sink(utterance_end(&fields)?),
            "Metadata" if self.stage == Stage::Ending => {
                self.stage = Stage::Drained;
                sink(Event::Drained);
            }
            "Metadata" | "Warning" => sink(Event::Ignored),
            // The close that follows says whether the session is over.
            "Error" => sink(Event::Error {
                kind: Kind::BadRequest,
                fatal: false,
            }),
            _ => sink(Event::Unknown),
        }
        Ok(())
    }

    fn results(&mut self, fields: &Fields<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let from_ns = json::seconds(fields.start, "start")?;
        let to_ns = from_ns + json::seconds(fields.duration, "duration")?;
        let is_final: bool = json::part(fields.is_final, "is_final")?;
        let channel: Channel<'_> = json::part(fields.channel, "channel")?;
        let alternatives: Vec<Alternative<'_>> =
            json::part(channel.alternatives, "channel.alternatives")?;
        let best = alternatives
            .first()
            .ok_or(Fault::Missing("channel.alternatives"))?;
        let text = json::text(best.transcript, "transcript")?;
        if !is_final {
            sink(Event::Interim {
                cursor_ns: (to_ns > from_ns).then_some(to_ns),
                text: &text,
            });
            return Ok(());
        }
        let words = words(best)?;
        let ends = json::flag(fields.speech_final, "speech_final")?;
        self.finals.report(from_ns, to_ns, &text, &words, sink);
        if ends {
            sink(Event::Speech {
                edge: Edge::End,
                at_ns: to_ns,
            });
        }
        Ok(())
    }
}

fn words<'a>(best: &Alternative<'a>) -> Result<Vec<Word<'a>>, Fault> {
    if best.words.is_none() {
        return Ok(Vec::new());
    }
    let words: Vec<WordFields<'a>> = json::part(best.words, "words")?;
    let word = |fields: &WordFields<'a>| {
        Ok(Word {
            text: json::text(fields.word, "words.word")?,
            from_ns: Some(json::seconds(fields.start, "words.start")?),
            to_ns: Some(json::seconds(fields.end, "words.end")?),
        })
    };
    words.iter().map(word).collect()
}

/// `last_word_end` is -1 where no word came before it.
fn utterance_end(fields: &Fields<'_>) -> Result<Event<'static>, Fault> {
    let last: f64 = json::part(fields.last_word_end, "last_word_end")?;
    #[expect(clippy::float_cmp, reason = "a mark, written as such")]
    if last == -1.0 {
        return Ok(Event::Ignored);
    }
    Ok(Event::Speech {
        edge: Edge::End,
        at_ns: json::ns_of_seconds(last, "last_word_end")?,
    })
}

/// The reason begins with a code that says more than the number of the close.
fn kind_of_close(code: Option<u16>, reason: &str) -> Option<Kind> {
    match code {
        Some(1011) if reason.contains("NET-0001") || reason.contains("timeout") => Some(Kind::Idle),
        Some(1002 | 1008) if reason.contains("DATA-") => Some(Kind::BadRequest),
        Some(4400) => Some(Kind::BadRequest),
        _ => Kind::of_close(code),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::secret::Secret;

    use super::super::{Field, Key, KeyPlace};
    use super::*;

    fn with_key(place: KeyPlace) -> Connect {
        let key = Key {
            value: Secret::new("canary"),
            place,
        };
        let options = Options {
            key: Some(key),
            params: vec![Field::new("endpointing", "500")],
            ..Options::default()
        };
        let deepgram = Deepgram::new(&options).unwrap();
        assert!(!format!("{options:?}{deepgram:?}").contains("canary"));
        deepgram.connect().clone()
    }

    #[test]
    fn the_request_is_the_published_one() {
        let connect = with_key(KeyPlace::Header);
        assert_eq!(
            connect.target().expose(),
            "/v1/listen?model=nova-3&language=en&encoding=linear16&sample_rate=16000&channels=1\
             &interim_results=true&endpointing=500"
        );
        let header = Field::new("Authorization", "Token canary");
        assert_eq!(connect.headers, [header]);
        let subprotocols = with_key(KeyPlace::Subprotocol).subprotocols;
        assert_eq!(subprotocols, ["token", "canary"].map(Secret::new));
    }

    #[test]
    fn frames_are_binary_and_of_the_length_that_the_options_give() {
        let mulaw = Options {
            params: vec![
                Field::new("encoding", "mulaw"),
                Field::new("sample_rate", "8000"),
            ],
            frame_ms: Some(20),
            ..Options::default()
        };
        let deepgram = Deepgram::new(&mulaw).unwrap();
        assert_eq!(deepgram.audio().frame_bytes(), 160);
        assert_eq!(deepgram.pack(&[1, 2]), Message::binary([1, 2]));
        let plain = Deepgram::new(&Options::default()).unwrap();
        assert_eq!(plain.audio().frame_bytes(), 1280);
        let long = Options {
            frame_ms: Some(1001),
            ..Options::default()
        };
        assert_eq!(
            Deepgram::new(&long).unwrap_err().to_string(),
            "deepgram takes messages of 10 to 1000 ms, not 1001 ms; give a length within"
        );
    }
}
