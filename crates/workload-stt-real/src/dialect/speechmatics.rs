//! Speechmatics' realtime API, version 2.
//!
//! Format: <https://docs.speechmatics.com/api-ref/realtime-transcription-websocket>, and its description in AsyncAPI,
//! `spec/realtime.yaml` of <https://github.com/speechmatics/docs>.
//!
//! Each message of audio is confirmed with its number. A final speaks of a span, `metadata.start_time` to `end_time`, and
//! `metadata.transcript` has its text with spaces and punctuation.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

use super::connect::KeyRule;
use super::cursor::FinalCursor;
use super::json::{self, Raw};
use super::{
    Audio, Connect, Cursor, Dialect, Edge, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, Turns, Word,
    is_text, or_fault, report_error, text_message,
};

/// The name of the dialect.
pub const NAME: &str = "speechmatics";

const KEY: KeyRule = KeyRule {
    header: Some(("Authorization", "Bearer ")),
    query: Some("jwt"),
    subprotocol: None,
};

/// The options of a trial.
#[derive(Debug)]
pub struct Speechmatics {
    setup: Setup,
    turns: Turns,
}

impl Speechmatics {
    /// The dialect with these options. The model is what Speechmatics calls an operating point.
    ///
    /// # Errors
    /// If frames have a length that no server takes.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        let mut config = json!({
            "language": options.language,
            "enable_partials": true,
            "max_delay": 1.0,
        });
        if let Some(model) = &options.model {
            config["operating_point"] = json!(model);
        }
        let opening = options.opening(json!({
            "message": "StartRecognition",
            "audio_format": {"type": "raw", "encoding": "pcm_s16le", "sample_rate": 16000},
            "transcription_config": config,
        }))?;
        let connect = Connect::websocket(options.path_or("/v2"), options.query_over(&[]));
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
                    idle_ms: Some(3600 * 1000),
                    session_max_ms: Some(48 * 3600 * 1000),
                    ..Limits::default()
                },
                audio: Audio {
                    encoding: Encoding::S16le,
                    rate_hz: 16_000,
                    frame_ns: options.frame_ns(NAME, 40, 10, 1000)?,
                },
                connect: connect.with_key(NAME, KEY, options.key.as_ref())?,
                opening: vec![Message::text(opening.to_string())],
            },
            turns: options.turns,
        })
    }
}

impl Dialect for Speechmatics {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session {
            turns: self.turns,
            frame_ns: self.setup.audio.frame_ns,
            is_ready: false,
            received: 0,
            finals: FinalCursor::default(),
        })
    }
}

