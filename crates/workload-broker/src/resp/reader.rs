//! A reader: `XREADGROUP` with `XACK`, or `XREAD`.
//!
//! One read is open at a time, for as many messages as the prefetch has room for. It goes out as soon as the last is
//! answered, so that it waits at the server when the next message comes. An acknowledgement behind it is looked at when
//! it is answered: with the next message, or after [`BLOCK_MS`].

use std::collections::VecDeque;

use super::command::{begin, bulk, bulk_number, command};
use super::id::EntryId;
use super::setup::{InvalidSetup, Reading, Setup};
use super::token::{Token, TokenReader};
use super::walk::{Seen, Walk};
use super::{FIELD, fault, flaw, text};
use crate::dialect::{Dialect, Fault, Heard};

/// How long a read waits for a message, in milliseconds. An acknowledgement waits no longer than that either.
pub const BLOCK_MS: u64 = 100;

/// A connection that reads a stream.
#[derive(Debug)]
pub struct Reader {
    reader: TokenReader,
    walk: Walk,
    state: State,
}

/// What the next reply answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// `AUTH` or `HELLO`.
    Greeting,
    /// `XGROUP CREATE`.
    Group,
    /// `XREVRANGE` for the stream's last entry.
    Last,
    /// `XREADGROUP` or `XREAD`.
    Read,
    /// `XACK` or `XDEL`.
    Settled,
}

/// From where the next read goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Behind this entry: of the stream, or of those that this reader of a group has open.
    Behind(EntryId),
    /// With what nobody of the group has got.
    New,
}

#[derive(Debug)]
struct State {
    setup: Setup,
    reading: Reading,
    prefetch: u32,
    /// A read up to the number of messages, and what stands between that and the id.
    read_begin: Vec<u8>,
    read_middle: Vec<u8>,
    awaited: VecDeque<Awaited>,
    from: Position,
    is_ready: bool,
    reads: bool,
    unsettled: u32,
    /// Entries of the reply so far.
    entries: u32,
    entry: Entry,
}

/// The entry that a reply is at.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    id: Option<EntryId>,
    /// The field's name came.
    is_named: bool,
}

impl Reader {
    /// A reader that has at most `prefetch` messages open.
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, reading: Reading, prefetch: u32) -> Result<Self, InvalidSetup> {
        setup.check()?;
        reading.check(prefetch)?;
        let mut read_begin = Vec::new();
        match &reading {
            Reading::Group {
                group, consumer, ..
            } => {
                begin(&mut read_begin, 11);
                for word in ["XREADGROUP", "GROUP", group, consumer, "COUNT"] {
                    bulk(&mut read_begin, word.as_bytes());
                }
            }
            Reading::Own => {
                begin(&mut read_begin, 8);
                for word in ["XREAD", "COUNT"] {
                    bulk(&mut read_begin, word.as_bytes());
                }
            }
        }
        let mut read_middle = Vec::new();
        bulk(&mut read_middle, b"BLOCK");
        bulk_number(&mut read_middle, BLOCK_MS);
        bulk(&mut read_middle, b"STREAMS");
        bulk(&mut read_middle, setup.key.as_bytes());
        Ok(Self {
            reader: TokenReader::new(),
            walk: Walk::new(),
            state: State {
                setup,
                reading,
                prefetch,
                read_begin,
                read_middle,
                awaited: VecDeque::new(),
                from: Position::Behind(EntryId::default()),
                is_ready: false,
                reads: false,
                unsettled: 0,
                entries: 0,
                entry: Entry::default(),
            },
        })
    }
}

impl Dialect for Reader {
    fn open(&mut self, out: &mut Vec<u8>) {
        let state = &mut self.state;
        let replies = state.setup.greet(out);
        state
            .awaited
            .extend(std::iter::repeat_n(Awaited::Greeting, replies));
        let key = state.setup.key.as_bytes();
        match &state.reading {
            Reading::Group { group, .. } => {
                command(
                    out,
                    &[
                        b"XGROUP",
                        b"CREATE",
                        key,
                        group.as_bytes(),
                        b"0",
                        b"MKSTREAM",
                    ],
                );
                state.awaited.push_back(Awaited::Group);
            }
            // An id of the past, not `$`: only so do we know from when on nothing is missed.
            Reading::Own => {
                command(out, &[b"XREVRANGE", key, b"+", b"-", b"COUNT", b"1"]);
                state.awaited.push_back(Awaited::Last);
            }
        }
    }

    /// Nothing: a reader has no messages to write.
    fn publish(&mut self, _: &mut Vec<u8>, _: &[u8], _: u64) {}

    /// One `XACK` for all, perhaps one `XDEL`, and a read if none is open. A reader on its own settles nothing.
    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        self.state.settle(out, handles);
        self.state.read(out);
    }

    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let mut rest = bytes;
        while let Some((used, token)) = self.reader.next(rest).map_err(flaw)? {
            if let Some(seen) = self.walk.take(token).map_err(flaw)? {
                self.state.take(seen, out, heard)?;
            }
            rest = &rest[used..];
        }
        Ok(())
    }

    /// Nothing: a client ends by closing the connection.
    fn close(&mut self, _: &mut Vec<u8>) {}

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }
}

