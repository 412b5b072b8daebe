//! As much of MessagePack as load clients speak: a writer for maps of texts and numbers, and a reader that finds a field
//! and skips the rest. Format: <https://github.com/msgpack/msgpack/blob/master/spec.md>.
//!
//! Not one of the published crates: what is written are fixed messages, and what is read are a few values of a map, for
//! which nothing must be built or allocated. The tests compare both with `rmp-serde`.

/// Writes values one after the other; the caller sees to it that a map's count is right.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// A map of so many pairs, at most 15.
    #[must_use]
    pub fn map(mut self, pairs: u8) -> Self {
        debug_assert!(pairs < 16);
        self.out.push(0x80 | pairs);
        self
    }

    /// An array of so many values.
    #[must_use]
    pub fn array(mut self, values: u16) -> Self {
        match u8::try_from(values) {
            Ok(few @ 0..16) => self.out.push(0x90 | few),
            _ => {
                self.out.push(0xDC);
                self.out.extend_from_slice(&values.to_be_bytes());
            }
        }
        self
    }

    /// A text of at most 31 bytes.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        debug_assert!(text.len() < 32);
        self.out.push(0xA0 | u8::try_from(text.len()).unwrap_or(0));
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    /// A whole number in its shortest form, as every encoder writes it.
    #[must_use]
    pub fn int(mut self, value: u64) -> Self {
        let bytes = value.to_be_bytes();
        let (marker, length) = match value {
            0..0x80 => (None, 1),
            0x80..0x100 => (Some(0xCC_u8), 1),
            0x100..0x1_0000 => (Some(0xCD), 2),
            0x1_0000..0x1_0000_0000 => (Some(0xCE), 4),
            _ => (Some(0xCF), 8),
        };
        self.out.extend(marker);
        self.out.extend_from_slice(&bytes[8 - length..]);
        self
    }

    /// A number of 64 bits.
    #[must_use]
    pub fn float(mut self, value: f64) -> Self {
        self.out.push(0xCB);
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A number of 32 bits.
    #[must_use]
    pub fn float32(mut self, value: f32) -> Self {
        self.out.push(0xCA);
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// Reads values from the front of some bytes. Nothing that a server sends makes it panic or run longer than the bytes are.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether the bytes are a map, all of it, and nothing behind it.
    #[must_use]
    pub fn is_whole_map(mut self) -> bool {
        let mut start = self;
        start.map().is_some() && self.skip().is_some() && self.rest.is_empty()
    }

    /// The value of a key, if what comes next is a map that has it.
    #[must_use]
    pub fn field(mut self, key: &str) -> Option<Self> {
        let pairs = self.map()?;
        for _ in 0..pairs {
            let name = self;
            self.skip()?;
            if name.text() == Some(key) {
                return Some(self);
            }
            self.skip()?;
        }
        None
    }

    /// The text that comes next.
    #[must_use]
    pub fn text(mut self) -> Option<&'a str> {
        let marker = self.byte()?;
        let length = match marker {
            0xA0..=0xBF => u64::from(marker & 0x1F),
            0xD9..=0xDB => self.unsigned(1 << (marker - 0xD9))?,
            _ => return None,
        };
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// The whole number that comes next.
    #[must_use]
    pub fn int(mut self) -> Option<i64> {
        let marker = self.byte()?;
        match marker {
            0x00..=0x7F | 0xE0..=0xFF => Some(i64::from(marker.cast_signed())),
            0xCC..=0xCF => i64::try_from(self.unsigned(1 << (marker - 0xCC))?).ok(),
            0xD0..=0xD3 => {
                let bytes = 1 << (marker - 0xD0);
                let unused_bits = 64 - 8 * bytes;
                // Shifted up and down again, so that the sign of the shorter form is the sign of the whole.
                Some((self.unsigned(bytes)? << unused_bits).cast_signed() >> unused_bits)
            }
            _ => None,
        }
    }

    /// The number that comes next, of whatever form. A whole number beyond 53 bits is rounded.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "rounded, as said; and four bytes are no more than four bytes"
    )]
    pub fn number(mut self) -> Option<f64> {
        match self.rest.first()? {
            0xCA => {
                self.byte()?;
                Some(f64::from(f32::from_bits(self.unsigned(4)? as u32)))
            }
            0xCB => {
                self.byte()?;
                Some(f64::from_bits(self.unsigned(8)?))
            }
            _ => self.int().map(|whole| whole as f64),
        }
    }

    /// The values of the array that comes next. They end early where the bytes do.
    #[must_use]
    pub fn items(mut self) -> Option<impl Iterator<Item = Self>> {
        let marker = self.byte()?;
        let count = match marker {
            0x90..=0x9F => u64::from(marker & 0x0F),
            0xDC | 0xDD => self.unsigned(2 << (marker - 0xDC))?,
            _ => return None,
        };
        Some((0..count).map_while(move |_| {
            let item = self;
            self.skip().map(|()| item)
        }))
    }

    fn map(&mut self) -> Option<u64> {
        let marker = self.byte()?;
        match marker {
            0x80..=0x8F => Some(u64::from(marker & 0x0F)),
            0xDE | 0xDF => self.unsigned(2 << (marker - 0xDE)),
            _ => None,
        }
    }

    /// Goes over one value with all that is in it.
    fn skip(&mut self) -> Option<()> {
        let mut values = 1_u64;
        while values > 0 {
            values -= 1;
            let marker = self.byte()?;
            let (bytes, inner) = match marker {
                0x00..=0x7F | 0xC0 | 0xC2 | 0xC3 | 0xE0..=0xFF => (0, 0),
                0x80..=0x8F => (0, 2 * u64::from(marker & 0x0F)),
                0x90..=0x9F => (0, u64::from(marker & 0x0F)),
                0xA0..=0xBF => (u64::from(marker & 0x1F), 0),
                0xC4..=0xC6 => (self.unsigned(1 << (marker - 0xC4))?, 0),
                // An extension has a byte for its type.
                0xC7..=0xC9 => (self.unsigned(1 << (marker - 0xC7))? + 1, 0),
                0xCA => (4, 0),
                0xCB => (8, 0),
                0xCC..=0xCF => (1 << (marker - 0xCC), 0),
                0xD0..=0xD3 => (1 << (marker - 0xD0), 0),
                0xD4..=0xD8 => ((1 << (marker - 0xD4)) + 1, 0),
                0xD9..=0xDB => (self.unsigned(1 << (marker - 0xD9))?, 0),
                0xDC | 0xDD => (0, self.unsigned(2 << (marker - 0xDC))?),
                0xDE | 0xDF => (0, 2 * self.unsigned(2 << (marker - 0xDE))?),
                0xC1 => return None,
            };
            self.take(bytes)?;
            // Each value takes a byte at least, so a count beyond what is left is a lie.
            values += inner;
            if values > self.rest.len() as u64 {
                return None;
            }
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// A big-endian number of so many bytes, at most 8.
    fn unsigned(&mut self, bytes: u64) -> Option<u64> {
        let number = self.take(bytes)?;
        Some(
            number
                .iter()
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn an_array_is_read_value_by_value() {
        let long = (0..20)
            .fold(Writer::default().array(20), Writer::int)
            .finish();
        let values: Vec<Option<i64>> = Reader::new(&long)
            .items()
            .expect("an array")
            .map(Reader::int)
            .collect();
        assert_eq!(values, (0..20).map(Some).collect::<Vec<_>>());
        let short = Writer::default().array(2).float32(0.5).text("x").finish();
        let values: Vec<Option<f64>> = Reader::new(&short)
            .items()
            .expect("an array")
            .map(Reader::number)
            .collect();
        assert_eq!(values, [Some(0.5), None]);
        // As many values as there are bytes, whatever the count says.
        assert_eq!(
            Reader::new(&[0xDD, 255, 255, 255, 255, 1, 2])
                .items()
                .map(Iterator::count),
            Some(2)
        );
        assert!(Reader::new(&[0x80]).items().is_none());
    }

    #[test]
    fn what_is_written_is_what_another_decoder_reads() {
        let bytes = Writer::default()
            .map(3)
            .text("t")
            .text("ping")
            .text("list")
            .array(2)
            .float(0.5)
            .text("")
            .text("p")
            .map(1)
            .text("timestamp")
            .int(1_000_000_000_000_001)
            .finish();
        let value: Value = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(
            value,
            json!({"t": "ping", "list": [0.5, ""], "p": {"timestamp": 1_000_000_000_000_001_u64}})
        );
    }

    #[test]
    fn floats_of_both_sizes_and_long_arrays() {
        let floats: Vec<f32> = (0_u8..100).map(|n| f32::from(n) / 128.0 - 0.5).collect();
        let array = Writer::default().map(1).text("pcm").array(100);
        let writer = floats
            .iter()
            .fold(array, |writer, value| writer.float32(*value));
        let bytes = writer.finish();
        let value: std::collections::BTreeMap<String, Vec<f32>> =
            rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(value["pcm"], floats);
        for (bytes, number) in [
            (rmp_serde::to_vec(&0.25_f32).unwrap(), Some(0.25)),
            (rmp_serde::to_vec(&-1e9_f64).unwrap(), Some(-1e9)),
            (rmp_serde::to_vec(&7_u8).unwrap(), Some(7.0)),
            (rmp_serde::to_vec("7").unwrap(), None),
            (vec![0xCA, 0, 0], None),
        ] {
            assert_eq!(Reader::new(&bytes).number(), number);
        }
    }

    #[test]
    fn a_count_that_the_bytes_cannot_hold_is_refused() {
        for bytes in [
            &[0xDF, 0xFF, 0xFF, 0xFF, 0xFF, 0xC0][..],
            &[0x81],
            &[0x81, 0xDD, 0xFF, 0xFF, 0xFF, 0xFF],
            &[0x81, 0xA1, b'x', 0xC1],
        ] {
            assert!(Reader::new(bytes).field("t").is_none(), "{bytes:x?}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u32>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            "[a-zé]{0,300}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
                prop::collection::btree_map("[a-s]{1,40}", inner, 0..20)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn integers_are_those_of_another_encoder(value in prop_oneof![any::<u64>(), 0_u64..70_000]) {
            prop_assert_eq!(Writer::default().int(value).finish(), rmp_serde::to_vec(&value).unwrap());
        }

        #[test]
        fn a_field_is_found_behind_whatever_comes_before_it(before in values(), id in any::<i64>()) {
            let bytes = rmp_serde::to_vec(&json!({"before": before, "p": {"a": before, "id": id, "word": "déjà"}})).unwrap();
            let p = Reader::new(&bytes).field("p").unwrap();
            prop_assert_eq!(p.field("id").unwrap().int(), Some(id));
            prop_assert_eq!(p.field("word").unwrap().text(), Some("déjà"));
            prop_assert!(p.field("none").is_none());
        }

        #[test]
        fn a_map_is_whole_or_it_is_not(inner in values(), cut in any::<prop::sample::Index>()) {
            let bytes = rmp_serde::to_vec(&json!({"a": inner})).unwrap();
            prop_assert!(Reader::new(&bytes).is_whole_map());
            prop_assert!(!Reader::new(&bytes[..cut.index(bytes.len())]).is_whole_map());
            prop_assert!(!Reader::new(&[&bytes[..], &[0xC0]].concat()).is_whole_map());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let reader = Reader::new(&bytes);
            let _ = (reader.field("t"), reader.int(), reader.text(), reader.number(), reader.is_whole_map());
        }
    }
}
