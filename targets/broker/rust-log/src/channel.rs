//! A queue or a stream: which messages it has, and what became of each. The messages themselves are in the log.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::arena::Arena;
use crate::frame::{Name, Retention};
use crate::record::{Declared, HEAD_BYTES, MESSAGE_FIELDS_BYTES};
use crate::tier::Tier;

/// What a stream keeps at most, whatever its retention says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Payload.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
}

/// What became of a message of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for a reader.
    Ready,
    /// A reader has it and has not settled it.
    Flying,
    /// It is done with.
    Settled,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where its record begins in the log; in a channel without a log, where its payload does.
    pub at: u64,
    /// Length of its payload.
    pub length: u32,
    /// When the writer says that it wrote it.
    pub published_ms: u64,
    /// When it came.
    pub received_ms: u64,
    /// The connection that it came on.
    pub writer: u32,
    /// The subscription that has it.
    pub owner: u32,
    /// Queues alone.
    pub state: State,
    /// It may have been delivered before.
    pub again: bool,
}

/// A channel.
#[derive(Debug)]
pub struct Channel {
    /// Its topic.
    pub topic: String,
    /// Its group.
    pub group: Option<String>,
    /// Which part of the topic, and of how many.
    pub partition: (u32, u32),
    /// Whether each reader gets every message.
    pub is_stream: bool,
    /// When messages are confirmed and delivered.
    pub tier: Tier,
    /// How long a stream keeps messages.
    pub retention: Retention,
    /// Topic, group and partition, as frames have them.
    pub name: Vec<u8>,
    /// The messages of a channel without a log.
    pub own: Option<Arena>,
    /// Its subscriptions, and whose turn it is.
    pub subscriptions: Vec<usize>,
    /// Index in `subscriptions`.
    pub turn: usize,
    /// How many subscriptions it has ever had.
    pub subscribed: u32,
    /// Durable cursors: the first offset that each has not settled, and whether that is news to the log.
    pub cursors: BTreeMap<String, (u64, bool)>,
    /// Ranges that were settled and are not in the log yet.
    pub settled: Vec<(u64, u64)>,
    /// It is in the broker's list of channels to look at.
    pub is_woken: bool,
    /// When a message last came, in nanoseconds of the broker's clock.
    pub published_ns: u64,
    /// Messages that a reader of the queue was handed, each once.
    pub handed: u64,
    /// Payload of all entries.
    bytes: u64,
    /// The offset of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
    /// All before this offset may be delivered.
    visible: u64,
    /// All before this offset have been handed to a reader of the queue.
    next: u64,
    /// Those before it that came back.
    returned: BinaryHeap<Reverse<u64>>,
    flying: u64,
}

impl Channel {
    /// A channel without messages.
    pub fn new(declared: &Declared<'_>, tier: Tier) -> Self {
        let mut name = Vec::new();
        let Declared { topic, group, partition, .. } = *declared;
        Name { topic, group, partition }.put(&mut name);
        Self {
            topic: topic.to_owned(),
            group: group.map(str::to_owned),
            partition: (partition, declared.partitions),
            is_stream: declared.is_stream,
            tier,
            retention: declared.retention,
            name,
            own: (tier == Tier::Memory).then(|| Arena::new(0)),
            subscriptions: Vec::new(),
            turn: 0,
            subscribed: 0,
            cursors: BTreeMap::new(),
            settled: Vec::new(),
            is_woken: false,
            published_ns: 0,
            handed: 0,
            bytes: 0,
            first: declared.next,
            entries: VecDeque::new(),
            visible: declared.next,
            next: declared.next,
            returned: BinaryHeap::new(),
            flying: 0,
        }
    }

