//! Frames of Fibril's protocol, and what clients ask in them. Without I/O; what the broker answers is in [`crate::answer`].
//!
//! A frame is a header of 20 bytes and a payload. The header is `u32` length of the payload, `u16` version 1, `u16` opcode,
//! `u32` flags, `u64` request id; all big-endian. A payload begins with four letters that name it; the frames without fields
//! have no payload. Source: Fibril's `crates/protocol/src/v1/frame.rs` and `wire.rs`, and its `clients/wire_vectors.json`.

use crate::wire::{Fields, Malformed, put_optional_text, put_text};

/// The length of each frame's header.
pub const HEADER_BYTES: usize = 20;

/// The only version.
pub const VERSION: u16 = 1;

/// What a payload has besides the message: names, headers, numbers.
pub const FIELDS_BYTES_MAX: usize = 64 * 1024;

/// The longest name of a topic, group or cursor.
pub const NAME_BYTES_MAX: usize = 255;

/// Set in the flags of a DELIVER that may have been delivered before. It is our own: Fibril's flags are 0.
pub const REDELIVERED: u32 = 1;

/// What a frame is.
pub mod op {
    #![allow(missing_docs, reason = "the names of the protocol")]
    pub const HELLO: u16 = 1;
    pub const HELLO_OK: u16 = 2;
    pub const AUTH: u16 = 10;
    pub const AUTH_OK: u16 = 11;
    pub const AUTH_ERR: u16 = 12;
    pub const PUBLISH: u16 = 20;
    pub const PUBLISH_OK: u16 = 25;
    pub const SUBSCRIBE: u16 = 30;
    pub const SUBSCRIBE_OK: u16 = 31;
    pub const DELIVER: u16 = 40;
    pub const ACK: u16 = 41;
    pub const NACK: u16 = 42;
    pub const PING: u16 = 50;
    pub const PONG: u16 = 51;
    pub const DECLARE_QUEUE: u16 = 60;
    pub const DECLARE_QUEUE_OK: u16 = 61;
    pub const DECLARE_PLEXUS: u16 = 62;
    pub const DECLARE_PLEXUS_OK: u16 = 63;
    pub const SUBSCRIBE_STREAM: u16 = 64;
    pub const ERROR: u16 = 255;
}

/// Numbers of ERROR, in the manner of HTTP.
pub mod code {
    #![allow(missing_docs, reason = "the names of HTTP")]
    pub const BAD_REQUEST: u16 = 400;
    pub const UNAUTHORIZED: u16 = 401;
    pub const NOT_FOUND: u16 = 404;
    pub const CONFLICT: u16 = 409;
    pub const TOO_LARGE: u16 = 413;
    pub const TOO_MANY: u16 = 429;
    pub const NOT_IMPLEMENTED: u16 = 501;
    pub const FULL: u16 = 507;
}

/// A whole frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// One of [`op`], or one that is unknown here.
    pub op: u16,
    /// See [`REDELIVERED`].
    pub flags: u32,
    /// An answer has that of its request.
    pub request: u64,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// Cuts the first frame off; it, and how many bytes it has. `None` if its end has not come.
///
/// # Errors
/// When the version is not 1, or the payload would be longer than `most`.
pub fn cut(bytes: &[u8], most: usize) -> Result<Option<(Frame<'_>, usize)>, Malformed> {
    let mut fields = Fields::new(bytes);
    // As soon as it is here: a length that is too long is not waited for.
    let Ok(length) = fields.u32() else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|length| *length <= most).ok_or(Malformed)?;
    let Some(header) = bytes.get(4..HEADER_BYTES) else { return Ok(None) };
    let mut fields = Fields::new(header);
    if fields.u16()? != VERSION {
        return Err(Malformed);
    }
    let (op, flags, request) = (fields.u16()?, fields.u32()?, fields.u64()?);
    let whole = HEADER_BYTES + length;
    Ok(bytes.get(HEADER_BYTES..whole).map(|payload| (Frame { op, flags, request, payload }, whole)))
}

/// A channel, as frames name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its group; streams have none.
    pub group: Option<&'a str>,
    /// Which part of it.
    pub partition: u32,
}

impl<'a> Name<'a> {
    /// Reads topic, group, partition.
    fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let (topic, group) = (name(fields)?, fields.optional(name)?);
        Ok(Self { topic, group, partition: fields.u32()? })
    }

    /// Appends topic, group, partition.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self.topic);
        put_optional_text(out, self.group);
        out.extend_from_slice(&self.partition.to_be_bytes());
    }
}

