//! The broker without sockets, clocks or threads: bytes of connections in, bytes for them out, and a log behind it.
//!
//! The edge gives it what it read ([`Broker::receive`]), and when it has read all that there was, ends the turn
//! ([`Broker::finish_turn`]): what the turn brought is written with one call, then confirmed and delivered as its tier
//! allows. What must reach the disk first waits for a [`Flush`], of which one runs at a time: all that comes meanwhile goes
//! with the next.

mod deliver;
mod requests;
mod session;
mod settle;
mod start;

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io;

use slab::Slab;

use crate::answer;
use crate::arena::Arena;
use crate::channel::Channel;
use crate::conduct::Conduct;
use crate::segment::{Disk, Flush, Log, Sizes, Window};
use crate::tier::{Level, Tier};

use session::Session;

/// Channels of a broker, each part of a topic being one.
pub const CHANNELS_MAX: usize = 1024;

/// No message is delivered to a connection with so much unsent, and nothing is read from it.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Nothing is read from anybody while so much of the log waits for the disk.
pub const UNFLUSHED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Of the log.
    pub sizes: Sizes,
    /// The tier of each queue.
    pub queue_tier: Tier,
    /// The tier of a stream that is declared as ephemeral.
    pub ephemeral: Tier,
    /// Payload that all channels without a log may hold together; more is refused.
    pub memory_bytes_max: u64,
    /// Payload that a stream keeps at most.
    pub stream_bytes_max: u64,
    /// Messages that a channel may hold; more are refused.
    pub messages_max: u64,
}

/// What time it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of a clock that never jumps.
    pub ns: u64,
    /// Milliseconds of the wall clock.
    pub ms: u64,
}

/// A writer waits for its answer.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// Until the log is safe up to here.
    position: u64,
    session: usize,
    serial: u64,
    request: u64,
    offset: u64,
}

/// A reader of a channel.
#[derive(Debug)]
struct Subscription {
    session: usize,
    channel: usize,
    prefetch: u32,
    auto_ack: bool,
    /// Messages that it has and has not settled.
    flying: u32,
    /// Of a queue, the offsets of those, among others that it has settled.
    sent: VecDeque<u64>,
    /// Of a stream, the offset of its next message.
    next: u64,
    /// Of a stream, the name of its durable cursor.
    cursor: Option<String>,
    /// Which of the channel's readers, by the order in which they came.
    number: u32,
    /// Messages that wait for their successor.
    swapped: Vec<u64>,
    /// What it has read from a file.
    window: Window,
}

/// The broker.
#[derive(Debug)]
pub struct Broker<D: Disk, C> {
    settings: Settings,
    /// Asked where an honest broker would not ask.
    pub conduct: C,
    log: Log<D>,
    channels: Vec<Channel>,
    /// Channels by topic, group and partition, as frames have them.
    names: HashMap<Vec<u8>, usize>,
    sessions: Vec<Option<Session>>,
    /// How many connections there have been.
    serial: u64,
    subscriptions: Slab<Subscription>,
    /// Writers that wait for the kernel, and for the disk, in the order of positions.
    at_cache: VecDeque<Waiting>,
    at_disk: VecDeque<Waiting>,
    /// Confirmations that a lying broker holds back, with the time when they go.
    late: VecDeque<(u64, Waiting)>,
    /// Somebody wants the log on disk up to here.
    disk_wanted: u64,
    /// Channels that have something to deliver or to forget.
    woken: Vec<usize>,
    /// Channels with settlements or cursors that the log has not.
    unsettled: Vec<usize>,
    /// Connections with new output.
    touched: Vec<usize>,
    /// Payload of all channels without a log, as it was when the turn began, and what came since.
    memory_used: u64,
}

impl<D: Disk, C: Conduct> Broker<D, C> {
    /// Ends a turn: writes what came, then confirms and delivers what is safe enough.
    ///
    /// # Errors
    /// When the log cannot be written. The broker is of no use then: what it has promised is not on disk.
    pub fn finish_turn(&mut self, now: Now) -> io::Result<()> {
        self.log_settled();
        self.log.write()?;
        self.confirm_written(now);
        self.deliver_woken(now)?;
        // Delivering settles, too.
        self.log_settled();
        self.log.write()?;
        self.confirm_late(now);
        self.memory_used = self.channels.iter().filter_map(|channel| channel.own.as_ref()).map(Arena::held).sum();
        if self.log.is_full() {
            self.begin_segment()?;
        }
        Ok(())
    }

