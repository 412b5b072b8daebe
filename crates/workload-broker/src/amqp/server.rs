//! As much of an AMQP broker as the tests need: it follows a client's steps, keeps what it publishes and settles, and
//! sends what a test tells it to.

use super::frames::{FrameReader, Piece};
use super::table::{append_inner, append_table, append_text, append_true};
use super::wire::{
    CHANNEL, CLASS_BASIC, FRAME_END, FRAME_EXTRA_BYTES, Fields, PROTOCOL_HEADER, append_frame,
    append_long_text, append_method, append_short_text, kind, length, method,
};

/// A broker with one connection.
pub(super) struct Server {
    frames: FrameReader,
    /// How much of the protocol header has come.
    greeted: usize,
    /// What `connection.tune` says.
    pub(super) frame_max: u32,
    pub(super) heartbeat_s: u16,
    /// The client's methods, except for those of messages.
    pub(super) methods: Vec<(u32, Vec<u8>)>,
    /// Delivery mode, and body.
    pub(super) published: Vec<(u8, Vec<u8>)>,
    /// Number, and whether all older ones are meant.
    pub(super) acked: Vec<(u64, bool)>,
    pub(super) heartbeats: usize,
    size: usize,
    delivered: u64,
    /// What it answers to a passive declare.
    pub(super) depth: (u32, u32),
    /// Confirms each message at once.
    pub(super) confirms: bool,
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            frames: FrameReader::new(),
            greeted: 0,
            frame_max: 131_072,
            heartbeat_s: 60,
            methods: Vec::new(),
            published: Vec::new(),
            acked: Vec::new(),
            heartbeats: 0,
            size: 0,
            delivered: 0,
            depth: (0, 0),
            confirms: false,
        }
    }

    /// Takes a client's bytes and appends the answers.
    pub(super) fn received(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut input = bytes;
        while self.greeted < PROTOCOL_HEADER.len() {
            let Some((octet, rest)) = input.split_first() else {
                return;
            };
            assert_eq!(*octet, PROTOCOL_HEADER[self.greeted]);
            self.greeted += 1;
            input = rest;
            if self.greeted == PROTOCOL_HEADER.len() {
                append_start(out, (0, 9), "AMQPLAIN PLAIN");
            }
        }
        let mut frames = std::mem::replace(&mut self.frames, FrameReader::new());
        while let Some(piece) = frames.next(&mut input).unwrap() {
            match piece {
                Piece::Method { payload, .. } => self.method(payload, out),
                Piece::Header { payload } => self.header(payload),
                Piece::Body { bytes, .. } => {
                    let (_, body) = self.published.last_mut().unwrap();
                    body.extend_from_slice(bytes);
                    assert!(body.len() <= self.size);
                }
                Piece::Heartbeat => self.heartbeats += 1,
            }
        }
        self.frames = frames;
        if self.confirms && !self.published.is_empty() {
            append_confirm(out, u64::try_from(self.published.len()).unwrap(), true);
        }
    }

    fn header(&mut self, payload: &[u8]) {
        let mut fields = Fields::new(payload);
        assert_eq!(fields.u16(), Some(CLASS_BASIC));
        assert_eq!(fields.u16(), Some(0));
        self.size = usize::try_from(fields.u64().unwrap()).unwrap();
        assert_eq!(fields.u16(), Some(0x1000), "delivery mode alone");
        let mode = fields.u8().unwrap();
        fields.end().unwrap();
        self.published.push((mode, Vec::new()));
    }

    fn method(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        let mut fields = Fields::new(payload);
        let id = fields.u32().unwrap();
        match id {
            method::BASIC_PUBLISH => {
                if let Some((_, body)) = self.published.last() {
                    assert_eq!(body.len(), self.size, "the message before is complete");
                }
                return;
            }
            method::BASIC_ACK => {
                let number = fields.u64().unwrap();
                let bits = fields.u8().unwrap();
                fields.end().unwrap();
                return self.acked.push((number, bits == 1));
            }
            _ => self.methods.push((id, payload[4..].to_vec())),
        }
        match id {
            method::CONNECTION_START_OK => append_method(out, 0, method::CONNECTION_TUNE, |out| {
                out.extend_from_slice(&2047_u16.to_be_bytes());
                out.extend_from_slice(&self.frame_max.to_be_bytes());
                out.extend_from_slice(&self.heartbeat_s.to_be_bytes());
            }),
            method::CONNECTION_OPEN => append_method(out, 0, method::CONNECTION_OPEN_OK, |out| {
                append_short_text(out, "");
            }),
            method::CHANNEL_OPEN => append_method(out, CHANNEL, method::CHANNEL_OPEN_OK, |out| {
                append_long_text(out, b"");
            }),
            method::QUEUE_DECLARE => append_method(out, CHANNEL, method::QUEUE_DECLARE_OK, |out| {
                append_short_text(out, "q");
                out.extend_from_slice(&self.depth.0.to_be_bytes());
                out.extend_from_slice(&self.depth.1.to_be_bytes());
            }),
            method::CONFIRM_SELECT => append_empty(out, CHANNEL, method::CONFIRM_SELECT_OK),
            method::BASIC_QOS => append_empty(out, CHANNEL, method::BASIC_QOS_OK),
            method::BASIC_CONSUME => append_method(out, CHANNEL, method::BASIC_CONSUME_OK, |out| {
                append_short_text(out, "amq.ctag-1");
            }),
            method::CONNECTION_CLOSE => append_empty(out, 0, method::CONNECTION_CLOSE_OK),
            _ => {}
        }
    }

    /// Sends a message to the reader, its body cut into frames of this size.
    pub(super) fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        body: &[u8],
        redelivered: bool,
        frame_body_max: usize,
    ) {
        self.delivered += 1;
        append_delivery(out, self.delivered, redelivered);
        append_content(out, body, frame_body_max);
    }
}

