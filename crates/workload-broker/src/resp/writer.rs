//! A writer: `XADD`, whose replies come in the order of the commands.

use std::collections::VecDeque;

use super::command::{bulk, command};
use super::setup::{Confirm, InvalidSetup, Setup};
use super::token::{Token, TokenReader};
use super::walk::{Seen, Walk};
use super::{FIELD, fault, flaw, text};
use crate::decimal;
use crate::dialect::{Dialect, Fault, Heard};

/// A connection that adds to a stream.
#[derive(Debug)]
pub struct Writer {
    reader: TokenReader,
    walk: Walk,
    state: State,
}

/// What the next reply answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// `AUTH` or `HELLO`.
    Greeting,
    /// `PING`, the last of the greeting.
    Ping,
    /// `XADD` of the message with this tag.
    Add(u64),
    /// `WAITAOF`.
    Fsync,
}

#[derive(Debug)]
struct State {
    setup: Setup,
    confirm: Confirm,
    /// `XADD` up to the body's size.
    add_begin: Vec<u8>,
    awaited: VecDeque<Awaited>,
    /// Tags whose messages the server has, but not yet on its disk.
    unsynced: VecDeque<u64>,
    /// A `WAITAOF` is open.
    syncs: bool,
    /// How many messages that `WAITAOF` does not cover.
    since_sync: u64,
    /// How many elements of the reply to `WAITAOF` came, and whether the first says that this server synced.
    has_synced: bool,
}

impl Writer {
    /// A writer.
    ///
    /// # Errors
    /// The setup cannot work.
    pub fn new(setup: Setup, confirm: Confirm) -> Result<Self, InvalidSetup> {
        setup.check()?;
        let mut add_begin = b"*5\r\n".to_vec();
        for word in [&b"XADD"[..], setup.key.as_bytes(), b"*", FIELD] {
            bulk(&mut add_begin, word);
        }
        add_begin.push(b'$');
        Ok(Self {
            reader: TokenReader::new(),
            walk: Walk::new(),
            state: State {
                setup,
                confirm,
                add_begin,
                awaited: VecDeque::new(),
                unsynced: VecDeque::new(),
                syncs: false,
                since_sync: 0,
                has_synced: false,
            },
        })
    }
}

impl Dialect for Writer {
    fn open(&mut self, out: &mut Vec<u8>) {
        let replies = self.state.setup.greet(out);
        self.state
            .awaited
            .extend(std::iter::repeat_n(Awaited::Greeting, replies));
        command(out, &[b"PING"]);
        self.state.awaited.push_back(Awaited::Ping);
    }

    /// Appends `XADD`. If messages are confirmed by their sync, and the server is not busy with one, `WAITAOF` follows.
    ///
    /// While the server waits for its disk it does not look at this connection's further commands. So the messages
    /// behind a `WAITAOF` are taken when it is answered, and share the next one.
    fn publish(&mut self, out: &mut Vec<u8>, body: &[u8], tag: u64) {
        let state = &mut self.state;
        out.reserve(state.add_begin.len() + body.len() + 24);
        out.extend_from_slice(&state.add_begin);
        decimal::write(out, body.len() as u64);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
        match state.confirm {
            Confirm::Never => {}
            Confirm::Reply => state.awaited.push_back(Awaited::Add(tag)),
            Confirm::Fsync => {
                state.awaited.push_back(Awaited::Add(tag));
                state.since_sync += 1;
                state.sync(out);
            }
        }
    }

    /// Nothing: a writer gets no messages.
    fn settle(&mut self, _: &mut Vec<u8>, _: &[u64]) {}

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
    /// Appends `WAITAOF` if messages are not covered by one and none is open.
    fn sync(&mut self, out: &mut Vec<u8>) {
        if self.syncs || self.since_sync == 0 {
            return;
        }
        // This server's disk, no replica, no limit of time.
        command(out, &[b"WAITAOF", b"1", b"0", b"0"]);
        self.awaited.push_back(Awaited::Fsync);
        self.syncs = true;
        self.since_sync = 0;
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
        match awaited {
            Awaited::Greeting | Awaited::Ping => {
                if let Token::Error(why) = seen.token {
                    return Err(fault(text(why)));
                }
                if awaited == Awaited::Ping && seen.ends {
                    self.begin(out, heard);
                }
                Ok(())
            }
            Awaited::Add(tag) => self.added(tag, seen.token, heard),
            Awaited::Fsync => self.synced(seen, out, heard),
        }
    }

    /// The greeting is over.
    fn begin(&mut self, out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) {
        if self.confirm == Confirm::Never {
            command(out, &[b"CLIENT", b"REPLY", b"OFF"]);
        }
        heard(Heard::Ready);
    }

    fn added(
        &mut self,
        tag: u64,
        token: Token<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        match (token, self.confirm) {
            (Token::Bulk(_), Confirm::Fsync) => self.unsynced.push_back(tag),
            (Token::Bulk(_), _) => heard(Heard::Confirmed { tag, up_to: false }),
            (Token::Error(why), _) => heard(Heard::Refused {
                tag: Some(tag),
                why: text(why),
            }),
            _ => return Err(fault("the reply to XADD is no id")),
        }
        Ok(())
    }

    /// The reply to `WAITAOF`: how many servers of our kind synced, here 0 or 1, and how many replicas.
    fn synced(
        &mut self,
        seen: Seen<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Fault> {
        let refused = match (seen.depth, seen.token) {
            (0, Token::Error(why)) => Some(text(why)),
            (0, Token::Array(2)) => {
                self.has_synced = false;
                return Ok(());
            }
            (1, Token::Number(count)) if !seen.ends => {
                self.has_synced = count >= 1;
                return Ok(());
            }
            (1, Token::Number(_)) if self.has_synced => None,
            (1, Token::Number(_)) => Some("WAITAOF ended before the sync"),
            _ => return Err(fault("the reply to WAITAOF is not two numbers")),
        };
        // Replies come in order: all of these were added before this WAITAOF.
        for tag in self.unsynced.drain(..) {
            heard(match refused {
                None => Heard::Confirmed { tag, up_to: false },
                Some(why) => Heard::Refused {
                    tag: Some(tag),
                    why,
                },
            });
        }
        self.syncs = false;
        self.sync(out);
        Ok(())
    }
}
