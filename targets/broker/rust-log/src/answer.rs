//! Frames of Fibril's protocol: what the broker answers. Without I/O.

use crate::frame::{HEADER_BYTES, Name, REDELIVERED, VERSION, op};
use crate::wire::{put_bytes, put_length, put_optional_text, put_text};

/// Appends a frame whose payload `put` appends.
pub fn put_frame(out: &mut Vec<u8>, op: u16, flags: u32, request: u64, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&op.to_be_bytes());
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&request.to_be_bytes());
    put(out);
    let length = u32::try_from(out.len() - start - HEADER_BYTES).expect("payloads have limits below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends the answer to HELLO: version, three ids, "nothing was resumed", the server's name, a text on its terms.
pub fn put_hello_ok(out: &mut Vec<u8>, request: u64, session: u64) {
    put_frame(out, op::HELLO_OK, 0, request, |out| {
        out.extend_from_slice(b"FHO1");
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&[0; 24]);
        out.extend_from_slice(&session.to_be_bytes());
        out.extend_from_slice(&[0; 16]);
        out.push(0);
        put_text(out, "rust-log");
        // Fibril's own servers say their licence here. This is not one of them, so it says nothing.
        put_text(out, "");
    });
}

/// Appends the answer to a declaration: `op` is that of a queue or of a stream.
pub fn put_declared(out: &mut Vec<u8>, request: u64, is_stream: bool, is_new: bool, partitions: u32) {
    let (op, magic) = if is_stream { (op::DECLARE_PLEXUS_OK, b"FPK1") } else { (op::DECLARE_QUEUE_OK, b"FDK1") };
    put_frame(out, op, 0, request, |out| {
        out.extend_from_slice(magic);
        put_text(out, if is_new { "created" } else { "exists" });
        out.extend_from_slice(&partitions.to_be_bytes());
    });
}

/// Appends the answer to a message.
pub fn put_publish_ok(out: &mut Vec<u8>, request: u64, offset: u64) {
    put_frame(out, op::PUBLISH_OK, 0, request, |out| {
        out.extend_from_slice(b"FPO1");
        out.extend_from_slice(&offset.to_be_bytes());
    });
}

/// Appends the answer to a subscription.
pub fn put_subscribe_ok(out: &mut Vec<u8>, request: u64, subscription: u64, name: &Name<'_>, prefetch: u32) {
    put_frame(out, op::SUBSCRIBE_OK, 0, request, |out| {
        out.extend_from_slice(b"FSO1");
        out.extend_from_slice(&subscription.to_be_bytes());
        put_text(out, name.topic);
        out.extend_from_slice(&name.partition.to_be_bytes());
        put_optional_text(out, name.group);
        out.extend_from_slice(&prefetch.to_be_bytes());
        // No group of consumers, no target, no member.
        out.extend_from_slice(&[0; 3]);
    });
}

/// What a delivery says of its message.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Whose it is.
    pub subscription: u64,
    /// Topic, group and partition, as [`Name::put`] appends them.
    pub name: &'a [u8],
    /// Its number in the channel; the tag is the same.
    pub offset: u64,
    /// When the writer says that it wrote it.
    pub published_ms: u64,
    /// When it came here.
    pub received_ms: u64,
    /// Whether it may have been delivered before.
    pub again: bool,
}

/// Appends a delivery.
pub fn put_deliver(out: &mut Vec<u8>, delivery: &Delivery<'_>, payload: &[u8]) {
    let flags = if delivery.again { REDELIVERED } else { 0 };
    put_frame(out, op::DELIVER, flags, 0, |out| {
        out.extend_from_slice(b"FDL1");
        out.extend_from_slice(&delivery.subscription.to_be_bytes());
        out.extend_from_slice(delivery.name);
        out.extend_from_slice(&delivery.offset.to_be_bytes());
        out.extend_from_slice(&delivery.offset.to_be_bytes());
        out.extend_from_slice(&delivery.published_ms.to_be_bytes());
        out.extend_from_slice(&delivery.received_ms.to_be_bytes());
        // No content type, no headers.
        out.push(0);
        put_length(out, 0);
        put_bytes(out, payload);
    });
}

/// Appends a frame without fields.
pub fn put_empty(out: &mut Vec<u8>, op: u16, request: u64) {
    put_frame(out, op, 0, request, |_| {});
}

/// Appends an error; `op` is [`op::ERROR`] or [`op::AUTH_ERR`].
pub fn put_error(out: &mut Vec<u8>, op: u16, request: u64, code: u16, text: &str) {
    put_frame(out, op, 0, request, |out| {
        out.extend_from_slice(b"FER1");
        out.extend_from_slice(&code.to_be_bytes());
        put_text(out, text);
    });
}
