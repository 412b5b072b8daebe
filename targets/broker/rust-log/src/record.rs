//! What the log is made of: records behind their length and check sum. Without I/O.
//!
//! A record is `u32` length of its body, `u32` CRC-32 of its position and body, and the body, whose first byte says what it
//! is. The position goes into the check sum so that bytes of another place, or of an older file, are no record here.

use crate::frame::{FIELDS_BYTES_MAX, Retention};
use crate::wire::{Fields, Malformed, put_optional_text, put_optional_u64, put_text};

/// What stands before each body.
pub const HEAD_BYTES: usize = 8;

/// What a message's record has besides its payload.
pub const MESSAGE_FIELDS_BYTES: usize = 1 + 4 + 8 + 8 + 8;

/// What a record may have besides a payload: names and numbers.
pub const RECORD_FIELDS_BYTES_MAX: usize = FIELDS_BYTES_MAX;

/// Ranges of one [`Record::Settled`]; more make another record.
pub const RANGES_MAX: usize = 2048;

const MESSAGE: u8 = 1;
const SETTLED: u8 = 2;
const CHANNEL: u8 = 3;
const CURSOR: u8 = 4;

/// A record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// A channel has a message more.
    Message {
        /// Its channel.
        channel: u32,
        /// Its number there.
        offset: u64,
        /// When the writer says that it wrote it.
        published_ms: u64,
        /// When it came.
        received_ms: u64,
        /// The message; it is the end of the record.
        payload: &'a [u8],
    },
    /// Messages of a queue need not be delivered any more.
    Settled {
        /// Their channel.
        channel: u32,
        /// From the first to the last offset of each range.
        ranges: Ranges<'a>,
    },
    /// A channel, as it was declared. It is repeated in each segment, because older segments go.
    Channel(Declared<'a>),
    /// A reader of a stream has settled all before this offset.
    Cursor {
        /// The stream.
        channel: u32,
        /// The offset of the first that is not settled.
        next: u64,
        /// What the reader is called.
        name: &'a str,
    },
}

/// A channel's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared<'a> {
    /// Its number in the log.
    pub channel: u32,
    /// Whether each reader gets every message.
    pub is_stream: bool,
    /// When messages are confirmed and delivered, as a number.
    pub tier: u8,
    /// The offset of its next message.
    pub next: u64,
    /// How long it keeps messages.
    pub retention: Retention,
    /// Its topic.
    pub topic: &'a str,
    /// Its group.
    pub group: Option<&'a str>,
    /// Which part of the topic.
    pub partition: u32,
    /// How many parts there are.
    pub partitions: u32,
}

/// Ranges of offsets, where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranges<'a>(&'a [u8]);

impl<'a> Ranges<'a> {
    /// First and last offset of each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let (ranges, _) = self.0.as_chunks::<16>();
        ranges.iter().map(|range| {
            let range = u128::from_be_bytes(*range);
            ((range >> 64) as u64, range as u64)
        })
    }
}

