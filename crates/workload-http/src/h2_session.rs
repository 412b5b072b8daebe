//! A connection of HTTP/2: several requests at a time, each on a stream of its own.
//!
//! What holds for a connection of HTTP/1.1 holds here: one that ends is opened again, and what was asked on it has
//! failed, unless the server says that it never looked at the request, or closed a connection on which nothing of the
//! answer had come. A request without an answer in time is given up by itself; the connection goes on.

use std::sync::Arc;

use plimsoll_core::profile::Window;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit, Unconnected};

use crate::account::{Counts, InHand};
use crate::arrivals::Connection;
use crate::h2::{Client, ErrorCode, Event, Template};
use crate::outcome::RequestOutcome;
use crate::schedule::Due;
use crate::session::{OPEN_WITHIN_NS, Shared, Speaks, TRY_AGAIN_NS};

/// A connection.
#[derive(Debug)]
pub struct H2Session {
    stage: Stage,
    client: Client,
    /// What is being written.
    out: Vec<u8>,
    /// The request that it begins, by its stream.
    begins: Option<u32>,
    /// The most requests at once.
    streams: u32,
    requests: Requests,
}

/// The requests that a connection has, apart from the connection, which reports what it hears of them.
#[derive(Debug)]
struct Requests {
    shared: Arc<Shared<Arc<[Template]>>>,
    window: Window,
    asked: Vec<Asked>,
    /// Since when a further one could be taken.
    free_since_ns: u64,
    /// Answers on this connection.
    answers: u64,
    counts: Counts,
}

/// A request that it has.
#[derive(Debug)]
struct Asked {
    request: InHand,
    /// Its stream, if one is open for it.
    stream: Option<u32>,
    status: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has no connection, and connects then.
    Closed {
        again_at_ns: u64,
    },
    Opening,
    Open,
    /// The engine is to close it, and it connects again then.
    Ended {
        again_at_ns: u64,
    },
    /// The trial is over.
    Finished,
}

impl Speaks for H2Session {
    type Template = Arc<[Template]>;

    fn new(shared: Arc<Shared<Self::Template>>, plan: &SessionPlan, streams: u32) -> Self {
        Self {
            stage: Stage::Closed {
                again_at_ns: plan.connect_at_ns,
            },
            client: Client::new(Arc::clone(&shared.template)),
            out: Vec::new(),
            begins: None,
            streams,
            requests: Requests {
                shared,
                window: plan.window,
                asked: Vec::new(),
                free_since_ns: 0,
                answers: 0,
                counts: Counts::default(),
            },
        }
    }
}

impl Requests {
    fn of(&mut self, stream: u32) -> Option<&mut Asked> {
        let mut asked = self.asked.iter_mut();
        asked.find(|asked| asked.stream == Some(stream))
    }

    /// Takes the request of a stream that is gone.
    fn gone(&mut self, stream: u32) -> Option<Asked> {
        let mut asked = self.asked.iter();
        let place = asked.position(|asked| asked.stream == Some(stream))?;
        Some(self.asked.swap_remove(place))
    }

    fn fail(
        &mut self,
        stream: u32,
        outcome: RequestOutcome,
        now_ns: u64,
        recorder: &mut Recorder<Counts>,
    ) {
        if let Some(asked) = self.gone(stream) {
            asked.request.failed(outcome, now_ns, recorder);
        }
    }

    fn fail_all(&mut self, outcome: RequestOutcome, now_ns: u64, recorder: &mut Recorder<Counts>) {
        for asked in self.asked.drain(..) {
            asked.request.failed(outcome, now_ns, recorder);
        }
    }

    /// The request of a stream is asked once more on the next connection, if that has not been done.
    fn ask_again(
        &mut self,
        stream: u32,
        outcome: RequestOutcome,
        now_ns: u64,
        recorder: &mut Recorder<Counts>,
    ) {
        match self.of(stream) {
            Some(asked) if !asked.request.again => {
                asked.request.again = true;
                asked.stream = None;
                self.counts.asked_again += 1;
            }
            _ => self.fail(stream, outcome, now_ns, recorder),
        }
    }

