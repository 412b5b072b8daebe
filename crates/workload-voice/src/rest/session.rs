//! A connection of HTTP/1.1 to the gateway, with one request at a time: one of a pool, or a visitor's own.
//!
//! A connection of the pool that ends is opened again. What was asked on it has then failed, but for a GET on an idle
//! connection that the gateway was just closing: it is asked once more, and its clock runs on. A visitor's connection is
//! opened once. With its last request the visitor asks the gateway to close, because whoever closes first keeps a port
//! for a minute.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit, Unconnected};
use plimsoll_workload_http::h1::{AnswerReader, Event, Fault};
use plimsoll_workload_http::outcome::RequestOutcome;

use super::account::{Book, InHand};
use super::request::{Asked, Form};
use crate::caller::{Claim, Heard};

/// How long a connection of the pool may take to open again.
const OPEN_WITHIN_NS: u64 = 2 * NS_PER_S;
/// How long the client waits before it tries again.
const TRY_AGAIN_NS: u64 = 100 * NS_PER_MS;
/// How long a gateway may leave a connection open that it should close.
const CLOSE_WITHIN_NS: u64 = NS_PER_S;

/// What all connections of a trial have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) form: Form,
    pub(crate) book: Book,
}

/// A connection.
#[derive(Debug)]
pub struct RestSession {
    shared: Arc<Shared>,
    window: Window,
    stage: Stage,
    reader: AnswerReader,
    in_hand: Option<InHand>,
    /// What a visitor still asks; empty in a pool.
    visit: VecDeque<Asked>,
    /// The bytes of the request in hand.
    out: Vec<u8>,
    /// Whether it has still to be written on this connection.
    unwritten: bool,
    /// Since when a request could be written.
    free_since_ns: u64,
    /// Answers on this connection.
    answers: u64,
    /// Whether the gateway said that it closes.
    closes: bool,
    heard: Heard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has no connection, and connects then.
    Closed {
        again_at_ns: u64,
    },
    Opening,
    Open,
    /// The visit is over, and the gateway should close.
    Closing {
        until_ns: u64,
    },
    /// The engine is to close it. In a pool it connects again at that time.
    Ended {
        again_at_ns: u64,
    },
    Finished,
}

impl RestSession {
    /// A connection of a pool, or the visit that asks all this.
    pub(crate) fn new(shared: &Arc<Shared>, plan: &SessionPlan, visit: VecDeque<Asked>) -> Self {
        Self {
            shared: Arc::clone(shared),
            window: plan.window,
            stage: Stage::Closed {
                again_at_ns: plan.connect_at_ns,
            },
            reader: AnswerReader::new(),
            in_hand: None,
            visit,
            out: Vec::new(),
            unwritten: false,
            free_since_ns: 0,
            answers: 0,
            closes: false,
            heard: Heard::default(),
        }
    }

    fn is_in_pool(&self) -> bool {
        self.shared.book == Book::Ledger
    }

    /// Whether it can take a request of the pool.
    pub(crate) fn is_free(&self) -> bool {
        self.stage == Stage::Open && self.in_hand.is_none()
    }

    /// Takes a request.
    pub(crate) fn take(&mut self, asked: Asked) {
        let last = !self.is_in_pool() && self.visit.is_empty();
        self.out.clear();
        self.shared.form.append(&asked, last, &mut self.out);
        self.in_hand = Some(InHand::new(asked, self.free_since_ns));
        self.unwritten = true;
        // One request at a time is far below what the reader takes.
        let _ = self.reader.ask(false);
    }

    fn end_request(
        &mut self,
        how: Result<(), RequestOutcome>,
        now_ns: u64,
        recorder: &mut Recorder<Claim>,
    ) {
        self.unwritten = false;
        self.free_since_ns = now_ns;
        if let Some(in_hand) = self.in_hand.take() {
            in_hand.ended(how, now_ns, self.shared.book, recorder);
        }
    }

    /// What a visitor had still to ask can't be asked any more.
    fn end_visit(&mut self, how: RequestOutcome, now_ns: u64, recorder: &mut Recorder<Claim>) {
        for asked in std::mem::take(&mut self.visit) {
            let never = InHand::new(asked, asked.at_ns);
            never.ended(
                Err(how),
                now_ns.max(asked.at_ns),
                self.shared.book,
                recorder,
            );
        }
    }

