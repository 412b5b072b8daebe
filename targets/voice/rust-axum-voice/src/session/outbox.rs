//! What waits to be written to a client.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use rust_axum::websocket::Message;

use crate::limits::{REPLY_BLOCK_BYTES, RESULT_WAIT};
use crate::messages;
use crate::metrics::{Metrics, Spoken};
use crate::problem::Problem;

/// The most of a message of audio, in bytes: 170 ms. A message that was begun must be ended, even if a `clear` comes.
const PIECE_BYTES_MAX: usize = 8 * 1024;

/// A part of a reply.
#[derive(Debug)]
struct Part {
    may_be_interrupted: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    Audio(Bytes),
    Complete { speak: u64, provider_ms: f64, dropped_bytes: u64 },
    Failed(Problem),
}

/// What is said beside replies.
#[derive(Debug)]
struct Text {
    text: String,
    /// Of a result: whether it is final, and when it came.
    result: Option<(bool, Instant)>,
}

/// What has come of a reply so far.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    bytes: u64,
    /// What there was no room for.
    pub(super) dropped_bytes: u64,
    /// Whether the block that has begun is dropped.
    dropping: bool,
}

impl SoFar {
    /// What is still to come of the block that has begun; 0 if none has.
    fn rest_of_block_bytes(&self) -> usize {
        let begun_bytes = usize::try_from(self.bytes % REPLY_BLOCK_BYTES as u64).expect("less than a block");
        (REPLY_BLOCK_BYTES - begun_bytes) % REPLY_BLOCK_BYTES
    }
}

/// Two lanes: what is said does not wait behind the audio of a reply, and the end of a reply does.
#[derive(Debug)]
pub(super) struct Outbox {
    audio_bytes_max: usize,
    audio_bytes: usize,
    texts: VecDeque<Text>,
    reply: VecDeque<Part>,
}

impl Outbox {
    pub(super) fn new(audio_bytes_max: usize) -> Self {
        Self { audio_bytes_max, audio_bytes: 0, texts: VecDeque::new(), reply: VecDeque::new() }
    }

    /// A message that is no result.
    pub(super) fn say(&mut self, text: String) {
        self.texts.push_back(Text { text, result: None });
    }

    /// A result.
    pub(super) fn result(&mut self, text: String, is_final: bool, now: Instant) {
        self.texts.retain(|text| !is_stale(text, now));
        self.texts.push_back(Text { text, result: Some((is_final, now)) });
    }

    /// Audio of a reply. Blocks of 20 ms for which there is no room are dropped whole, however they came; and where nothing
    /// waits there is always room.
    pub(super) fn audio(&mut self, mut audio: Bytes, may_be_interrupted: bool, so_far: &mut SoFar) {
        let nothing_waits = self.audio_bytes == 0;
        // A block that has begun goes the way of its beginning.
        let begun = audio.split_to(so_far.rest_of_block_bytes().min(audio.len()));
        so_far.bytes += (begun.len() + audio.len()) as u64;
        if so_far.dropping {
            so_far.dropped_bytes += begun.len() as u64;
        } else {
            self.keep(begun, may_be_interrupted);
        }
        if audio.is_empty() {
            return;
        }
        let room_bytes =
            if nothing_waits { audio.len() } else { self.audio_bytes_max.saturating_sub(self.audio_bytes) };
        so_far.dropping = audio.len() > room_bytes;
        if so_far.dropping {
            let dropped = audio.split_off(room_bytes - room_bytes % REPLY_BLOCK_BYTES);
            so_far.dropped_bytes += dropped.len() as u64;
        }
        self.keep(audio, may_be_interrupted);
    }

    fn keep(&mut self, mut audio: Bytes, may_be_interrupted: bool) {
        self.audio_bytes += audio.len();
        while !audio.is_empty() {
            let piece = audio.split_to(audio.len().min(PIECE_BYTES_MAX));
            self.reply.push_back(Part { may_be_interrupted, what: What::Audio(piece) });
        }
    }

    /// A reply is over, and all of it is here or was written.
    pub(super) fn complete(&mut self, speak: u64, may_be_interrupted: bool, provider_ms: f64, dropped_bytes: u64) {
        let what = What::Complete { speak, provider_ms, dropped_bytes };
        self.reply.push_back(Part { may_be_interrupted, what });
    }

    /// A reply is over, and will not be whole.
    pub(super) fn failed(&mut self, problem: Problem, may_be_interrupted: bool) {
        self.reply.push_back(Part { may_be_interrupted, what: What::Failed(problem) });
    }

    /// Drops all of the replies that may be interrupted; how many of them would have been complete.
    pub(super) fn interrupt(&mut self) -> u64 {
        let complete = |part: &Part| part.may_be_interrupted && matches!(part.what, What::Complete { .. });
        let dropped = self.reply.iter().filter(|part| complete(part)).count();
        self.reply.retain(|part| !part.may_be_interrupted);
        let bytes = |part: &Part| if let What::Audio(audio) = &part.what { audio.len() } else { 0 };
        self.audio_bytes = self.reply.iter().map(bytes).sum();
        dropped as u64
    }

    /// Replies that are over and not wholly written.
    pub(super) fn complete_replies(&self) -> usize {
        self.reply.iter().filter(|part| matches!(part.what, What::Complete { .. })).count()
    }

