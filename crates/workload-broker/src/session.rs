//! A connection to the broker: of a writer, or of a reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use plimsoll_core::profile::Window;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit, Unconnected};
use serde::{Deserialize, Serialize};

use crate::backlog::Flow;
use crate::dialect::{Dialect, Heard, Shape};
use crate::marks::Marks;
use crate::message::Messages;
use crate::reader::Reader;
use crate::reopen::{Crossing, Reopen};
use crate::writer::{Waits, Writer};

/// What may lie unread in the socket of a reader that keeps up, unless a message is long.
const UNREAD_MAX_BYTES: u64 = 64 << 10;

/// Why a session died that the crash cut off for good.
const NOT_OPEN_AGAIN: &str = "not open again after the crash";

/// What all sessions of a trial have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) messages: Messages,
    pub(crate) shape: Shape,
    pub(crate) writers: u32,
    pub(crate) readers: u32,
    /// Whether the load has no clock.
    pub(crate) is_closed: bool,
    /// Measured messages that were written in this process and did not arrive in it yet, each as often as it should arrive;
    /// without readers, those that were not confirmed. It only says when there is nothing left to wait for. It never
    /// becomes zero if other processes have some of the readers: then the trial waits until its grace is over.
    pub(crate) awaited: AtomicI64,
}

impl Shared {
    /// How often a message should arrive.
    pub(crate) fn arrivals(&self) -> u64 {
        match self.shape {
            Shape::Queue => u64::from(self.readers.min(1)),
            Shape::Stream => u64::from(self.readers),
        }
    }

    /// More or fewer answers are awaited.
    pub(crate) fn await_more(&self, answers: i64) {
        if answers != 0 {
            self.awaited.fetch_add(answers, Ordering::Relaxed);
        }
    }

    fn nothing_is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) == 0
    }
}

/// What a session hands over when the trial is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) marks: Marks,
    /// The session's seed, from which a writer's schedule can be made again.
    pub(crate) seed: u64,
    /// What was published by a writer, or arrived at a reader for the first time.
    pub(crate) flow: Flow,
    /// In a closed loop, what was confirmed to a writer.
    pub(crate) confirms: Flow,
    /// When the last message arrived at a reader for the first time; in a closed loop, when the last one was confirmed to a
    /// writer.
    pub(crate) last_ns: Option<u64>,
    /// What the broker refused.
    pub(crate) refusals: Flow,
    pub(crate) waits: Waits,
    /// Payloads that were no message of this trial, by the name of the fault.
    pub(crate) faults: Vec<(String, u64)>,
    /// Messages whose filler was compared byte by byte.
    pub(crate) compared: u64,
    /// How it crossed the broker's crash; `None` if there was to be none.
    #[serde(default)]
    pub(crate) crossing: Option<Crossing>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct BrokerSession {
    shared: Arc<Shared>,
    line: Line,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Writer(Box<Writer>),
    Reader(Box<Reader>),
}

/// The protocol of a connection, and what it has to write.
pub(crate) struct Line {
    pub(crate) dialect: Box<dyn Dialect>,
    window: Window,
    stage: Stage,
    /// Whether it was ever open.
    was_open: bool,
    /// How it opens again after the broker's crash; `None` if it does not.
    reopen: Option<Box<Reopen>>,
    /// Control bytes: the greeting, answers to pings, settlements.
    pub(crate) out: Vec<u8>,
    /// Control bytes that are being written.
    writing: Vec<u8>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    Open,
    /// It was lost in the broker's crash, or could not be opened again yet. Another attempt follows.
    Lost,
    /// Such an attempt.
    OpeningAgain,
    /// It failed or died.
    Gone,
    /// The trial is over.
    Finished,
}

/// What may lie unread in the socket of a reader that keeps up: 64 KiB, or two messages, for a long one is there while it
/// comes.
pub(crate) fn unread_max_bytes(message_bytes: usize) -> u64 {
    UNREAD_MAX_BYTES.max(2 * u64::try_from(message_bytes).unwrap_or(u64::MAX / 2))
}

impl Line {
    fn new(mut dialect: Box<dyn Dialect>, window: Window) -> Self {
        let mut out = Vec::new();
        dialect.open(&mut out);
        Self {
            dialect,
            window,
            stage: Stage::Opening,
            was_open: false,
            reopen: None,
            out,
            writing: Vec::new(),
        }
    }

    fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// The control bytes to write next.
    fn control(&mut self) -> Option<Transmit<'_>> {
        if self.writing.is_empty() {
            std::mem::swap(&mut self.writing, &mut self.out);
        }
        (!self.writing.is_empty()).then(|| Transmit {
            head: &self.writing,
            body: &[],
            due_ns: None,
            held_until_ns: None,
            measured: false,
        })
    }

    fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }

    /// The connection is over, or lost in the crash.
    fn over<C>(&mut self, now_ns: u64, reason: &str, recorder: &mut Recorder<C>) {
        let stage = self.stage;
        self.stage = match stage {
            Stage::Opening => {
                recorder.session_failed(reason);
                Stage::Gone
            }
            Stage::Open if self.crossed(|reopen| reopen.lost(now_ns)) == Some(true) => Stage::Lost,
            Stage::Open => {
                recorder.session_died(reason);
                Stage::Gone
            }
            Stage::OpeningAgain => Stage::Lost,
            over => over,
        };
    }

    /// It can carry messages.
    fn ready<C>(&mut self, now_ns: u64, recorder: &mut Recorder<C>) {
        match self.stage {
            Stage::Opening => {}
            Stage::OpeningAgain => {
                self.crossed(|reopen| reopen.opened(now_ns));
            }
            _ => return,
        }
        if !std::mem::replace(&mut self.was_open, true) {
            recorder.session_started();
        }
        self.stage = Stage::Open;
    }

    /// Begins another attempt, if there is to be one.
    fn open_again(&mut self, now_ns: u64) -> Unconnected {
        let attempt = match &self.reopen {
            Some(reopen) if self.stage == Stage::Lost => reopen.attempt(now_ns),
            _ => None,
        };
        let Some((dialect, at_ns, open_by_ns)) = attempt else {
            return Unconnected::Over;
        };
        self.dialect = dialect;
        self.out.clear();
        self.writing.clear();
        self.dialect.open(&mut self.out);
        self.stage = Stage::OpeningAgain;
        Unconnected::Connects { at_ns, open_by_ns }
    }

    fn crossed<T>(&mut self, tell: impl FnOnce(&mut Reopen) -> T) -> Option<T> {
        self.reopen.as_deref_mut().map(tell)
    }

    fn crossing(&self) -> Option<Crossing> {
        self.reopen.as_ref().map(|reopen| reopen.crossing)
    }
}

impl BrokerSession {
    pub(crate) fn of_writer(
        shared: &Arc<Shared>,
        dialect: Box<dyn Dialect>,
        writer: Writer,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            line: Line::new(dialect, writer.window()),
            part: Part::Writer(Box::new(writer)),
        }
    }

    pub(crate) fn of_reader(
        shared: &Arc<Shared>,
        dialect: Box<dyn Dialect>,
        reader: Reader,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            line: Line::new(dialect, reader.window()),
            part: Part::Reader(Box::new(reader)),
        }
    }

    /// The same, which opens again after the broker's crash. If it is `held`, it begins only then.
    pub(crate) fn opening_again(mut self, reopen: Reopen, held: bool) -> Self {
        self.line.reopen = Some(Box::new(reopen));
        if held {
            self.line.stage = Stage::OpeningAgain;
        }
        self
    }

    /// The connection ended.
    fn over(&mut self, now_ns: u64, reason: &str, recorder: &mut Recorder<Claim>) {
        self.line.over(now_ns, reason, recorder);
        self.line.out = Vec::new();
        self.line.writing = Vec::new();
        match &mut self.part {
            Part::Writer(writer) => writer.abandon(self.line.stage == Stage::Lost),
            Part::Reader(reader) => reader.abandon(),
        }
    }
}

impl Session for BrokerSession {
    type Claim = Claim;

