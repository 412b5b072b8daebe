//! `AssemblyAI`'s Universal-Streaming API, version 3.
//!
//! Format: <https://www.assemblyai.com/docs/streaming/message-sequence>; codes of errors:
//! <https://www.assemblyai.com/docs/streaming/common-session-errors-and-closures>.
//!
//! A `Turn` message has all words of a turn so far, each with a mark that says whether it is final. Models differ: some make
//! words final one by one, some all of them at the end of the turn. Once a turn has ended, a repeat with punctuation may
//! come; it is ignored.

use serde::Deserialize;

use super::connect::KeyRule;
use super::cursor::FinalCursor;
use super::json::{self, Raw};
use super::{
    Audio, Connect, Cursor, Dialect, Edge, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, Turns, Word,
    or_fault, report_error, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "assemblyai";

/// The model where the user names none.
const MODEL: &str = "universal-streaming-english";

const KEY: KeyRule = KeyRule {
    header: Some(("Authorization", "")),
    query: Some("token"),
    subprotocol: None,
};

/// The options of a trial.
#[derive(Debug)]
pub struct AssemblyAi {
    setup: Setup,
    turns: Turns,
}

impl AssemblyAi {
    /// The dialect with these options.
    ///
    /// # Errors
    /// If frames have a length that the server does not take.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        let query = options.query_and_params_over(&[
            ("sample_rate", "16000"),
            ("encoding", "pcm_s16le"),
            ("speech_model", options.model.as_deref().unwrap_or(MODEL)),
            ("session_heartbeat", "true"),
        ]);
        let connect = Connect::websocket(options.path_or("/v3/ws"), query);
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Times,
                    silence: Silence::Probe,
                    ready_at: ReadyAt::Message,
                    ..Facts::default()
                },
                limits: Limits {
                    message_min_ms: Some(50),
                    message_max_ms: Some(1000),
                    session_max_ms: Some(3 * 3600 * 1000),
                    ..Limits::default()
                },
                audio: Audio {
                    encoding: Encoding::S16le,
                    rate_hz: 16_000,
                    frame_ns: options.frame_ns(NAME, 100, 50, 1000)?,
                },
                connect: connect.with_key(NAME, KEY, options.key.as_ref())?,
                opening: Vec::new(),
            },
            turns: options.turns,
        })
    }
}