pub(super) fn append_start(out: &mut Vec<u8>, version: (u8, u8), mechanisms: &str) {
    append_method(out, 0, method::CONNECTION_START, |out| {
        out.extend_from_slice(&[version.0, version.1]);
        append_table(out, |out| {
            append_inner(out, "capabilities", |out| {
                append_true(out, "publisher_confirms");
                append_text(out, "version", "not this one");
            });
            append_text(out, "product", "RabbitMQ");
            append_text(out, "version", "3.10.8");
        });
        append_long_text(out, mechanisms.as_bytes());
        append_long_text(out, b"en_US");
    });
}

pub(super) fn append_empty(out: &mut Vec<u8>, channel: u16, method: u32) {
    append_method(out, channel, method, |_| {});
}

pub(super) fn append_confirm(out: &mut Vec<u8>, number: u64, multiple: bool) {
    super::settlements::append_ack(out, number, multiple);
}

pub(super) fn append_nack(out: &mut Vec<u8>, number: u64, multiple: bool) {
    append_method(out, CHANNEL, method::BASIC_NACK, |out| {
        out.extend_from_slice(&number.to_be_bytes());
        out.push(u8::from(multiple));
    });
}

pub(super) fn append_delivery(out: &mut Vec<u8>, number: u64, redelivered: bool) {
    append_method(out, CHANNEL, method::BASIC_DELIVER, |out| {
        append_short_text(out, "amq.ctag-1");
        out.extend_from_slice(&number.to_be_bytes());
        out.push(u8::from(redelivered));
        append_short_text(out, "");
        append_short_text(out, "q");
    });
}

/// `basic.return`, with its content.
pub(super) fn append_return(out: &mut Vec<u8>, body: &[u8]) {
    append_method(out, CHANNEL, method::BASIC_RETURN, |out| {
        out.extend_from_slice(&312_u16.to_be_bytes());
        append_short_text(out, "NO_ROUTE");
        append_short_text(out, "");
        append_short_text(out, "q");
    });
    append_content(out, body, 4088);
}

/// Either kind of close.
pub(super) fn append_close(out: &mut Vec<u8>, channel: u16, method: u32, code: u16, text: &str) {
    append_method(out, channel, method, |out| {
        out.extend_from_slice(&code.to_be_bytes());
        append_short_text(out, text);
        out.extend_from_slice(&[0; 4]);
    });
}

pub(super) fn append_header(out: &mut Vec<u8>, size: u64) {
    append_frame(out, kind::HEADER, CHANNEL, |out| {
        out.extend_from_slice(&CLASS_BASIC.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&size.to_be_bytes());
        // Headers and delivery mode, as a stream sends them.
        out.extend_from_slice(&0x3000_u16.to_be_bytes());
        append_table(out, |out| {
            super::table::append_number(out, "x-stream-offset", 5);
        });
        out.push(2);
    });
}

fn append_content(out: &mut Vec<u8>, body: &[u8], frame_body_max: usize) {
    append_header(out, u64::try_from(body.len()).unwrap());
    for part in body.chunks(frame_body_max) {
        out.extend_from_slice(&[kind::BODY, 0, 1]);
        out.extend_from_slice(&length(part.len()));
        out.extend_from_slice(part);
        out.push(FRAME_END);
    }
    assert!(frame_body_max + FRAME_EXTRA_BYTES <= 131_072);
}
