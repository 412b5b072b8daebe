//! The fields of payloads, and the frames that a client sends.
//!
//! Numbers are big-endian. A text is a `u32` length and its bytes; what may be absent is 0, or 1 and the value. A payload
//! begins with four letters; a frame without fields has no payload (Fibril, `crates/protocol/src/v1/wire.rs`).

use super::frame::VERSION;
use super::setup::{Settling, Setup, Tier};
use crate::dialect::Shape;

/// What a frame is.
pub(super) mod op {
    pub(crate) const HELLO: u16 = 1;
    pub(crate) const HELLO_OK: u16 = 2;
    pub(crate) const HELLO_ERR: u16 = 3;
    pub(crate) const AUTH: u16 = 10;
    pub(crate) const AUTH_OK: u16 = 11;
    pub(crate) const AUTH_ERR: u16 = 12;
    pub(crate) const PUBLISH: u16 = 20;
    pub(crate) const PUBLISH_OK: u16 = 25;
    pub(crate) const SUBSCRIBE: u16 = 30;
    pub(crate) const SUBSCRIBE_OK: u16 = 31;
    pub(crate) const SUBSCRIBE_ERR: u16 = 32;
    pub(crate) const DELIVER: u16 = 40;
    pub(crate) const ACK: u16 = 41;
    pub(crate) const ASSIGNMENT_CHANGED: u16 = 43;
    pub(crate) const PING: u16 = 50;
    pub(crate) const PONG: u16 = 51;
    pub(crate) const DECLARE_QUEUE: u16 = 60;
    pub(crate) const DECLARE_QUEUE_OK: u16 = 61;
    pub(crate) const DECLARE_PLEXUS: u16 = 62;
    pub(crate) const DECLARE_PLEXUS_OK: u16 = 63;
    pub(crate) const SUBSCRIBE_STREAM: u16 = 64;
    pub(crate) const REDIRECT: u16 = 92;
    pub(crate) const TOPOLOGY_UPDATE: u16 = 101;
    pub(crate) const GOING_AWAY: u16 = 103;
    pub(crate) const ERROR: u16 = 255;
}

/// Tags of one ACK; more make another frame.
pub(super) const ACK_TAGS_MAX: usize = 4096;

/// A payload is not what its opcode says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Takes fields off the front of a payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.u32()?).map_err(|_| Malformed)?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    pub(super) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if self.flag()? {
            read(self).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(super) fn magic(&mut self, magic: &[u8; 4]) -> Result<(), Malformed> {
        if self.array::<4>()? == *magic {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}

/// Appends a length. Every length has a limit far below 4 GiB: names in [`Setup`], messages in the frame reader of any
/// broker.
#[inline]
pub(super) fn put_length(out: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    out.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_text(out, text);
    }
}

/// Appends a header for a payload of this length.
#[inline]
pub(super) fn put_header(out: &mut Vec<u8>, op: u16, request: u64, length: usize) {
    put_length(out, length);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&op.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&request.to_be_bytes());
}

