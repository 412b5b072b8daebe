//! What clients ask.

use std::collections::VecDeque;
use std::io;

use super::{Broker, CHANNELS_MAX, Now, Subscription, Waiting};
use crate::answer;
use crate::channel::{Channel, Entry, State};
use crate::conduct::Conduct;
use crate::frame::{self, Frame, Name, Publish, Request, Retention, Start, Tags, code, op};
use crate::record::{Declared, HEAD_BYTES, MESSAGE_FIELDS_BYTES, RECORD_FIELDS_BYTES_MAX, put_channel, put_message};
use crate::segment::{Disk, Window};
use crate::tier::{Level, Tier};

use super::session::Stage;

/// Who may come in, as in Fibril's own examples.
const USER: (&str, &str) = ("fibril", "fibril");

/// Parts of one topic.
const PARTITIONS_MAX: u32 = 64;

/// Messages that a reader may have and not have settled, whatever it asks for.
const PREFETCH_MAX: u32 = 65_536;

/// Durable cursors of all streams together: each segment of the log begins with them.
const CURSORS_MAX: usize = 4096;

/// What a channel's queue or stream is declared with, apart from its name.
#[derive(Debug, Clone, Copy)]
struct Wish {
    is_stream: bool,
    tier: Tier,
    retention: Retention,
    partitions: u32,
}

impl<D: Disk, C: Conduct> Broker<D, C> {
    /// Does what a frame asks for.
    pub(super) fn take_request(&mut self, key: usize, frame: &Frame<'_>, now: Now) -> io::Result<()> {
        let Some(Some(session)) = self.sessions.get_mut(key) else { return Ok(()) };
        let id = frame.request;
        let Ok(request) = Request::read(frame) else {
            self.end(key, id, code::BAD_REQUEST, "the payload is not what the opcode says");
            return Ok(());
        };
        match (session.stage, request) {
            (_, Request::Ping) => self.answer(key, |out| answer::put_empty(out, op::PONG, id)),
            (_, Request::Pong) => {}
            (Stage::Hello, Request::Hello { version: frame::VERSION }) => {
                session.stage = Stage::Auth;
                let serial = session.serial;
                self.answer(key, |out| answer::put_hello_ok(out, id, serial));
            }
            (Stage::Auth, Request::Auth { user, password }) if (user, password) == USER => {
                session.stage = Stage::Open;
                self.answer(key, |out| answer::put_empty(out, op::AUTH_OK, id));
            }
            (Stage::Auth, Request::Auth { .. }) => {
                self.refuse(key, op::AUTH_ERR, id, code::UNAUTHORIZED, "another user or password");
                self.end(key, 0, code::UNAUTHORIZED, "nobody is logged in");
            }
            (Stage::Open, request) => return self.take_open(key, id, request, now),
            _ => self.end(key, id, code::UNAUTHORIZED, "HELLO of version 1 and AUTH come first"),
        }
        Ok(())
    }

    /// Does what a client asks that is logged in.
    fn take_open(&mut self, key: usize, id: u64, request: Request<'_>, now: Now) -> io::Result<()> {
        match request {
            Request::Publish(message) => self.publish(key, id, &message, now)?,
            Request::Ack { name, tags } => self.settle(key, id, &name, tags, None),
            Request::Nack { name, tags, requeue, not_before: None } => {
                self.settle(key, id, &name, tags, Some(requeue));
            }
            Request::Nack { .. } => self.refuse(key, op::ERROR, id, code::NOT_IMPLEMENTED, "no delays here"),
            Request::DeclareQueue { has_extras: true, .. } => {
                let text = "no dead letters, retries or times to live here";
                self.refuse(key, op::ERROR, id, code::NOT_IMPLEMENTED, text);
            }
            Request::DeclareQueue { topic, group, partitions, .. } => {
                let tier = self.settings.queue_tier;
                let wish = Wish { is_stream: false, tier, retention: Retention::default(), partitions };
                self.declare(key, id, (topic, group), wish);
            }
            Request::DeclarePlexus { topic, partitions, tier, retention } => {
                let tier = match tier {
                    0 => self.settings.ephemeral,
                    1 => Tier::Speculative,
                    2 => Tier::Durable,
                    _ => {
                        self.end(key, id, code::BAD_REQUEST, "tiers are 0, 1, 2");
                        return Ok(());
                    }
                };
                self.declare(key, id, (topic, None), Wish { is_stream: true, tier, retention, partitions });
            }
            Request::Subscribe { is_plain: false, .. } => {
                self.refuse(key, op::ERROR, id, code::NOT_IMPLEMENTED, "no exclusive groups of consumers here");
            }
            Request::Subscribe { name, prefetch, auto_ack, .. } => {
                self.subscribe(key, id, &name, (prefetch, auto_ack), None);
            }
            Request::SubscribeStream { topic, partition, cursor, start, prefetch, auto_ack } => {
                let name = Name { topic, group: None, partition };
                self.subscribe(key, id, &name, (prefetch, auto_ack), Some((cursor, start)));
            }
            Request::Hello { .. } | Request::Auth { .. } | Request::Unknown => {
                self.refuse(key, op::ERROR, id, code::BAD_REQUEST, "not now, or nothing that is known here");
            }
            Request::Ping | Request::Pong => {}
        }
        Ok(())
    }

