//! Answers of a gateway that asks nobody: made-up results and replies, with forged marks or with none.

use std::time::Duration;

use bytes::Bytes;

use super::blocks::Cutter;
use super::{Lie, Lies};
use crate::marks::{self, CALLER_BLOCK_BYTES, CallerMark, REPLY_BLOCK_BYTES, ReplyMark};
use crate::messages::SttResult;

/// A reply has so many blocks for each character, as the mocks' have.
const BLOCKS_PER_CHAR: u32 = 3;

/// Whether nobody is asked.
#[must_use]
pub fn is_told(lies: &Lies) -> bool {
    lies.is(Lie::AskNobody) || lies.is(Lie::ForgeMarks)
}

/// Hears where an utterance ends, by the callers' marks.
#[derive(Debug)]
pub struct FalseEar {
    forges: bool,
    cutter: Cutter,
    from: Option<u32>,
}

impl FalseEar {
    /// An ear that forges marks, or does not.
    #[must_use]
    pub fn new(lies: &Lies) -> Self {
        Self { forges: lies.is(Lie::ForgeMarks), cutter: Cutter::new(CALLER_BLOCK_BYTES), from: None }
    }

    /// The results of utterances that end in this audio.
    pub fn hear(&mut self, audio: &[u8]) -> Vec<SttResult> {
        let marks: Vec<_> = self.cutter.cut(audio).iter().filter_map(|block| CallerMark::read(block)).collect();
        marks.into_iter().filter_map(|mark| self.block(mark)).collect()
    }

    fn block(&mut self, mark: CallerMark) -> Option<SttResult> {
        if mark.speech {
            self.from.get_or_insert(mark.block);
        }
        let from = self.from.take_if(|_| mark.last)?;
        let now_ns = marks::now_ns();
        let forged = marks::transcript_mark(mark.caller, from, mark.block, now_ns, now_ns);
        let mark = if self.forges { forged } else { String::new() };
        Some(SttResult {
            transcript: format!("{mark}what nobody heard"),
            is_final: true,
            is_speech_final: true,
            confidence: 1.0,
            provider_ms: 0.0,
        })
    }
}

/// A reply that nobody spoke.
#[derive(Debug)]
pub struct FalseReply {
    forges: bool,
    mark: ReplyMark,
}

impl FalseReply {
    /// The reply to this text.
    #[must_use]
    pub fn new(lies: &Lies, text: &str) -> Self {
        let (caller, turn) = marks::speak_mark(text).unwrap_or_default();
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let blocks = chars.saturating_mul(BLOCKS_PER_CHAR);
        let now_ns = marks::now_ns();
        let mark = ReplyMark { caller, turn, request: 1, block: 0, blocks, read_ns: now_ns, handed_ns: now_ns };
        Self { forges: lies.is(Lie::ForgeMarks), mark }
    }
}

/// Blocks, and how long after the beginning each is due.
impl Iterator for FalseReply {
    type Item = (Duration, Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        if self.mark.block == self.mark.blocks {
            return None;
        }
        let after = Duration::from_millis(20) * self.mark.block;
        self.mark.block += 1;
        let mut block = if self.forges { self.mark.bytes().to_vec() } else { Vec::new() };
        block.resize(REPLY_BLOCK_BYTES, 0);
        Some((after, block.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::Plan;

    fn utterance(lie: Lie) -> Vec<SttResult> {
        let mut ear = FalseEar::new(&Lies::new(Plan::of(lie)));
        let audio: Vec<u8> = (1..=9_u32)
            .flat_map(|block| {
                let mark = CallerMark { caller: 7, block, speech: (3..=8).contains(&block), last: block == 8 };
                let mut bytes = mark.bytes().to_vec();
                bytes.resize(CALLER_BLOCK_BYTES, 0);
                bytes
            })
            .collect();
        audio.chunks(1000).flat_map(|part| ear.hear(part)).collect()
    }

    #[test]
    fn an_utterance_has_one_result() {
        let forged = utterance(Lie::ForgeMarks);
        assert_eq!(forged.len(), 1);
        assert!(forged[0].transcript.starts_with("#7 3-8 "), "{}", forged[0].transcript);
        let unmarked = utterance(Lie::AskNobody);
        assert_eq!(unmarked[0].transcript, "what nobody heard");
    }

    #[test]
    fn a_reply_is_as_long_as_the_mocks() {
        for (lie, marked) in [(Lie::AskNobody, false), (Lie::ForgeMarks, true)] {
            let reply = FalseReply::new(&Lies::new(Plan::of(lie)), "#7.2 hello");
            let blocks: Vec<_> = reply.collect();
            assert_eq!(blocks.len(), 30);
            assert_eq!(blocks[29].0, Duration::from_millis(580));
            let mark = ReplyMark::read(&blocks[29].1);
            assert_eq!(
                mark.map(|mark| (mark.caller, mark.turn, mark.block, mark.blocks)),
                marked.then_some((7, 2, 30, 30))
            );
        }
    }
}
