//! A connection of HTTP/1.1: one request at a time.
//!
//! A connection that ends is opened again, as a browser or a proxy would do. What was asked on it then depends: a GET on
//! an idle connection that the server was just closing is asked once more, and its clock runs on; everything else has
//! failed.

use std::sync::Arc;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit, Unconnected};

use crate::account::{Counts, InHand};
use crate::arrivals::Connection;
use crate::ask::Ask;
use crate::h1::{AnswerReader, Event, Fault, Template};
use crate::outcome::RequestOutcome;
use crate::schedule::Due;

/// How long a connection may take to open.
pub(crate) const OPEN_WITHIN_NS: u64 = 2 * NS_PER_S;
/// How long the client waits before it tries again, after a connection could not be opened.
pub(crate) const TRY_AGAIN_NS: u64 = 100 * NS_PER_MS;
/// How long a server may leave a connection open that it should close.
const CLOSE_WITHIN_NS: u64 = NS_PER_S;

/// A session of one version of HTTP.
pub trait Speaks: Connection + Sized {
    /// The bytes of its requests.
    type Template: Send + Sync + std::fmt::Debug;

    /// A session with this plan, with at most so many requests at once.
    fn new(shared: Arc<Shared<Self::Template>>, plan: &SessionPlan, streams: u32) -> Self;
}

/// What all sessions of a trial have in common.
#[derive(Debug)]
pub struct Shared<T> {
    pub(crate) ask: Ask,
    pub(crate) template: T,
    /// Whether each request has a connection of its own.
    pub(crate) a_connection_each: bool,
    /// Whether a request may be sent twice: GET may, POST may not.
    pub(crate) may_ask_again: bool,
}

/// A connection.
#[derive(Debug)]
pub struct H1Session {
    shared: Arc<Shared<Template>>,
    window: Window,
    stage: Stage,
    reader: AnswerReader,
    /// The status of the answer that is being read.
    status: u16,
    /// Whether the server closes the connection after it.
    closes: bool,
    /// The bytes of the request in hand, if no two requests are the same.
    out: Vec<u8>,
    in_hand: Option<InHand>,
    /// Whether the request in hand has still to be written on this connection.
    unwritten: bool,
    /// Since when it could take a request.
    free_since_ns: u64,
    /// Answers on this connection.
    answers: u64,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has no connection, and connects then; [`SessionPlan::WITH_WORK`] if it waits for a request.
    Closed {
        again_at_ns: u64,
    },
    Opening,
    Open,
    /// The answer is complete, and the server should close.
    Closing {
        until_ns: u64,
    },
    /// The engine is to close it, and it connects again at that time.
    Ended {
        again_at_ns: u64,
    },
    /// The trial is over.
    Finished,
}

impl Speaks for H1Session {
    type Template = Template;

    fn new(shared: Arc<Shared<Template>>, plan: &SessionPlan, _streams: u32) -> Self {
        Self {
            shared,
            window: plan.window,
            stage: Stage::Closed {
                again_at_ns: plan.connect_at_ns,
            },
            reader: AnswerReader::new(),
            status: 0,
            closes: false,
            out: Vec::new(),
            in_hand: None,
            unwritten: false,
            free_since_ns: 0,
            answers: 0,
            counts: Counts::default(),
        }
    }
}

impl H1Session {
    fn fail(&mut self, outcome: RequestOutcome, now_ns: u64, recorder: &mut Recorder<Counts>) {
        self.unwritten = false;
        if let Some(in_hand) = self.in_hand.take() {
            in_hand.failed(outcome, now_ns, recorder);
        }
    }

    /// The answer is complete.
    fn answered(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        self.answers += 1;
        self.free_since_ns = now_ns;
        let half_written = std::mem::take(&mut self.unwritten);
        if let Some(mut in_hand) = self.in_hand.take() {
            if half_written && in_hand.written(now_ns, recorder) {
                // The server has read enough of it.
                self.counts.written_in_window += u64::from(self.window.contains(now_ns));
            }
            let known = &self.shared.ask.known;
            let (window, counts) = (self.window, &mut self.counts);
            in_hand.complete(self.status, known, now_ns, window, counts, recorder);
        }
        if self.shared.a_connection_each {
            let until_ns = now_ns + CLOSE_WITHIN_NS;
            self.stage = Stage::Closing { until_ns };
        } else if self.closes {
            self.counts.closed_announced += 1;
            self.end(now_ns, recorder);
        } else if half_written {
            // What is left of the request would be the beginning of the next one.
            self.end(now_ns, recorder);
        }
    }