    fn channel_of(&self, name: &Name<'_>) -> Option<usize> {
        let mut bytes = Vec::new();
        name.put(&mut bytes);
        self.names.get(&bytes).copied()
    }

    fn declare(&mut self, key: usize, id: u64, (topic, group): (&str, Option<&str>), wish: Wish) {
        let Wish { is_stream, tier, retention, partitions } = wish;
        if !(1..=PARTITIONS_MAX).contains(&partitions) || topic.is_empty() {
            return self.refuse(key, op::ERROR, id, code::BAD_REQUEST, "1 to 64 partitions, and a topic with a name");
        }
        let first = Name { topic, group, partition: 0 };
        if let Some(index) = self.channel_of(&first) {
            let channel = &self.channels[index];
            let is_same = (channel.is_stream, channel.tier, channel.partition.1) == (is_stream, tier, partitions);
            return if is_same {
                self.answer(key, |out| answer::put_declared(out, id, is_stream, false, partitions));
            } else {
                self.refuse(key, op::ERROR, id, code::CONFLICT, "it exists, and is something else");
            };
        }
        if self.channels.len() + partitions as usize > CHANNELS_MAX {
            return self.refuse(key, op::ERROR, id, code::TOO_MANY, "there are 1,024 channels");
        }
        for partition in 0..partitions {
            let channel = u32::try_from(self.channels.len()).unwrap_or(u32::MAX);
            let tier_number = tier as u8;
            let declared = Declared {
                channel,
                is_stream,
                tier: tier_number,
                next: 0,
                retention,
                topic,
                group,
                partition,
                partitions,
            };
            self.log.append(RECORD_FIELDS_BYTES_MAX, |out, position| put_channel(out, position, &declared));
            self.add_channel(Channel::new(&declared, tier));
        }
        // With the flush of its first message at the latest, because that comes later in the log.
        self.answer(key, |out| answer::put_declared(out, id, is_stream, true, partitions));
    }

    pub(super) fn add_channel(&mut self, channel: Channel) {
        self.names.insert(channel.name.clone(), self.channels.len());
        self.channels.push(channel);
    }

    /// Where a message goes: most likely where the one before went.
    fn find_channel(&mut self, key: usize, name: &[u8]) -> Option<usize> {
        let Some(Some(session)) = self.sessions.get_mut(key) else { return None };
        if let Some((last, index)) = &session.last
            && last == name
        {
            return Some(*index);
        }
        let index = *self.names.get(name)?;
        session.last = Some((name.to_vec(), index));
        Some(index)
    }

    fn publish(&mut self, key: usize, id: u64, message: &Publish<'_>, now: Now) -> io::Result<()> {
        let Some(index) = self.find_channel(key, message.name) else {
            self.refuse(key, op::ERROR, id, code::NOT_FOUND, "no such topic, group and partition");
            return Ok(());
        };
        let size = message.payload.len();
        let channel = &self.channels[index];
        // What is in the log needs none of the memory.
        let has_no_room = channel.own.is_some() && self.memory_used + size as u64 > self.settings.memory_bytes_max;
        // A stream forgets its oldest message instead.
        let is_full = has_no_room || !channel.is_stream && channel.depth().0 >= self.settings.messages_max;
        let refusal = if size > self.settings.sizes.message_bytes_max {
            Some((code::TOO_LARGE, "the message is too long"))
        } else if message.expires {
            Some((code::NOT_IMPLEMENTED, "no times to live here"))
        } else if is_full {
            Some((code::FULL, "the channel is full"))
        } else {
            None
        };
        if let Some((code, text)) = refusal {
            self.refuse(key, op::ERROR, id, code, text);
            return Ok(());
        }
        let serial = self.sessions.get(key).and_then(Option::as_ref).map_or(0, |session| session.serial);
        let offset = if self.conduct.keeps() { self.keep(index, serial, message, now) } else { 0 };
        if message.confirm {
            let waiting = Waiting { position: self.log.end(), session: key, serial, request: id, offset };
            let level = if self.conduct.keeps() { self.channels[index].tier.confirm() } else { Level::Memory };
            self.wait(level, waiting, now);
        }
        Ok(())
    }

