//! What a message of the load contains, and how a reader checks it.
//!
//! A message names itself: whoever reads it knows which writer sent it, as which of its messages, and when it was due.
//! So nothing has to pass between writer and reader while the trial runs.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic, [`MAGIC`] |
//! | 4 | 4 | number of the trial |
//! | 8 | 4 | writer |
//! | 12 | 4 | bit 0: the message is measured; bits 1 to 31: how late it was made, in µs |
//! | 16 | 8 | sequence: number of the message within its writer, from 0 |
//! | 24 | 8 | intended time: when it was due, in nanoseconds of the trial's clock |
//! | 32 | 4 | size of the whole message |
//! | 36 | 4 | check sum: CRC-32 (IEEE 802.3) of the bytes before it |
//! | 40 | rest | filler |
//!
//! The trial's clock is `CLOCK_MONOTONIC` with its own zero, and the same in all processes of the client. A message is made
//! just before it is written, so a reader also knows its latency from the write.
//!
//! All numbers are little-endian. A reader checks every header. It compares the filler of one message in [`ONE_IN`] byte
//! by byte: a broker that changes bodies changes more than one.
//!
//! **The filler does not compress.** A broker or a file system that compresses would otherwise write less than it was
//! given. Each message has its own filler, because compressors also find what repeats from one message to the next. It
//! is a table of random words, and a key for each pass over the table is added to all of them by exclusive or. No eight
//! bytes repeat but by chance, and making it costs as little as copying.

use plimsoll_core::profile::NS_PER_US;
use plimsoll_core::schedule::mix;
use thiserror::Error;

/// The first bytes of each message. The last one is the version of this layout.
pub const MAGIC: [u8; 4] = *b"PlB1";
/// The size of a header, and so of the smallest message.
pub const HEADER_BYTES: usize = 40;
/// The largest message. No broker of the tests takes a larger one.
pub const BYTES_MAX: usize = 128 << 20;
/// Of so many messages, one is compared whole.
pub const ONE_IN: u64 = 64;

/// Where the check sum is. It covers all bytes before it.
const SUM_AT: usize = HEADER_BYTES - 4;
const MEASURED: u32 = 1;
/// The greatest lateness that a header has: 35 minutes.
const LATE_MAX_US: u64 = 0x7FFF_FFFF;
/// Words of the table: 8 KiB, so that it stays in a core's first cache.
const TABLE_WORDS: usize = 1024;
const WORD_BYTES: usize = size_of::<u64>();

/// What a message says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The writer's number in the trial, from 0.
    pub writer: u32,
    /// The message's number within its writer, from 0.
    pub sequence: u64,
    /// When it was due, in nanoseconds since the trial began.
    pub intended_ns: u64,
    /// How long after that it was made to be written, in µs; 35 minutes stand for all that is longer.
    pub late_us: u64,
    /// Whether it was due in the measured window.
    pub measured: bool,
}

impl Stamp {
    /// When it was made to be written, in nanoseconds since the trial began, to the microsecond below.
    #[must_use]
    pub fn made_ns(&self) -> u64 {
        self.intended_ns.saturating_add(self.late_us * NS_PER_US)
    }
}

/// A message that a reader accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// What it says of itself.
    pub stamp: Stamp,
    /// Whether its filler was compared as well.
    pub compared: bool,
}

/// A size that no message can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a message of {bytes} bytes is not possible; use {HEADER_BYTES} to {BYTES_MAX}")]
pub struct WrongSize {
    /// What was asked for.
    pub bytes: usize,
}

/// Why a payload is not a message of this trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MessageFault {
    /// It does not begin as a message of Plimsoll does.
    #[error("foreign message")]
    Foreign,
    /// It is a message of another trial, which the broker still had.
    #[error("leftover message of another trial")]
    Leftover {
        /// Number of that trial.
        trial: u32,
    },
    /// It is shorter or longer than it was sent, or than the trial's messages are.
    #[error("message of another size")]
    AnotherSize {
        /// The size that it should have, in bytes.
        expected: usize,
        /// The size that it has, or that it was sent with, in bytes.
        found: usize,
    },
    /// The check sum of its header is wrong.
    #[error("damaged message header")]
    DamagedHeader,
    /// Its filler differs from what was sent.
    #[error("damaged message body")]
    DamagedBody {
        /// The first byte that differs, counted from the message's beginning, to the word.
        offset: usize,
    },
}