    /// The client ends the connection.
    fn end(&mut self, again_at_ns: u64, recorder: &mut Recorder<Claim>) {
        if self.is_in_pool() && matches!(self.stage, Stage::Open | Stage::Closing { .. }) {
            recorder.session_left();
        }
        self.stage = Stage::Ended { again_at_ns };
    }

    /// Something of an answer came.
    fn read(&mut self, event: Event<'_>, now_ns: u64, recorder: &mut Recorder<Claim>) {
        let Some(in_hand) = &mut self.in_hand else {
            return;
        };
        match event {
            Event::Head(head) => {
                in_hand.answer.status = head.status;
                self.closes = head.closes;
            }
            Event::Body(bytes) => in_hand
                .answer
                .body(bytes, now_ns, &mut self.heard, recorder),
            Event::End => self.answered(now_ns, recorder),
        }
    }

    /// The answer is complete.
    fn answered(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        let Some(in_hand) = &self.in_hand else { return };
        let how = in_hand.answer.judged(self.shared.form.tts_provider());
        // What is left of a half-written request would be the beginning of the next one.
        let ends = self.closes || self.unwritten;
        self.answers += 1;
        self.end_request(how, now_ns, recorder);
        if self.is_in_pool() {
            if ends {
                self.end(now_ns, recorder);
            }
        } else if self.visit.is_empty() {
            let until_ns = now_ns + CLOSE_WITHIN_NS;
            self.stage = Stage::Closing { until_ns };
        } else if ends {
            self.end_visit(RequestOutcome::ClosedBeforeAnswer, now_ns, recorder);
            self.end(now_ns, recorder);
        }
    }

    /// What the gateway sent is not HTTP, or nobody asked for it.
    fn broken(&mut self, fault: Fault, now_ns: u64, recorder: &mut Recorder<Claim>) {
        if self.in_hand.is_some() {
            self.end_request(Err(RequestOutcome::BadAnswer), now_ns, recorder);
        } else {
            recorder.protocol_fault(fault.name());
        }
        self.end_visit(RequestOutcome::BadAnswer, now_ns, recorder);
        self.end(now_ns, recorder);
    }

    /// The gateway, or the network, ended the open connection.
    fn lost_connection(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        let in_answer = self.reader.is_in_answer();
        if how == Disconnect::Closed {
            // This is how a body without a length ends.
            let mut reader = std::mem::take(&mut self.reader);
            let _ = reader.closed(|event| self.read(event, now_ns, recorder));
            self.reader = reader;
        }
        if self.asks_again(how, in_answer) {
            return;
        }
        let outcome = RequestOutcome::of(how, in_answer);
        self.end_request(Err(outcome), now_ns, recorder);
        self.end_visit(outcome, now_ns, recorder);
    }

    /// Whether the request in hand is asked once more, because the gateway closed an idle connection under it.
    fn asks_again(&mut self, how: Disconnect, in_answer: bool) -> bool {
        let closed = matches!(how, Disconnect::Closed | Disconnect::Reset);
        let may = self.is_in_pool() && closed && self.answers > 0 && !in_answer;
        match &mut self.in_hand {
            Some(in_hand) if may && in_hand.asked.kind.may_ask_again() && !in_hand.again => {
                in_hand.again = true;
                self.unwritten = true;
                true
            }
            _ => false,
        }
    }
}

