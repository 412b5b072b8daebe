//! The requests of the client, and what is in the answers.
//!
//! A request is an `i32` length, `i16` which one, `i16` its version, `i32` its number, the name of the client, and its
//! fields. See the schemas of Kafka's messages, by the names here.

use super::batch;
use super::errors;
use super::fields::{
    Fields, Malformed, length_of, put_count, put_i16, put_i32, put_i64, put_partition, put_text,
};
use super::setup::Setup;

/// A request in one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Api {
    pub(super) key: i16,
    pub(super) version: i16,
    pub(super) name: &'static str,
}

const fn api(key: i16, version: i16, name: &'static str) -> Api {
    Api { key, version, name }
}

pub(super) const PRODUCE: Api = api(0, 7, "Produce");
pub(super) const FETCH: Api = api(1, 4, "Fetch");
pub(super) const LIST_OFFSETS: Api = api(2, 1, "ListOffsets");
pub(super) const METADATA: Api = api(3, 4, "Metadata");
pub(super) const OFFSET_COMMIT: Api = api(8, 2, "OffsetCommit");
pub(super) const OFFSET_FETCH: Api = api(9, 1, "OffsetFetch");
pub(super) const FIND_COORDINATOR: Api = api(10, 0, "FindCoordinator");
pub(super) const API_VERSIONS: Api = api(18, 0, "ApiVersions");
pub(super) const CREATE_TOPICS: Api = api(19, 2, "CreateTopics");

const CLIENT: &str = "plimsoll";

/// Where the number of a request is.
pub(super) const NUMBER_AT: usize = 8;

/// How long the broker may take to create a topic, or to store a batch.
const ANSWER_WITHIN_MS: i32 = 30_000;
/// A Fetch is answered after this time even if no message came.
const FETCH_WAIT_MS: i32 = 100;
/// The largest batch of a topic, in bytes. Kafka's usual limit, 1 MiB with 12 bytes, is too small for a message of 1 MiB.
const BATCH_MAX_BYTES: &str = "8388608";

/// Which end of a partition is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Behind its last message.
    Latest,
    /// At its first message.
    Earliest,
}

/// Appends a request, whose fields `put` appends.
pub(super) fn put_request(
    out: &mut Vec<u8>,
    api: Api,
    number: i32,
    put: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    put_i32(out, 0);
    put_i16(out, api.key);
    put_i16(out, api.version);
    put_i32(out, number);
    put_text(out, CLIENT);
    put(out);
    finish(&mut out[start..]);
}

/// Sets the length of a request, which is all of these bytes.
pub(super) fn finish(request: &mut [u8]) {
    let length = request.len().saturating_sub(4);
    batch::set(request, 0, length_of(length));
}

pub(super) fn put_api_versions(out: &mut Vec<u8>, number: i32) {
    put_request(out, API_VERSIONS, number, |_| {});
}

pub(super) fn put_create_topic(out: &mut Vec<u8>, number: i32, setup: &Setup) {
    let mut settings = vec![("max.message.bytes", BATCH_MAX_BYTES)];
    if setup.syncs_each {
        settings.push(("flush.messages", "1"));
    }
    put_request(out, CREATE_TOPICS, number, |out| {
        put_count(out, 1);
        put_text(out, &setup.topic);
        put_partition(out, setup.partitions);
        // One replica, wherever the broker wants it.
        put_i16(out, 1);
        put_count(out, 0);
        put_count(out, settings.len());
        for (name, value) in settings {
            put_text(out, name);
            put_text(out, value);
        }
        put_i32(out, ANSWER_WITHIN_MS);
        // Do it, do not only check it.
        out.push(0);
    });
}

pub(super) fn put_metadata(out: &mut Vec<u8>, number: i32, topic: &str) {
    put_request(out, METADATA, number, |out| {
        put_count(out, 1);
        put_text(out, topic);
        // The question creates no topic.
        out.push(0);
    });
}

pub(super) fn put_list_offsets(
    out: &mut Vec<u8>,
    number: i32,
    topic: &str,
    end: End,
    partitions: impl ExactSizeIterator<Item = u32>,
) {
    put_request(out, LIST_OFFSETS, number, |out| {
        // We are no replica.
        put_i32(out, -1);
        put_count(out, 1);
        put_text(out, topic);
        put_count(out, partitions.len());
        for partition in partitions {
            put_partition(out, partition);
            // In place of a time.
            let time_ms = match end {
                End::Latest => -1,
                End::Earliest => -2,
            };
            put_i64(out, time_ms);
        }
    });
}