    /// Keeps a message; its offset.
    fn keep(&mut self, index: usize, serial: u64, message: &Publish<'_>, now: Now) -> u64 {
        let channel = &mut self.channels[index];
        let offset = channel.end();
        let payload = message.payload;
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let at = match &mut channel.own {
            Some(own) => {
                self.memory_used += payload.len() as u64;
                own.append(payload.len(), |bytes| bytes.extend_from_slice(payload))
            }
            None => {
                let at = self.log.end();
                self.log.append(HEAD_BYTES + MESSAGE_FIELDS_BYTES + payload.len(), |out, position| {
                    put_message(out, position, (number, offset), message.published_ms, now.ms, payload);
                });
                at
            }
        };
        channel.push(Entry {
            at,
            length: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            published_ms: message.published_ms,
            received_ms: now.ms,
            // Only to tell writers apart, so its lower half will do.
            writer: serial as u32,
            owner: 0,
            state: State::Ready,
            again: false,
        });
        channel.published_ns = now.ns;
        // Confirming comes after delivering in no tier.
        if channel.tier.confirm() == Level::Disk {
            self.disk_wanted = self.log.end();
        }
        self.wake(index);
        offset
    }

    /// Settles, or rejects with or without another try.
    fn settle(&mut self, key: usize, id: u64, name: &Name<'_>, tags: Tags<'_>, requeue: Option<bool>) {
        let Some(subscription) = self.channel_of(name).and_then(|index| self.subscription_of(key, index)) else {
            return self.refuse(key, op::ERROR, id, code::NOT_FOUND, "no subscription of this connection");
        };
        match requeue {
            None => self.acknowledge(subscription, tags),
            Some(requeue) => self.reject(subscription, tags, requeue),
        }
    }

    /// Begins to deliver: a queue's messages, or a stream's from some place on.
    fn subscribe(
        &mut self,
        key: usize,
        id: u64,
        name: &Name<'_>,
        (prefetch, auto_ack): (u32, bool),
        stream: Option<(Option<&str>, Start)>,
    ) {
        let Some(index) = self.channel_of(name) else {
            return self.refuse(key, op::ERROR, id, code::NOT_FOUND, "no such topic, group and partition");
        };
        if self.channels[index].is_stream != stream.is_some() {
            return self.refuse(key, op::ERROR, id, code::CONFLICT, "queues have SUBSCRIBE, streams SUBSCRIBE_STREAM");
        }
        if self.subscription_of(key, index).is_some() {
            return self.refuse(key, op::ERROR, id, code::CONFLICT, "this connection has subscribed to it");
        }
        let (cursor, start) = stream.unwrap_or((None, Start::Latest));
        let is_new = cursor.is_some_and(|name| !self.channels[index].cursors.contains_key(name));
        if is_new && self.channels.iter().map(|channel| channel.cursors.len()).sum::<usize>() >= CURSORS_MAX {
            return self.refuse(key, op::ERROR, id, code::TOO_MANY, "there are 4,096 cursors");
        }
        let channel = &mut self.channels[index];
        let next = first_offset(channel, cursor, start);
        // Nothing says what 0 means; here it is "as much as there may be".
        let prefetch = if prefetch == 0 { PREFETCH_MAX } else { prefetch.min(PREFETCH_MAX) };
        let number = channel.subscribed;
        channel.subscribed += 1;
        let subscription = self.subscriptions.insert(Subscription {
            session: key,
            channel: index,
            prefetch,
            auto_ack,
            flying: 0,
            sent: VecDeque::new(),
            next,
            cursor: cursor.map(str::to_owned),
            number,
            swapped: Vec::new(),
            window: Window::default(),
        });
        channel.subscriptions.push(subscription);
        if let Some(Some(session)) = self.sessions.get_mut(key) {
            session.subscriptions.push(subscription);
        }
        self.answer(key, |out| answer::put_subscribe_ok(out, id, subscription as u64, name, prefetch));
        self.note_unsettled(index);
        self.wake(index);
    }
}

/// Where a stream's reader begins.
fn first_offset(channel: &mut Channel, cursor: Option<&str>, start: Start) -> u64 {
    let (first, end) = (channel.start(), channel.end());
    let Some(name) = cursor else {
        return match start {
            Start::Latest => end,
            Start::Earliest => first,
            Start::At(offset) => offset.clamp(first, end),
            Start::Back(count) => end.saturating_sub(count).max(first),
            Start::Since(ms) => channel.since(ms),
        };
    };
    if let Some((next, _)) = channel.cursors.get(name) {
        return (*next).clamp(first, end);
    }
    // A new cursor begins with the oldest message, so that it cannot miss one.
    channel.cursors.insert(name.to_owned(), (first, true));
    first
}