    /// What must reach the disk now, unless a flush is running: then ask again when it has ended.
    pub fn flush(&mut self) -> Option<Flush<D>> {
        let flush = self.log.flush(self.disk_wanted > self.log.flushed());
        if self.conduct.syncs() { flush } else { flush.map(Flush::without_sync) }
    }

    /// A flush has ended; [`Broker::finish_turn`] must follow.
    pub fn flushed_until(&mut self, position: u64, now: Now) {
        self.log.flushed_until(position);
        while let Some(waiting) = self.at_disk.front()
            && waiting.position <= position
            && let Some(waiting) = self.at_disk.pop_front()
        {
            self.confirm(waiting, now);
        }
        for index in 0..self.channels.len() {
            if self.channels[index].visible() < self.channels[index].end() {
                self.wake(index);
            }
        }
    }

    /// When a turn is due although nothing has happened, in nanoseconds.
    pub fn due_ns(&self) -> Option<u64> {
        self.late.front().map(|(due, _)| *due)
    }

    /// Looks at each channel again: what a lying broker held back may go.
    pub fn look_again(&mut self) {
        (0..self.channels.len()).for_each(|index| self.wake(index));
    }

    /// How far the log is safe.
    fn safe(&self, level: Level) -> u64 {
        match level {
            Level::Memory => self.log.end(),
            Level::Cache => self.log.written(),
            Level::Disk => self.log.flushed(),
        }
    }

    fn wake(&mut self, index: usize) {
        let channel = &mut self.channels[index];
        if !std::mem::replace(&mut channel.is_woken, true) {
            self.woken.push(index);
        }
    }

    fn touch(&mut self, key: usize) {
        if let Some(Some(session)) = self.sessions.get_mut(key)
            && !std::mem::replace(&mut session.is_touched, true)
        {
            self.touched.push(key);
        }
    }

    /// A writer waits until the log is safe up to its end, or no longer.
    fn wait(&mut self, level: Level, waiting: Waiting, now: Now) {
        match level {
            Level::Memory => self.confirm(waiting, now),
            Level::Cache => self.at_cache.push_back(waiting),
            Level::Disk => self.at_disk.push_back(waiting),
        }
    }

    fn confirm_written(&mut self, now: Now) {
        let written = self.log.written();
        while let Some(waiting) = self.at_cache.front()
            && waiting.position <= written
            && let Some(waiting) = self.at_cache.pop_front()
        {
            self.confirm(waiting, now);
        }
    }

    fn confirm(&mut self, waiting: Waiting, now: Now) {
        match self.conduct.confirm_late_ns() {
            0 => self.answer_publish(&waiting),
            late => self.late.push_back((now.ns + late, waiting)),
        }
    }

    fn confirm_late(&mut self, now: Now) {
        while let Some((due, _)) = self.late.front()
            && *due <= now.ns
            && let Some((_, waiting)) = self.late.pop_front()
        {
            self.answer_publish(&waiting);
        }
    }

    fn answer_publish(&mut self, waiting: &Waiting) {
        let Some(Some(session)) = self.sessions.get_mut(waiting.session) else { return };
        // Another connection may have its place.
        if session.serial == waiting.serial {
            answer::put_publish_ok(&mut session.output, waiting.request, waiting.offset);
            self.touch(waiting.session);
        }
    }

    /// All channels as JSON: what `/admin/api/queues` answers.
    pub fn queues(&self) -> String {
        let mut text = String::from("{\"queues\":[");
        for (index, channel) in self.channels.iter().enumerate() {
            let (depth, flying) = channel.depth();
            text.push_str(if index == 0 { "" } else { "," });
            let _ = write!(
                text,
                concat!(
                    r#"{{"topic":{},"group":{},"partition":{},"kind":"{}","tier":"{}","messages":{},"ready":{},"#,
                    r#""inflight":{},"bytes":{},"next_offset":{},"consumers":{}}}"#
                ),
                quoted(&channel.topic),
                channel.group.as_deref().map_or_else(|| "null".to_owned(), quoted),
                channel.partition.0,
                if channel.is_stream { "stream" } else { "queue" },
                channel.tier.name(),
                depth,
                depth - flying,
                flying,
                channel.bytes(),
                channel.end(),
                channel.subscriptions.len(),
            );
        }
        let log = &self.log;
        let (start, written, flushed) = (log.start(), log.written(), log.flushed());
        let _ = write!(text, "],\"log\":{{\"start\":{start},\"written\":{written},\"flushed\":{flushed}}}}}");
        text
    }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod rig;
#[cfg(test)]
mod tests;
