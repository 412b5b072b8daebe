//! A broker in memory with clients, for tests.

use super::{Broker, Now, Settings};
use crate::answer;
use crate::conduct::{Conduct, Honest};
use crate::frame::{self, Name, cut, op};
use crate::memory_disk::MemoryDisk;
use crate::segment::Sizes;
use crate::tier::Tier;
use crate::wire::{Fields, put_bytes, put_optional_text, put_text};

pub(super) const SETTINGS: Settings = Settings {
    sizes: Sizes { segment_bytes: 4096, tail_bytes: 2048, message_bytes_max: 10_000 },
    queue_tier: Tier::Durable,
    ephemeral: Tier::Cache,
    memory_bytes_max: 3000,
    stream_bytes_max: 100_000,
    messages_max: 1000,
};

/// What a client got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Got {
    Answer(u16),
    Confirmed { request: u64, offset: u64 },
    Delivered { offset: u64, payload: Vec<u8>, again: bool },
    Error { request: u64, code: u16 },
}

/// The broker, the disk that it believes it has, and the time.
#[derive(Debug)]
pub(super) struct Rig<C> {
    pub(super) broker: Broker<MemoryDisk, C>,
    pub(super) disk: MemoryDisk,
    pub(super) now: Now,
}

impl Rig<Honest> {
    pub(super) fn new() -> Self {
        Self::with(MemoryDisk::default(), SETTINGS, Honest)
    }

    pub(super) fn tier(queue_tier: Tier) -> Self {
        Self::with(MemoryDisk::default(), Settings { queue_tier, ..SETTINGS }, Honest)
    }

    pub(super) fn on(disk: MemoryDisk) -> Self {
        Self::with(disk, SETTINGS, Honest)
    }
}

impl<C: Conduct> Rig<C> {
    pub(super) fn with(disk: MemoryDisk, settings: Settings, conduct: C) -> Self {
        let (broker, _) = Broker::start(disk.clone(), settings, conduct).expect("readable");
        Self { broker, disk, now: Now { ns: 0, ms: 1_000_000 } }
    }

    /// Ends a turn without flushing.
    pub(super) fn turn(&mut self) {
        self.broker.finish_turn(self.now).expect("room");
        while self.broker.has_work() {
            self.broker.finish_turn(self.now).expect("room");
        }
    }

    /// Flushes, and ends a turn.
    pub(super) fn flush(&mut self) {
        if let Some(flush) = self.broker.flush() {
            let position = flush.run().expect("a disk");
            self.broker.flushed_until(position, self.now);
        }
        self.turn();
    }

    pub(super) fn send(&mut self, key: usize, op: u16, request: u64, payload: &[u8]) {
        let mut bytes = Vec::new();
        answer::put_frame(&mut bytes, op, 0, request, |out| out.extend_from_slice(payload));
        assert_eq!(self.broker.receive(key, &bytes, self.now).expect("readable"), bytes.len());
    }

    /// A client that is logged in.
    pub(super) fn client(&mut self, key: usize) {
        self.broker.open(key);
        self.send(key, op::HELLO, 1, b"FHL1\0\0\0\x01c\0\0\0\x01v\0\x01\0");
        self.send(key, op::AUTH, 2, b"FAU1\0\0\0\x06fibril\0\0\0\x06fibril");
        assert_eq!(self.got(key), [Got::Answer(op::HELLO_OK), Got::Answer(op::AUTH_OK)]);
    }

    pub(super) fn declare_queue(&mut self, key: usize) {
        self.send(key, op::DECLARE_QUEUE, 3, b"FDQ1\0\0\0\x01q\0\0\0\0\0");
        assert_eq!(self.got(key), [Got::Answer(op::DECLARE_QUEUE_OK)]);
    }

    pub(super) fn declare_stream(&mut self, key: usize, tier: u8) {
        self.send(key, op::DECLARE_PLEXUS, 3, &[&b"FDP1\0\0\0\x01s\0"[..], &[tier], &[0; 4]].concat());
        assert_eq!(self.got(key), [Got::Answer(op::DECLARE_PLEXUS_OK)]);
    }

