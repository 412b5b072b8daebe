//! Marks in the audio and in the texts of a conversation: whose it is, which part, and how long the provider took.
//!
//! A mock provider writes into its answer when it read the request and when it handed the answer over. So the time that the
//! provider took is known for each request, whatever gateway carries the answer, and late audio is not taken for the next
//! reply's or another caller's. All numbers are little-endian, and times are nanoseconds of the provider's monotonic clock:
//! only their differences mean anything here.
//!
//! | what | begins with |
//! |---|---|
//! | 20 ms of a caller's audio, 640 bytes | `PVU1`, u32 caller, u32 block from 1, u8 (1 speech, 2 last of an utterance), 3 zeros |
//! | 20 ms of a reply, 960 bytes | `PVD1`, u32 caller, turn, request, block from 1, blocks, u64 read, handed |
//! | a text to be spoken | `#CALLER.TURN ` |
//! | a transcript | `#CALLER FROM-TO READ HANDED `, the blocks of the utterance so far |

use std::fmt;
use std::sync::LazyLock;

use plimsoll_core::schedule::mix;

/// The length of a block of audio, in ms.
pub const BLOCK_MS: u64 = 20;
/// A block of a caller's audio: 16-bit samples at 16 kHz.
pub const CALLER_BLOCK_BYTES: usize = 640;
/// A block of a reply's audio: 16-bit samples at 24 kHz.
pub const REPLY_BLOCK_BYTES: usize = 960;
/// The mark at the head of a caller's block.
pub const CALLER_MARK_BYTES: usize = 16;
/// The mark at the head of a reply's block.
pub const REPLY_MARK_BYTES: usize = 40;

/// The samples behind the marks, which are the same in every block of a kind. So whoever gets a block knows whether it is
/// intact.
#[derive(Debug)]
pub struct Samples {
    /// Of a caller who speaks.
    pub speech: Vec<u8>,
    /// Of a caller who is silent.
    pub silence: Vec<u8>,
    /// Of a reply.
    pub reply: Vec<u8>,
}

/// Loud enough for a detector of speech, and nothing that compresses.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let samples = (0..bytes as u64 / 2).flat_map(|at| {
        let drawn = mix(seed ^ mix(at)).to_le_bytes();
        (i16::from_le_bytes([drawn[0], drawn[1]]) / 8).to_le_bytes()
    });
    samples.collect()
}

/// The samples of all blocks.
pub static SAMPLES: LazyLock<Samples> = LazyLock::new(|| Samples {
    speech: noise(1, CALLER_BLOCK_BYTES - CALLER_MARK_BYTES),
    silence: vec![0; CALLER_BLOCK_BYTES - CALLER_MARK_BYTES],
    reply: noise(2, REPLY_BLOCK_BYTES - REPLY_MARK_BYTES),
});

impl Samples {
    /// Of a caller's block.
    #[must_use]
    pub fn of_caller(&self, speaks: bool) -> &[u8] {
        if speaks { &self.speech } else { &self.silence }
    }
}

const CALLER_MAGIC: [u8; 4] = *b"PVU1";
const REPLY_MAGIC: [u8; 4] = *b"PVD1";

const SPEECH: u8 = 1;
const LAST: u8 = 2;

/// 20 ms of a caller's audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerMark {
    /// The caller.
    pub vu: u32,
    /// The number of the block, from 1.
    pub block: u32,
    /// Whether the caller speaks in it.
    pub speech: bool,
    /// Whether it is the last block of an utterance.
    pub last: bool,
}

impl CallerMark {
    /// The bytes at the head of the block.
    #[must_use]
    pub fn bytes(self) -> [u8; CALLER_MARK_BYTES] {
        let mut bytes = [0; CALLER_MARK_BYTES];
        bytes[..4].copy_from_slice(&CALLER_MAGIC);
        bytes[4..8].copy_from_slice(&self.vu.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.block.to_le_bytes());
        bytes[12] = u8::from(self.speech) * SPEECH + u8::from(self.last) * LAST;
        bytes
    }

    /// Appends the whole block.
    pub fn append_block(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
        out.extend_from_slice(SAMPLES.of_caller(self.speech));
    }

    /// Reads the head of a block; `None` if no mark is there.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let mark = block.first_chunk::<CALLER_MARK_BYTES>()?;
        let flags = mark[12];
        let known = flags & !(SPEECH | LAST) == 0 && mark[13..] == [0; 3];
        (mark[..4] == CALLER_MAGIC && known).then(|| Self {
            vu: u32_at(mark, 4),
            block: u32_at(mark, 8),
            speech: flags & SPEECH != 0,
            last: flags & LAST != 0,
        })
    }
}

/// 20 ms of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyMark {
    /// The caller that it is for.
    pub vu: u32,
    /// The turn that it answers.
    pub turn: u32,
    /// How often the provider had been asked for this turn, this request included.
    pub request: u32,
    /// The number of the block, from 1.
    pub block: u32,
    /// How many blocks the reply has.
    pub blocks: u32,
    /// When the provider had read the request.
    pub read_ns: u64,
    /// When it handed this block over.
    pub handed_ns: u64,
}

impl ReplyMark {
    /// The bytes at the head of the block.
    #[must_use]
    pub fn bytes(self) -> [u8; REPLY_MARK_BYTES] {
        let mut bytes = [0; REPLY_MARK_BYTES];
        bytes[..4].copy_from_slice(&REPLY_MAGIC);
        let numbers = [self.vu, self.turn, self.request, self.block, self.blocks];
        for (place, number) in bytes[4..24].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (place, time) in bytes[24..]
            .chunks_exact_mut(8)
            .zip([self.read_ns, self.handed_ns])
        {
            place.copy_from_slice(&time.to_le_bytes());
        }
        bytes
    }