impl MessageFault {
    /// The fault's kind in one word, for a count by name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Leftover { .. } => "leftover",
            Self::AnotherSize { .. } => "another_size",
            Self::DamagedHeader | Self::DamagedBody { .. } => "damaged",
        }
    }
}

/// Makes and checks the messages of a trial. All of them have the same size.
#[derive(Debug, Clone)]
pub struct Messages {
    trial: u32,
    seed: u64,
    bytes: usize,
    /// `bytes` as the header has it.
    size: u32,
    table: Box<[u64]>,
}

impl Messages {
    /// The messages of a trial.
    ///
    /// `trial` tells this trial's messages from those of earlier ones, so it must differ from theirs even if the seed
    /// is the same: the seconds of the trial's start will do. `seed` decides the filler. Writers and readers need the
    /// same values.
    ///
    /// # Errors
    /// No message has this size.
    pub fn new(trial: u32, seed: u64, bytes: usize) -> Result<Self, WrongSize> {
        let size = u32::try_from(bytes).map_err(|_| WrongSize { bytes })?;
        if !(HEADER_BYTES..=BYTES_MAX).contains(&bytes) {
            return Err(WrongSize { bytes });
        }
        let seed = mix(seed ^ mix(u64::from(trial)));
        let drawn = (1..).map(|word: u64| mix(seed ^ mix(word)));
        Ok(Self {
            trial,
            seed,
            bytes,
            size,
            table: drawn.take(TABLE_WORDS).collect(),
        })
    }

