//! Header blocks to fields.

use super::table::Table;
use super::{FIELD_LIST_MAX_BYTES, HpackFlaw, TABLE_MAX_BYTES, huffman, integer};

/// The fields of a block, one behind the other in a buffer that is used again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldList {
    bytes: Vec<u8>,
    /// Where each name and each value ends.
    ends: Vec<(u32, u32)>,
}

impl FieldList {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names and values in their order, pseudo-header fields too.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(name_end, value_end)| {
            let (name_end, value_end) = (name_end as usize, value_end as usize);
            let field = (
                &self.bytes[start..name_end],
                &self.bytes[name_end..value_end],
            );
            start = value_end;
            field
        })
    }

    /// The first value of the field `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(field, _)| *field == name.as_bytes())
            .map(|(_, value)| value)
    }

    /// Its memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(u32, u32)>()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Decodes the blocks of one direction of a connection.
#[derive(Debug, Clone)]
pub struct Decoder {
    table: Table,
    /// Counts the changes of the table.
    generation: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder for a new connection, with a table of 4,096 bytes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            table: Table::new(TABLE_MAX_BYTES),
            generation: 0,
        }
    }

    /// Which state the table is in. While it stays the same, equal blocks mean equal fields.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The memory of the table.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.table.held_bytes()
    }

    /// Decodes a whole block into `list`, which is emptied before.
    ///
    /// # Errors
    /// The block breaks RFC 7541 or a limit. Nothing can be decoded after that.
    pub fn decode(&mut self, mut block: &[u8], list: &mut FieldList) -> Result<(), HpackFlaw> {
        list.clear();
        let mut list_bytes = 0;
        while let Some(first) = block.first().copied() {
            if first & 0xE0 == 0x20 {
                let size = integer::read(&mut block, 5)?;
                if list_bytes > 0 {
                    return Err(HpackFlaw::LateTableSize);
                }
                if size as usize > TABLE_MAX_BYTES {
                    return Err(HpackFlaw::TableSize(size));
                }
                self.table.set_max(size as usize);
                self.generation = self.generation.wrapping_add(1);
                continue;
            }
            let start = list.bytes.len();
            self.field(first, &mut block, list)?;
            list_bytes += list.bytes.len() - start + 32;
            if list_bytes > FIELD_LIST_MAX_BYTES {
                return Err(HpackFlaw::ListTooLarge);
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        first: u8,
        block: &mut &[u8],
        list: &mut FieldList,
    ) -> Result<(), HpackFlaw> {
        let start = list.bytes.len();
        if first & 0x80 != 0 {
            let index = integer::read(block, 7)?;
            let (name, value) = self.table.get(index).ok_or(HpackFlaw::Index(index))?;
            list.bytes.extend_from_slice(name);
            list.bytes.extend_from_slice(value);
            list.ends
                .push(((start + name.len()) as u32, list.bytes.len() as u32));
            return Ok(());
        }
        let enters = first & 0x40 != 0;
        let name_index = integer::read(block, if enters { 6 } else { 4 })?;
        if name_index == 0 {
            read_string(block, &mut list.bytes)?;
        } else {
            let (name, _) = self
                .table
                .get(name_index)
                .ok_or(HpackFlaw::Index(name_index))?;
            list.bytes.extend_from_slice(name);
        }
        let name_end = list.bytes.len();
        read_string(block, &mut list.bytes)?;
        list.ends.push((name_end as u32, list.bytes.len() as u32));
        if enters {
            let (name, value) = list.bytes[start..].split_at(name_end - start);
            self.table.insert(name, value);
            self.generation = self.generation.wrapping_add(1);
        }
        Ok(())
    }
}

/// Reads a string and moves `block` behind it.
fn read_string(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), HpackFlaw> {
    let is_coded = block.first().is_some_and(|first| first & 0x80 != 0);
    let len = integer::read(block, 7)? as usize;
    let (string, rest) = block.split_at_checked(len).ok_or(HpackFlaw::Torn)?;
    *block = rest;
    if is_coded {
        huffman::decode(string, out)
    } else {
        out.extend_from_slice(string);
        Ok(())
    }
}
