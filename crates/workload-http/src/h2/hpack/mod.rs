//! Header compression (RFC 7541).

mod cached;
mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;

pub use cached::{CachedBlock, Part};
pub use decoder::{Decoder, FieldList};
pub use encoder::{Encoder, Indexing};

use thiserror::Error;

/// The size of a dynamic table until the settings say otherwise, and the most that we use or allow.
pub const TABLE_MAX_BYTES: usize = 4096;

/// The most that a field list may be, counted as RFC 9113 counts it: 32 bytes for each field, and its name and value.
pub const FIELD_LIST_MAX_BYTES: usize = 64 * 1024;

/// Why a header block can't be decoded. All are errors of the connection, because the tables no longer agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HpackFlaw {
    /// The block ends inside a field.
    #[error("a header block ends inside a field")]
    Torn,
    /// A number that is over 2^28.
    #[error("a number in a header block is too large")]
    Number,
    /// An index that neither table has.
    #[error("index {0} is in neither table")]
    Index(u32),
    /// A string that is not valid Huffman code.
    #[error("a string is not valid Huffman code")]
    Huffman,
    /// The table is to be larger than we allowed.
    #[error("the dynamic table is to be {0} bytes, over the limit")]
    TableSize(u32),
    /// A change of the table's size behind a field.
    #[error("a change of the dynamic table's size stands behind a field")]
    LateTableSize,
    /// The list is too long.
    #[error("the field list is over 64 KiB")]
    ListTooLarge,
}

#[cfg(test)]
mod tests;