    /// Appends the whole block.
    pub fn append_block(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
        out.extend_from_slice(&SAMPLES.reply);
    }

    /// Reads the head of a block; `None` if no mark is there.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let mark = block.first_chunk::<REPLY_MARK_BYTES>()?;
        (mark[..4] == REPLY_MAGIC).then(|| Self {
            vu: u32_at(mark, 4),
            turn: u32_at(mark, 8),
            request: u32_at(mark, 12),
            block: u32_at(mark, 16),
            blocks: u32_at(mark, 20),
            read_ns: u64_at(mark, 24),
            handed_ns: u64_at(mark, 32),
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |four| u32::from_le_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// What a text to be spoken begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeakMark {
    /// The caller.
    pub vu: u32,
    /// The turn.
    pub turn: u32,
}

impl fmt::Display for SpeakMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}.{} ", self.vu, self.turn)
    }
}

impl SpeakMark {
    /// Reads the head of a text; `None` if no mark is there.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (mark, _) = text.strip_prefix('#')?.split_once(' ')?;
        let (vu, turn) = mark.split_once('.')?;
        Some(Self {
            vu: vu.parse().ok()?,
            turn: turn.parse().ok()?,
        })
    }
}

/// What a transcript begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptMark {
    /// The caller.
    pub vu: u32,
    /// The first block of the utterance.
    pub from: u32,
    /// The last block that the transcript covers.
    pub to: u32,
    /// When the provider had read that block.
    pub read_ns: u64,
    /// When it handed the transcript over.
    pub handed_ns: u64,
}

impl fmt::Display for TranscriptMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            vu,
            from,
            to,
            read_ns,
            handed_ns,
        } = self;
        write!(f, "#{vu} {from}-{to} {read_ns} {handed_ns} ")
    }
}

impl TranscriptMark {
    /// Reads the head of a transcript; `None` if no mark is there.
    #[must_use]
    pub fn read(transcript: &str) -> Option<Self> {
        let mut words = transcript.strip_prefix('#')?.split(' ');
        let vu = words.next()?.parse().ok()?;
        let (from, to) = words.next()?.split_once('-')?;
        let mark = Self {
            vu,
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            read_ns: words.next()?.parse().ok()?,
            handed_ns: words.next()?.parse().ok()?,
        };
        (1..=mark.to).contains(&mark.from).then_some(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Byte by byte, so that another program can be held against them.
    #[test]
    fn marks_are_the_documented_bytes() {
        let caller = CallerMark {
            vu: 7,
            block: 258,
            speech: true,
            last: true,
        };
        assert_eq!(
            caller.bytes(),
            *b"PVU1\x07\0\0\0\x02\x01\0\0\x03\0\0\0",
            "vu 7, block 258, the last of an utterance"
        );
        let reply = ReplyMark {
            vu: 7,
            turn: 2,
            request: 1,
            block: 3,
            blocks: 150,
            read_ns: 1,
            handed_ns: 258,
        };
        assert_eq!(
            reply.bytes(),
            *b"PVD1\x07\0\0\0\x02\0\0\0\x01\0\0\0\x03\0\0\0\x96\0\0\0\x01\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0"
        );
        assert_eq!(SpeakMark { vu: 7, turn: 2 }.to_string(), "#7.2 ");
    }

    #[test]
    fn what_is_no_mark_is_none() {
        let caller = CallerMark {
            vu: 1,
            block: 1,
            speech: false,
            last: false,
        };
        let mut bytes = caller.bytes();
        assert_eq!(CallerMark::read(&bytes[..15]), None, "too short");
        bytes[12] = 4;
        assert_eq!(CallerMark::read(&bytes), None, "an unknown flag");
        assert_eq!(CallerMark::read(&[0; 640]), None);
        assert_eq!(ReplyMark::read(&[0; 960]), None);
        for text in ["", "#", "#1", "#1.2", "1.2 x", "#1.x y", "#-1.2 y"] {
            assert_eq!(SpeakMark::read(text), None, "{text}");
        }
        for text in ["#1 2-1 3 4 x", "#1 0-1 3 4 x", "#1 1 3 4 x", "#1 1-2 3"] {
            assert_eq!(TranscriptMark::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(vu: u32, turn: u32, from in 1_u32..1000, more in 0_u32..1000, read_ns: u64, handed_ns: u64, speech: bool, last: bool, words in "[ a-z#.-]{0,40}") {
            let caller = CallerMark { vu, block: from, speech, last };
            prop_assert_eq!(CallerMark::read(&caller.bytes()), Some(caller));
            let reply = ReplyMark { vu, turn, request: more, block: from, blocks: from + more, read_ns, handed_ns };
            prop_assert_eq!(ReplyMark::read(&reply.bytes()), Some(reply));
            let speak = SpeakMark { vu, turn };
            let text = format!("{speak}{words}");
            prop_assert_eq!(SpeakMark::read(&text), Some(speak));
            let mark = TranscriptMark { vu, from, to: from + more, read_ns, handed_ns };
            let text = format!("{mark}{words}");
            prop_assert_eq!(TranscriptMark::read(&text), Some(mark));
        }

        #[test]
        fn nothing_makes_a_reader_panic(bytes: Vec<u8>, text: String) {
            let _ = (CallerMark::read(&bytes), ReplyMark::read(&bytes));
            let _ = (SpeakMark::read(&text), TranscriptMark::read(&text));
        }
    }
}