    pub(super) fn publish(&mut self, key: usize, topic: &str, request: u64, payload: &[u8]) {
        let mut bytes = b"FPB1".to_vec();
        Name { topic, group: None, partition: 0 }.put(&mut bytes);
        bytes.push(1);
        bytes.extend_from_slice(&[0; 22]);
        put_bytes(&mut bytes, payload);
        bytes.push(0);
        self.send(key, op::PUBLISH, request, &bytes);
    }

    pub(super) fn subscribe(&mut self, key: usize, prefetch: u32, auto_ack: bool) {
        let mut bytes = b"FSB1\0\0\0\x01q\0\0\0\0\0".to_vec();
        bytes.extend_from_slice(&prefetch.to_be_bytes());
        bytes.extend_from_slice(&[u8::from(auto_ack), 0, 0, 0]);
        self.send(key, op::SUBSCRIBE, 4, &bytes);
        assert_eq!(self.got(key), [Got::Answer(op::SUBSCRIBE_OK)]);
    }

    /// `start` is 0 for the next message, 1 for the oldest.
    pub(super) fn subscribe_stream(&mut self, key: usize, cursor: Option<&str>, start: u8, auto_ack: bool) {
        let mut bytes = b"FSP1\0\0\0\x01s\0\0\0\0".to_vec();
        put_optional_text(&mut bytes, cursor);
        bytes.extend_from_slice(&[start, 0, 0, 0, 0, 0, 0, 1, 0, u8::from(auto_ack)]);
        self.send(key, op::SUBSCRIBE_STREAM, 4, &bytes);
        assert_eq!(self.got(key), [Got::Answer(op::SUBSCRIBE_OK)]);
    }

    pub(super) fn settle(&mut self, key: usize, topic: &str, tags: &[u64]) {
        let mut bytes = b"FAK1".to_vec();
        put_text(&mut bytes, topic);
        bytes.extend_from_slice(&[0; 5]);
        bytes.extend_from_slice(&u32::try_from(tags.len()).expect("few").to_be_bytes());
        tags.iter().for_each(|tag| bytes.extend_from_slice(&tag.to_be_bytes()));
        self.send(key, op::ACK, 0, &bytes);
    }

    /// What has been written to a client since the last time.
    pub(super) fn got(&mut self, key: usize) -> Vec<Got> {
        let bytes = self.broker.output(key).to_vec();
        self.broker.wrote(key, bytes.len());
        let mut rest = &bytes[..];
        let mut all = Vec::new();
        while let Some((frame, length)) = cut(rest, 1 << 20).expect("good") {
            let mut fields = Fields::new(frame.payload);
            all.push(match frame.op {
                op::PUBLISH_OK => {
                    fields.magic(b"FPO1").expect("it");
                    Got::Confirmed { request: frame.request, offset: fields.u64().expect("it") }
                }
                op::DELIVER => {
                    fields.take(4 + 8 + 5 + 5).expect("name");
                    let offset = fields.u64().expect("offset");
                    assert_eq!(fields.u64(), Ok(offset), "the tag");
                    fields.take(8 + 8 + 5).expect("times");
                    let payload = fields.bytes().expect("payload").to_vec();
                    Got::Delivered { offset, payload, again: frame.flags == frame::REDELIVERED }
                }
                op::ERROR | op::AUTH_ERR => {
                    fields.magic(b"FER1").expect("it");
                    Got::Error { request: frame.request, code: fields.u16().expect("it") }
                }
                other => Got::Answer(other),
            });
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
        all
    }

    /// The payloads of what was delivered to a client.
    pub(super) fn delivered(&mut self, key: usize) -> Vec<String> {
        let text = |got| match got {
            Got::Delivered { payload, .. } => String::from_utf8(payload).expect("text"),
            other => panic!("{other:?}"),
        };
        self.got(key).into_iter().map(text).collect()
    }
}
