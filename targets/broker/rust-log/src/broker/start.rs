//! A broker from what its log says.

use std::collections::{HashMap, VecDeque};
use std::io;

use slab::Slab;

use super::{Broker, CHANNELS_MAX, Settings};
use crate::channel::{Channel, Entry, Most, State};
use crate::conduct::Conduct;
use crate::record::{HEAD_BYTES, MESSAGE_FIELDS_BYTES, Record};
use crate::recovery::{self, Recovery};
use crate::segment::Disk;
use crate::tier::Tier;

impl<D: Disk, C: Conduct> Broker<D, C> {
    /// Reads the log on this disk, and goes on with it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn start(disk: D, settings: Settings, conduct: C) -> io::Result<(Self, Recovery)> {
        let mut channels = Vec::new();
        let (log, recovery) = recovery::open(disk, settings.sizes, |record, end| apply(&mut channels, record, end))?;
        let safe = log.flushed();
        for channel in &mut channels {
            channel.advance(safe);
            // Times are unknown yet, and what a stream may keep is looked at in the first turn.
            channel.trim(0, Most { bytes: u64::MAX, messages: u64::MAX });
            // The log has them.
            channel.settled.clear();
        }
        let mut broker = Self {
            settings,
            conduct,
            log,
            channels: Vec::new(),
            names: HashMap::new(),
            sessions: Vec::new(),
            serial: 0,
            subscriptions: Slab::new(),
            at_cache: VecDeque::new(),
            at_disk: VecDeque::new(),
            late: VecDeque::new(),
            disk_wanted: 0,
            woken: Vec::new(),
            unsettled: Vec::new(),
            touched: Vec::new(),
            memory_used: 0,
        };
        channels.into_iter().for_each(|channel| broker.add_channel(channel));
        Ok((broker, recovery))
    }
}

/// Does again what a record says was done.
fn apply(channels: &mut Vec<Channel>, record: Record<'_>, end: u64) {
    match record {
        Record::Channel(declared) => {
            // Numbers are given in order, and each segment repeats them.
            let is_next = declared.channel as usize == channels.len() && channels.len() < CHANNELS_MAX;
            match Tier::numbered(declared.tier) {
                Some(tier) if is_next => channels.push(Channel::new(&declared, tier)),
                _ => {}
            }
        }
        Record::Message { channel, offset, published_ms, received_ms, payload } => {
            let Some(channel) = channels.get_mut(channel as usize) else { return };
            channel.skip_to(offset);
            if channel.end() != offset {
                return;
            }
            channel.push(Entry {
                at: end - (HEAD_BYTES + MESSAGE_FIELDS_BYTES + payload.len()) as u64,
                length: u32::try_from(payload.len()).unwrap_or(u32::MAX),
                published_ms,
                received_ms,
                writer: 0,
                owner: 0,
                state: State::Ready,
                // Nobody knows.
                again: true,
            });
        }
        Record::Settled { channel, ranges } => {
            let Some(channel) = channels.get_mut(channel as usize) else { return };
            for (first, last) in ranges.iter() {
                // Those that are gone need no settling; this keeps a range from being walked for ever.
                let until = last.min(channel.end().saturating_sub(1));
                for offset in first.max(channel.start())..=until {
                    channel.settle(offset);
                }
            }
        }
        Record::Cursor { channel, next, name } => {
            let Some(channel) = channels.get_mut(channel as usize) else { return };
            channel.cursors.insert(name.to_owned(), (next, false));
        }
    }
}
