//! A connection of either dialect, from its upgrade to its close, for the machines that are not paced sessions.

use plimsoll_core::session::Disconnect;

use super::outcome::ArrivalOutcome;
use super::wse::messages::{Heard, Tick};
use super::wse::{AUTH_CLOSE_CODE, Line};
use super::{Dialect, Peer};
use plimsoll_protocol::connection::{Connection, Ending, Incoming};
use plimsoll_protocol::paced::{Message, Opening};

/// The connection.
#[derive(Debug)]
pub(super) struct Link {
    dialect: Dialect,
    connection: Connection,
    stage: Stage,
    line: Line,
    /// The server said in words that it refuses the token.
    token_refused: bool,
    /// Control bytes that were given to be written.
    writing: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not upgraded yet.
    Upgrading,
    /// Upgraded, and the server has not said that it is ready.
    Greeting,
    Open,
    Over,
}

/// What came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News<'a> {
    /// It is open; in dialect `wse` as soon as the hello, which is in [`Link::control`] now, is written.
    Open,
    /// The server took the hello.
    Hello,
    /// The pong of an application ping, with its timestamp.
    Pong(i64),
    /// A message of a fan-out in JSON.
    Tick(Tick),
    /// Any message, in dialect `echo`.
    Message(Message<'a>),
    /// A message that cannot be read.
    Fault(&'a str),
    /// The connection is over, for this reason.
    Over(&'a str),
}

impl Link {
    pub(super) fn new(peer: &Peer, seed: u64) -> Self {
        Self {
            dialect: peer.dialect,
            connection: Connection::new(&peer.endpoint, seed),
            stage: Stage::Upgrading,
            line: Line::default(),
            token_refused: false,
            writing: 0,
        }
    }

    /// Bytes to be written before anything else: the same until [`Link::control_sent`].
    pub(super) fn control(&mut self) -> Option<&[u8]> {
        let control = self.connection.control();
        if self.writing == 0 {
            self.writing = control.len();
        }
        (self.writing > 0).then(|| &control[..self.writing])
    }

    /// Whether control bytes were given to be written and are not wholly.
    pub(super) fn is_writing(&self) -> bool {
        self.writing > 0
    }

    /// What [`Link::control`] gave was written.
    pub(super) fn control_sent(&mut self) {
        self.connection.control_sent(self.writing);
        self.writing = 0;
    }

    /// Queues a close frame and goes on reading.
    pub(super) fn begin_close(&mut self, code: u16) {
        self.connection.begin_close(code);
    }

    /// The memory that it takes by what the server sent or does not read.
    pub(super) fn held_bytes(&self) -> usize {
        self.connection.held_bytes()
    }

    /// Its socket is gone: lets go of all that is held.
    pub(super) fn abandon(&mut self) {
        self.connection.abandon();
    }

    /// Bytes came in.
    pub(super) fn received(&mut self, bytes: &[u8], mut on_news: impl FnMut(News<'_>)) {
        let Self {
            dialect,
            connection,
            stage,
            line,
            token_refused,
            ..
        } = self;
        let dialect = *dialect;
        connection.received(bytes, |incoming| {
            let message = match incoming {
                Incoming::Opened if dialect == Dialect::Echo => {
                    *stage = Stage::Open;
                    return on_news(News::Open);
                }
                Incoming::Opened => {
                    *stage = Stage::Greeting;
                    return;
                }
                Incoming::Over(reason) => return on_news(News::Over(reason)),
                Incoming::Text(text) => Message::Text(text),
                Incoming::Binary(bytes) => Message::Binary(bytes),
            };
            match (dialect, *stage) {
                (Dialect::Echo, _) => on_news(News::Message(message)),
                (Dialect::Wse, Stage::Greeting) => match line.opening(message) {
                    Opening::Open => {
                        *stage = Stage::Open;
                        on_news(News::Open);
                    }
                    Opening::More => {}
                    Opening::Refused(reason) => *token_refused |= reason.contains("AUTH"),
                },
                (Dialect::Wse, _) => match line.hear(message) {
                    Ok(Heard::Hello) => on_news(News::Hello),
                    Ok(Heard::Pong(timestamp)) => on_news(News::Pong(timestamp)),
                    Ok(Heard::Tick(tick)) => on_news(News::Tick(tick)),
                    Ok(_) => {}
                    Err(fault) => on_news(News::Fault(&fault)),
                },
            }
        });
        if self.connection.ending().is_none() {
            self.connection.queue_frames(&mut self.line.outbox);
        }
    }

    /// Why it never opened. `how` is how its socket ended; without, the target said so itself.
    pub(super) fn outcome(&self, how: Option<Disconnect>) -> ArrivalOutcome {
        match (self.stage, self.connection.ending(), how) {
            (_, Some(Ending::Refused(status)), _) => ArrivalOutcome::HttpStatus(status),
            (_, Some(Ending::BadHandshake), _) => ArrivalOutcome::BadHandshake,
            (_, Some(Ending::Closed(Some(AUTH_CLOSE_CODE))), _) => ArrivalOutcome::Auth4401,
            (Stage::Greeting, _, _) if self.token_refused => ArrivalOutcome::Auth4401,
            (Stage::Upgrading, _, _) => ArrivalOutcome::before_upgrade(how),
            (Stage::Greeting | Stage::Open | Stage::Over, _, _) => ArrivalOutcome::NoServerReady,
        }
    }

    /// Nothing more is read.
    pub(super) fn close(&mut self, code: u16) {
        self.connection.close(code);
        self.stage = Stage::Over;
    }
}