    fn hear(&mut self, event: Event<'_>, now_ns: u64, recorder: &mut Recorder<Counts>) {
        match event {
            Event::Head { stream, status, .. } => {
                if let Some(asked) = self.of(stream) {
                    asked.status = status;
                }
            }
            Event::Body { stream, bytes } => {
                let shared = Arc::clone(&self.shared);
                if let Some(asked) = self.of(stream) {
                    asked.request.body.take(bytes, &shared.ask.known);
                }
            }
            Event::End { stream } => {
                if let Some(asked) = self.gone(stream) {
                    self.answers += 1;
                    let known = &self.shared.ask.known;
                    let (window, counts) = (self.window, &mut self.counts);
                    let (request, status) = (asked.request, asked.status);
                    request.complete(status, known, now_ns, window, counts, recorder);
                }
            }
            Event::Malformed { stream, .. } => {
                self.fail(stream, RequestOutcome::BadAnswer, now_ns, recorder);
            }
            Event::Reset { stream, code } => {
                let outcome = RequestOutcome::StreamReset(code.0);
                self.fail(stream, outcome, now_ns, recorder);
            }
            Event::Dropped { stream } => {
                self.ask_again(stream, RequestOutcome::Goaway, now_ns, recorder);
            }
            Event::Closed { stream, in_answer } => {
                let outcome = RequestOutcome::of(Disconnect::Closed, in_answer);
                if self.shared.may_ask_again && self.answers > 0 && !in_answer {
                    self.ask_again(stream, outcome, now_ns, recorder);
                } else {
                    self.fail(stream, outcome, now_ns, recorder);
                }
            }
            Event::Goaway { .. } => self.counts.closed_announced += 1,
            Event::Settings { .. } => {}
        }
    }
}

impl H2Session {
    /// The client ends the connection.
    fn end(&mut self, again_at_ns: u64, recorder: &mut Recorder<Counts>) {
        if self.stage == Stage::Open {
            recorder.session_left();
        }
        self.stage = Stage::Ended { again_at_ns };
    }

    /// Remembers since when a further request could be taken. While one could be taken anyway, an answer changes nothing.
    fn became_free(&mut self, was_free: bool, now_ns: u64) {
        if !was_free && self.free().is_some() {
            self.requests.free_since_ns = now_ns;
        }
    }

    /// After a GOAWAY, the connection ends with its last answer.
    fn end_if_left(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        let mut asked = self.requests.asked.iter();
        let waits = asked.any(|asked| asked.stream.is_some());
        if self.stage == Stage::Open && self.client.is_ending() && !waits {
            self.end(now_ns, recorder);
        }
    }

    /// Opens a stream for the next request that has none, if the server allows one. Returns whether it did.
    fn open_stream(&mut self) -> bool {
        let requests = &mut self.requests;
        let mut without = requests.asked.iter_mut();
        let Some(asked) = without.find(|asked| asked.stream.is_none()) else {
            return false;
        };
        let number = requests.shared.ask.number(&asked.request.due);
        asked.stream = self.client.open(0, number);
        self.begins = asked.stream;
        asked.stream.is_some()
    }
}

impl Connection for H2Session {
    fn free(&self) -> Option<u32> {
        let asked = &self.requests.asked;
        let has = u32::try_from(asked.len()).unwrap_or(u32::MAX);
        let without_stream = asked.iter().any(|asked| asked.stream.is_none());
        let can = self.stage == Stage::Open
            && has < self.streams
            && !without_stream
            && self.client.room() > 0;
        can.then_some(has)
    }

    fn take(&mut self, due: Due) {
        let requests = &mut self.requests;
        let expected = requests.shared.ask.expected(&due);
        if requests.free_since_ns > due.at_ns && due.measured {
            requests.counts.found_all_busy += 1;
        }
        requests.asked.push(Asked {
            request: InHand::new(due, requests.free_since_ns, expected),
            stream: None,
            status: 0,
        });
    }
}

