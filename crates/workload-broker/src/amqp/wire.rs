//! Numbers and fields of AMQP 0-9-1.

use crate::dialect::Fault;

/// What a client sends first (specification, section 4.2.2).
pub(super) const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\0\0\x09\x01";

/// Kind, channel and length of a frame (section 4.2.3).
pub(super) const FRAME_HEADER_BYTES: usize = 7;

/// The octet after each frame.
pub(super) const FRAME_END: u8 = 0xCE;

/// What a frame takes besides its payload.
pub(super) const FRAME_EXTRA_BYTES: usize = FRAME_HEADER_BYTES + 1;

/// Every peer accepts frames of this size (constant `frame-min-size`).
pub(super) const FRAME_MIN_BYTES: usize = 4096;

/// The longest frame that we send or accept. It is also RabbitMQ's usual limit.
pub(super) const FRAME_MAX_BYTES: usize = 131_072;

/// The only channel that we open.
pub(super) const CHANNEL: u16 = 1;

/// The class of messages, as content headers name it.
pub(super) const CLASS_BASIC: u16 = 60;

/// The kinds of frames.
pub(super) mod kind {
    pub(in crate::amqp) const METHOD: u8 = 1;
    pub(in crate::amqp) const HEADER: u8 = 2;
    pub(in crate::amqp) const BODY: u8 = 3;
    pub(in crate::amqp) const HEARTBEAT: u8 = 8;
}

/// Methods: the class in the upper half, the method in the lower one, as they stand in a frame.
///
/// `connection.blocked`, `connection.unblocked`, `basic.nack` and the class `confirm` are RabbitMQ's extensions.
pub(super) mod method {
    pub(in crate::amqp) const CONNECTION_START: u32 = 0x000A_000A;
    pub(in crate::amqp) const CONNECTION_START_OK: u32 = 0x000A_000B;
    pub(in crate::amqp) const CONNECTION_SECURE: u32 = 0x000A_0014;
    pub(in crate::amqp) const CONNECTION_TUNE: u32 = 0x000A_001E;
    pub(in crate::amqp) const CONNECTION_TUNE_OK: u32 = 0x000A_001F;
    pub(in crate::amqp) const CONNECTION_OPEN: u32 = 0x000A_0028;
    pub(in crate::amqp) const CONNECTION_OPEN_OK: u32 = 0x000A_0029;
    pub(in crate::amqp) const CONNECTION_CLOSE: u32 = 0x000A_0032;
    pub(in crate::amqp) const CONNECTION_CLOSE_OK: u32 = 0x000A_0033;
    pub(in crate::amqp) const CONNECTION_BLOCKED: u32 = 0x000A_003C;
    pub(in crate::amqp) const CONNECTION_UNBLOCKED: u32 = 0x000A_003D;
    pub(in crate::amqp) const CHANNEL_OPEN: u32 = 0x0014_000A;
    pub(in crate::amqp) const CHANNEL_OPEN_OK: u32 = 0x0014_000B;
    pub(in crate::amqp) const CHANNEL_FLOW: u32 = 0x0014_0014;
    pub(in crate::amqp) const CHANNEL_FLOW_OK: u32 = 0x0014_0015;
    pub(in crate::amqp) const CHANNEL_CLOSE: u32 = 0x0014_0028;
    pub(in crate::amqp) const CHANNEL_CLOSE_OK: u32 = 0x0014_0029;
    pub(in crate::amqp) const QUEUE_DECLARE: u32 = 0x0032_000A;
    pub(in crate::amqp) const QUEUE_DECLARE_OK: u32 = 0x0032_000B;
    pub(in crate::amqp) const BASIC_QOS: u32 = 0x003C_000A;
    pub(in crate::amqp) const BASIC_QOS_OK: u32 = 0x003C_000B;
    pub(in crate::amqp) const BASIC_CONSUME: u32 = 0x003C_0014;
    pub(in crate::amqp) const BASIC_CONSUME_OK: u32 = 0x003C_0015;
    pub(in crate::amqp) const BASIC_CANCEL: u32 = 0x003C_001E;
    pub(in crate::amqp) const BASIC_PUBLISH: u32 = 0x003C_0028;
    pub(in crate::amqp) const BASIC_RETURN: u32 = 0x003C_0032;
    pub(in crate::amqp) const BASIC_DELIVER: u32 = 0x003C_003C;
    pub(in crate::amqp) const BASIC_ACK: u32 = 0x003C_0050;
    pub(in crate::amqp) const BASIC_NACK: u32 = 0x003C_0078;
    pub(in crate::amqp) const CONFIRM_SELECT: u32 = 0x0055_000A;
    pub(in crate::amqp) const CONFIRM_SELECT_OK: u32 = 0x0055_000B;
}

/// A length as it stands in a frame. Nothing that we write is near 4 GiB: texts are checked when a machine is made, and
/// bodies are cut into frames.
pub(super) fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}

/// Appends a frame whose payload `payload` appends.
pub(super) fn append_frame(
    out: &mut Vec<u8>,
    kind: u8,
    channel: u16,
    payload: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    let [high, low] = channel.to_be_bytes();
    out.extend_from_slice(&[kind, high, low, 0, 0, 0, 0]);
    payload(out);
    let len = length(out.len() - start - FRAME_HEADER_BYTES);
    out[start + 3..start + FRAME_HEADER_BYTES].copy_from_slice(&len);
    out.push(FRAME_END);
}

/// Appends a method whose arguments `arguments` appends.
pub(super) fn append_method(
    out: &mut Vec<u8>,
    channel: u16,
    method: u32,
    arguments: impl FnOnce(&mut Vec<u8>),
) {
    append_frame(out, kind::METHOD, channel, |out| {
        out.extend_from_slice(&method.to_be_bytes());
        arguments(out);
    });
}

/// Appends a text of at most 255 bytes. Longer ones are cut; the config refuses them before.
pub(super) fn append_short_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    out.push(len);
    out.extend_from_slice(&bytes[..usize::from(len)]);
}

/// Appends a text with a length of four bytes.
pub(super) fn append_long_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&length(text.len()));
    out.extend_from_slice(text);
}

/// Appends a heartbeat (section 4.2.7).
pub(super) fn append_heartbeat(out: &mut Vec<u8>) {
    append_frame(out, kind::HEARTBEAT, 0, |_| {});
}

/// Reads fields from the front of a payload. `None`: the payload ends too early.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text of at most 255 bytes.
    pub(super) fn short_text(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.bytes(usize::from(len))
    }

    /// A text, or a table's entries, with a length of four bytes.
    pub(super) fn long_text(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).ok()?)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Option<()> {
        self.is_empty().then_some(())
    }
}

/// A method whose fields do not fit its frame.
#[cold]
pub(super) fn malformed(what: &str) -> Fault {
    Fault(format!("the broker's {what} is malformed"))
}

/// A text of the peer, for people.
pub(super) fn readable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
