//! A set of message numbers: one bit for each, in blocks that appear when they are needed.

use std::ops::Range;

use super::packed;

/// Words of a block: 4 KiB, 32,768 messages.
pub(super) const BLOCK_WORDS: usize = 512;
const WORD_BITS: usize = 64;
pub(super) const BLOCK_BITS: usize = BLOCK_WORDS * WORD_BITS;

pub(super) type Block = [u64; BLOCK_WORDS];

/// The most messages of one writer. At 100,000 a second they last for 11 hours.
pub const NUMBERS_MAX: u64 = 1 << 32;

/// A number at or above the set's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beyond;

/// A set of numbers below a limit. It never holds more than a bit for each number below the limit, whatever a broker
/// sends, and allocates once in 32,768 numbers.
#[derive(Debug, Clone)]
pub struct Bits {
    limit: u64,
    blocks: Vec<Option<Box<Block>>>,
}

/// Sets are equal if they have the same numbers and the same limit.
impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        let words = self.words().max(other.words());
        self.limit == other.limit && (0..words).all(|at| self.word(at) == other.word(at))
    }
}

impl Eq for Bits {}

impl Bits {
    /// An empty set of numbers below `limit`, or below [`NUMBERS_MAX`] if that is less.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            limit: limit.min(NUMBERS_MAX),
            blocks: Vec::new(),
        }
    }

    /// The set's limit.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Adds a number. Returns whether it is new.
    ///
    /// # Errors
    /// The number is not below the limit. The set is unchanged.
    pub fn insert(&mut self, number: u64) -> Result<bool, Beyond> {
        let (at, bit) = self.place(number)?;
        let word = &mut self.block(at / BLOCK_WORDS)[at % BLOCK_WORDS];
        let new = *word & bit == 0;
        *word |= bit;
        Ok(new)
    }

    /// Whether the set has a number.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        self.place(number)
            .is_ok_and(|(at, bit)| self.word(at) & bit != 0)
    }

    /// Adds all numbers of another set. The limit becomes the greater one.
    pub fn unite(&mut self, other: &Self) {
        self.limit = self.limit.max(other.limit);
        for (number, theirs) in other.blocks.iter().enumerate() {
            if let Some(theirs) = theirs {
                let ours = self.block(number);
                for (word, more) in ours.iter_mut().zip(theirs.iter()) {
                    *word |= more;
                }
            }
        }
    }

    /// How many numbers of a range the set has.
    #[must_use]
    pub fn count(&self, range: &Range<u64>) -> u64 {
        count_where(range, |at| self.word(at))
    }

    /// The 64 numbers from 64 × `at` on, the first one in the lowest bit. All zeros where nothing was added.
    #[must_use]
    pub fn word(&self, at: usize) -> u64 {
        match self.blocks.get(at / BLOCK_WORDS) {
            Some(Some(block)) => block[at % BLOCK_WORDS],
            _ => 0,
        }
    }

    /// How many words there are up to the last block that was touched.
    pub(super) fn words(&self) -> usize {
        self.blocks.len() * BLOCK_WORDS
    }

    pub(super) fn blocks(&self) -> &[Option<Box<Block>>] {
        &self.blocks
    }

    /// The set with these blocks; `None` if there is a number at or above the limit.
    pub(super) fn of_blocks(limit: u64, blocks: Vec<Option<Box<Block>>>) -> Option<Self> {
        let set = Self { limit, blocks };
        let all = limit..packed::whole(set.words()) * 64;
        (limit <= NUMBERS_MAX && set.count(&all) == 0).then_some(set)
    }

    /// The word of a number, and its bit there.
    fn place(&self, number: u64) -> Result<(usize, u64), Beyond> {
        if number >= self.limit {
            return Err(Beyond);
        }
        let at = usize::try_from(number / 64).map_err(|_| Beyond)?;
        Ok((at, 1 << (number % 64)))
    }

    fn block(&mut self, number: usize) -> &mut Block {
        if number >= self.blocks.len() {
            self.blocks.resize(number + 1, None);
        }
        self.blocks[number].get_or_insert_with(|| Box::new([0; BLOCK_WORDS]))
    }
}

/// How many numbers of a range are in the set whose words these are. The words may come from several sets: this is how
/// sets are subtracted from each other, number by number.
///
/// Only words that belong to the range are asked for. Numbers from [`NUMBERS_MAX`] on are in no set.
pub fn count_where(range: &Range<u64>, word: impl Fn(usize) -> u64) -> u64 {
    words_of(range)
        .map(|(at, mask)| u64::from((word(at) & mask).count_ones()))
        .sum()
}

/// The words of a range, each with those of its bits that belong to the range.
pub(super) fn words_of(range: &Range<u64>) -> impl Iterator<Item = (usize, u64)> + use<> {
    let (start, end) = (range.start, range.end.min(NUMBERS_MAX).max(range.start));
    let words = if start < end {
        start / 64..end.div_ceil(64)
    } else {
        0..0
    };
    words.filter_map(move |number| {
        let first = number * 64;
        let low = u64::MAX << start.saturating_sub(first).min(63);
        let high = u64::MAX >> (first + 64).saturating_sub(end).min(63);
        Some((usize::try_from(number).ok()?, low & high))
    })
}

/// The numbers of a word, in order.
pub(super) fn numbers_in(at: usize, mut word: u64) -> impl Iterator<Item = u64> {
    let first = packed::whole(at) * 64;
    std::iter::from_fn(move || {
        let bit = u64::from(word.trailing_zeros());
        word &= word.wrapping_sub(1);
        (bit < 64).then(|| first + bit)
    })
}
