//! The dynamic table (RFC 7541, section 2.3.2 and 4).

use std::collections::VecDeque;

use super::static_table::STATIC_TABLE;

/// What an entry counts beside its name and value.
const ENTRY_BYTES: usize = 32;

/// The dynamic table, and the static one below it.
///
/// Entries lie one behind the other in one buffer, which is moved together when it has become twice as long as the
/// table may be. So once it has grown, a table never allocates.
#[derive(Debug, Clone)]
pub(super) struct Table {
    bytes: Vec<u8>,
    /// The newest first.
    entries: VecDeque<Entry>,
    size: usize,
    max: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u32,
    name_len: u32,
    value_len: u32,
}

impl Entry {
    fn size(self) -> usize {
        self.name_len as usize + self.value_len as usize + ENTRY_BYTES
    }
}

impl Table {
    pub(super) fn new(max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            size: 0,
            max,
        }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    pub(super) fn set_max(&mut self, max: usize) {
        self.max = max;
        self.evict(0);
    }

    /// Whether such an entry fits and displaces no other.
    pub(super) fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        self.size + name.len() + value.len() + ENTRY_BYTES <= self.max
    }

    /// Removes old entries until one of `size` fits.
    fn evict(&mut self, size: usize) {
        while self.size + size > self.max {
            let Some(oldest) = self.entries.pop_back() else {
                break;
            };
            self.size -= oldest.size();
        }
    }

    /// Inserts an entry. One that is larger than the table empties it.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_BYTES;
        self.evict(size);
        if size > self.max {
            return;
        }
        if self.bytes.len() + name.len() + value.len() > 2 * self.max {
            self.move_together();
        }
        self.entries.push_front(Entry {
            // All fit: a table is at most 4 KiB.
            at: self.bytes.len() as u32,
            name_len: name.len() as u32,
            value_len: value.len() as u32,
        });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += size;
    }

    fn move_together(&mut self) {
        let start = self
            .entries
            .back()
            .map_or(self.bytes.len(), |oldest| oldest.at as usize);
        self.bytes.drain(..start);
        for entry in &mut self.entries {
            entry.at -= start as u32;
        }
    }

    /// The field with this index in both tables.
    pub(super) fn get(&self, index: u32) -> Option<(&[u8], &[u8])> {
        let index = (index as usize).checked_sub(1)?;
        if let Some((name, value)) = STATIC_TABLE.get(index) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.entries.get(index - STATIC_TABLE.len())?;
        Some(self.field(*entry))
    }

    fn field(&self, entry: Entry) -> (&[u8], &[u8]) {
        let bytes = &self.bytes[entry.at as usize..];
        let (name, rest) = bytes.split_at(entry.name_len as usize);
        (name, &rest[..entry.value_len as usize])
    }

    /// The index of this field, or else of one with this name.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Found {
        let fixed = STATIC_TABLE
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let dynamic = self.entries.iter().map(|entry| self.field(*entry));
        let mut found = Found::Nothing;
        for (i, (n, v)) in fixed.chain(dynamic).enumerate() {
            if n == name {
                if v == value {
                    return Found::Field(i + 1);
                }
                if found == Found::Nothing {
                    found = Found::Name(i + 1);
                }
            }
        }
        found
    }
}

/// What the tables have of a field, with its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Field(usize),
    Name(usize),
    Nothing,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The table against a plain list.
        #[test]
        fn it_holds_what_a_list_would(
            steps in prop::collection::vec((0usize..5, 0usize..60, prop::option::weighted(0.1, 0usize..300)), 1..200),
        ) {
            let mut table = Table::new(200);
            let (mut plain, mut max) = (Vec::<(Vec<u8>, Vec<u8>)>::new(), 200);
            for (i, (name, value, resize)) in steps.into_iter().enumerate() {
                if let Some(new) = resize {
                    table.set_max(new);
                    max = new;
                }
                let (name, value) = (vec![b'n'; name], vec![i as u8; value]);
                table.insert(&name, &value);
                plain.insert(0, (name, value));
                let mut size = 0;
                let kept = plain.iter().take_while(|(n, v)| { size += n.len() + v.len() + 32; size <= max }).count();
                plain.truncate(kept);
                for (j, (n, v)) in plain.iter().enumerate() {
                    prop_assert_eq!(table.get(62 + j as u32), Some((&n[..], &v[..])));
                    if !n.is_empty() {
                        prop_assert!(matches!(table.find(n, v), Found::Field(_)));
                    }
                }
                prop_assert_eq!(table.get(62 + plain.len() as u32), None);
                prop_assert_eq!(table.size(), plain.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>());
            }
            prop_assert!(table.bytes.capacity() <= 2048);
        }
    }
}
