//! Fields to header blocks.

use super::TABLE_MAX_BYTES;
use super::table::{Found, Table};
use super::{huffman, integer};

/// Whether a field enters the dynamic table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// If it fits there without displacing another.
    Incremental,
    /// Not: it differs each time.
    Without,
}

/// Encodes the blocks of one direction of a connection.
///
/// It never displaces an entry to make room for another. The fields of a load are few and come again, so their entries
/// stay, and equal requests become equal bytes: see [`super::CachedBlock`].
#[derive(Debug, Clone)]
pub struct Encoder {
    table: Table,
    /// The peer changed the table's size: the smallest since the last block, and the last one.
    resized: Option<(usize, usize)>,
    /// Counts the changes of the table.
    generation: u32,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self {
            table: Table::new(TABLE_MAX_BYTES),
            resized: None,
            generation: 0,
        }
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE: the next block obeys it.
    pub fn set_peer_limit(&mut self, bytes: u32) {
        let bytes = (bytes as usize).min(TABLE_MAX_BYTES);
        let smallest = self
            .resized
            .map_or(bytes, |(smallest, _)| smallest.min(bytes));
        if bytes != self.table.max() || self.resized.is_some() {
            self.resized = Some((smallest, bytes));
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// Which state the table is in. While it stays the same, equal fields become equal bytes.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The memory of the table.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.table.held_bytes()
    }

    /// Begins a block: says it if the table has another size now (RFC 7541, section 4.2).
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some((smallest, last)) = self.resized.take() else {
            return;
        };
        if smallest < last && smallest < self.table.max() {
            integer::append(out, 0x20, 5, smallest);
            self.table.set_max(smallest);
        }
        integer::append(out, 0x20, 5, last);
        self.table.set_max(last);
        self.generation = self.generation.wrapping_add(1);
    }

    /// Appends a field. The name is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let found = self.table.find(name, value);
        if let Found::Field(index) = found {
            integer::append(out, 0x80, 7, index);
            return;
        }
        let name_index = if let Found::Name(index) = found {
            index
        } else {
            0
        };
        let enters = indexing == Indexing::Incremental && self.table.has_room(name, value);
        if enters {
            integer::append(out, 0x40, 6, name_index);
        } else {
            integer::append(out, 0x00, 4, name_index);
        }
        if name_index == 0 {
            append_string([name, &[]], out);
        }
        append_string([value, &[]], out);
        if enters {
            self.table.insert(name, value);
            self.generation = self.generation.wrapping_add(1);
        }
    }
}

/// Appends a string of two parts, in Huffman code if that is shorter.
pub(super) fn append_string(parts: [&[u8]; 2], out: &mut Vec<u8>) {
    let bytes = || parts.iter().flat_map(|part| part.iter().copied());
    let plain = parts[0].len() + parts[1].len();
    let coded = huffman::encoded_len(bytes());
    if coded < plain {
        integer::append(out, 0x80, 7, coded);
        huffman::encode(bytes(), out);
    } else {
        integer::append(out, 0x00, 7, plain);
        out.extend_from_slice(parts[0]);
        out.extend_from_slice(parts[1]);
    }
}