impl State {
    fn settle(&mut self, out: &mut Vec<u8>, handles: &[u64]) {
        let Reading::Group { group, deletes, .. } = &self.reading else {
            return;
        };
        if handles.is_empty() {
            return;
        }
        let count = handles.len() as u64;
        begin(out, 3 + count);
        for word in [&b"XACK"[..], self.setup.key.as_bytes(), group.as_bytes()] {
            bulk(out, word);
        }
        for handle in handles {
            EntryId::of(*handle).bulk(out);
        }
        self.awaited.push_back(Awaited::Settled);
        if *deletes {
            begin(out, 2 + count);
            bulk(out, b"XDEL");
            bulk(out, self.setup.key.as_bytes());
            for handle in handles {
                EntryId::of(*handle).bulk(out);
            }
            self.awaited.push_back(Awaited::Settled);
        }
        let settled = u32::try_from(count).unwrap_or(u32::MAX);
        self.unsettled = self.unsettled.saturating_sub(settled);
    }

    /// Appends a read if none is open and the prefetch has room.
    fn read(&mut self, out: &mut Vec<u8>) {
        let room = self.prefetch.saturating_sub(self.unsettled);
        if !self.is_ready || self.reads || room == 0 {
            return;
        }
        out.extend_from_slice(&self.read_begin);
        bulk_number(out, u64::from(room));
        out.extend_from_slice(&self.read_middle);
        match self.from {
            Position::Behind(id) => id.bulk(out),
            Position::New => bulk(out, b">"),
        }
        self.awaited.push_back(Awaited::Read);
        self.reads = true;
        self.entries = 0;
    }

    fn take(
        &mut self,
        seen: Seen<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let Some(awaited) = self.awaited.front().copied() else {
            return Err(fault("a reply to nothing"));
        };
        if seen.ends {
            self.awaited.pop_front();
        }
        if let Token::Error(why) = seen.token {
            return self.failed(awaited, text(why), out, heard);
        }
        match awaited {
            Awaited::Greeting | Awaited::Settled => {}
            Awaited::Group if seen.ends => self.begin(out, heard),
            Awaited::Group => return Err(fault("the reply to XGROUP CREATE is no text")),
            Awaited::Last => {
                if let (2, Token::Bulk(id)) = (seen.depth, seen.token) {
                    self.from = Position::Behind(parse_id(id)?);
                }
                if seen.ends {
                    self.begin(out, heard);
                }
            }
            Awaited::Read => {
                self.read_token(seen, out, heard)?;
                if seen.ends {
                    self.read_ended(out);
                }
            }
        }
        Ok(())
    }

    fn failed(
        &mut self,
        awaited: Awaited,
        why: &str,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        match awaited {
            // Another reader was first.
            Awaited::Group if why.starts_with("BUSYGROUP") => self.begin(out, heard),
            Awaited::Settled => heard(Heard::Refused { tag: None, why }),
            _ => return Err(fault(why)),
        }
        Ok(())
    }

    /// The preparations are over.
    fn begin(&mut self, out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) {
        self.is_ready = true;
        heard(Heard::Ready);
        self.read(out);
    }

    /// A token of the reply to a read: streams of a name and entries, of an id and fields, of a name and a body.
    fn read_token(
        &mut self,
        seen: Seen<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        match (seen.depth, seen.token) {
            // Nothing came in time.
            (0, Token::Null | Token::Array(_) | Token::Map(_))
            | (1 | 2, Token::Array(_))
            | (2, Token::Bulk(_)) => Ok(()),
            (3, Token::Array(2)) => {
                self.entry = Entry::default();
                Ok(())
            }
            (4, Token::Bulk(id)) if self.entry.id.is_none() => {
                self.entry.id = Some(parse_id(id)?);
                Ok(())
            }
            // Exactly our field: a message of somebody else is no message.
            (4, Token::Array(2)) => Ok(()),
            (4, Token::Null) => {
                // This reader had it open, and somebody deleted it.
                let handle = self.arrived()?;
                self.unsettled = self.unsettled.saturating_add(1);
                self.settle(out, &[handle]);
                Ok(())
            }
            (5, Token::Bulk(name)) if !self.entry.is_named && name == FIELD => {
                self.entry.is_named = true;
                Ok(())
            }
            (5, Token::Bulk(payload)) if self.entry.is_named => {
                let redelivered = self.is_redelivery();
                let handle = self.arrived()?;
                if matches!(self.reading, Reading::Group { .. }) {
                    self.unsettled = self.unsettled.saturating_add(1);
                }
                heard(Heard::Delivered {
                    payload,
                    handle,
                    redelivered,
                });
                Ok(())
            }
            _ => Err(fault(
                "a read is answered with something else than our messages",
            )),
        }
    }

    /// What a reader of a group reads by ids was delivered to it before.
    fn is_redelivery(&self) -> bool {
        matches!(self.reading, Reading::Group { .. }) && matches!(self.from, Position::Behind(_))
    }

    /// An entry is whole: its handle.
    fn arrived(&mut self) -> Result<u64, Fault> {
        let id = self
            .entry
            .id
            .take()
            .ok_or_else(|| fault("an entry has no id"))?;
        if let Position::Behind(last) = &mut self.from {
            *last = id;
        }
        self.entries = self.entries.saturating_add(1);
        id.handle().ok_or_else(|| {
            fault("an id is after the year 2109, or one of four million in its millisecond")
        })
    }

    fn read_ended(&mut self, out: &mut Vec<u8>) {
        self.reads = false;
        // All that this name had open came.
        if self.entries == 0 && self.is_redelivery() {
            self.from = Position::New;
        }
        self.read(out);
    }
}

fn parse_id(text: &[u8]) -> Result<EntryId, Fault> {
    EntryId::parse(text).ok_or_else(|| fault("the id of an entry is not one"))
}