#[derive(Debug)]
struct Session {
    turns: Turns,
    frame_ns: u64,
    is_ready: bool,
    /// The number of the last message of audio that the server confirmed.
    received: u64,
    finals: FinalCursor,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, _written_ns: u64, sink: &mut Sink<'_>) {
        if let Some(text) = text_message(incoming, self.is_ready, kind_of_close, sink) {
            or_fault(self.read(text, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        (self.turns == Turns::Client).then(|| Message::text(r#"{"message":"ForceEndOfUtterance"}"#))
    }

    fn end(&mut self, last_seq: u64, _written_ns: u64) -> Option<Message> {
        Some(Message::text(format!(
            r#"{{"message":"EndOfStream","last_seq_no":{last_seq}}}"#
        )))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    message: Raw<'a>,
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    seq_no: Raw<'a>,
    #[serde(borrow)]
    metadata: Raw<'a>,
    #[serde(borrow)]
    results: Raw<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    start_time: Raw<'a>,
    #[serde(borrow)]
    end_time: Raw<'a>,
    #[serde(borrow)]
    transcript: Raw<'a>,
}

#[derive(Deserialize)]
struct ResultFields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Raw<'a>,
    #[serde(borrow)]
    start_time: Raw<'a>,
    #[serde(borrow)]
    end_time: Raw<'a>,
    #[serde(borrow)]
    alternatives: Raw<'a>,
}

#[derive(Deserialize)]
struct Alternative<'a> {
    #[serde(borrow)]
    content: Raw<'a>,
}

impl Session {
    fn read(&mut self, text: &str, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let fields: Fields<'_> = json::object(text)?;
        match &*json::text(fields.message, "message")? {
            "RecognitionStarted" => {
                self.is_ready = true;
                sink(Event::Ready);
            }
            "AudioAdded" => self.audio_added(json::whole(fields.seq_no, "seq_no")?, sink),
            "AddPartialTranscript" => {
                let metadata: Metadata<'_> = json::part(fields.metadata, "metadata")?;
                sink(Event::Interim {
                    cursor_ns: Some(json::seconds(metadata.end_time, "metadata.end_time")?),
                    text: &json::text(metadata.transcript, "metadata.transcript")?,
                });
            }
            "AddTranscript" => self.transcript(&fields, sink)?,
            "EndOfUtterance" => {
                let metadata: Metadata<'_> = json::part(fields.metadata, "metadata")?;
                sink(Event::Speech {
                    edge: Edge::End,
                    at_ns: json::seconds(metadata.end_time, "metadata.end_time")?,
                });
            }
            "EndOfTranscript" => sink(Event::Drained),
            "Error" => {
                let kind = kind_of_error(&json::text(fields.kind, "type")?);
                report_error(self.is_ready, kind, sink);
            }
            // What comes after the limit is confirmed and not transcribed.
            "Warning" if is_text(fields.kind, "duration_limit_exceeded") => {
                sink(Event::Error {
                    kind: Kind::TimeLimit,
                    fatal: false,
                });
            }
            "Warning"
            | "Info"
            | "AudioEventStarted"
            | "AudioEventEnded"
            | "AddTranslation"
            | "AddPartialTranslation"
            | "SpeakersResult"
            | "ChannelAudioAdded" => {
                sink(Event::Ignored);
            }
            _ => sink(Event::Unknown),
        }
        Ok(())
    }

    fn audio_added(&mut self, number: u64, sink: &mut Sink<'_>) {
        if number <= self.received {
            return sink(Event::Fault(Fault::CursorBack));
        }
        self.received = number;
        sink(Event::Received {
            upto_ns: number.saturating_mul(self.frame_ns),
        });
    }

    fn transcript(&mut self, fields: &Fields<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let metadata: Metadata<'_> = json::part(fields.metadata, "metadata")?;
        let from_ns = json::seconds(metadata.start_time, "metadata.start_time")?;
        let to_ns = json::seconds(metadata.end_time, "metadata.end_time")?;
        let text = json::text(metadata.transcript, "metadata.transcript")?;
        let words = words(fields.results)?;
        self.finals.report(from_ns, to_ns, &text, &words, sink);
        Ok(())
    }
}

/// The words of the results; punctuation is left out.
fn words(raw: Raw<'_>) -> Result<Vec<Word<'_>>, Fault> {
    let results: Vec<ResultFields<'_>> = json::part(raw, "results")?;
    let mut words = Vec::with_capacity(results.len());
    for result in &results {
        if &*json::text(result.kind, "results.type")? != "word" {
            continue;
        }
        let all: Vec<Alternative<'_>> = json::part(result.alternatives, "results.alternatives")?;
        let best = all.first().ok_or(Fault::Missing("results.alternatives"))?;
        let content = json::text(best.content, "results.alternatives.content")?;
        words.push(Word {
            text: Cow::Owned(content.into_owned()),
            from_ns: Some(json::seconds(result.start_time, "results.start_time")?),
            to_ns: Some(json::seconds(result.end_time, "results.end_time")?),
        });
    }
    Ok(words)
}

/// The types of `Error`, as the description lists them. `timelimit_exceeded` is the contract's time, not the session's.
fn kind_of_error(kind: &str) -> Kind {
    match kind {
        "not_authorised" | "not_allowed" => Kind::Auth,
        "insufficient_funds" | "quota_exceeded" | "timelimit_exceeded" => Kind::Quota,
        "data_error" | "buffer_error" => Kind::TooFast,
        "idle_timeout" => Kind::Idle,
        "session_timeout" => Kind::TimeLimit,
        "invalid_message"
        | "invalid_model"
        | "invalid_config"
        | "invalid_audio_type"
        | "invalid_output_format"
        | "protocol_error" => Kind::BadRequest,
        _ => Kind::Internal,
    }
}

fn kind_of_close(code: Option<u16>, _reason: &str) -> Option<Kind> {
    match code {
        Some(1008) => Some(Kind::Idle),
        Some(4001 | 4003) => Some(Kind::Auth),
        Some(4004) => Some(Kind::BadRequest),
        Some(4005 | 4006) => Some(Kind::Quota),
        _ => Kind::of_close(code),
    }
}
