//! Lies about replies: what the provider said comes in, what goes out and when comes out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::blocks::{self, Blocks, Cutter};
use super::{Lie, Lies};
use crate::marks::REPLY_BLOCK_BYTES;

/// `gap` and `cut_reply`: so many blocks come before it.
const BLOCKS_BEFORE: u64 = 10;

/// Audio, and when it is due.
pub type Due = (Instant, Bytes);

/// What is struck of one reply, decided when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Nothing, or single blocks of it.
    No,
    /// Its audio stops for a while.
    Gap,
    /// Its audio ends before it is complete, and nobody says so.
    Cut,
    /// Another caller gets it.
    Crossed,
    /// The caller is told that it failed.
    Denied,
    /// It is asked for twice.
    AskedTwice,
}

impl Stroke {
    /// Of the next reply of the process.
    #[must_use]
    pub fn of_next(lies: &Lies) -> Self {
        let strokes = [
            (Lie::Gap, Self::Gap),
            (Lie::CutReply, Self::Cut),
            (Lie::OthersReply, Self::Crossed),
            (Lie::FalseError, Self::Denied),
            (Lie::AskTwice, Self::AskedTwice),
        ];
        strokes.into_iter().find(|(lie, _)| lies.strikes(*lie)).map_or(Self::No, |(_, stroke)| stroke)
    }
}

/// The lie about one reply.
#[derive(Debug)]
pub struct ReplyLie {
    lies: Arc<Lies>,
    stroke: Stroke,
    delay: Duration,
    blocks: Blocks,
    cutter: Cutter,
    /// Whole blocks that went out.
    passed: u64,
    /// `reply_at_end`: what waits for the end.
    held: Vec<Bytes>,
}

impl ReplyLie {
    /// About a reply that is asked for while so many sessions are open.
    #[must_use]
    pub fn new(lies: &Arc<Lies>, sessions: u64) -> Self {
        Self {
            lies: Arc::clone(lies),
            stroke: Stroke::of_next(lies),
            delay: lies.reply_delay(sessions),
            blocks: Blocks::new(blocks::OF_REPLY),
            cutter: Cutter::new(REPLY_BLOCK_BYTES),
            passed: 0,
            held: Vec::new(),
        }
    }

    /// What is struck.
    #[must_use]
    pub fn stroke(&self) -> Stroke {
        self.stroke
    }

    /// What goes out for audio that came just now.
    pub fn audio(&mut self, now: Instant, audio: Bytes) -> Vec<Due> {
        match self.lies.plan.lie {
            Lie::ReplyAtEnd => {
                self.held.push(audio);
                Vec::new()
            }
            Lie::Gap if self.stroke == Stroke::Gap => {
                let blocks = self.cutter.cut(&audio);
                blocks.into_iter().map(|block| self.around_gap(now, block)).collect()
            }
            Lie::CutReply if self.stroke == Stroke::Cut => {
                let blocks = self.cutter.cut(&audio);
                let left = usize::try_from(BLOCKS_BEFORE - self.passed).unwrap_or(0);
                self.passed = BLOCKS_BEFORE.min(self.passed + blocks.len() as u64);
                blocks.into_iter().take(left).map(|block| (now, block)).collect()
            }
            // Whole blocks, for they come between those of the other caller's own reply.
            Lie::OthersReply => self.cutter.cut(&audio).into_iter().map(|block| (now, block)).collect(),
            _ => {
                let due = now + self.delay;
                self.blocks.pass(&self.lies, audio).into_iter().map(|audio| (due, audio)).collect()
            }
        }
    }

    /// What goes out at the reply's end, and when that end is due.
    pub fn end(&mut self, now: Instant) -> (Vec<Due>, Instant) {
        let due = if self.stroke == Stroke::Gap { now + self.gap() } else { now + self.delay };
        let is_cut = self.stroke == Stroke::Cut && self.passed >= BLOCKS_BEFORE;
        let rest = Some(self.cutter.rest()).filter(|rest| !rest.is_empty() && !is_cut);
        let out = self.blocks.end().into_iter().chain(self.held.drain(..)).chain(rest);
        (out.map(|audio| (due, audio)).collect(), due)
    }

    fn around_gap(&mut self, now: Instant, block: Bytes) -> Due {
        self.passed += 1;
        let behind = self.passed > BLOCKS_BEFORE;
        (if behind { now + self.gap() } else { now }, block)
    }

    fn gap(&self) -> Duration {
        // A reply that is over before its gap has none.
        if self.passed > BLOCKS_BEFORE { self.lies.plan.duration() } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lies::Plan;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Lengths of what goes out and its delay in ms, when 12 blocks and a half come in 6 pieces, and at the end.
    fn out(lie: Lie) -> (Vec<(usize, u128)>, u128) {
        let mut plan = Plan::of(lie);
        plan.numbers.every = plan.numbers.every.map(|_| 1);
        let lies = Arc::new(Lies::new(plan));
        let mut reply = ReplyLie::new(&lies, 10);
        let now = Instant::now();
        let mut out = Vec::new();
        for piece in vec![1; 12_000].chunks(2000) {
            out.extend(reply.audio(now, Bytes::copy_from_slice(piece)));
        }
        let (rest, end) = reply.end(now);
        out.extend(rest);
        let ms = |due: Instant| (due - now).as_millis();
        (out.into_iter().map(|(due, audio)| (audio.len(), ms(due))).collect(), ms(end))
    }

    #[test]
    fn an_honest_reply_goes_out_as_it_comes() {
        assert_eq!(out(Lie::None), (vec![(2000, 0); 6], 0));
        assert_eq!(out(Lie::LateResults), (vec![(2000, 0); 6], 0));
    }

    #[test]
    fn a_late_reply_is_late_to_its_end() {
        assert_eq!(out(Lie::LateReplies), (vec![(2000, 500); 6], 500));
        assert_eq!(out(Lie::SlowDown), (vec![(2000, 20); 6], 20));
    }

    #[test]
    fn a_gap_comes_after_ten_blocks() {
        let expected = [vec![(960, 0); 10], vec![(960, 500); 2], vec![(480, 500)]].concat();
        assert_eq!(out(Lie::Gap), (expected, 500));
    }

    #[test]
    fn a_cut_reply_ends_after_ten_blocks_and_on_time() {
        assert_eq!(out(Lie::CutReply), (vec![(960, 0); 10], 0));
    }

    #[test]
    fn a_reply_at_its_end_comes_whole() {
        assert_eq!(out(Lie::ReplyAtEnd), (vec![(2000, 0); 6], 0));
        let lies = Arc::new(Lies::new(Plan::of(Lie::ReplyAtEnd)));
        let mut reply = ReplyLie::new(&lies, 1);
        assert!(reply.audio(Instant::now(), Bytes::from_static(b"1234")).is_empty());
    }

    #[test]
    fn dropped_blocks_are_missing() {
        assert_eq!(out(Lie::DropReplyBlock).0, [(480, 0)]);
        assert_eq!(out(Lie::DoubleReplyBlock).0.len(), 25);
    }

    #[test]
    fn replies_are_struck_one_by_one() {
        let lies = Lies::new(Plan::of(Lie::AskTwice));
        let struck = (0..20).filter(|_| Stroke::of_next(&lies) == Stroke::AskedTwice).count();
        assert_eq!(struck, 2);
        assert_eq!(Stroke::of_next(&Lies::new(Plan::of(Lie::ReplyAtEnd))), Stroke::No);
        assert_eq!(MS(500), Plan::of(Lie::Gap).duration());
    }
}
