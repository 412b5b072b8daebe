//! What is done with messages that readers had: the log learns it, and gives up segments that nobody needs.

use std::io;

use super::{Broker, Subscription};
use crate::channel::Channel;
use crate::conduct::Conduct;
use crate::frame::Tags;
use crate::record::{RANGES_MAX, RECORD_FIELDS_BYTES_MAX, put_channel, put_cursor, put_settled};
use crate::segment::Disk;
use crate::tier::Tier;

impl<D: Disk, C: Conduct> Broker<D, C> {
    /// The subscription of this connection to this channel.
    pub(super) fn subscription_of(&self, key: usize, index: usize) -> Option<usize> {
        let Some(Some(session)) = self.sessions.get(key) else { return None };
        session.subscriptions.iter().copied().find(|key| self.subscriptions[*key].channel == index)
    }

    /// A reader has done with these messages. Those that it does not have are passed over: settling twice is no fault.
    pub(super) fn acknowledge(&mut self, subscription_key: usize, tags: Tags<'_>) {
        let Some(subscription) = self.subscriptions.get_mut(subscription_key) else { return };
        let index = subscription.channel;
        let channel = &mut self.channels[index];
        for offset in tags.iter() {
            if channel.is_stream {
                advance_cursor(channel, subscription, offset);
            } else if channel.is_with(offset, owner(subscription_key)) && channel.settle(offset) {
                subscription.flying -= 1;
            }
        }
        forget_settled(channel, subscription, subscription_key);
        self.note_unsettled(index);
        self.wake(index);
    }

    /// A reader gives these messages back, or is done with them although it could not use them.
    pub(super) fn reject(&mut self, subscription_key: usize, tags: Tags<'_>, requeue: bool) {
        if !requeue {
            return self.acknowledge(subscription_key, tags);
        }
        let Some(subscription) = self.subscriptions.get_mut(subscription_key) else { return };
        let index = subscription.channel;
        let channel = &mut self.channels[index];
        for offset in tags.iter() {
            if channel.is_with(offset, owner(subscription_key)) {
                channel.give_back(offset);
                subscription.flying -= 1;
            }
        }
        forget_settled(channel, subscription, subscription_key);
        self.wake(index);
    }

    /// A reader is gone: what it had goes to others.
    pub(super) fn end_subscription(&mut self, subscription_key: usize) {
        let Some(subscription) = self.subscriptions.try_remove(subscription_key) else { return };
        let channel = &mut self.channels[subscription.channel];
        channel.subscriptions.retain(|key| *key != subscription_key);
        channel.turn = 0;
        if !channel.is_stream {
            for offset in subscription.sent {
                if channel.is_with(offset, owner(subscription_key)) {
                    channel.give_back(offset);
                }
            }
        }
        self.wake(subscription.channel);
    }

    /// The channel has something that the log should know.
    pub(super) fn note_unsettled(&mut self, index: usize) {
        let channel = &self.channels[index];
        let has_news = !channel.settled.is_empty() || channel.cursors.values().any(|(_, is_news)| *is_news);
        if has_news && !self.unsettled.contains(&index) {
            self.unsettled.push(index);
        }
    }

    /// Appends to the log what was settled since the last time: one record for a channel, whatever came how often.
    pub(super) fn log_settled(&mut self) {
        let Self { log, channels, unsettled, .. } = self;
        for index in unsettled.drain(..) {
            let channel = &mut channels[index];
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            if channel.tier == Tier::Memory {
                channel.settled.clear();
            }
            for ranges in channel.settled.chunks(RANGES_MAX) {
                log.append(64 + 16 * ranges.len(), |out, position| put_settled(out, position, number, ranges));
            }
            channel.settled.clear();
            for (name, (next, is_news)) in &mut channel.cursors {
                if std::mem::take(is_news) && channel.tier != Tier::Memory {
                    log.append(64 + name.len(), |out, position| put_cursor(out, position, number, *next, name));
                }
            }
        }
    }

    /// Begins a segment of the log with what all later ones need to know, and gives up those that nobody needs.
    pub(super) fn begin_segment(&mut self) -> io::Result<()> {
        self.log.roll()?;
        for (number, channel) in (0_u32..).zip(&self.channels) {
            let declared = channel.declared(number);
            self.log.append(RECORD_FIELDS_BYTES_MAX, |out, position| put_channel(out, position, &declared));
            if channel.tier == Tier::Memory {
                continue;
            }
            for (name, (next, _)) in &channel.cursors {
                self.log.append(64 + name.len(), |out, position| put_cursor(out, position, number, *next, name));
            }
        }
        self.log.write()?;
        let oldest = self.channels.iter().filter_map(Channel::oldest).min();
        self.log.release(oldest.unwrap_or_else(|| self.log.end()));
        Ok(())
    }
}

/// How entries name a subscription.
pub(super) fn owner(subscription_key: usize) -> u32 {
    u32::try_from(subscription_key).unwrap_or(u32::MAX)
}

/// A stream's reader has settled this offset, and with it all before.
fn advance_cursor(channel: &mut Channel, subscription: &mut Subscription, offset: u64) {
    if offset >= subscription.next {
        return;
    }
    subscription.flying = subscription.flying.saturating_sub(1);
    let Some(name) = &subscription.cursor else { return };
    if let Some((next, is_news)) = channel.cursors.get_mut(name)
        && *next <= offset
    {
        *next = offset + 1;
        *is_news = true;
    }
}

/// Takes out of a reader's list what it has settled: at the front at once, and elsewhere when there is much of it.
fn forget_settled(channel: &Channel, subscription: &mut Subscription, subscription_key: usize) {
    let is_flying = |offset: &u64| channel.is_with(*offset, owner(subscription_key));
    while subscription.sent.front().is_some_and(|offset| !is_flying(offset)) {
        subscription.sent.pop_front();
    }
    if subscription.sent.len() > 64 + 2 * subscription.flying as usize {
        subscription.sent.retain(is_flying);
    }
}