pub(super) fn put_find_coordinator(out: &mut Vec<u8>, number: i32, group: &str) {
    put_request(out, FIND_COORDINATOR, number, |out| put_text(out, group));
}

pub(super) fn put_offset_fetch(
    out: &mut Vec<u8>,
    number: i32,
    group: &str,
    topic: &str,
    partitions: impl ExactSizeIterator<Item = u32>,
) {
    put_request(out, OFFSET_FETCH, number, |out| {
        put_text(out, group);
        put_count(out, 1);
        put_text(out, topic);
        put_count(out, partitions.len());
        for partition in partitions {
            put_partition(out, partition);
        }
    });
}

/// Appends a commit of these offsets, by partition. Each is that of the first message that is not settled.
pub(super) fn put_offset_commit(
    out: &mut Vec<u8>,
    number: i32,
    group: &str,
    topic: &str,
    count: usize,
    offsets: impl Iterator<Item = (u32, u64)>,
) {
    put_request(out, OFFSET_COMMIT, number, |out| {
        put_text(out, group);
        // No generation and no member: nobody coordinates the readers. Kept as long as the broker keeps offsets.
        put_i32(out, -1);
        put_text(out, "");
        put_i64(out, -1);
        put_count(out, 1);
        put_text(out, topic);
        put_count(out, count);
        for (partition, offset) in offsets {
            put_partition(out, partition);
            put_offset(out, offset);
            // No text of our own.
            put_i16(out, -1);
        }
    });
}

/// Appends a Fetch from these offsets on, by partition.
pub(super) fn put_fetch(
    out: &mut Vec<u8>,
    number: i32,
    topic: &str,
    bytes_max: usize,
    offsets: impl ExactSizeIterator<Item = (u32, u64)>,
) {
    put_request(out, FETCH, number, |out| {
        // We are no replica.
        put_i32(out, -1);
        put_i32(out, FETCH_WAIT_MS);
        // Answer as soon as there is anything.
        put_i32(out, 1);
        out.extend_from_slice(&length_of(bytes_max));
        // Also what is part of an open transaction; there are none.
        out.push(0);
        put_count(out, 1);
        put_text(out, topic);
        put_count(out, offsets.len());
        for (partition, offset) in offsets {
            put_partition(out, partition);
            put_offset(out, offset);
            out.extend_from_slice(&length_of(bytes_max));
        }
    });
}

/// Appends a Produce request up to its batch. The length of the batch follows as the last four bytes, still 0.
pub(super) fn put_produce(
    out: &mut Vec<u8>,
    number: i32,
    topic: &str,
    partition: u32,
    confirms: bool,
) {
    put_request(out, PRODUCE, number, |out| {
        // No transaction.
        put_i16(out, -1);
        put_i16(out, if confirms { -1 } else { 0 });
        put_i32(out, ANSWER_WITHIN_MS);
        put_count(out, 1);
        put_text(out, topic);
        put_count(out, 1);
        put_partition(out, partition);
        put_i32(out, 0);
    });
}

/// Offsets that came from the wire were `i64` there.
fn put_offset(out: &mut Vec<u8>, offset: u64) {
    put_i64(out, i64::try_from(offset).unwrap_or(i64::MAX));
}

/// What Metadata says of our topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Topic {
    pub(super) brokers: usize,
    /// 0, or what is wrong with the topic or one of its partitions.
    pub(super) error: i16,
    pub(super) partitions: u32,
}

/// Reads the versions of the requests that the broker takes: whether all of these are among them, or which is not.
pub(super) fn read_api_versions(
    answer: &[u8],
    needed: &[Api],
) -> Result<Result<(), String>, Malformed> {
    let mut fields = Fields::new(answer);
    let error = fields.i16()?;
    if error != errors::NONE {
        return Ok(Err(errors::words(error)));
    }
    let mut missing = needed.to_vec();
    for _ in 0..fields.count()? {
        let (key, least, most) = (fields.i16()?, fields.i16()?, fields.i16()?);
        missing.retain(|api| api.key != key || !(least..=most).contains(&api.version));
    }
    end(fields)?;
    Ok(match missing.first() {
        None => Ok(()),
        Some(Api { name, version, .. }) => Err(format!(
            "the broker does not take {name} in version {version}"
        )),
    })
}

/// Reads the answer for our topic: its error, and the broker's words.
pub(super) fn read_create_topics<'a>(
    answer: &'a [u8],
    topic: &str,
) -> Result<(i16, Option<&'a str>), Malformed> {
    let mut fields = Fields::new(answer);
    let _throttled_ms = fields.i32()?;
    one(&mut fields)?;
    named(&mut fields, topic)?;
    let said = (fields.i16()?, fields.text()?);
    end(fields)?;
    Ok(said)
}

