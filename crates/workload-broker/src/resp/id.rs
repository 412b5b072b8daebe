//! The id of an entry of a stream: milliseconds and a number among those of the same millisecond ("Redis Streams",
//! Entry IDs).

use crate::decimal;

/// Bits of a handle for the number among those of a millisecond: four million.
const SEQ_BITS: u32 = 22;

/// The id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EntryId {
    /// The server's clock, in milliseconds since 1970.
    pub ms: u64,
    /// Counts the entries of that millisecond.
    pub seq: u64,
}

impl EntryId {
    /// Reads `1526919030474-55`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let at = text.iter().position(|byte| *byte == b'-')?;
        Some(Self {
            ms: decimal::read(&text[..at])?,
            seq: decimal::read(&text[at + 1..])?,
        })
    }

    /// Both numbers in one. `None` if it has no room for them: the millisecond is after the year 2109, or has more than
    /// four million entries.
    #[must_use]
    pub fn handle(self) -> Option<u64> {
        let fits = self.ms >> (u64::BITS - SEQ_BITS) == 0 && self.seq >> SEQ_BITS == 0;
        fits.then_some(self.ms << SEQ_BITS | self.seq)
    }

    /// The id with this handle.
    #[must_use]
    pub fn of(handle: u64) -> Self {
        Self {
            ms: handle >> SEQ_BITS,
            seq: handle & ((1 << SEQ_BITS) - 1),
        }
    }

    /// Appends it as a word of a command.
    pub(super) fn bulk(self, out: &mut Vec<u8>) {
        super::command::bulk_size(
            out,
            decimal::digits(self.ms) + 1 + decimal::digits(self.seq),
        );
        decimal::write(out, self.ms);
        out.push(b'-');
        decimal::write(out, self.seq);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_two_numbers() {
        let id = EntryId {
            ms: 1_526_919_030_474,
            seq: 55,
        };
        assert_eq!(EntryId::parse(b"1526919030474-55"), Some(id));
        let mut out = Vec::new();
        id.bulk(&mut out);
        assert_eq!(out, b"$16\r\n1526919030474-55\r\n");
        for text in ["", "1", "-", "1-", "-1", "1-2-3", "1-x", "$"] {
            assert_eq!(EntryId::parse(text.as_bytes()), None, "{text}");
        }
        assert!(EntryId { ms: 2, seq: 0 } > EntryId { ms: 1, seq: 9 });
    }

    #[test]
    fn an_id_without_room_has_no_handle() {
        assert_eq!(
            EntryId {
                ms: 1 << 42,
                seq: 0
            }
            .handle(),
            None
        );
        assert_eq!(
            EntryId {
                ms: 1,
                seq: 1 << 22
            }
            .handle(),
            None
        );
    }

    proptest! {
        #[test]
        fn handles_come_back(ms in 0u64..1 << 42, seq in 0u64..1 << 22) {
            let id = EntryId { ms, seq };
            prop_assert_eq!(id.handle().map(EntryId::of), Some(id));
        }
    }
}
