//! Hands messages to readers.

use std::io;

use super::settle::owner;
use super::{Broker, Now, Settings};
use crate::answer::{Delivery, put_deliver};
use crate::channel::{Channel, Entry, Most};
use crate::conduct::{About, Act, Conduct};
use crate::segment::Disk;

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Gone,
    /// The reader has it, and must settle it.
    Handed,
}

impl<D: Disk, C: Conduct> Broker<D, C> {
    /// Looks at all channels where something has changed.
    pub(super) fn deliver_woken(&mut self, now: Now) -> io::Result<()> {
        let mut woken = std::mem::take(&mut self.woken);
        for index in woken.drain(..) {
            let safe = self.safe(self.channels[index].tier.deliver());
            let channel = &mut self.channels[index];
            channel.is_woken = false;
            channel.advance(safe);
            if channel.is_stream {
                self.deliver_stream(index, now)?;
            } else {
                self.deliver_queue(index, now)?;
            }
            let Settings { stream_bytes_max: bytes, messages_max: messages, .. } = self.settings;
            self.channels[index].trim(now.ms, Most { bytes, messages });
            self.note_unsettled(index);
        }
        // The list's memory is kept. What was woken meanwhile waits for the next turn.
        woken.append(&mut self.woken);
        self.woken = woken;
        Ok(())
    }

    fn deliver_queue(&mut self, index: usize, now: Now) -> io::Result<()> {
        while let Some(offset) = self.channels[index].peek() {
            let channel = &self.channels[index];
            let quiet_ns = now.ns.saturating_sub(channel.published_ns);
            if !self.conduct.goes_on(channel.end(), channel.handed, quiet_ns) {
                break;
            }
            let Some(key) = self.next_reader(index) else { break };
            let outcome = self.hand_over(index, key, offset)?;
            let auto_ack = self.subscriptions[key].auto_ack;
            let channel = &mut self.channels[index];
            channel.hand(offset, owner(key));
            if outcome == Outcome::Gone || auto_ack {
                channel.settle(offset);
            } else {
                let subscription = &mut self.subscriptions[key];
                subscription.flying += 1;
                subscription.sent.push_back(offset);
            }
        }
        Ok(())
    }

    /// The reader of the queue whose turn it is, among those that have room.
    fn next_reader(&mut self, index: usize) -> Option<usize> {
        let channel = &self.channels[index];
        let count = channel.subscriptions.len();
        let mut turns = (channel.turn..count).chain(0..channel.turn.min(count));
        let turn = turns.find(|turn| self.has_room(channel.subscriptions[*turn]))?;
        let key = channel.subscriptions[turn];
        self.channels[index].turn = turn + 1;
        Some(key)
    }

    fn has_room(&self, subscription_key: usize) -> bool {
        let subscription = &self.subscriptions[subscription_key];
        let has_output = matches!(self.sessions.get(subscription.session), Some(Some(session)) if session.has_room());
        has_output && subscription.flying < subscription.prefetch
    }

    fn deliver_stream(&mut self, index: usize, now: Now) -> io::Result<()> {
        for number in 0..self.channels[index].subscriptions.len() {
            let key = self.channels[index].subscriptions[number];
            loop {
                let (start, visible) = (self.channels[index].start(), self.channels[index].visible());
                let quiet_ns = now.ns.saturating_sub(self.channels[index].published_ns);
                let subscription = &mut self.subscriptions[key];
                // Retention wins over a slow reader.
                subscription.next = subscription.next.max(start);
                let offset = subscription.next;
                if offset >= visible || !self.conduct.goes_on(visible, offset, quiet_ns) || !self.has_room(key) {
                    break;
                }
                let outcome = self.hand_over(index, key, offset)?;
                let subscription = &mut self.subscriptions[key];
                subscription.next += 1;
                if subscription.auto_ack {
                    self.move_cursor(index, key, offset + 1);
                } else if outcome == Outcome::Handed {
                    subscription.flying += 1;
                }
            }
        }
        Ok(())
    }

    /// A reader that need not settle has been sent all before this offset.
    fn move_cursor(&mut self, index: usize, subscription_key: usize, next: u64) {
        let Some(name) = &self.subscriptions[subscription_key].cursor else { return };
        if let Some(cursor) = self.channels[index].cursors.get_mut(name) {
            *cursor = (next, true);
        }
    }

    /// Sends a message to a reader, if nothing is wrong with this broker.
    fn hand_over(&mut self, index: usize, subscription_key: usize, offset: u64) -> io::Result<Outcome> {
        let Some(entry) = self.channels[index].entry(offset).copied() else { return Ok(Outcome::Gone) };
        let reader = self.subscriptions[subscription_key].number;
        match self.conduct.act(&About { offset, reader, again: entry.again }) {
            Act::Send => self.send(index, subscription_key, offset, &entry)?,
            Act::Skip => return Ok(Outcome::Gone),
            Act::Twice => {
                self.send(index, subscription_key, offset, &entry)?;
                self.send(index, subscription_key, offset, &entry)?;
            }
            Act::Swap => {
                self.subscriptions[subscription_key].swapped.push(offset);
                return Ok(Outcome::Handed);
            }
        }
        self.send_swapped(index, subscription_key, entry.writer)?;
        Ok(Outcome::Handed)
    }

    /// Sends what waited for a later message of this writer.
    fn send_swapped(&mut self, index: usize, subscription_key: usize, writer: u32) -> io::Result<()> {
        if self.subscriptions[subscription_key].swapped.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.subscriptions[subscription_key].swapped);
        for offset in waiting {
            match self.channels[index].entry(offset).copied() {
                Some(entry) if entry.writer == writer => self.send(index, subscription_key, offset, &entry)?,
                Some(_) => self.subscriptions[subscription_key].swapped.push(offset),
                None => {}
            }
        }
        Ok(())
    }

    fn send(&mut self, index: usize, subscription_key: usize, offset: u64, entry: &Entry) -> io::Result<()> {
        let Self { channels, subscriptions, sessions, log, .. } = self;
        let channel: &Channel = &channels[index];
        let subscription = &mut subscriptions[subscription_key];
        let key = subscription.session;
        let Some(Some(session)) = sessions.get_mut(key) else { return Ok(()) };
        let at = channel.payload_at(entry);
        let length = usize::try_from(entry.length).unwrap_or(usize::MAX);
        let payload = match &channel.own {
            Some(own) => own.get(at, length).ok_or(io::ErrorKind::NotFound)?,
            None => {
                if !subscription.window.is_empty() && log.holds(at) {
                    // It is up with the newest again.
                    subscription.window.clear();
                }
                log.read(at, length, &mut subscription.window)?
            }
        };
        let delivery = Delivery {
            subscription: subscription_key as u64,
            name: &channel.name,
            offset,
            published_ms: entry.published_ms,
            received_ms: entry.received_ms,
            again: entry.again,
        };
        put_deliver(&mut session.output, &delivery, payload);
        self.touch(key);
        Ok(())
    }
}
