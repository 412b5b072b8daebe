//! Sets of message numbers as bytes and as text, for a client process to hand over.
//!
//! A set is: its limit, the number of its blocks, and the blocks. A block begins with a byte that says what follows:
//!
//! | byte | block |
//! |---|---|
//! | 0 | no number |
//! | 1 | all numbers |
//! | 2 | 512 words of 8 bytes, the lowest byte first |
//! | 3 | the number of runs, and the length of each; they are out of the set and in it by turns, the first one out |
//!
//! Numbers that are not words have seven bits in each byte, the lowest ones first; all bytes but the last have the
//! eighth bit set (as in Protocol Buffers, "Base 128 Varints").
//!
//! An honest broker delivers nearly everything, so most blocks are a single byte. The runs are used where they are
//! shorter than the words. So a set is never longer than one bit for each number, and a byte for each block.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use super::bits::{BLOCK_BITS, BLOCK_WORDS, Bits, Block, NUMBERS_MAX};

const NONE: u8 = 0;
const ALL: u8 = 1;
const WORDS: u8 = 2;
const RUNS: u8 = 3;
/// The most bytes of a number.
const VARINT_BYTES_MAX: u32 = 10;

/// Bytes that are not a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("these bytes are not a set of message numbers")]
pub struct NotASet;

impl Bits {
    /// The set as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint(&mut bytes, self.limit());
        varint(&mut bytes, whole(self.blocks().len()));
        for block in self.blocks() {
            match block {
                None => bytes.push(NONE),
                Some(block) => pack(&mut bytes, block),
            }
        }
        bytes
    }

    /// The set that [`Bits::to_bytes`] made these bytes of. It allocates a block at most for each byte that was given.
    ///
    /// # Errors
    /// They are not the bytes of a set.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotASet> {
        let mut rest = bytes;
        let limit = read_varint(&mut rest)?;
        let count = read_varint(&mut rest)?;
        let most = limit.min(NUMBERS_MAX).div_ceil(whole(BLOCK_BITS));
        if count > most || count > whole(rest.len()) {
            return Err(NotASet);
        }
        let mut blocks = Vec::new();
        for _ in 0..count {
            blocks.push(unpack(&mut rest)?);
        }
        if !rest.is_empty() {
            return Err(NotASet);
        }
        Self::of_blocks(limit, blocks).ok_or(NotASet)
    }
}

/// As text: the bytes in base64.
impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(self.to_bytes()))
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text).map_err(de::Error::custom)?;
        Self::from_bytes(&bytes).map_err(de::Error::custom)
    }
}

fn pack(bytes: &mut Vec<u8>, block: &Block) {
    if block.iter().all(|word| *word == 0) {
        return bytes.push(NONE);
    }
    if block.iter().all(|word| *word == u64::MAX) {
        return bytes.push(ALL);
    }
    let before = bytes.len();
    bytes.push(RUNS);
    let lengths = runs(block);
    varint(bytes, whole(lengths.len()));
    for length in lengths {
        varint(bytes, length);
    }
    if bytes.len() - before > size_of::<Block>() {
        bytes.truncate(before);
        bytes.push(WORDS);
        bytes.extend(block.iter().flat_map(|word| word.to_le_bytes()));
    }
}

/// The lengths of the runs of a block, out of the set and in it by turns. The first one may be 0.
fn runs(block: &Block) -> Vec<u64> {
    let mut lengths = vec![0];
    let mut inside = false;
    for word in block {
        let mut left: u32 = 64;
        let mut rest = *word;
        while left > 0 {
            let same = if inside {
                rest.trailing_ones()
            } else {
                rest.trailing_zeros()
            };
            let same = same.min(left);
            if let Some(last) = lengths.last_mut() {
                *last += u64::from(same);
            }
            left -= same;
            if left > 0 {
                rest = rest.checked_shr(same).unwrap_or(0);
                inside = !inside;
                lengths.push(0);
            }
        }
    }
    lengths
}

fn unpack(rest: &mut &[u8]) -> Result<Option<Box<Block>>, NotASet> {
    let (kind, after) = rest.split_first().ok_or(NotASet)?;
    *rest = after;
    match *kind {
        NONE => Ok(None),
        ALL => Ok(Some(Box::new([u64::MAX; BLOCK_WORDS]))),
        WORDS => {
            let (words, after) = rest.split_at_checked(size_of::<Block>()).ok_or(NotASet)?;
            *rest = after;
            let mut block = Box::new([0; BLOCK_WORDS]);
            for (word, bytes) in block.iter_mut().zip(words.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            Ok(Some(block))
        }
        RUNS => unpack_runs(rest).map(Some),
        _ => Err(NotASet),
    }
}

fn unpack_runs(rest: &mut &[u8]) -> Result<Box<Block>, NotASet> {
    let mut block = Box::new([0; BLOCK_WORDS]);
    let mut at = 0_usize;
    let mut inside = false;
    for _ in 0..read_varint(rest)? {
        let length = usize::try_from(read_varint(rest)?).map_err(|_| NotASet)?;
        let end = at.checked_add(length).ok_or(NotASet)?;
        if end > BLOCK_BITS {
            return Err(NotASet);
        }
        if inside {
            for bit in at..end {
                block[bit / 64] |= 1 << (bit % 64);
            }
        }
        at = end;
        inside = !inside;
    }
    if at == BLOCK_BITS {
        Ok(block)
    } else {
        Err(NotASet)
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = (value & 0x7F).to_le_bytes();
        value >>= 7;
        if value == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

fn read_varint(rest: &mut &[u8]) -> Result<u64, NotASet> {
    let mut value = 0;
    for place in 0..VARINT_BYTES_MAX {
        let (byte, after) = rest.split_first().ok_or(NotASet)?;
        *rest = after;
        let part = u64::from(byte & 0x7F);
        let shifted = part << (7 * place);
        if shifted >> (7 * place) != part {
            return Err(NotASet);
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(NotASet)
}

/// A count or an index as a number; a `usize` has at most 64 bits.
pub(super) fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
