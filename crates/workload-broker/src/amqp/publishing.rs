//! Messages as frames. All but body and size is made once.

use super::wire::{
    CHANNEL, CLASS_BASIC, FRAME_END, FRAME_EXTRA_BYTES, FRAME_MAX_BYTES, append_frame,
    append_method, append_short_text, kind, length, method,
};

/// The flag of the property `delivery-mode` in a content header (specification, section 4.2.6.1: the first property
/// is the highest bit).
const HAS_DELIVERY_MODE: u16 = 1 << 12;

/// Makes the frames of messages to one queue.
#[derive(Debug)]
pub(super) struct Publishing {
    /// `basic.publish` and the content header.
    head: Vec<u8>,
    /// Where the header has the body's size.
    size_at: usize,
    /// The longest body of a frame.
    frame_body_max: usize,
}

impl Publishing {
    /// Messages to `queue` by the default exchange. They are mandatory: the broker sends a message back that reaches no
    /// queue, and does not drop it silently.
    pub(super) fn new(queue: &str, persistent: bool) -> Self {
        let mut head = Vec::new();
        append_method(&mut head, CHANNEL, method::BASIC_PUBLISH, |out| {
            out.extend_from_slice(&[0; 2]); // reserved: access tickets of older versions
            append_short_text(out, "");
            append_short_text(out, queue);
            out.push(1); // mandatory, not immediate
        });
        append_frame(&mut head, kind::HEADER, CHANNEL, |out| {
            out.extend_from_slice(&CLASS_BASIC.to_be_bytes());
            out.extend_from_slice(&[0; 2]); // weight
            out.extend_from_slice(&[0; 8]);
            out.extend_from_slice(&HAS_DELIVERY_MODE.to_be_bytes());
            out.push(if persistent { 2 } else { 1 });
        });
        // Behind the size: flags, delivery mode and the frame's end.
        let size_at = head.len() - 8 - 2 - 1 - 1;
        Self {
            head,
            size_at,
            frame_body_max: FRAME_MAX_BYTES - FRAME_EXTRA_BYTES,
        }
    }

    /// The broker takes frames of this size.
    pub(super) fn set_frame_max(&mut self, bytes: usize) {
        self.frame_body_max = bytes - FRAME_EXTRA_BYTES;
    }

    /// Appends a message.
    #[inline]
    pub(super) fn append(&self, out: &mut Vec<u8>, body: &[u8]) {
        let frames = body.len().div_ceil(self.frame_body_max);
        out.reserve(self.head.len() + body.len() + frames * FRAME_EXTRA_BYTES);
        let size_at = out.len() + self.size_at;
        out.extend_from_slice(&self.head);
        let size = u64::try_from(body.len()).unwrap_or(u64::MAX);
        out[size_at..size_at + 8].copy_from_slice(&size.to_be_bytes());
        let [channel_high, channel_low] = CHANNEL.to_be_bytes();
        for part in body.chunks(self.frame_body_max) {
            let [a, b, c, d] = length(part.len());
            out.extend_from_slice(&[kind::BODY, channel_high, channel_low, a, b, c, d]);
            out.extend_from_slice(part);
            out.push(FRAME_END);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand from the specification: section 4.2.3 for the frames, 4.2.6.1 for the header, the class reference for
    /// `basic.publish`.
    #[test]
    fn a_message_is_three_frames() {
        let publishing = Publishing::new("q", true);
        let mut out = Vec::new();
        publishing.append(&mut out, b"hello");
        let method = b"\x01\0\x01\0\0\0\x0A\0\x3C\0\x28\0\0\0\x01q\x01\xCE";
        let header = b"\x02\0\x01\0\0\0\x0F\0\x3C\0\0\0\0\0\0\0\0\0\x05\x10\0\x02\xCE";
        let body = b"\x03\0\x01\0\0\0\x05hello\xCE";
        assert_eq!(out, [&method[..], header, body].concat());
    }

    #[test]
    fn a_long_body_is_cut_and_an_empty_one_has_no_frame() {
        let mut publishing = Publishing::new("q", false);
        publishing.set_frame_max(4096);
        let mut empty = Vec::new();
        publishing.append(&mut empty, b"");
        assert!(empty.ends_with(b"\0\0\0\0\0\0\0\0\x10\0\x01\xCE"));
        let mut out = Vec::new();
        publishing.append(&mut out, &[7; 4088]);
        assert_eq!(out.len(), empty.len() + 4096);
        out.clear();
        publishing.append(&mut out, &[7; 4089]);
        assert_eq!(out.len(), empty.len() + 4096 + 9);
        assert!(out.ends_with(b"\x03\0\x01\0\0\0\x01\x07\xCE"));
    }
}
