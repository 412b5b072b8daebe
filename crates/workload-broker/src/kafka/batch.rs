//! The record batch, version 2: what a Produce request carries and an answer to Fetch brings.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | base offset; the broker sets it |
//! | 8 | 4 | length of what follows |
//! | 12 | 4 | epoch of the leader |
//! | 16 | 1 | magic: 2 |
//! | 17 | 4 | CRC-32C of what follows |
//! | 21 | 2 | attributes: bits 0 to 2 are the compression, bit 5 is a control batch |
//! | 23 | 4 | offset of the last record, less the base offset |
//! | 27 | 16 | time of the first and of the last record, in ms since 1970 |
//! | 43 | 14 | producer, its epoch, its first sequence: -1, for we are not idempotent |
//! | 57 | 4 | number of records |
//! | 61 | rest | records |
//!
//! A record is its length, attributes, time and offset less those of the batch, key, value and headers, in varints.
//!
//! A batch is written where it is sent from, so a message is copied once. A reader does not check the check sum: every
//! message has its own, and [`crate::message`] checks that.

use super::fields::{
    Fields, Malformed, length_of, put_i16, put_i32, put_i64, put_varint, varint_bytes,
};

/// The size of a batch without its records.
pub(super) const HEADER_BYTES: usize = 61;
const LENGTH_AT: usize = 8;
/// What the length counts begins here.
const EPOCH_AT: usize = 12;
const SUM_AT: usize = 17;
/// What the check sum covers begins here.
const ATTRIBUTES_AT: usize = 21;
const LAST_DELTA_AT: usize = 23;
const COUNT_AT: usize = 57;

const MAGIC: i8 = 2;
const COMPRESSION: i16 = 0b111;
const CONTROL: i16 = 1 << 5;

/// What a record has besides its length, the difference of its offset, and its value with length: attributes, difference
/// of time, absent key, no headers.
const RECORD_BYTES: usize = 4;

/// Appends the header of a batch. [`finish`] completes it.
pub(super) fn put_header(out: &mut Vec<u8>, began_ms: i64) {
    put_i64(out, 0);
    put_i32(out, 0);
    put_i32(out, -1);
    out.extend_from_slice(&MAGIC.to_be_bytes());
    put_i32(out, 0);
    put_i16(out, 0);
    put_i32(out, 0);
    put_i64(out, began_ms);
    put_i64(out, began_ms);
    put_i64(out, -1);
    put_i16(out, -1);
    put_i32(out, -1);
    put_i32(out, 0);
}

/// Appends record `number` of a batch, counted from 0.
#[inline]
pub(super) fn put_record(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    // No broker takes 2 GiB, and nobody writes as much at a time.
    let value_length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    let length = RECORD_BYTES + varint_bytes(number) + varint_bytes(value_length) + value.len();
    out.reserve(length + 5);
    put_varint(out, u32::try_from(length).unwrap_or(u32::MAX));
    // No attributes, and the time of the batch.
    out.extend_from_slice(&[0, 0]);
    put_varint(out, number);
    // A key of length -1.
    out.push(1);
    put_varint(out, value_length);
    out.extend_from_slice(value);
    out.push(0);
}

/// Completes a batch, which is all of these bytes, and has so many records.
#[inline]
pub(super) fn finish(batch: &mut [u8], records: u32) {
    let length = batch.len().saturating_sub(EPOCH_AT);
    set(batch, LENGTH_AT, length_of(length));
    set(
        batch,
        LAST_DELTA_AT,
        records.saturating_sub(1).to_be_bytes(),
    );
    set(batch, COUNT_AT, records.to_be_bytes());
    let sum = crc32c::crc32c(batch.get(ATTRIBUTES_AT..).unwrap_or_default());
    set(batch, SUM_AT, sum.to_be_bytes());
}

/// Writes a number over what is there.
#[inline]
pub(super) fn set(bytes: &mut [u8], at: usize, number: [u8; 4]) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&number);
    }
}

/// A batch that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch<'a> {
    base_offset: i64,
    last_delta: i32,
    attributes: i16,
    count: usize,
    records: &'a [u8],
}

/// A message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) offset: u64,
    pub(super) value: &'a [u8],
}

/// Why batches cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// They are not what they say.
    Malformed,
    /// They have another version.
    Magic(i8),
    /// They are compressed.
    Compressed,
}

impl From<Malformed> for Unread {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl Batch<'_> {
    /// The offset behind its last record.
    pub(super) fn end(&self) -> Result<u64, Unread> {
        let end = self.base_offset.checked_add(i64::from(self.last_delta) + 1);
        end.and_then(|end| u64::try_from(end).ok())
            .ok_or(Unread::Malformed)
    }

    /// Calls `each` with its messages. A batch of the broker's own marks has none.
    pub(super) fn messages(
        &self,
        mut each: impl FnMut(Record<'_>) -> Result<(), Unread>,
    ) -> Result<(), Unread> {
        if self.attributes & COMPRESSION != 0 {
            return Err(Unread::Compressed);
        }
        if self.attributes & CONTROL != 0 {
            return Ok(());
        }
        let mut fields = Fields::new(self.records);
        for _ in 0..self.count {
            each(self.record(&mut fields)?)?;
        }
        if fields.is_empty() {
            Ok(())
        } else {
            Err(Unread::Malformed)
        }
    }

    #[inline]
    fn record<'b>(&self, fields: &mut Fields<'b>) -> Result<Record<'b>, Malformed> {
        let mut record = Fields::new(fields.varint_bytes()?);
        let _attributes = record.u8()?;
        let _time = record.varint()?;
        let delta = record.varint()?;
        let _key = record.varint_bytes()?;
        let value = record.varint_bytes()?;
        // Headers follow, and nobody needs them.
        let offset = Some(delta)
            .filter(|delta| (0..=i64::from(self.last_delta)).contains(delta))
            .and_then(|delta| self.base_offset.checked_add(delta))
            .and_then(|offset| u64::try_from(offset).ok())
            .ok_or(Malformed)?;
        Ok(Record { offset, value })
    }
}

/// Takes the first batch off these bytes. A broker cuts the last batch where its limit of bytes is: `None` if there is no
/// whole one.
pub(super) fn take_batch<'a>(bytes: &mut &'a [u8]) -> Result<Option<Batch<'a>>, Unread> {
    let Some(header) = bytes.get(..HEADER_BYTES) else {
        return Ok(None);
    };
    let mut fields = Fields::new(header);
    let base_offset = fields.i64()?;
    let length = usize::try_from(fields.i32()?).map_err(|_| Unread::Malformed)?;
    let _epoch = fields.i32()?;
    let magic = fields.i8()?;
    if magic != MAGIC {
        return Err(Unread::Magic(magic));
    }
    let _sum = fields.i32()?;
    let attributes = fields.i16()?;
    let last_delta = fields.i32()?;
    let (_first_ms, _last_ms) = (fields.i64()?, fields.i64()?);
    let (_producer, _epoch, _sequence) = (fields.i64()?, fields.i16()?, fields.i32()?);
    let count = usize::try_from(fields.i32()?).map_err(|_| Unread::Malformed)?;
    let end = EPOCH_AT + length;
    if end < HEADER_BYTES || last_delta < 0 {
        return Err(Unread::Malformed);
    }
    let Some((whole, rest)) = bytes.split_at_checked(end) else {
        return Ok(None);
    };
    *bytes = rest;
    Ok(Some(Batch {
        base_offset,
        last_delta,
        attributes,
        count,
        records: &whole[HEADER_BYTES..],
    }))
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