pub(super) fn read_metadata(answer: &[u8], topic: &str) -> Result<Topic, Malformed> {
    let mut fields = Fields::new(answer);
    let _throttled_ms = fields.i32()?;
    let brokers = fields.count()?;
    for _ in 0..brokers {
        let (_id, _host) = (fields.i32()?, fields.text()?);
        let (_port, _rack) = (fields.i32()?, fields.text()?);
    }
    let (_cluster, _controller) = (fields.text()?, fields.i32()?);
    one(&mut fields)?;
    let mut error = fields.i16()?;
    named(&mut fields, topic)?;
    let _is_internal = fields.u8()?;
    let partitions = fields.count()?;
    for _ in 0..partitions {
        let of_partition = fields.i16()?;
        let (_index, leader) = (fields.i32()?, fields.i32()?);
        for _replicas_and_those_in_sync in 0..2 {
            for _ in 0..fields.count()? {
                fields.i32()?;
            }
        }
        if error == errors::NONE {
            error = of_partition;
        }
        if error == errors::NONE && leader < 0 {
            error = errors::LEADER_NOT_AVAILABLE;
        }
    }
    end(fields)?;
    Ok(Topic {
        brokers,
        error,
        partitions: u32::try_from(partitions).map_err(|_| Malformed)?,
    })
}

/// Reads the answer: its error.
pub(super) fn read_find_coordinator(answer: &[u8]) -> Result<i16, Malformed> {
    let mut fields = Fields::new(answer);
    let error = fields.i16()?;
    let (_id, _host, _port) = (fields.i32()?, fields.text()?, fields.i32()?);
    end(fields)?;
    Ok(error)
}

/// What an answer says of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) partition: u32,
    pub(super) error: i16,
    /// The offset that was asked for, of the first record that was stored, or behind the last message (Fetch). -1: there is
    /// none.
    pub(super) offset: i64,
    /// What a Fetch brought.
    pub(super) batches: &'a [u8],
}

/// Reads what an answer says of each partition of our topic, and calls `each` with it.
pub(super) fn read_partitions<'a, E: From<Malformed>>(
    api: Api,
    answer: &'a [u8],
    topic: &str,
    mut each: impl FnMut(Said<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut fields = Fields::new(answer);
    if api == FETCH {
        let _throttled_ms = fields.i32()?;
    }
    let topics = fields.count()?;
    // A broker may leave a topic out that it has nothing for.
    if topics > 1 || (topics == 0 && api != FETCH) {
        return Err(Malformed.into());
    }
    for _ in 0..topics {
        named(&mut fields, topic)?;
        for _ in 0..fields.count()? {
            each(said(api, &mut fields)?)?;
        }
    }
    if api == PRODUCE {
        let _throttled_ms = fields.i32()?;
    }
    end(fields)?;
    Ok(())
}

fn said<'a>(api: Api, fields: &mut Fields<'a>) -> Result<Said<'a>, Malformed> {
    let partition = u32::try_from(fields.i32()?).map_err(|_| Malformed)?;
    let mut said = Said {
        partition,
        error: errors::NONE,
        offset: -1,
        batches: &[],
    };
    if api == OFFSET_FETCH {
        said.offset = fields.i64()?;
        let _text = fields.text()?;
        said.error = fields.i16()?;
        return Ok(said);
    }
    said.error = fields.i16()?;
    if api == LIST_OFFSETS {
        let _time_ms = fields.i64()?;
        said.offset = fields.i64()?;
    } else if api == PRODUCE {
        said.offset = fields.i64()?;
        let (_time_ms, _start) = (fields.i64()?, fields.i64()?);
    } else if api == FETCH {
        said.offset = fields.i64()?;
        let _last_stable = fields.i64()?;
        for _aborted_transaction in 0..fields.count()? {
            let (_producer, _first) = (fields.i64()?, fields.i64()?);
        }
        said.batches = fields.bytes()?;
    }
    Ok(said)
}

/// There is one element, ours.
fn one(fields: &mut Fields<'_>) -> Result<(), Malformed> {
    if fields.count()? == 1 {
        Ok(())
    } else {
        Err(Malformed)
    }
}

/// The name of our topic comes.
fn named(fields: &mut Fields<'_>, topic: &str) -> Result<(), Malformed> {
    if fields.text()? == Some(topic) {
        Ok(())
    } else {
        Err(Malformed)
    }
}

fn end(fields: Fields<'_>) -> Result<(), Malformed> {
    if fields.is_empty() {
        Ok(())
    } else {
        Err(Malformed)
    }
}