    /// The size of each message.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes `into` the message with this stamp, whatever it held. A buffer that is used again allocates nothing.
    pub fn encode(&self, stamp: &Stamp, into: &mut Vec<u8>) {
        into.resize(self.bytes, 0);
        let (header, filler) = into.split_at_mut(HEADER_BYTES);
        self.write_header(stamp, header);
        let mut rest = filler;
        let mut pass = 0;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at_mut(rest.len().min(TABLE_WORDS * WORD_BYTES));
            fill(chunk, &self.table, self.key(stamp, pass));
            rest = after;
            pass += 1;
        }
    }

    /// What a payload says of itself, if it is a message of this trial and undamaged.
    ///
    /// # Errors
    /// The payload is not one. The first fault that holds is returned, in the order of [`MessageFault`]'s checks:
    /// foreign, too short for a header, damaged header, leftover, another size, damaged body.
    pub fn check(&self, payload: &[u8]) -> Result<Checked, MessageFault> {
        if !payload.starts_with(&MAGIC) {
            return Err(MessageFault::Foreign);
        }
        let Some((header, filler)) = payload.split_first_chunk::<HEADER_BYTES>() else {
            return Err(MessageFault::AnotherSize {
                expected: self.bytes,
                found: payload.len(),
            });
        };
        let stamp = self.read_header(header, payload.len())?;
        let compared = self.is_compared(&stamp);
        if compared {
            self.compare(&stamp, filler)?;
        }
        Ok(Checked { stamp, compared })
    }

    /// Whether the message with this stamp is one of those that are compared whole. Every reader chooses the same ones.
    #[must_use]
    pub fn is_compared(&self, stamp: &Stamp) -> bool {
        // Not every 64th: a broker's batches may have such a size.
        self.key(stamp, u64::MAX).is_multiple_of(ONE_IN)
    }

    fn write_header(&self, stamp: &Stamp, header: &mut [u8]) {
        header[..4].copy_from_slice(&MAGIC);
        header[4..8].copy_from_slice(&self.trial.to_le_bytes());
        header[8..12].copy_from_slice(&stamp.writer.to_le_bytes());
        let late_us = u32::try_from(stamp.late_us.min(LATE_MAX_US)).unwrap_or(0);
        let flags = late_us << 1 | u32::from(stamp.measured);
        header[12..16].copy_from_slice(&flags.to_le_bytes());
        header[16..24].copy_from_slice(&stamp.sequence.to_le_bytes());
        header[24..32].copy_from_slice(&stamp.intended_ns.to_le_bytes());
        header[32..36].copy_from_slice(&self.size.to_le_bytes());
        let sum = crc32fast::hash(&header[..SUM_AT]);
        header[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    }

    fn read_header(
        &self,
        header: &[u8; HEADER_BYTES],
        found: usize,
    ) -> Result<Stamp, MessageFault> {
        if crc32fast::hash(&header[..SUM_AT]) != u32_at(header, SUM_AT) {
            return Err(MessageFault::DamagedHeader);
        }
        let trial = u32_at(header, 4);
        if trial != self.trial {
            return Err(MessageFault::Leftover { trial });
        }
        let size = u32_at(header, 32);
        if found != self.bytes || size != self.size {
            // A longer message that was cut to the right size has its own size in its header.
            let sent = usize::try_from(size).unwrap_or(usize::MAX);
            return Err(MessageFault::AnotherSize {
                expected: self.bytes,
                found: if found == self.bytes { sent } else { found },
            });
        }
        let flags = u32_at(header, 12);
        Ok(Stamp {
            writer: u32_at(header, 8),
            sequence: u64_at(header, 16),
            intended_ns: u64_at(header, 24),
            late_us: u64::from(flags >> 1),
            measured: flags & MEASURED != 0,
        })
    }

    fn compare(&self, stamp: &Stamp, filler: &[u8]) -> Result<(), MessageFault> {
        for (pass, chunk) in (0..).zip(filler.chunks(TABLE_WORDS * WORD_BYTES)) {
            if let Some(within) = first_difference(chunk, &self.table, self.key(stamp, pass)) {
                let before = pass_bytes(pass);
                return Err(MessageFault::DamagedBody {
                    offset: HEADER_BYTES + before + within,
                });
            }
        }
        Ok(())
    }

    /// The key of one pass over the table.
    fn key(&self, stamp: &Stamp, pass: u64) -> u64 {
        let message = mix(stamp.sequence ^ mix(u64::from(stamp.writer)));
        mix(self.seed ^ message ^ mix(pass))
    }
}

/// Fills at most a table's length.
fn fill(chunk: &mut [u8], table: &[u64], key: u64) {
    let (words, last) = chunk.as_chunks_mut::<WORD_BYTES>();
    for (word, drawn) in words.iter_mut().zip(table) {
        *word = (drawn ^ key).to_le_bytes();
    }
    if !last.is_empty() {
        let word = (table[words.len()] ^ key).to_le_bytes();
        last.copy_from_slice(&word[..last.len()]);
    }
}

/// Where at most a table's length begins to differ from what [`fill`] makes, to the word.
fn first_difference(chunk: &[u8], table: &[u64], key: u64) -> Option<usize> {
    let (words, last) = chunk.as_chunks::<WORD_BYTES>();
    let differs = words
        .iter()
        .zip(table)
        .position(|(word, drawn)| *word != (drawn ^ key).to_le_bytes());
    let rest_differs = || {
        let drawn = table.get(words.len()).copied().unwrap_or_default();
        let word = (drawn ^ key).to_le_bytes();
        (*last != word[..last.len()]).then_some(words.len())
    };
    Some(differs.or_else(rest_differs)? * WORD_BYTES)
}

/// Bytes of so many passes over the table.
fn pass_bytes(passes: u64) -> usize {
    usize::try_from(passes).map_or(usize::MAX, |passes| passes * TABLE_WORDS * WORD_BYTES)
}

fn u32_at(header: &[u8; HEADER_BYTES], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[at..at + 4]);
    u32::from_le_bytes(bytes)
}

fn u64_at(header: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests;