    /// The next message, counted as written.
    pub(super) fn next(&mut self, now: Instant, metrics: &Metrics) -> Option<Message> {
        while let Some(text) = self.texts.pop_front() {
            if !is_stale(&text, now) {
                if let Some((is_final, _)) = text.result {
                    metrics.result(is_final);
                }
                return Some(Message::text(text.text));
            }
        }
        Some(match self.reply.pop_front()?.what {
            What::Audio(audio) => {
                self.audio_bytes -= audio.len();
                metrics.audio_out.add(audio.len() as u64);
                Message::Binary(audio)
            }
            What::Complete { speak, provider_ms, dropped_bytes } => {
                metrics.spoke(Spoken::Complete, 1);
                Message::text(messages::complete(speak, provider_ms, dropped_bytes))
            }
            What::Failed(problem) => {
                metrics.error(problem.kind);
                Message::text(messages::error(&problem))
            }
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.reply.is_empty()
    }
}

/// Whether it is a result that nobody waits for any more.
fn is_stale(text: &Text, now: Instant) -> bool {
    text.result.is_some_and(|(_, came_at)| now.saturating_duration_since(came_at) > RESULT_WAIT)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::problem::Kind;

    fn written(outbox: &mut Outbox, now: Instant) -> Vec<String> {
        let metrics = Metrics::default();
        std::iter::from_fn(|| outbox.next(now, &metrics))
            .map(|message| match message {
                Message::Binary(audio) => format!("{} bytes", audio.len()),
                text => {
                    let text: serde_json::Value = serde_json::from_str(text.to_text().expect("a text")).expect("JSON");
                    text["type"].as_str().unwrap_or("none").to_owned()
                }
            })
            .collect()
    }

    #[test]
    fn texts_go_first_and_the_end_of_a_reply_last() {
        let (mut outbox, now) = (Outbox::new(20_000), Instant::now());
        outbox.audio(vec![0; 10_000].into(), true, &mut SoFar::default());
        outbox.complete(1, true, 0.0, 0);
        outbox.result(r#"{"type":"stt_result"}"#.to_owned(), true, now);
        let expected = ["stt_result", "8192 bytes", "1808 bytes", "tts_playback_complete"];
        assert_eq!(written(&mut outbox, now), expected);
        assert!(outbox.is_empty());
    }

    #[test]
    fn audio_beyond_the_room_is_dropped() {
        let (mut outbox, mut so_far, now) = (Outbox::new(2000), SoFar::default(), Instant::now());
        let block = Bytes::from(vec![0; 960]);
        (0..3).for_each(|_| outbox.audio(block.clone(), true, &mut so_far));
        assert_eq!(so_far.dropped_bytes, 960);
        assert_eq!(written(&mut outbox, now), ["960 bytes", "960 bytes"]);
        outbox.audio(block, true, &mut so_far);
        assert_eq!((so_far.dropped_bytes, so_far.bytes), (960, 4 * 960));
    }

    #[test]
    fn blocks_are_dropped_whole_however_they_come() {
        let reply: Bytes = (0..40_u8).flat_map(|number| [number; REPLY_BLOCK_BYTES]).collect();
        for piece_bytes in [1, 100, 960, 1000, 2880, 7001, 30_000] {
            let (mut outbox, mut so_far, metrics) = (Outbox::new(5000), SoFar::default(), Metrics::default());
            let (mut heard, mut pieces) = (Vec::new(), 0);
            for start in (0..reply.len()).step_by(piece_bytes) {
                outbox.audio(reply.slice(start..reply.len().min(start + piece_bytes)), true, &mut so_far);
                assert!(outbox.audio_bytes <= 5000_usize.max(piece_bytes) + REPLY_BLOCK_BYTES);
                pieces += 1;
                // The client takes a message now and then.
                if pieces % (1 + 6000 / piece_bytes) == 0
                    && let Some(Message::Binary(audio)) = outbox.next(Instant::now(), &metrics)
                {
                    heard.extend(audio);
                }
            }
            while let Some(Message::Binary(audio)) = outbox.next(Instant::now(), &metrics) {
                heard.extend(audio);
            }
            assert!(so_far.dropped_bytes > 0, "{piece_bytes}");
            assert_eq!(heard.len() as u64 + so_far.dropped_bytes, reply.len() as u64);
            assert_eq!(heard.len() % REPLY_BLOCK_BYTES, 0, "{piece_bytes}");
            let blocks = heard.chunks(REPLY_BLOCK_BYTES);
            assert!(blocks.clone().all(|block| block.iter().all(|byte| *byte == block[0])), "{piece_bytes}");
            assert!(blocks.map(|block| block[0]).is_sorted_by(|one, next| one < next), "{piece_bytes}");
        }
    }

    #[test]
    fn an_interruption_drops_what_may_be_interrupted() {
        let (mut outbox, now) = (Outbox::new(20_000), Instant::now());
        for (speak, may) in [(1, true), (2, false), (3, true)] {
            let audio = vec![0; 100 * usize::try_from(speak).expect("small")];
            outbox.audio(audio.into(), may, &mut SoFar::default());
            outbox.complete(speak, may, 0.0, 0);
        }
        outbox.failed(Problem::new(Kind::TtsFailed, "no"), true);
        outbox.say(r#"{"type":"ready"}"#.to_owned());
        assert_eq!((outbox.interrupt(), outbox.audio_bytes), (2, 200));
        assert_eq!(written(&mut outbox, now), ["ready", "200 bytes", "tts_playback_complete"]);
    }

    #[test]
    fn a_result_waits_for_half_a_second() {
        let (mut outbox, now) = (Outbox::new(0), Instant::now());
        let result = || r#"{"type":"stt_result"}"#.to_owned();
        outbox.result(result(), false, now);
        outbox.say(r#"{"type":"error"}"#.to_owned());
        outbox.result(result(), false, now + Duration::from_millis(400));
        assert_eq!(written(&mut outbox, now + Duration::from_millis(600)), ["error", "stt_result"]);
    }
}