impl Session for H2Session {
    type Claim = Counts;

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Closed { .. } | Stage::Opening => Phase::Opening,
            Stage::Open => Phase::Open,
            Stage::Ended { .. } | Stage::Finished => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        let overdue = self.requests.asked.iter();
        overdue
            .filter_map(|asked| asked.request.overdue_at_ns())
            .min()
    }

    /// What it has, it could write when it got it. What waits for a connection is still in the schedule.
    fn owed(&self, _now_ns: u64) -> u64 {
        0
    }

    fn connecting(&mut self, _now_ns: u64, _recorder: &mut Recorder<Counts>) {
        self.stage = Stage::Opening;
        self.client = Client::new(Arc::clone(&self.requests.shared.template));
        self.out.clear();
        self.begins = None;
        self.requests.answers = 0;
    }

    fn connected(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        self.stage = Stage::Open;
        self.requests.free_since_ns = now_ns;
        self.requests.counts.connections_opened += 1;
        recorder.session_started();
    }

    fn woke(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        let was_free = self.free().is_some();
        let requests = &mut self.requests;
        let is_overdue = |asked: &Asked| asked.request.is_overdue(now_ns);
        while let Some(place) = requests.asked.iter().position(is_overdue) {
            let asked = requests.asked.swap_remove(place);
            if let Some(stream) = asked.stream {
                self.client.reset(stream, ErrorCode::CANCEL);
            }
            let outcome = RequestOutcome::Timeout;
            asked.request.failed(outcome, now_ns, recorder);
        }
        self.became_free(was_free, now_ns);
        self.end_if_left(now_ns, recorder);
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        if let Stage::Ended { again_at_ns } = self.stage {
            self.stage = Stage::Closed { again_at_ns };
        }
        match self.stage {
            Stage::Closed { again_at_ns }
                if now_ns < self.requests.window.grace_end_ns
                    || !self.requests.asked.is_empty() =>
            {
                Unconnected::Connects {
                    at_ns: again_at_ns,
                    open_by_ns: again_at_ns.max(now_ns) + OPEN_WITHIN_NS,
                }
            }
            _ => Unconnected::Over,
        }
    }

    fn transmit(&mut self, _now_ns: u64) -> Option<Transmit<'_>> {
        if self.out.is_empty() {
            let opened = self.stage == Stage::Open && self.open_stream();
            if !opened && !self.client.has_output() {
                return None;
            }
            self.client.take_output(&mut self.out);
        }
        let mut asked = self.requests.asked.iter();
        let begun = self
            .begins
            .and_then(|begins| asked.find(|asked| asked.stream == Some(begins)));
        let first = begun.filter(|asked| asked.request.written_ns.is_none());
        let request = first.map(|asked| &asked.request);
        Some(Transmit {
            head: &self.out,
            body: &[],
            due_ns: request.map(|request| request.due.at_ns),
            held_until_ns: request.map(|request| request.free_since_ns),
            measured: request.is_some_and(|request| request.due.measured),
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Counts>) {
        self.out.clear();
        let Some(stream) = self.begins.take() else {
            return;
        };
        let requests = &mut self.requests;
        let in_window = requests.window.contains(write_ns);
        if let Some(asked) = requests.of(stream)
            && asked.request.written(write_ns, recorder)
        {
            requests.counts.written_in_window += u64::from(in_window);
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Counts>) {
        let was_free = self.free().is_some();
        let requests = &mut self.requests;
        let hear = |event: Event<'_>| requests.hear(event, now_ns, recorder);
        match self.client.received(bytes, hear) {
            Ok(()) => {
                self.became_free(was_free, now_ns);
                self.end_if_left(now_ns, recorder);
            }
            Err(violation) => {
                if self.requests.asked.is_empty() {
                    recorder.protocol_fault(&violation.to_string());
                }
                let outcome = RequestOutcome::BadAnswer;
                self.requests.fail_all(outcome, now_ns, recorder);
                self.end(now_ns, recorder);
            }
        }
    }

    fn held_bytes(&self) -> usize {
        self.client.held_bytes() + self.out.len()
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Counts>) {
        let again_at_ns = match self.stage {
            Stage::Finished => return,
            Stage::Closed { .. } | Stage::Opening => {
                self.requests.counts.connections_failed += 1;
                recorder.session_failed(how.reason());
                let outcome = RequestOutcome::of(how, false);
                self.requests.fail_all(outcome, now_ns, recorder);
                now_ns + TRY_AGAIN_NS
            }
            Stage::Open | Stage::Ended { .. } => {
                self.end(now_ns, recorder);
                let idle = self.requests.asked.is_empty() && !self.client.is_ending();
                self.requests.counts.closed_idle += u64::from(idle);
                // What was on no stream yet goes out on the next connection.
                let requests = &mut self.requests;
                self.client
                    .closed(|event| requests.hear(event, now_ns, recorder));
                now_ns
            }
        };
        self.stage = Stage::Closed { again_at_ns };
    }

    fn settled(&self) -> bool {
        let mut asked = self.requests.asked.iter();
        asked.all(|asked| !asked.request.due.measured)
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Counts>) {
        for asked in self.requests.asked.drain(..) {
            let outcome = asked.request.at_the_end();
            asked.request.failed(outcome, now_ns, recorder);
        }
        self.stage = Stage::Finished;
        self.client.say_goaway();
        recorder.claims.push(self.requests.counts);
    }
}
