//! Audio that is not on its way to the provider yet.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use crate::limits::AUDIO_BLOCK_BYTES;

/// The newest audio. Only whole blocks are dropped, counted from the session's first byte: whoever hears a connection from
/// its beginning may take it that blocks begin there.
#[derive(Debug)]
pub(super) struct Backlog {
    /// The limit while there is no connection.
    pub(super) bytes_max: usize,
    audio: VecDeque<Bytes>,
    bytes: usize,
    /// What is gone of the block that is next.
    begun_bytes: usize,
    /// What is dropped although it has not come yet: the rest of a block.
    owed_bytes: usize,
    /// Dropped since somebody took note of it.
    pub(super) dropped_bytes: u64,
}

impl Backlog {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, audio: VecDeque::new(), bytes: 0, begun_bytes: 0, owed_bytes: 0, dropped_bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.audio.is_empty()
    }

    /// Keeps it, whatever the limit: it may be on its way in a moment. [`Self::trim`] keeps the limit.
    pub(super) fn push(&mut self, mut audio: Bytes) {
        let owed = self.owed_bytes.min(audio.len());
        audio.advance(owed);
        self.owed_bytes -= owed;
        if !audio.is_empty() {
            self.bytes += audio.len();
            self.audio.push_back(audio);
        }
    }

    /// Drops what is beyond the limit.
    pub(super) fn trim(&mut self) {
        self.trim_to(self.bytes_max);
    }

    /// Drops what is beyond a limit, oldest first.
    pub(super) fn trim_to(&mut self, bytes_max: usize) {
        let beyond = self.bytes.saturating_sub(bytes_max);
        self.drop_oldest(beyond.next_multiple_of(AUDIO_BLOCK_BYTES));
    }

    /// Drops the rest of a block whose beginning went with a connection that is lost.
    pub(super) fn drop_begun_block(&mut self) {
        self.drop_oldest((AUDIO_BLOCK_BYTES - self.begun_bytes) % AUDIO_BLOCK_BYTES);
    }

    fn drop_oldest(&mut self, bytes: usize) {
        self.dropped_bytes += bytes as u64;
        self.gone(bytes);
        let mut left = bytes;
        while left > 0 {
            let Some(oldest) = self.audio.front_mut() else { break };
            let cut = left.min(oldest.len());
            oldest.advance(cut);
            if oldest.is_empty() {
                self.audio.pop_front();
            }
            self.bytes -= cut;
            left -= cut;
        }
        self.owed_bytes += left;
    }

    /// The next audio, in pieces of at most `bytes_max`.
    pub(super) fn take(&mut self, bytes_max: usize) -> Option<Bytes> {
        let first = self.audio.front_mut()?;
        let piece = if first.len() > bytes_max { first.split_to(bytes_max) } else { self.audio.pop_front()? };
        self.bytes -= piece.len();
        self.gone(piece.len());
        Some(piece)
    }

    fn gone(&mut self, bytes: usize) {
        self.begun_bytes = (self.begun_bytes + bytes) % AUDIO_BLOCK_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Audio in which each block is made of its number, from 1.
    fn stream(blocks: u8) -> Bytes {
        (1..=blocks).flat_map(|number| [number; AUDIO_BLOCK_BYTES]).collect()
    }

    fn rest(backlog: &mut Backlog) -> Vec<u8> {
        std::iter::from_fn(|| backlog.take(4000)).flatten().collect()
    }

    #[test]
    fn the_newest_blocks_are_kept() {
        // Room for two blocks and a half, and messages that end within blocks.
        for message_bytes in [2, 320, 640, 1000, 3200, 12_800] {
            let (mut backlog, stream) = (Backlog::new(1600), stream(20));
            for start in (0..stream.len()).step_by(message_bytes) {
                backlog.push(stream.slice(start..stream.len().min(start + message_bytes)));
                backlog.trim();
                assert!(backlog.bytes <= 1600);
            }
            assert_eq!(backlog.dropped_bytes, 18 * 640, "{message_bytes}");
            assert_eq!(rest(&mut backlog), stream.slice(18 * 640..), "{message_bytes}");
            assert_eq!((backlog.bytes, backlog.is_empty()), (0, true));
        }
    }

    #[test]
    fn the_rest_of_a_block_that_was_begun_is_dropped() {
        let stream = stream(3);
        for come_bytes in [700, 900, 1280, 1900] {
            let mut backlog = Backlog::new(6400);
            backlog.push(stream.slice(..700));
            assert_eq!(rest(&mut backlog).len(), 700);
            backlog.push(stream.slice(700..come_bytes));
            backlog.drop_begun_block();
            backlog.push(stream.slice(come_bytes..));
            assert_eq!(backlog.dropped_bytes, 580);
            assert_eq!(rest(&mut backlog), stream.slice(1280..), "{come_bytes}");
            backlog.drop_begun_block();
            assert_eq!(backlog.dropped_bytes, 580);
        }
    }

    #[test]
    fn a_connection_that_is_there_goes_on_within_the_block() {
        let (mut backlog, stream) = (Backlog::new(0), stream(5));
        backlog.push(stream.clone());
        assert_eq!(backlog.take(100).map(|audio| audio.len()), Some(100));
        backlog.trim_to(1500);
        assert_eq!(backlog.dropped_bytes, 3 * 640);
        // What is left of the first block is missing, and what there is goes on at the same place of a later one.
        assert_eq!(rest(&mut backlog), stream.slice(3 * 640 + 100..));
    }

    #[test]
    fn without_a_buffer_all_is_dropped() {
        let (mut backlog, stream) = (Backlog::new(0), stream(2));
        backlog.push(stream.slice(..700));
        backlog.trim();
        assert_eq!((backlog.is_empty(), backlog.dropped_bytes), (true, 1280));
        // It comes only now, and was counted before.
        backlog.push(stream.slice(700..));
        backlog.trim();
        assert_eq!((backlog.is_empty(), backlog.dropped_bytes), (true, 1280));
    }
}