fn name<'a>(fields: &mut Fields<'a>) -> Result<&'a str, Malformed> {
    fields.text().ok().filter(|text| text.len() <= NAME_BYTES_MAX).ok_or(Malformed)
}

/// How long a stream keeps its messages; `None` is without a bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Milliseconds since a message was received.
    pub age_ms: Option<u64>,
    /// Bytes of payload in all.
    pub bytes: Option<u64>,
    /// Messages.
    pub messages: Option<u64>,
}

/// What a client asks. Texts and payloads lie in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the protocol")]
pub enum Request<'a> {
    Hello {
        version: u16,
    },
    Auth {
        user: &'a str,
        password: &'a str,
    },
    DeclareQueue {
        topic: &'a str,
        group: Option<&'a str>,
        partitions: u32,
        has_extras: bool,
    },
    DeclarePlexus {
        topic: &'a str,
        partitions: u32,
        tier: u8,
        retention: Retention,
    },
    Publish(Publish<'a>),
    Subscribe {
        name: Name<'a>,
        prefetch: u32,
        auto_ack: bool,
        is_plain: bool,
    },
    SubscribeStream {
        topic: &'a str,
        partition: u32,
        cursor: Option<&'a str>,
        start: Start,
        prefetch: u32,
        auto_ack: bool,
    },
    Ack {
        name: Name<'a>,
        tags: Tags<'a>,
    },
    Nack {
        name: Name<'a>,
        tags: Tags<'a>,
        requeue: bool,
        not_before: Option<u64>,
    },
    Ping,
    Pong,
    /// Nothing that this broker knows.
    Unknown,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Topic, group and partition as they lie there: a writer's next message has the same bytes, most likely.
    pub name: &'a [u8],
    /// Whether the writer wants a PUBLISH_OK.
    pub confirm: bool,
    /// When, as the writer says: milliseconds of the wall clock.
    pub published_ms: u64,
    /// Whether the message must expire, which this broker cannot do.
    pub expires: bool,
    /// The message.
    pub payload: &'a [u8],
}

/// Where a stream's reader begins that has no cursor yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the next message.
    Latest,
    /// With the oldest that is kept.
    Earliest,
    /// With this offset.
    At(u64),
    /// So many before the next one.
    Back(u64),
    /// With the first that was received at this time or later, in milliseconds.
    Since(u64),
}

/// Delivery tags, where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let count = usize::try_from(fields.u32()?).map_err(|_| Malformed)?;
        fields.take(count.checked_mul(8).ok_or(Malformed)?).map(Self)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (tags, _) = self.0.as_chunks::<8>();
        tags.iter().map(|tag| u64::from_be_bytes(*tag))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len() / 8
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads topic, group and partition as [`Publish::name`] has them.
///
/// # Errors
/// When they are not all there, or a name is too long.
pub fn read_name(bytes: &[u8]) -> Result<Name<'_>, Malformed> {
    Name::read(&mut Fields::new(bytes))
}

impl<'a> Request<'a> {
    /// Reads a frame's payload.
    ///
    /// # Errors
    /// When it is not what its opcode says, or something follows it.
    pub fn read(frame: &Frame<'a>) -> Result<Self, Malformed> {
        let mut fields = Fields::new(frame.payload);
        let request = match frame.op {
            op::PUBLISH => publish(&mut fields)?,
            op::ACK => {
                fields.magic(b"FAK1")?;
                Self::Ack { name: Name::read(&mut fields)?, tags: Tags::read(&mut fields)? }
            }
            op::NACK => {
                fields.magic(b"FNK1")?;
                let (name, tags) = (Name::read(&mut fields)?, Tags::read(&mut fields)?);
                Self::Nack { name, tags, requeue: fields.flag()?, not_before: fields.optional(Fields::u64)? }
            }
            op::HELLO => hello(&mut fields)?,
            op::AUTH => {
                fields.magic(b"FAU1")?;
                Self::Auth { user: fields.text()?, password: fields.text()? }
            }
            op::DECLARE_QUEUE => return declare_queue(&mut fields),
            op::DECLARE_PLEXUS => declare_plexus(&mut fields)?,
            op::SUBSCRIBE => subscribe(&mut fields)?,
            op::SUBSCRIBE_STREAM => subscribe_stream(&mut fields)?,
            op::PING => Self::Ping,
            op::PONG => Self::Pong,
            _ => return Ok(Self::Unknown),
        };
        fields.end()?;
        Ok(request)
    }
}