    /// The client ends the connection.
    fn end(&mut self, again_at_ns: u64, recorder: &mut Recorder<Counts>) {
        if matches!(self.stage, Stage::Open | Stage::Closing { .. }) {
            recorder.session_left();
        }
        self.stage = Stage::Ended { again_at_ns };
    }

    /// The connection may bring the answer to the request in hand.
    fn expect_answer(&mut self) {
        // One request at a time is far below what the reader takes.
        let _ = self.reader.ask(self.shared.template.is_head());
    }

    /// What the server sent is not HTTP, or nobody asked for it.
    fn broken(&mut self, fault: Fault, now_ns: u64, recorder: &mut Recorder<Counts>) {
        if self.in_hand.is_some() {
            self.fail(RequestOutcome::BadAnswer, now_ns, recorder);
        } else {
            recorder.protocol_fault(fault.name());
        }
        self.end(now_ns, recorder);
    }

    /// Something of an answer came.
    fn read(&mut self, event: Event<'_>, now_ns: u64, recorder: &mut Recorder<Counts>) {
        match event {
            Event::Head(head) => (self.status, self.closes) = (head.status, head.closes),
            Event::Body(bytes) => {
                if let Some(in_hand) = &mut self.in_hand {
                    in_hand.body.take(bytes, &self.shared.ask.known);
                }
            }
            Event::End => self.answered(now_ns, recorder),
        }
    }

    /// The server ended an open connection.
    fn lost_connection(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Counts>) {
        let in_answer = self.reader.is_in_answer();
        let idle = self.in_hand.is_none() && !self.shared.a_connection_each;
        self.counts.closed_idle += u64::from(idle);
        if how == Disconnect::Closed {
            // This is how a body without a length ends.
            let mut reader = std::mem::take(&mut self.reader);
            let _ = reader.closed(|event| self.read(event, now_ns, recorder));
            self.reader = reader;
        }
        if self.in_hand.is_some() && !self.asks_again(how, in_answer) {
            self.fail(RequestOutcome::of(how, in_answer), now_ns, recorder);
        }
    }

    /// Whether the request in hand is asked once more, because the server closed an idle connection under it.
    fn asks_again(&mut self, how: Disconnect, in_answer: bool) -> bool {
        let closed = matches!(how, Disconnect::Closed | Disconnect::Reset);
        let may = self.shared.may_ask_again && self.answers > 0 && !in_answer;
        match &mut self.in_hand {
            Some(in_hand) if closed && may && !in_hand.again => {
                in_hand.again = true;
                self.unwritten = true;
                self.counts.asked_again += 1;
                true
            }
            _ => false,
        }
    }

    /// It has no connection any more, and connects again at that time, or with its next request.
    fn without_connection(&mut self, again_at_ns: u64, now_ns: u64) {
        let waits = self.shared.a_connection_each && self.in_hand.is_none();
        if waits {
            // Until the close, which is the server's to make, it could take no request.
            self.free_since_ns = now_ns;
        }
        self.stage = Stage::Closed {
            again_at_ns: if waits {
                SessionPlan::WITH_WORK
            } else {
                again_at_ns
            },
        };
    }
}

impl Connection for H1Session {
    fn free(&self) -> Option<u32> {
        let has_none = self.in_hand.is_none();
        let waits = Stage::Closed {
            again_at_ns: SessionPlan::WITH_WORK,
        };
        (has_none && (self.stage == Stage::Open || self.stage == waits)).then_some(0)
    }

    fn take(&mut self, due: Due) {
        let shared = &self.shared;
        if shared.template.fixed().is_none() {
            self.out.clear();
            let number = shared.ask.number(&due);
            shared.template.append(number, &mut self.out);
        }
        self.in_hand = Some(InHand::new(
            due,
            self.free_since_ns,
            shared.ask.expected(&due),
        ));
        self.unwritten = true;
        if self.free_since_ns > due.at_ns && due.measured {
            self.counts.found_all_busy += 1;
        }
        match &mut self.stage {
            Stage::Closed { again_at_ns } => *again_at_ns = 0,
            _ => self.expect_answer(),
        }
    }
}