/// Appends a record at this position; `body` appends its body.
fn put(out: &mut Vec<u8>, position: u64, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    body(out);
    let length = out.len() - start - HEAD_BYTES;
    let sum = sum(position, &out[start + HEAD_BYTES..]);
    let length = u32::try_from(length).expect("records have limits below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    out[start + 4..start + HEAD_BYTES].copy_from_slice(&sum.to_be_bytes());
}

fn sum(position: u64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&position.to_be_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Appends a message.
pub fn put_message(
    out: &mut Vec<u8>,
    position: u64,
    (channel, offset): (u32, u64),
    published_ms: u64,
    received_ms: u64,
    payload: &[u8],
) {
    put(out, position, |out| {
        out.push(MESSAGE);
        out.extend_from_slice(&channel.to_be_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&published_ms.to_be_bytes());
        out.extend_from_slice(&received_ms.to_be_bytes());
        out.extend_from_slice(payload);
    });
}

/// Appends that these ranges are settled; at most [`RANGES_MAX`].
pub fn put_settled(out: &mut Vec<u8>, position: u64, channel: u32, ranges: &[(u64, u64)]) {
    put(out, position, |out| {
        out.push(SETTLED);
        out.extend_from_slice(&channel.to_be_bytes());
        for (first, last) in ranges {
            out.extend_from_slice(&first.to_be_bytes());
            out.extend_from_slice(&last.to_be_bytes());
        }
    });
}

/// Appends a channel.
pub fn put_channel(out: &mut Vec<u8>, position: u64, declared: &Declared<'_>) {
    put(out, position, |out| {
        out.push(CHANNEL);
        out.extend_from_slice(&declared.channel.to_be_bytes());
        out.extend_from_slice(&[u8::from(declared.is_stream), declared.tier]);
        out.extend_from_slice(&declared.next.to_be_bytes());
        put_optional_u64(out, declared.retention.age_ms);
        put_optional_u64(out, declared.retention.bytes);
        put_optional_u64(out, declared.retention.messages);
        put_text(out, declared.topic);
        put_optional_text(out, declared.group);
        out.extend_from_slice(&declared.partition.to_be_bytes());
        out.extend_from_slice(&declared.partitions.to_be_bytes());
    });
}

/// Appends a cursor.
pub fn put_cursor(out: &mut Vec<u8>, position: u64, channel: u32, next: u64, name: &str) {
    put(out, position, |out| {
        out.push(CURSOR);
        out.extend_from_slice(&channel.to_be_bytes());
        out.extend_from_slice(&next.to_be_bytes());
        put_text(out, name);
    });
}

/// What stands at the front of some bytes of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// A record, and its length with its head.
    Whole(Record<'a>, usize),
    /// The beginning of one of this length, or too little to tell.
    Partial(usize),
    /// No record: its length or its check sum is wrong, or it says nothing.
    Torn,
}

/// Looks at the record at this position, whose body has at most `most` bytes.
pub fn find(bytes: &[u8], position: u64, most: usize) -> Found<'_> {
    let mut fields = Fields::new(bytes);
    let (Ok(length), Ok(expected)) = (fields.u32(), fields.u32()) else { return Found::Partial(HEAD_BYTES) };
    let Some(length) = usize::try_from(length).ok().filter(|length| (1..=most).contains(length)) else {
        return Found::Torn;
    };
    let whole = HEAD_BYTES + length;
    let Some(body) = bytes.get(HEAD_BYTES..whole) else { return Found::Partial(whole) };
    if sum(position, body) != expected {
        return Found::Torn;
    }
    read(body).map_or(Found::Torn, |record| Found::Whole(record, whole))
}

fn read(body: &[u8]) -> Result<Record<'_>, Malformed> {
    let mut fields = Fields::new(body);
    let kind = fields.u8()?;
    let channel = fields.u32()?;
    match kind {
        MESSAGE => Ok(Record::Message {
            channel,
            offset: fields.u64()?,
            published_ms: fields.u64()?,
            received_ms: fields.u64()?,
            payload: fields.rest(),
        }),
        SETTLED if fields.rest().len().is_multiple_of(16) => {
            Ok(Record::Settled { channel, ranges: Ranges(fields.rest()) })
        }
        CHANNEL => declared(channel, &mut fields).map(Record::Channel),
        CURSOR => Ok(Record::Cursor { channel, next: fields.u64()?, name: fields.text()? }),
        _ => Err(Malformed),
    }
}

fn declared<'a>(channel: u32, fields: &mut Fields<'a>) -> Result<Declared<'a>, Malformed> {
    let (is_stream, tier, next) = (fields.flag()?, fields.u8()?, fields.u64()?);
    let mut number = || fields.optional(Fields::u64);
    let retention = Retention { age_ms: number()?, bytes: number()?, messages: number()? };
    let (topic, group) = (fields.text()?, fields.optional(Fields::text)?);
    let (partition, partitions) = (fields.u32()?, fields.u32()?);
    Ok(Declared { channel, is_stream, tier, next, retention, topic, group, partition, partitions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_comes_back() {
        let retention = Retention { age_ms: None, bytes: Some(9), messages: None };
        let declared = Declared {
            channel: 3,
            is_stream: true,
            tier: 2,
            next: 17,
            retention,
            topic: "t",
            group: Some("g"),
            partition: 1,
            partitions: 2,
        };
        let mut out = Vec::new();
        put_channel(&mut out, 40, &declared);
        assert_eq!(find(&out, 40, 1000), Found::Whole(Record::Channel(declared), out.len()));
        out.clear();
        put_cursor(&mut out, 40, 3, 12, "reader");
        let cursor = Record::Cursor { channel: 3, next: 12, name: "reader" };
        assert_eq!(find(&out, 40, 1000), Found::Whole(cursor, out.len()));
        out.clear();
        let ranges = [(1, 4), (6, u64::MAX)];
        put_settled(&mut out, 40, 3, &ranges);
        let Found::Whole(Record::Settled { channel: 3, ranges: read }, _) = find(&out, 40, 1000) else {
            panic!("settled")
        };
        assert_eq!(read.iter().collect::<Vec<_>>(), ranges);
    }

    #[test]
    fn zeros_are_no_record() {
        assert_eq!(find(&[0; 64], 0, 1000), Found::Torn);
    }

    proptest! {
        #[test]
        fn a_message_is_whole_or_not_there(payload in prop::collection::vec(any::<u8>(), 0..200), position: u64, at in 0..300_usize, bit in 0..8) {
            let mut out = Vec::new();
            put_message(&mut out, position, (1, 2), 3, 4, &payload);
            prop_assert_eq!(out.len(), HEAD_BYTES + MESSAGE_FIELDS_BYTES + payload.len());
            let message = Record::Message { channel: 1, offset: 2, published_ms: 3, received_ms: 4, payload: &payload };
            prop_assert_eq!(find(&out, position, 1000), Found::Whole(message, out.len()));
            prop_assert_eq!(find(&out, position ^ 1, 1000), Found::Torn);
            for end in 0..out.len() {
                prop_assert!(matches!(find(&out[..end], position, 1000), Found::Partial(_)));
            }
            let at = at % out.len();
            out[at] ^= 1_u8 << bit;
            prop_assert!(!matches!(find(&out, position, 1000), Found::Whole(..)));
        }
    }
}