fn hello<'a>(fields: &mut Fields<'a>) -> Result<Request<'a>, Malformed> {
    fields.magic(b"FHL1")?;
    let (_name, _version) = (fields.text()?, fields.text()?);
    let version = fields.u16()?;
    // Who it was before: three ids of 16 bytes. Nothing is resumed here.
    fields.optional(|fields| fields.take(48))?;
    Ok(Request::Hello { version })
}

/// Reads the first field of a declaration of a queue that this broker cannot honour, and stops there.
fn declare_queue<'a>(fields: &mut Fields<'a>) -> Result<Request<'a>, Malformed> {
    fields.magic(b"FDQ1")?;
    let (topic, group) = (name(fields)?, fields.optional(name)?);
    let has_dead_letters = fields.flag()?;
    if has_dead_letters {
        return Ok(Request::DeclareQueue { topic, group, partitions: 0, has_extras: true });
    }
    let retries = fields.optional(Fields::u32)?;
    let partitions = fields.optional(Fields::u32)?.unwrap_or(1);
    // Clients from before it existed leave it out.
    let ttl = if fields.rest().is_empty() { None } else { fields.optional(Fields::u64)? };
    fields.end()?;
    Ok(Request::DeclareQueue { topic, group, partitions, has_extras: retries.is_some() || ttl.is_some() })
}

fn declare_plexus<'a>(fields: &mut Fields<'a>) -> Result<Request<'a>, Malformed> {
    fields.magic(b"FDP1")?;
    let topic = name(fields)?;
    let partitions = fields.optional(Fields::u32)?.unwrap_or(1);
    let tier = fields.u8()?;
    let mut number = || fields.optional(Fields::u64);
    let retention = Retention { age_ms: number()?, bytes: number()?, messages: number()? };
    // Replicas: there is one node, so the number says nothing.
    fields.optional(Fields::u32)?;
    Ok(Request::DeclarePlexus { topic, partitions, tier, retention })
}

fn publish<'a>(fields: &mut Fields<'a>) -> Result<Request<'a>, Malformed> {
    fields.magic(b"FPB1")?;
    let from_name = fields.rest();
    // Only its extent is looked for: the broker compares the bytes with those of the message before.
    fields.bytes()?;
    fields.optional(Fields::bytes)?;
    fields.u32()?;
    let name = &from_name[..from_name.len() - fields.rest().len()];
    let confirm = fields.flag()?;
    content_type(fields)?;
    for _ in 0..fields.u32()? {
        fields.bytes()?;
        fields.bytes()?;
    }
    let published_ms = fields.u64()?;
    let _key = fields.optional(Fields::bytes)?;
    let _partitioning = fields.u64()?;
    let payload = fields.bytes()?;
    let expires = fields.optional(Fields::u64)?.is_some();
    Ok(Request::Publish(Publish { name, confirm, published_ms, expires, payload }))
}

/// None, one of three that have a number, or a text.
fn content_type(fields: &mut Fields<'_>) -> Result<(), Malformed> {
    match fields.u8()? {
        0..=3 => Ok(()),
        4 => fields.text().map(|_| ()),
        _ => Err(Malformed),
    }
}

fn subscribe<'a>(fields: &mut Fields<'a>) -> Result<Request<'a>, Malformed> {
    fields.magic(b"FSB1")?;
    // Here the partition comes before the group.
    let (topic, partition, group) = (name(fields)?, fields.u32()?, fields.optional(name)?);
    let (prefetch, auto_ack) = (fields.u32()?, fields.flag()?);
    let consumer_group = fields.optional(name)?;
    let target = fields.optional(Fields::u32)?;
    let member = fields.optional(|fields| fields.take(16))?;
    let is_plain = consumer_group.is_none() && target.is_none() && member.is_none();
    Ok(Request::Subscribe { name: Name { topic, group, partition }, prefetch, auto_ack, is_plain })
}

fn subscribe_stream<'a>(fields: &mut Fields<'a>) -> Result<Request<'a>, Malformed> {
    fields.magic(b"FSP1")?;
    let (topic, partition, cursor) = (name(fields)?, fields.u32()?, fields.optional(name)?);
    let start = match fields.u8()? {
        0 => Start::Latest,
        1 => Start::Earliest,
        2 => Start::At(fields.u64()?),
        3 => Start::Back(fields.u64()?),
        4 => Start::Since(fields.u64()?),
        _ => return Err(Malformed),
    };
    // Filters by headers; headers are not kept here.
    if fields.u32()? != 0 {
        return Err(Malformed);
    }
    let (prefetch, auto_ack) = (fields.u32()?, fields.flag()?);
    Ok(Request::SubscribeStream { topic, partition, cursor, start, prefetch, auto_ack })
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