    fn phase(&self) -> Phase {
        match self.line.stage {
            Stage::Opening | Stage::OpeningAgain => Phase::Opening,
            Stage::Open => Phase::Open,
            Stage::Lost | Stage::Gone | Stage::Finished => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        if !self.line.is_open() {
            return None;
        }
        match &self.part {
            Part::Writer(writer) => writer.next_due_ns(),
            Part::Reader(reader) => reader.next_due_ns(),
        }
    }

    fn owed(&self, now_ns: u64) -> u64 {
        match &self.part {
            Part::Writer(writer) if self.line.is_open() => writer.owed(now_ns),
            _ => 0,
        }
    }

    fn woke(&mut self, now_ns: u64, _recorder: &mut Recorder<Claim>) {
        if let Part::Reader(reader) = &mut self.part {
            reader.settle_due(now_ns, &mut self.line);
        }
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        self.line.open_again(now_ns)
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let Self { shared, line, part } = self;
        // What was begun is finished first; after that control bytes, and the messages that are due.
        if let Part::Writer(writer) = part
            && !line.is_writing()
            && (writer.is_writing() || line.out.is_empty())
        {
            if line.is_open() && !writer.is_writing() {
                writer.make(now_ns, &shared.messages, &mut *line.dialect);
            }
            if writer.is_writing() {
                return writer.transmit();
            }
        }
        line.control()
    }

    fn dues(&self) -> &[u64] {
        match &self.part {
            Part::Writer(writer) if !self.line.is_writing() => writer.further_dues(),
            _ => &[],
        }
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Claim>) {
        let Self { shared, line, part } = self;
        if line.is_writing() {
            line.writing.clear();
        } else if let Part::Writer(writer) = part {
            writer.sent(write_ns, shared, recorder);
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Claim>) {
        let Self { shared, line, part } = self;
        let mut ready = false;
        let reopen = &mut line.reopen;
        let mut hear = |heard: Heard<'_>| match (heard, &mut *part) {
            (Heard::Ready, _) => ready = true,
            (heard, Part::Writer(writer)) => writer.heard(&heard, now_ns, shared, recorder),
            (heard, Part::Reader(reader)) => {
                if let (Some(reopen), Heard::Delivered { .. }) = (reopen.as_deref_mut(), &heard) {
                    reopen.arrived(now_ns);
                }
                reader.heard(&heard, now_ns, shared, recorder);
            }
        };
        let taken = line.dialect.received(bytes, &mut line.out, &mut hear);
        if ready {
            let again = line.stage == Stage::OpeningAgain;
            line.ready(now_ns, recorder);
            if let (Part::Writer(writer), true) = (&mut *part, again) {
                writer.back(now_ns);
            }
        }
        if let Part::Reader(reader) = part {
            reader.settle_due(now_ns, line);
        }
        if let Err(fault) = taken {
            self.over(now_ns, &fault.0, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.line.dialect.held_bytes() + self.line.out.len() + self.line.writing.len()
    }

    fn unread_max_bytes(&self) -> Option<u64> {
        // In a closed loop the broker sends as much as the prefetch allows at once, and no latency is judged.
        let asks = matches!(self.part, Part::Reader(_)) && !self.shared.is_closed;
        asks.then(|| unread_max_bytes(self.shared.messages.bytes()))
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        self.over(now_ns, how.reason(), recorder);
    }

    fn settled(&self) -> bool {
        // After a crash nobody knows what still comes: each part of the account may be gone. So the grace is waited for.
        if self.line.reopen.is_some() {
            return matches!(self.line.stage, Stage::Gone | Stage::Finished);
        }
        match &self.part {
            Part::Writer(writer) if self.line.is_open() => {
                writer.is_done() && self.shared.nothing_is_awaited()
            }
            Part::Reader(_) if self.line.is_open() => self.shared.nothing_is_awaited(),
            _ => true,
        }
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        match self.line.stage {
            Stage::Opening if now_ns >= self.line.window.start_ns => {
                recorder.session_failed(Disconnect::TimedOut.reason());
            }
            Stage::Lost | Stage::OpeningAgain if self.line.was_open => {
                recorder.session_died(NOT_OPEN_AGAIN);
            }
            // One that was held, and that the trial came to.
            Stage::Lost | Stage::OpeningAgain if now_ns >= self.line.window.end_ns => {
                recorder.session_failed(NOT_OPEN_AGAIN);
            }
            _ => {}
        }
        let claim = match &mut self.part {
            Part::Writer(writer) => writer.claim(now_ns),
            Part::Reader(reader) => reader.claim(),
        };
        let claim = Claim {
            crossing: self.line.crossing(),
            ..claim
        };
        recorder.claims.push(claim);
        if self.line.is_open() {
            self.line.dialect.close(&mut self.line.out);
        }
        self.line.stage = Stage::Finished;
    }
}
