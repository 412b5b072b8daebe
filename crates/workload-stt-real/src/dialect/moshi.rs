//! Kyutai's moshi-server, speech-to-text.
//!
//! There is no published format but the source: <https://github.com/kyutai-labs/moshi>, `rust/moshi-server/src/asr.rs` and
//! `batched_asr.rs`; a client is `scripts/transcribe_from_file_via_rust_server.py` of
//! <https://github.com/kyutai-labs/delayed-streams-modeling>.
//!
//! Messages are MessagePack maps. The model makes a step for each 80 ms of audio and says so; the number in `step_idx` is
//! that of all the sessions that it serves at once, so steps are counted here. A word is never taken back, but where it
//! ends is known with `EndWord` or with the next word, and with that it is reported as final.
//!
//! The model hears [`MODEL_DELAY_NS`] of audio after a word before it tells it. So the final cursor in silence follows the
//! steps that far behind, and the marker that ends a session comes back only if silence is sent after it.

use std::borrow::Cow;

use plimsoll_msgpack::{Reader, Writer};

use super::connect::KeyRule;
use super::cursor::FinalCursor;
use super::json::ns_of_seconds;
use super::{
    Audio, Connect, Cursor, Dialect, Encoding, Event, Facts, Fault, Incoming, Kind, Limits,
    Message, NS_PER_MS, OptionError, Options, ReadyAt, Setup, Silence, Sink, Transcription, Word,
    binary_message, or_fault, report_error,
};

/// The name of the dialect.
pub const NAME: &str = "moshi";

/// The audio of one step of the model.
const STEP_NS: u64 = 80 * NS_PER_MS;

/// The longest delay of Kyutai's models: 2.5 s, of stt-2.6b-en, as whole steps; that of stt-1b-en_fr is 6 steps. A server
/// does not say which it has.
pub const MODEL_DELAY_NS: u64 = 32 * STEP_NS;

/// The id of the marker that ends a session.
const MARKER: u64 = 1;

const KEY: KeyRule = KeyRule {
    header: Some(("kyutai-api-key", "")),
    query: Some("auth_id"),
    subprotocol: None,
};

/// The options of a trial.
#[derive(Debug)]
pub struct Moshi {
    setup: Setup,
}

impl Moshi {
    /// The dialect with these options. The server has one model and one language.
    ///
    /// # Errors
    /// If frames have a length that no server takes, or the options ask for turns by the client.
    pub fn new(options: &Options) -> Result<Self, OptionError> {
        options.refuse_client_turns(NAME)?;
        let query = options.query_and_params_over(&[]);
        let connect = Connect::websocket(options.path_or("/api/asr-streaming"), query);
        Ok(Self {
            setup: Setup {
                name: NAME,
                facts: Facts {
                    cursor: Cursor::Answers,
                    silence: Silence::Decidable,
                    ready_at: ReadyAt::Message,
                    silence_to_drain: true,
                    ..Facts::default()
                },
                limits: Limits {
                    idle_ms: Some(120_000),
                    ..Limits::default()
                },
                audio: Audio {
                    encoding: Encoding::F32le,
                    rate_hz: 24_000,
                    frame_ns: options.frame_ns(NAME, 80, 20, 1000)?,
                },
                connect: connect.with_key(NAME, KEY, options.key.as_ref())?,
                opening: Vec::new(),
            },
        })
    }
}

impl Dialect for Moshi {
    fn setup(&self) -> &Setup {
        &self.setup
    }

    fn pack(&self, frame: &[u8]) -> Message {
        let (samples, _) = frame.as_chunks::<4>();
        let count = u16::try_from(samples.len()).unwrap_or(u16::MAX);
        let head = Writer::default()
            .map(2)
            .text("type")
            .text("Audio")
            .text("pcm")
            .array(count);
        let all = samples.iter().take(usize::from(count));
        let writer = all.fold(head, |writer, sample| {
            writer.float32(f32::from_le_bytes(*sample))
        });
        Message::binary(writer.finish())
    }

    fn transcription(&self) -> Box<dyn Transcription> {
        Box::new(Session::default())
    }
}

#[derive(Debug, Default)]
struct Session {
    is_ready: bool,
    steps: u64,
    finals: FinalCursor,
    /// A word whose end is not known, and where it starts.
    word: Option<(String, u64)>,
}