    /// What its record in the log says, under this number.
    pub fn declared(&self, channel: u32) -> Declared<'_> {
        Declared {
            channel,
            is_stream: self.is_stream,
            tier: self.tier as u8,
            next: self.end(),
            retention: self.retention,
            topic: &self.topic,
            group: self.group.as_deref(),
            partition: self.partition.0,
            partitions: self.partition.1,
        }
    }

    /// The offset of its oldest message.
    pub fn start(&self) -> u64 {
        self.first
    }

    /// The offset of its next message.
    pub fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// All before this offset may be delivered.
    pub fn visible(&self) -> u64 {
        self.visible
    }

    /// Messages, and those of them that readers have and have not settled.
    pub fn depth(&self) -> (u64, u64) {
        (self.entries.len() as u64, self.flying)
    }

    /// Payload of all its messages.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The record of its oldest message, if it has one in the log.
    pub fn oldest(&self) -> Option<u64> {
        self.entries.front().filter(|_| self.own.is_none()).map(|entry| entry.at)
    }

    /// Takes in a message; its offset.
    pub fn push(&mut self, entry: Entry) -> u64 {
        let offset = self.end();
        self.bytes += u64::from(entry.length);
        self.entries.push_back(entry);
        offset
    }

    fn index(&self, offset: u64) -> Option<usize> {
        usize::try_from(offset.checked_sub(self.first)?).ok().filter(|index| *index < self.entries.len())
    }

    /// A message that is still here.
    pub fn entry(&self, offset: u64) -> Option<&Entry> {
        self.index(offset).and_then(|index| self.entries.get(index))
    }

    fn entry_mut(&mut self, offset: u64) -> Option<&mut Entry> {
        self.index(offset).and_then(|index| self.entries.get_mut(index))
    }

    /// Where a message's payload lies.
    pub fn payload_at(&self, entry: &Entry) -> u64 {
        if self.own.is_some() { entry.at } else { entry.at + (HEAD_BYTES + MESSAGE_FIELDS_BYTES) as u64 }
    }

    /// Messages may be delivered whose records end at this position of the log or before it.
    pub fn advance(&mut self, position: u64) {
        if self.own.is_some() {
            self.visible = self.end();
            return;
        }
        while let Some(entry) = self.entry(self.visible)
            && self.payload_at(entry) + u64::from(entry.length) <= position
        {
            self.visible += 1;
        }
    }

    /// The next message for a reader of the queue.
    pub fn peek(&mut self) -> Option<u64> {
        while let Some(Reverse(offset)) = self.returned.peek() {
            let offset = *offset;
            if self.entry(offset).is_some_and(|entry| entry.state == State::Ready) {
                return Some(offset);
            }
            self.returned.pop();
        }
        while self.next < self.visible {
            if self.entry(self.next).is_some_and(|entry| entry.state == State::Ready) {
                return Some(self.next);
            }
            self.next += 1;
        }
        None
    }

    /// A reader gets the message that [`Channel::peek`] named.
    pub fn hand(&mut self, offset: u64, owner: u32) {
        if let Some(entry) = self.entry_mut(offset)
            && entry.state == State::Ready
        {
            entry.state = State::Flying;
            entry.owner = owner;
            self.flying += 1;
            self.handed += 1;
        }
        if self.next == offset {
            self.next += 1;
        }
    }

    /// A message need not be delivered any more; whether it was not settled before.
    pub fn settle(&mut self, offset: u64) -> bool {
        let Some(entry) = self.entry_mut(offset) else { return false };
        let before = std::mem::replace(&mut entry.state, State::Settled);
        if before == State::Flying {
            self.flying -= 1;
        }
        if before == State::Settled {
            return false;
        }
        match self.settled.last_mut() {
            Some((_, last)) if *last + 1 == offset => *last = offset,
            _ => self.settled.push((offset, offset)),
        }
        true
    }

    /// A message waits for a reader again.
    pub fn give_back(&mut self, offset: u64) {
        if let Some(entry) = self.entry_mut(offset)
            && entry.state == State::Flying
        {
            entry.state = State::Ready;
            entry.again = true;
            self.flying -= 1;
            self.handed = self.handed.saturating_sub(1);
            self.returned.push(Reverse(offset));
        }
    }

    /// Whether this subscription has this message.
    pub fn is_with(&self, offset: u64, owner: u32) -> bool {
        self.entry(offset).is_some_and(|entry| entry.state == State::Flying && entry.owner == owner)
    }

    /// Forgets the oldest messages: of a queue those that are settled, of a stream those beyond its retention, or
    /// beyond what the broker keeps at most.
    pub fn trim(&mut self, now_ms: u64, most: Most) {
        while let Some(entry) = self.entries.front() {
            let goes = if self.is_stream {
                let Retention { age_ms, bytes, messages } = self.retention;
                self.bytes > bytes.map_or(most.bytes, |bytes| bytes.min(most.bytes))
                    || self.entries.len() as u64
                        > messages.map_or(most.messages, |messages| messages.min(most.messages))
                    || age_ms.is_some_and(|age_ms| now_ms.saturating_sub(entry.received_ms) > age_ms)
            } else {
                entry.state == State::Settled
            };
            // What cannot be delivered yet stays: its writer may be waiting for it.
            if !goes || self.first >= self.visible {
                break;
            }
            self.bytes -= u64::from(entry.length);
            self.entries.pop_front();
            self.first += 1;
        }
        self.next = self.next.max(self.first);
        if let Some(own) = &mut self.own {
            own.forget(self.entries.front().map_or(own.end(), |entry| entry.at));
        }
    }

    /// Continues at this offset: the log has no older message of it.
    pub fn skip_to(&mut self, offset: u64) {
        if self.entries.is_empty() && offset > self.first {
            self.first = offset;
            self.visible = offset;
            self.next = offset;
        }
    }

    /// The first offset that was received at this time or later.
    pub fn since(&self, received_ms: u64) -> u64 {
        self.first + self.entries.partition_point(|entry| entry.received_ms < received_ms) as u64
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