/// Appends a frame whose payload `put` appends.
pub(super) fn put_frame(out: &mut Vec<u8>, op: u16, request: u64, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put_header(out, op, request, 0);
    let payload = out.len();
    put(out);
    let length = u32::try_from(out.len() - payload).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends topic, group, partition.
pub(super) fn put_name(out: &mut Vec<u8>, setup: &Setup) {
    put_text(out, &setup.topic);
    put_optional_text(out, setup.group.as_deref());
    out.extend_from_slice(&setup.partition.to_be_bytes());
}

/// HELLO: our name, version, the protocol's version, nothing to resume.
pub(super) fn put_hello(out: &mut Vec<u8>, request: u64) {
    put_frame(out, op::HELLO, request, |out| {
        out.extend_from_slice(b"FHL1");
        put_text(out, "plimsoll");
        put_text(out, env!("CARGO_PKG_VERSION"));
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.push(0);
    });
}

pub(super) fn put_auth(out: &mut Vec<u8>, request: u64, setup: &Setup) {
    put_frame(out, op::AUTH, request, |out| {
        out.extend_from_slice(b"FAU1");
        put_text(out, &setup.login.user);
        put_text(out, &setup.login.password);
    });
}

/// The declaration of the queue or stream. What we do not ask for is absent: dead letters, retries, times to live,
/// retention, replicas.
pub(super) fn put_declare(out: &mut Vec<u8>, request: u64, setup: &Setup) {
    let partitions = setup.partitions.to_be_bytes();
    match setup.shape {
        Shape::Queue => put_frame(out, op::DECLARE_QUEUE, request, |out| {
            out.extend_from_slice(b"FDQ1");
            put_text(out, &setup.topic);
            put_optional_text(out, setup.group.as_deref());
            out.extend_from_slice(&[0, 0, 1]);
            out.extend_from_slice(&partitions);
            out.push(0);
        }),
        Shape::Stream => put_frame(out, op::DECLARE_PLEXUS, request, |out| {
            out.extend_from_slice(b"FDP1");
            put_text(out, &setup.topic);
            out.push(1);
            out.extend_from_slice(&partitions);
            out.push(match setup.tier {
                Tier::Ephemeral => 0,
                Tier::Speculative => 1,
                Tier::Durable => 2,
            });
            out.extend_from_slice(&[0; 4]);
        }),
    }
}

pub(super) fn put_subscribe(
    out: &mut Vec<u8>,
    request: u64,
    setup: &Setup,
    settling: &Settling,
    prefetch: u32,
) {
    let prefetch = prefetch.to_be_bytes();
    let auto_ack = u8::from(*settling == Settling::None);
    match setup.shape {
        Shape::Queue => put_frame(out, op::SUBSCRIBE, request, |out| {
            out.extend_from_slice(b"FSB1");
            put_text(out, &setup.topic);
            // Here the partition comes before the group.
            out.extend_from_slice(&setup.partition.to_be_bytes());
            put_optional_text(out, setup.group.as_deref());
            out.extend_from_slice(&prefetch);
            // No group of consumers, no target, no member.
            out.extend_from_slice(&[auto_ack, 0, 0, 0]);
        }),
        Shape::Stream => put_frame(out, op::SUBSCRIBE_STREAM, request, |out| {
            out.extend_from_slice(b"FSP1");
            put_text(out, &setup.topic);
            out.extend_from_slice(&setup.partition.to_be_bytes());
            let cursor = match settling {
                Settling::Cursor(name) => Some(name.as_str()),
                Settling::None | Settling::Each => None,
            };
            put_optional_text(out, cursor);
            // From the next message on; no filters.
            out.extend_from_slice(&[0; 5]);
            out.extend_from_slice(&prefetch);
            out.push(auto_ack);
        }),
    }
}

/// Reads the payload of an error: its number and text.
pub(super) fn read_error(payload: &[u8]) -> Result<(u16, &str), Malformed> {
    let mut fields = Fields::new(payload);
    fields.magic(b"FER1")?;
    let error = (fields.u16()?, fields.text()?);
    fields.end()?;
    Ok(error)
}

/// A message that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivery<'a> {
    pub(super) subscription: u64,
    pub(super) tag: u64,
    pub(super) payload: &'a [u8],
}

/// Reads the payload of a DELIVER. Names and times are passed over: the subscription says whose message it is.
pub(super) fn read_delivery(payload: &[u8]) -> Result<Delivery<'_>, Malformed> {
    let mut fields = Fields::new(payload);
    fields.magic(b"FDL1")?;
    let subscription = fields.u64()?;
    fields.bytes()?;
    fields.optional(Fields::bytes)?;
    let _partition = fields.u32()?;
    let _offset = fields.u64()?;
    let tag = fields.u64()?;
    let (_published, _received) = (fields.u64()?, fields.u64()?);
    match fields.u8()? {
        0..=3 => {}
        // A content type in words.
        4 => {
            fields.bytes()?;
        }
        _ => return Err(Malformed),
    }
    for _ in 0..fields.u32()? {
        fields.bytes()?;
        fields.bytes()?;
    }
    let payload = fields.bytes()?;
    fields.end()?;
    Ok(Delivery {
        subscription,
        tag,
        payload,
    })
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