impl Dialect for AssemblyAi {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn keep_alive(&self) -> Option<Message> {
        Some(Message::text(r#"{"type":"KeepAlive"}"#))
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session {
            turns: self.turns,
            is_ready: false,
            turn: 0,
            reported: 0,
            has_ended: false,
            finals: FinalCursor::default(),
        })
    }
}

#[derive(Debug)]
struct Session {
    turns: Turns,
    is_ready: bool,
    /// The number of the turn at hand.
    turn: u64,
    /// How many words of it were reported as final.
    reported: usize,
    /// Its end was reported.
    has_ended: bool,
    finals: FinalCursor,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, _written_ns: u64, sink: &mut Sink<'_>) {
        if let Some(text) = text_message(incoming, self.is_ready, kind_of_code, sink) {
            or_fault(self.read(text, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        (self.turns == Turns::Client).then(|| Message::text(r#"{"type":"ForceEndpoint"}"#))
    }

    fn end(&mut self, _last_seq: u64, _written_ns: u64) -> Option<Message> {
        Some(Message::text(r#"{"type":"Terminate"}"#))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    turn_order: Raw<'a>,
    #[serde(borrow)]
    end_of_turn: Raw<'a>,
    #[serde(borrow)]
    words: Raw<'a>,
    #[serde(borrow)]
    timestamp: Raw<'a>,
    #[serde(borrow)]
    total_audio_received_ms: Raw<'a>,
    #[serde(borrow)]
    error_code: Raw<'a>,
    #[serde(borrow)]
    error: Raw<'a>,
}

#[derive(Deserialize)]
struct WordFields<'a> {
    #[serde(borrow)]
    text: Raw<'a>,
    #[serde(borrow)]
    start: Raw<'a>,
    #[serde(borrow)]
    end: Raw<'a>,
    #[serde(borrow)]
    word_is_final: Raw<'a>,
}

impl Session {
    fn read(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let fields: Fields<'_> = json::object(text)?;
        match &*json::text(fields.kind, "type")? {
            "Begin" => {
                self.is_ready = true;
                sink(Event::Ready);
            }
            "Turn" => self.turn(&fields, sink)?,
            "SpeechStarted" => sink(Event::Speech {
                edge: Edge::Start,
                at_ns: json::milliseconds(fields.timestamp, "timestamp")?,
            }),
            "Heartbeat" => sink(Event::Received {
                upto_ns: json::milliseconds(
                    fields.total_audio_received_ms,
                    "total_audio_received_ms",
                )?,
            }),
            "Termination" => sink(Event::Drained),
            "Error" => {
                let code: u16 = json::part(fields.error_code, "error_code")?;
                let reason = json::text_or_empty(fields.error, "error")?;
                let kind = kind_of_code(Some(code), &reason).unwrap_or(Kind::Internal);
                report_error(self.is_ready, kind, sink);
            }
            "Warning" | "SpeakerRevision" | "LLMGatewayResponse" => sink(Event::Ignored),
            _ => sink(Event::Unknown),
        }
        Ok(())
    }

    fn turn(&mut self, fields: &Fields<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let turn = json::whole(fields.turn_order, "turn_order")?;
        let ends: bool = json::part(fields.end_of_turn, "end_of_turn")?;
        let all: Vec<WordFields<'_>> = json::part(fields.words, "words")?;
        if turn < self.turn {
            return Err(Fault::CursorBack);
        }
        if turn > self.turn {
            (self.turn, self.reported, self.has_ended) = (turn, 0, false);
        } else if self.has_ended {
            sink(Event::Ignored);
            return Ok(());
        }
        let mut words = Vec::with_capacity(all.len().saturating_sub(self.reported));
        let mut last_final = 0;
        for fields in all.iter().skip(self.reported) {
            words.push(word(fields)?);
            // At the end of a turn all is final, whatever the marks say.
            if ends || json::part(fields.word_is_final, "words.word_is_final")? {
                last_final = words.len();
            }
        }
        let (finals, interims) = words.split_at(last_final);
        self.reported += finals.len();
        self.has_ended = ends;
        self.report(finals, sink);
        if let Some((_, to_ns)) = span(interims) {
            sink(Event::Interim {
                cursor_ns: Some(to_ns),
                text: &joined(interims),
            });
        }
        if ends {
            sink(Event::Speech {
                edge: Edge::End,
                at_ns: self.finals.at_ns(),
            });
        } else if words.is_empty() {
            sink(Event::Ignored);
        }
        Ok(())
    }

    fn report(&mut self, finals: &[Word<'_>], sink: &mut Sink<'_>) {
        if let Some((start_ns, to_ns)) = span(finals) {
            let from_ns = self.finals.start_of_word_ns(start_ns);
            self.finals
                .report(from_ns, to_ns, &joined(finals), finals, sink);
        }
    }
}

fn word<'a>(fields: &WordFields<'a>) -> Result<Word<'a>, Fault> {
    Ok(Word {
        text: json::text(fields.text, "words.text")?,
        from_ns: Some(json::milliseconds(fields.start, "words.start")?),
        to_ns: Some(json::milliseconds(fields.end, "words.end")?),
    })
}

fn span(words: &[Word<'_>]) -> Option<(u64, u64)> {
    Some((words.first()?.from_ns?, words.last()?.to_ns?))
}

fn joined(words: &[Word<'_>]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| &*word.text).collect();
    texts.join(" ")
}

/// The codes of `Error` messages and of closes are the same. Those from 4000 on are of the API's version 2, which
/// servers still send.
fn kind_of_code(code: Option<u16>, reason: &str) -> Option<Kind> {
    match code? {
        1008 | 4001 => Some(Kind::Auth),
        3007 if reason.contains("Rate") => Some(Kind::TooFast),
        3006 | 3007 => Some(Kind::BadRequest),
        3008 | 4008 => Some(Kind::TimeLimit),
        3009 | 4102 => Some(Kind::Rate),
        4002 | 4003 => Some(Kind::Quota),
        4029 => Some(Kind::TooFast),
        4031 => Some(Kind::Idle),
        4000 | 4004 | 4010 | 4030..4035 | 4100..4105 => Some(Kind::BadRequest),
        _ => Kind::of_close(code),
    }
}