impl Transcription for Session {
    fn parse(&mut self, incoming: Incoming<'_>, _written_ns: u64, sink: &mut Sink<'_>) {
        if let Some(bytes) = binary_message(incoming, self.is_ready, sink) {
            or_fault(self.read(bytes, sink), sink);
        }
    }

    fn flush(&mut self, _written_ns: u64) -> Option<Message> {
        None
    }

    fn end(&mut self, _last_seq: u64, _written_ns: u64) -> Option<Message> {
        let marker = Writer::default().map(2).text("type").text("Marker");
        Some(Message::binary(marker.text("id").int(MARKER).finish()))
    }
}

impl Session {
    fn read(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), Fault> {
        let message = Reader::new(bytes);
        if !message.is_whole_map() {
            return Err(Fault::MessagePack);
        }
        match text(message, "type")? {
            "Ready" => {
                self.is_ready = true;
                sink(Event::Ready);
            }
            "Step" => self.step(sink),
            "Word" => {
                let (word, start_ns) = (text(message, "text")?, seconds(message, "start_time")?);
                self.finish_word(start_ns, sink);
                sink(Event::Interim {
                    cursor_ns: Some(start_ns),
                    text: word,
                });
                self.word = Some((word.to_owned(), start_ns));
            }
            "EndWord" => {
                self.finish_word(seconds(message, "stop_time")?, sink);
                sink(Event::Ignored);
            }
            "Marker" => {
                let id = message.field("id").ok_or(Fault::Missing("id"))?;
                if id.int().ok_or(Fault::Mistyped("id"))? != MARKER.cast_signed() {
                    sink(Event::Ignored);
                    return Ok(());
                }
                self.finish_word(self.steps * STEP_NS, sink);
                sink(Event::Drained);
            }
            "Error" => match text(message, "message")? {
                "no free channels" => report_error(self.is_ready, Kind::Capacity, sink),
                _ => report_error(self.is_ready, Kind::Internal, sink),
            },
            _ => sink(Event::Unknown),
        }
        Ok(())
    }

    fn step(&mut self, sink: &mut Sink<'_>) {
        self.steps += 1;
        let upto_ns = self.steps * STEP_NS;
        sink(Event::Received { upto_ns });
        if self.word.is_none() {
            self.finals
                .progress(upto_ns.saturating_sub(MODEL_DELAY_NS), sink);
        }
    }

    /// Reports the word at hand, which ends at `to_ns` at the latest.
    fn finish_word(&mut self, to_ns: u64, sink: &mut Sink<'_>) {
        if let Some((word, start_ns)) = self.word.take() {
            let to_ns = to_ns.max(start_ns);
            let from_ns = self.finals.start_of_word_ns(start_ns);
            let words = [Word {
                text: Cow::Borrowed(&word),
                from_ns: Some(start_ns),
                to_ns: Some(to_ns),
            }];
            self.finals.report(from_ns, to_ns, &word, &words, sink);
        }
    }
}

fn text<'a>(message: Reader<'a>, name: &'static str) -> Result<&'a str, Fault> {
    let field = message.field(name).ok_or(Fault::Missing(name))?;
    field.text().ok_or(Fault::Mistyped(name))
}

fn seconds(message: Reader<'_>, name: &'static str) -> Result<u64, Fault> {
    let field = message.field(name).ok_or(Fault::Missing(name))?;
    ns_of_seconds(field.number().ok_or(Fault::Mistyped(name))?, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_map_with_an_array_of_floats() {
        let moshi = Moshi::new(&Options::default()).unwrap();
        assert_eq!(moshi.audio().frame_bytes(), 1920 * 4);
        let frame: Vec<u8> = [0.5_f32, -1.0]
            .iter()
            .flat_map(|s| s.to_le_bytes())
            .collect();
        let expected = b"\x82\xA4type\xA5Audio\xA3pcm\x92\xCA\x3F\0\0\0\xCA\xBF\x80\0\0";
        assert_eq!(moshi.pack(&frame), Message::binary(*expected));
        let whole = moshi.pack(&vec![0; 1920 * 4]).content;
        assert!(Reader::new(&whole).is_whole_map());
        assert_eq!(whole.len(), 1 + 5 + 6 + 4 + 3 + 1920 * 5);
    }
}
