//! How far one reply has come: its first byte, its blocks in order, and whether a player would have run dry.

use plimsoll_core::profile::NS_PER_MS;

use crate::marks::ReplyMark;
use crate::script::BLOCK_NS;
use crate::turns::{Leg, Wrong};

/// How far a player is behind: a reply has a gap if a block comes later than that after its place.
const PLAYER_BEHIND_NS: u64 = 60 * NS_PER_MS;

/// What has come of a reply.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) first_audio: Option<Leg>,
    first_audio_ns: u64,
    /// The block that came last.
    newest_block: u32,
    pub(crate) whole: bool,
    pub(crate) gap: bool,
}

impl Progress {
    /// A block begins. The first audio was due at `due_ns`.
    ///
    /// # Errors
    /// It is not the next block.
    pub(crate) fn begins(
        &mut self,
        mark: &ReplyMark,
        due_ns: u64,
        now_ns: u64,
    ) -> Result<(), Wrong> {
        if self.first_audio.is_none() {
            self.first_audio_ns = now_ns;
            let marks_ns = (mark.read_ns, mark.handed_ns);
            self.first_audio = Some(Leg::of(due_ns, now_ns, Some(marks_ns)));
        }
        let played_ns =
            self.first_audio_ns + PLAYER_BEHIND_NS + u64::from(mark.block.max(1) - 1) * BLOCK_NS;
        self.gap |= now_ns > played_ns;
        let expected = self.newest_block + 1;
        self.newest_block = self.newest_block.max(mark.block);
        match mark.block {
            block if block == expected => Ok(()),
            block if block > expected => Err(Wrong::Lost),
            block if block + 1 == expected => Err(Wrong::Doubled),
            _ => Err(Wrong::OutOfOrder),
        }
    }

    /// A block is complete.
    pub(crate) fn complete(&mut self, mark: &ReplyMark) {
        self.whole |= mark.block == mark.blocks && self.newest_block == mark.blocks;
    }
}