impl Session for RestSession {
    type Claim = Claim;

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Closed { .. } | Stage::Opening => Phase::Opening,
            Stage::Open | Stage::Closing { .. } => Phase::Open,
            Stage::Ended { .. } | Stage::Finished => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        match (self.stage, &self.in_hand) {
            (Stage::Closing { until_ns }, _) => Some(until_ns),
            (_, Some(in_hand)) => in_hand.overdue_at_ns(),
            (Stage::Open, None) => self.visit.front().map(|asked| asked.at_ns),
            _ => None,
        }
    }

    /// Of a visit only the next request can be written: the answer to it frees the connection for those behind.
    fn owed(&self, now_ns: u64) -> u64 {
        let next = self.visit.front().filter(|_| self.is_free());
        next.map_or(0, |next| u64::from(next.measured && next.at_ns < now_ns))
    }

    fn connecting(&mut self, _now_ns: u64, _recorder: &mut Recorder<Claim>) {
        self.stage = Stage::Opening;
        self.reader.reset();
        self.answers = 0;
        self.closes = false;
    }

    fn connected(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        self.stage = Stage::Open;
        self.free_since_ns = now_ns;
        if self.is_in_pool() {
            recorder.session_started();
        }
        if self.in_hand.is_some() {
            let _ = self.reader.ask(false);
        }
    }

    fn woke(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        let overdue_at_ns = self.in_hand.as_ref().and_then(InHand::overdue_at_ns);
        let overdue = overdue_at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        match self.stage {
            Stage::Closing { until_ns } if until_ns <= now_ns => self.end(now_ns, recorder),
            Stage::Open if overdue => {
                self.end_request(Err(RequestOutcome::Timeout), now_ns, recorder);
                self.end_visit(RequestOutcome::Timeout, now_ns, recorder);
                self.end(now_ns, recorder);
            }
            _ => {}
        }
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        if let Stage::Ended { again_at_ns } = self.stage {
            self.stage = Stage::Closed { again_at_ns };
        }
        match self.stage {
            Stage::Closed { again_at_ns }
                if self.is_in_pool()
                    && (now_ns < self.window.grace_end_ns || self.in_hand.is_some()) =>
            {
                let open_by_ns = again_at_ns.max(now_ns) + OPEN_WITHIN_NS;
                let overdue_at_ns = self.in_hand.as_ref().and_then(InHand::overdue_at_ns);
                Unconnected::Connects {
                    at_ns: again_at_ns,
                    open_by_ns: overdue_at_ns.map_or(open_by_ns, |at_ns| open_by_ns.min(at_ns)),
                }
            }
            _ => {
                self.stage = Stage::Finished;
                Unconnected::Over
            }
        }
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let next = self.visit.front().filter(|_| self.is_free());
        if next.is_some_and(|next| next.at_ns <= now_ns)
            && let Some(asked) = self.visit.pop_front()
        {
            self.take(asked);
        }
        let writes = self.unwritten && self.stage == Stage::Open;
        let in_hand = self.in_hand.as_ref().filter(|_| writes)?;
        Some(Transmit {
            head: &self.out,
            body: &[],
            due_ns: in_hand.written_ns.is_none().then_some(in_hand.asked.at_ns),
            held_until_ns: Some(in_hand.free_since_ns),
            measured: in_hand.asked.measured,
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Claim>) {
        self.unwritten = false;
        if let Some(in_hand) = &mut self.in_hand {
            in_hand.written(write_ns, self.shared.book, &mut self.heard, recorder);
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Claim>) {
        let mut reader = std::mem::take(&mut self.reader);
        let read = reader.received(bytes, |event| self.read(event, now_ns, recorder));
        self.reader = reader;
        if let Err(fault) = read {
            self.broken(fault, now_ns, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        let answer = self.in_hand.as_ref().map(|in_hand| &in_hand.answer);
        self.reader.held_bytes() + answer.map_or(0, |answer| answer.held_bytes())
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Claim>) {
        let was = self.stage;
        if was == Stage::Finished {
            return;
        }
        self.stage = Stage::Ended {
            again_at_ns: now_ns,
        };
        if matches!(was, Stage::Closed { .. } | Stage::Opening) {
            if self.is_in_pool() {
                recorder.session_failed(how.reason());
            }
            let outcome = RequestOutcome::of(how, false);
            self.end_request(Err(outcome), now_ns, recorder);
            self.end_visit(outcome, now_ns, recorder);
            self.stage = Stage::Ended {
                again_at_ns: now_ns + TRY_AGAIN_NS,
            };
            return;
        }
        if self.is_in_pool() && matches!(was, Stage::Open | Stage::Closing { .. }) {
            recorder.session_left();
        }
        // A gateway that accepts and closes is not asked for connections as fast as it closes them.
        let unused = self.in_hand.is_none() && self.answers == 0;
        self.lost_connection(now_ns, how, recorder);
        let wait_ns = if unused { TRY_AGAIN_NS } else { 0 };
        self.stage = Stage::Ended {
            again_at_ns: now_ns + wait_ns,
        };
    }

    fn settled(&self) -> bool {
        let in_hand = self.in_hand.as_ref().map(|in_hand| &in_hand.asked);
        !in_hand
            .into_iter()
            .chain(&self.visit)
            .any(|asked| asked.measured)
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Claim>) {
        if let Some(in_hand) = &self.in_hand {
            let outcome = in_hand.at_the_end();
            self.end_request(Err(outcome), now_ns, recorder);
        }
        self.visit.retain(|asked| asked.at_ns <= now_ns);
        self.end_visit(RequestOutcome::NeverWritten, now_ns, recorder);
        if self.heard != Heard::default() {
            recorder.claims.push(Claim::Session(self.heard));
        }
        self.stage = Stage::Finished;
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
