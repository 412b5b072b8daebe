//! A connection of HTTP/1.1: one request at a time.
//!
//! A connection that ends is opened again, as a browser or a proxy would do. What was asked on it then depends: a GET on
//! an idle connection that the server was just closing is asked once more, and its clock runs on; everything else has
//! failed.

use std::sync::Arc;

use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit, Unconnected};

use crate::account::{Counts, InHand};
use crate::arrivals::Connection;
use crate::ask::Ask;
use crate::h1::{AnswerReader, Event, Fault, Template};
use crate::outcome::{RequestOutcome, UNASKED_ANSWER};
use crate::schedule::Due;

/// How long an answer may take, from the write.
pub(crate) const TIMEOUT_NS: u64 = 2 * NS_PER_S;
/// How long a connection may take to open.
pub(crate) const OPEN_WITHIN_NS: u64 = 2 * NS_PER_S;
/// How long the client waits before it tries again, after a connection could not be opened.
pub(crate) const TRY_AGAIN_NS: u64 = 100 * NS_PER_MS;
/// How long a server may leave a connection open that it should close.
const CLOSE_WITHIN_NS: u64 = NS_PER_S;

/// What all sessions of a trial have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) ask: Ask,
    pub(crate) template: Template,
    /// Whether each request has a connection of its own.
    pub(crate) a_connection_each: bool,
    /// Whether a request may be sent twice: GET may, POST may not.
    pub(crate) may_ask_again: bool,
}

/// A connection.
#[derive(Debug)]
pub struct H1Session {
    shared: Arc<Shared>,
    window: Window,
    stage: Stage,
    reader: AnswerReader,
    /// The bytes of the request in hand that are its own.
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
    /// It has no connection, and waits for a request or for a time.
    Closed {
        /// When it connects again, if it does not wait for a request.
        again_at_ns: u64,
    },
    Opening,
    Open,
    /// The answer is complete and the server should close.
    Closing {
        until_ns: u64,
    },
    /// The engine is to close it.
    Ended {
        at_ns: u64,
    },
    Finished,
}

impl H1Session {
    pub(crate) fn new(shared: Arc<Shared>, plan: &SessionPlan) -> Self {
        Self {
            shared,
            window: plan.window,
            stage: Stage::Closed { again_at_ns: plan.connect_at_ns },
            reader: AnswerReader::new(),
            out: Vec::new(),
            in_hand: None,
            unwritten: false,
            free_since_ns: 0,
            answers: 0,
            counts: Counts::default(),
        }
    }

    fn fail(&mut self, outcome: RequestOutcome, now_ns: u64, recorder: &mut Recorder<Counts>) {
        self.unwritten = false;
        if let Some(in_hand) = self.in_hand.take() {
            in_hand.failed(outcome, now_ns, recorder);
        }
    }

    /// The answer is complete.
    fn answered(&mut self, status: u16, now_ns: u64, recorder: &mut Recorder<Counts>) {
        let Some(in_hand) = self.in_hand.take() else {
            return;
        };
        self.answers += 1;
        if status != 200 {
            return in_hand.failed(RequestOutcome::HttpStatus(status), now_ns, recorder);
        }
        if !in_hand.body.holds(&self.shared.ask.file) {
            return in_hand.failed(RequestOutcome::WrongBody, now_ns, recorder);
        }
        in_hand.answered(now_ns, recorder);
        self.counts.body_bytes += in_hand.body.seen_bytes();
        self.counts.answered_in_window += u64::from(self.window.contains(now_ns));
    }

    /// The request in hand is asked once more on a new connection, if the server closed an idle one under it.
    fn asks_again(&mut self, how: Disconnect) -> bool {
        let closed = matches!(how, Disconnect::Closed | Disconnect::Reset);
        let may = self.shared.may_ask_again && self.answers > 0 && !self.reader.is_in_answer();
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

    /// When it connects again after a connection that ended.
    fn closed(&mut self, again_at_ns: u64) {
        if self.stage != Stage::Finished {
            self.stage = Stage::Closed { again_at_ns };
        }
    }

    fn write_request(&mut self, due: &Due) {
        self.out.clear();
        let shared = &self.shared;
        ...
    }
}