impl Session for H1Session {
    type Claim = Counts;

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Closed { .. } | Stage::Opening => Phase::Opening,
            Stage::Open | Stage::Closing { .. } => Phase::Open,
            Stage::Ended { .. } | Stage::Finished => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Closing { until_ns } => Some(until_ns),
            _ => self.in_hand.as_ref()?.overdue_at_ns(),
        }
    }

    /// What it has, it could write when it got it. What waits for a connection is still in the schedule.
    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn connecting(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        self.stage = Stage::Opening;
        self.reader.reset();
        self.answers = 0;
        let own = self.shared.a_connection_each;
        if let Some(in_hand) = self.in_hand.as_mut().filter(|_| own)
            && in_hand.written(now_ns, recorder)
        {
            self.counts.written_in_window += u64::from(self.window.contains(now_ns));
            in_hand.record_lateness(now_ns, recorder);
        }
    }

    fn connected(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        self.stage = Stage::Open;
        self.free_since_ns = now_ns;
        self.counts.connections_opened += 1;
        recorder.session_started();
        if self.unwritten {
            self.expect_answer();
        }
    }

    fn woke(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        let in_hand = self.in_hand.as_ref();
        match self.stage {
            Stage::Closing { until_ns } if now_ns >= until_ns => {
                self.counts.left_open += 1;
                self.end(now_ns, recorder);
            }
            Stage::Open if in_hand.is_some_and(|in_hand| in_hand.is_overdue(now_ns)) => {
                self.fail(RequestOutcome::Timeout, now_ns, recorder);
                self.end(now_ns, recorder);
            }
            _ => {}
        }
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        if let Stage::Ended { again_at_ns } = self.stage {
            self.without_connection(again_at_ns, now_ns);
        }
        match self.stage {
            Stage::Closed {
                again_at_ns: SessionPlan::WITH_WORK,
            } => Unconnected::Waits,
            Stage::Closed { again_at_ns }
                if now_ns < self.window.grace_end_ns || self.in_hand.is_some() =>
            {
                let open_by_ns = again_at_ns.max(now_ns) + OPEN_WITHIN_NS;
                let in_hand = self.in_hand.as_ref();
                let overdue_at_ns = in_hand.and_then(InHand::overdue_at_ns);
                Unconnected::Connects {
                    at_ns: again_at_ns,
                    open_by_ns: overdue_at_ns.map_or(open_by_ns, |at_ns| open_by_ns.min(at_ns)),
                }
            }
            _ => Unconnected::Over,
        }
    }

    fn transmit(&mut self, _now_ns: u64) -> Option<Transmit<'_>> {
        let in_hand = self.in_hand.as_ref().filter(|_| self.unwritten)?;
        let shared = &self.shared;
        Some(Transmit {
            head: shared.template.fixed().unwrap_or(&self.out),
            body: shared.template.shared_body(),
            due_ns: in_hand.written_ns.is_none().then_some(in_hand.due.at_ns),
            held_until_ns: Some(in_hand.free_since_ns),
            measured: in_hand.due.measured,
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Counts>) {
        self.unwritten = false;
        if let Some(in_hand) = &mut self.in_hand
            && in_hand.written(write_ns, recorder)
        {
            self.counts.written_in_window += u64::from(self.window.contains(write_ns));
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Counts>) {
        let mut reader = std::mem::take(&mut self.reader);
        let read = reader.received(bytes, |event| self.read(event, now_ns, recorder));
        self.reader = reader;
        if let Err(fault) = read {
            self.broken(fault, now_ns, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Counts>) {
        let was = self.stage;
        if was == Stage::Finished {
            return;
        }
        self.stage = Stage::Ended {
            again_at_ns: now_ns,
        };
        if matches!(was, Stage::Open | Stage::Closing { .. }) {
            recorder.session_left();
        }
        let again_at_ns = match was {
            Stage::Closed { .. } | Stage::Opening => {
                self.counts.connections_failed += 1;
                recorder.session_failed(how.reason());
                self.fail(RequestOutcome::of(how, false), now_ns, recorder);
                now_ns + TRY_AGAIN_NS
            }
            _ => {
                // A server that accepts and closes is not asked for connections as fast as it closes them.
                let unused = self.in_hand.is_none() && self.answers == 0;
                self.lost_connection(now_ns, how, recorder);
                now_ns + if unused { TRY_AGAIN_NS } else { 0 }
            }
        };
        self.without_connection(again_at_ns, now_ns);
    }

    fn settled(&self) -> bool {
        self.in_hand
            .as_ref()
            .is_none_or(|in_hand| !in_hand.due.measured)
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        if let Some(in_hand) = &self.in_hand {
            let outcome = in_hand.at_the_end();
            self.fail(outcome, now_ns, recorder);
        }
        self.stage = Stage::Finished;
        recorder.claims.push(self.counts);
    }
}
