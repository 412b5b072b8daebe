//! Callers who read slowly. What becomes of them is shown and judged by no gate: a reply of 48 kB/s does not fit into 8 KiB/s.
//! The gates are of the others, who must not notice.

use std::collections::VecDeque;

use plimsoll_core::record::SanityCheck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::marks::REPLY_BLOCK_BYTES;
use crate::script::Turn;
use crate::tally::is_good;
use crate::turns;

/// How fast they read, in bytes per second.
pub(crate) const READS_BYTES_PER_S: u32 = 8 * 1024;

/// What became of the session of a slow caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowSession {
    /// Whether it ended before the trial did.
    pub died: bool,
    /// What is missing of the replies whose end the gateway told, in bytes.
    pub missing_bytes: u64,
    /// What the gateway said that it dropped of them.
    pub dropped_bytes: u64,
}

/// A slow caller's account of replies that are not whole.
#[derive(Debug, Default)]
pub(crate) struct SlowReader {
    /// Turns whose replies began and whose end was not told, each with the blocks that came whole. Oldest first.
    replies: VecDeque<(u32, u32)>,
    pub(crate) seen: SlowSession,
}

impl SlowReader {
    /// A block of this turn's reply came whole.
    pub(crate) fn block(&mut self, turn: u32) {
        match self.replies.back_mut() {
            Some((newest, blocks)) if *newest == turn => *blocks += 1,
            _ => self.replies.push_back((turn, 1)),
        }
    }

    /// The gateway told the end of this turn's reply, and what it dropped of it.
    pub(crate) fn complete(&mut self, turn: &Turn, dropped_bytes: u64) {
        // Those before were flushed, which nobody tells.
        while let Some(front) = self.replies.front()
            && front.0 < turn.number
        {
            self.replies.pop_front();
        }
        let came = self.replies.front().filter(|(of, _)| *of == turn.number);
        let blocks = came.map_or(0, |(_, blocks)| *blocks);
        let missing = turn.reply_blocks().saturating_sub(blocks);
        self.seen.missing_bytes += u64::from(missing) * REPLY_BLOCK_BYTES as u64;
        self.seen.dropped_bytes += dropped_bytes;
    }
}

/// What became of all slow callers. Their turns are in no other figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRecord {
    /// How many there were.
    pub callers: u64,
    /// Of these, sessions that ended before the trial did.
    pub died: u64,
    /// Measured turns that were due.
    pub turns: u64,
    /// Of these, complete.
    pub complete: u64,
    /// Of these, complete and with at most 250 ms added to each leg.
    pub good: u64,
    /// Turns in which a player would have run dry.
    pub with_gap: u64,
    /// What is missing of the replies whose end the gateway told, in bytes, over the whole trial.
    pub missing_bytes: u64,
    /// What the gateway said that it dropped of them, in bytes.
    pub dropped_bytes: u64,
}

impl SlowRecord {
    /// Adds a measured turn.
    pub(crate) fn turn(&mut self, turn: &turns::Claim) {
        self.turns += 1;
        self.complete += u64::from(turn.complete);
        self.good += u64::from(is_good(turn));
        self.with_gap += u64::from(turn.gap);
    }

    /// Adds a session.
    pub(crate) fn session(&mut self, session: &SlowSession) {
        self.callers += 1;
        self.died += u64::from(session.died);
        self.missing_bytes += session.missing_bytes;
        self.dropped_bytes += session.dropped_bytes;
    }

    /// What is missing is what the gateway dropped, to the byte.
    #[expect(clippy::cast_precision_loss, reason = "bytes of a trial")]
    pub(crate) fn check(&self) -> SanityCheck {
        let missing = self.missing_bytes as f64;
        SanityCheck::of(
            "slow_dropped_bytes",
            missing,
            missing,
            self.dropped_bytes as f64,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn what_is_missing_of_a_reply_must_be_told() {
        let script = Script::new(7, 3, 5);
        let mut reader = SlowReader::default();
        // The first reply was flushed after two blocks, the second lacks ten, of the third nothing came.
        let turns = [0, 1, 2].map(|number| script.turn(number));
        reader.block(0);
        reader.block(0);
        for _ in 0..turns[1].reply_blocks() - 10 {
            reader.block(1);
        }
        reader.complete(&turns[1], 9_600);
        assert_eq!(reader.seen.missing_bytes, 9_600);
        let third = u64::from(turns[2].reply_blocks()) * 960;
        reader.complete(&turns[2], third);
        let mut record = SlowRecord::default();
        record.session(&reader.seen);
        assert_eq!((record.callers, record.missing_bytes), (1, 9_600 + third));
        assert!(record.check().holds);
        record.dropped_bytes -= 960;
        assert!(!record.check().holds, "a block that nobody told");
    }
}
