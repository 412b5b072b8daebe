//! Record batches against the crate `kafka-protocol`, in both directions.

use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record as Theirs, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
    TimestampType,
};
use proptest::prelude::*;

use super::*;

/// A batch of these messages, as a writer makes it.
fn batch(values: &[Vec<u8>], began_ms: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_header(&mut bytes, began_ms);
    for (number, value) in (0..).zip(values) {
        put_record(&mut bytes, number, value);
    }
    finish(&mut bytes, u32::try_from(values.len()).unwrap());
    bytes
}

/// The messages of the first batch.
fn messages(bytes: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, Unread> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    if let Some(batch) = take_batch(&mut rest)? {
        batch.messages(|record| {
            messages.push((record.offset, record.value.to_vec()));
            Ok(())
        })?;
    }
    Ok(messages)
}

fn theirs(offset: i64, key: Option<&[u8]>, value: &[u8], control: bool) -> Theirs {
    let headers = [(
        StrBytes::from_static_str("h"),
        Some(Bytes::from_static(b"v")),
    )];
    Theirs {
        transactional: control,
        control,
        delete_horizon: false,
        partition_leader_epoch: 3,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset,
        sequence: i32::try_from(offset).unwrap(),
        timestamp: 1_700_000_000_000 + offset,
        key: key.map(Bytes::copy_from_slice),
        value: Some(Bytes::copy_from_slice(value)),
        headers: IndexMap::from(headers),
    }
}

fn encoded(records: &[Theirs]) -> Vec<u8> {
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, records, &options).unwrap();
    bytes.to_vec()
}

#[test]
fn a_batch_that_is_not_whole_is_none_yet() {
    let bytes = batch(&[vec![7; 300]], 0);
    for length in 0..bytes.len() {
        let mut rest = &bytes[..length];
        assert_eq!(take_batch(&mut rest), Ok(None), "{length}");
        assert_eq!(rest.len(), length);
    }
    let mut rest = &bytes[..];
    assert_eq!(take_batch(&mut rest).unwrap().unwrap().end(), Ok(1));
    assert!(rest.is_empty());
}

#[test]
fn what_cannot_be_read_is_named() {
    let good = batch(&[b"one".to_vec(), b"two".to_vec()], 0);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        messages(&bytes)
    };
    assert_eq!(with(16, 1), Err(Unread::Magic(1)));
    assert_eq!(with(22, 4), Err(Unread::Compressed));
    assert_eq!(
        with(22, 8).map(|all| all.len()),
        Ok(2),
        "the broker's own time"
    );
    let malformed = Err(Unread::Malformed);
    assert_eq!(with(0, 0x80), malformed, "an offset below 0");
    assert_eq!(with(8, 0x80), malformed, "a length below 0");
    assert_eq!(with(23, 0x80), malformed, "a last offset below the first");
    assert_eq!(with(26, 0), malformed, "a record behind the last offset");
    assert_eq!(with(60, 1), malformed, "more records than it says");
    assert_eq!(with(60, 3), malformed, "fewer records than it says");
    assert_eq!(with(57, 0x7F), malformed, "two thousand million records");
    let mut short = good.clone();
    short[8..12].copy_from_slice(&10_i32.to_be_bytes());
    assert_eq!(messages(&short), malformed, "shorter than a header");
}

#[test]
fn the_brokers_own_marks_are_no_messages() {
    let control = encoded(&[theirs(5, Some(b"\0\0\0\x01"), b"\0\0\0\0\0\0", true)]);
    assert_eq!(messages(&control), Ok(Vec::new()));
    let mut rest = &control[..];
    assert_eq!(take_batch(&mut rest).unwrap().unwrap().end(), Ok(6));
}

proptest! {
    #[test]
    fn their_decoder_reads_our_batches(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..150),
        began_ms in 0_i64..4_000_000_000_000,
    ) {
        let mut bytes = Bytes::from(batch(&values, began_ms));
        let read = RecordBatchDecoder::decode(&mut bytes).unwrap().records;
        prop_assert!(bytes.is_empty());
        prop_assert_eq!(read.len(), values.len());
        for ((offset, record), value) in (0..).zip(&read).zip(&values) {
            prop_assert_eq!(record.offset, offset);
            prop_assert_eq!(record.timestamp, began_ms);
            prop_assert_eq!(record.key.as_ref(), None);
            prop_assert_eq!(record.value.as_deref(), Some(&value[..]));
            prop_assert!(record.headers.is_empty());
            prop_assert_eq!(record.producer_id, -1);
        }
    }

    #[test]
    fn we_read_their_batches(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..150),
        first in 0_i64..1_000_000,
        has_keys in any::<bool>(),
    ) {
        let key = has_keys.then_some(&b"key"[..]);
        let all: Vec<Theirs> =
            (first..).zip(&values).map(|(offset, value)| theirs(offset, key, value, false)).collect();
        let first = u64::try_from(first).unwrap();
        let expected: Vec<(u64, Vec<u8>)> = (first..).zip(values).collect();
        prop_assert_eq!(messages(&encoded(&all)), Ok(expected));
    }

    #[test]
    fn a_damaged_batch_is_read_or_refused(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = batch(&values, 0);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = messages(&bytes);
    }
}
