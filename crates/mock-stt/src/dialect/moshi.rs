//! Kyutai's moshi server, speech to text: <https://github.com/kyutai-labs/delayed-streams-modeling>, `moshi-server` and its
//! `scripts/stt_from_file_rust_server.py`.
//!
//! `MessagePack`, both ways. Words are final as they come. A marker of the client comes back once all before it was heard.

use plimsoll_mock_server::http::Answer;
use plimsoll_msgpack::{Reader, Writer};

use super::{
    Ask, Dialect, Framing, INTERNAL_ERROR, Incoming, Out, Refusal, refused_plainly, seconds,
};
use crate::audio::{Encoding, Format};
use crate::corpus::Word;
use crate::scribe::Event;

/// The audio of a step of the model, in ms.
const STEP_MS: u64 = 80;
/// The number of the first step. It is the batch's, so a session's first one is not 0.
const FIRST_STEP: u64 = 9_001;
/// What the model thinks of pauses, which no client of ours reads.
const PAUSES: [f32; 4] = [0.1, 0.02, 0.5, 0.9];

/// A session.
#[derive(Debug, Default)]
pub struct Moshi {
    steps: u64,
    /// The markers that have not come back.
    markers: std::collections::VecDeque<u64>,
}

fn of_type(kind: &str, more: u8) -> Writer {
    Writer::default().map(1 + more).text("type").text(kind)
}

fn error(told: &str, out: &mut Out) {
    out.bytes(of_type("Error", 1).text("message").text(told).finish());
}

fn word(word: &Word, out: &mut Out) {
    let start = of_type("Word", 2).text("text").text(&word.text);
    out.bytes(
        start
            .text("start_time")
            .float(seconds(word.start_ms))
            .finish(),
    );
    let end = of_type("EndWord", 1).text("stop_time");
    out.bytes(end.float(seconds(word.end_ms)).finish());
}

impl Dialect for Moshi {
    fn framing(&self) -> Framing {
        Framing::MessagePack
    }

    fn format(&self) -> Format {
        Format {
            encoding: Encoding::F32le,
            rate_hz: 24_000,
        }
    }

    fn greeting(&mut self, out: &mut Out) {
        out.bytes(of_type("Ready", 0).finish());
    }

    fn take(&mut self, incoming: Incoming<'_>, asks: &mut Vec<Ask>, out: &mut Out) {
        let Incoming::Binary(bytes) = incoming else {
            return error("text is not understood", out);
        };
        let message = Reader::new(bytes);
        let field = |name| message.field(name);
        match field("type").and_then(Reader::text) {
            Some("Audio") => {
                let samples = field("pcm").and_then(Reader::items);
                #[expect(clippy::cast_possible_truncation, reason = "floats of 32 bits")]
                let bytes = samples.into_iter().flatten().flat_map(|sample| {
                    let sample = sample.number().unwrap_or_default() as f32;
                    sample.to_le_bytes()
                });
                asks.push(Ask::Audio(bytes.collect()));
            }
            Some("Marker") => {
                let id = field("id").and_then(Reader::int).unwrap_or_default();
                self.markers.push_back(id.unsigned_abs());
                asks.push(Ask::End);
            }
            Some("Init") => {}
            _ => {
                error("unknown message", out);
                out.close(INTERNAL_ERROR, "");
            }
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Out) {
        match event {
            Event::Word(told) => word(told, out),
            Event::Final(told) if told.again => {
                told.words.iter().for_each(|told| word(told, out));
            }
            Event::Message { heard_ms } => {
                while (self.steps + 1) * STEP_MS <= *heard_ms {
                    let step = of_type("Step", 3)
                        .text("step_idx")
                        .int(FIRST_STEP + self.steps);
                    let step = step.text("prs").array(4);
                    let step = PAUSES.into_iter().fold(step, Writer::float32);
                    out.bytes(step.text("buffered_pcm").int(0).finish());
                    self.steps += 1;
                }
            }
            _ => {}
        }
    }

    fn goodbye(&mut self, _heard_ms: u64, out: &mut Out) {
        let id = self.markers.pop_front().unwrap_or_default();
        out.bytes(of_type("Marker", 1).text("id").int(id).finish());
    }

    fn refused(&self, refusal: Refusal) -> Option<Answer> {
        (refusal != Refusal::Capacity).then(|| refused_plainly(refusal))
    }

    fn refuse(&mut self, _refusal: Refusal, _heard: &str, out: &mut Out) {
        error("no free channels", out);
        out.drop_line();
    }

    fn fail(&mut self, out: &mut Out) {
        error("failed on demand", out);
        out.close(INTERNAL_ERROR, "");
    }
}
