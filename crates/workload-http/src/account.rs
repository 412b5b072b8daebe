//! The account of one request, from when it is handed out until it is answered or given up; and what sessions count
//! besides the ledger.

use plimsoll_core::latency::Series;
use plimsoll_core::profile::{NS_PER_S, Window};
use plimsoll_core::recorder::{Ages, Recorder};
use serde::{Deserialize, Serialize};

use crate::expect::{BodyCheck, Expected, Known};
use crate::outcome::RequestOutcome;
use crate::schedule::Due;

/// How long an answer may take, from the write.
pub(crate) const TIMEOUT_NS: u64 = 2 * NS_PER_S;

/// What sessions and arrivals count besides the ledger, over the whole trial. Each hands its own over as a claim; they are
/// added up after the trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Connections that were opened.
    pub connections_opened: u64,
    /// Connections that could not be opened.
    pub connections_failed: u64,
    /// Connections that the server closed after it had announced it, and that were opened again.
    pub closed_announced: u64,
    /// Connections that the server closed without a word while nothing was asked on them.
    pub closed_idle: u64,
    /// Requests that were sent once more, because the server had closed the idle connection that they came on.
    pub asked_again: u64,
    /// Connections of test `connect` that the server left open, so that the client closed them.
    pub left_open: u64,
    /// Measured requests that found every connection busy when they were due.
    pub found_all_busy: u64,
    /// Right answers that came inside the measured window, whenever their request was due.
    pub answered_in_window: u64,
    /// Requests written inside the measured window.
    pub written_in_window: u64,
    /// Bytes of bodies of right answers.
    pub body_bytes: u64,
    /// Answers whose body nobody could check.
    pub bodies_unchecked: u64,
}

impl Counts {
    /// Adds what another counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.connections_opened += other.connections_opened;
        self.connections_failed += other.connections_failed;
        self.closed_announced += other.closed_announced;
        self.closed_idle += other.closed_idle;
        self.asked_again += other.asked_again;
        self.left_open += other.left_open;
        self.found_all_busy += other.found_all_busy;
        self.answered_in_window += other.answered_in_window;
        self.written_in_window += other.written_in_window;
        self.body_bytes += other.body_bytes;
        self.bodies_unchecked += other.bodies_unchecked;
    }
}

/// A request that a session has.
#[derive(Debug)]
pub(crate) struct InHand {
    pub(crate) due: Due,
    /// When the session could first have written it; before it is due if nothing held it back.
    pub(crate) free_since_ns: u64,
    /// When it was written, or when its own connection began.
    pub(crate) written_ns: Option<u64>,
    /// Whether it was sent once more on another connection.
    pub(crate) again: bool,
    pub(crate) body: BodyCheck,
}

impl InHand {
    pub(crate) fn new(due: Due, free_since_ns: u64, expected: Expected) -> Self {
        Self {
            due,
            free_since_ns,
            written_ns: None,
            again: false,
            body: BodyCheck::new(expected, due.number),
        }
    }

    fn ages(&self, now_ns: u64) -> Ages {
        Ages {
            from_schedule_ns: now_ns.saturating_sub(self.due.at_ns),
            from_write_ns: now_ns.saturating_sub(self.written_ns.unwrap_or(now_ns)),
        }
    }

    /// It was written, or its own connection was begun. If it is sent once more, the first time counts; returns whether
    /// this was it.
    pub(crate) fn written<C>(&mut self, now_ns: u64, recorder: &mut Recorder<C>) -> bool {
        if self.written_ns.is_some() {
            return false;
        }
        self.written_ns = Some(now_ns);
        recorder.ledger.frames_sent_in_all += 1;
        recorder.ledger.frames_sent += u64::from(self.due.measured);
        true
    }

    /// Records send lag and send wait of a request that is written by connecting. Those of others are the engine's.
    pub(crate) fn record_lateness<C>(&self, now_ns: u64, recorder: &mut Recorder<C>) {
        if self.due.measured {
            let free_ns = self.free_since_ns.max(self.due.at_ns);
            let interval = &mut recorder.interval;
            interval.record_ns(Series::SendLag, now_ns.saturating_sub(free_ns));
            interval.record_ns(Series::SendWait, free_ns - self.due.at_ns);
        }
    }

    /// Whether its answer has taken too long.
    pub(crate) fn is_overdue(&self, now_ns: u64) -> bool {
        self.overdue_at_ns().is_some_and(|at_ns| now_ns >= at_ns)
    }

    /// When its answer will have taken too long, if it was written.
    pub(crate) fn overdue_at_ns(&self) -> Option<u64> {
        Some(self.written_ns? + TIMEOUT_NS)
    }

    /// Its answer is complete, and has this status.
    pub(crate) fn complete<C>(
        &self,
        status: u16,
        known: &Known,
        now_ns: u64,
        window: Window,
        counts: &mut Counts,
        recorder: &mut Recorder<C>,
    ) {
        if status != 200 {
            return self.failed(RequestOutcome::HttpStatus(status), now_ns, recorder);
        }
        if !self.body.holds(known) {
            return self.failed(RequestOutcome::WrongBody, now_ns, recorder);
        }
        self.answered(now_ns, recorder);
        counts.body_bytes += self.body.seen_bytes();
        counts.bodies_unchecked += u64::from(!self.body.is_checked());
        counts.answered_in_window += u64::from(window.contains(now_ns));
    }

    /// What it is, without an answer, when the trial is over.
    pub(crate) fn at_the_end(&self) -> RequestOutcome {
        match self.written_ns {
            Some(_) => RequestOutcome::Unanswered,
            None => RequestOutcome::NeverWritten,
        }
    }

    /// It was answered rightly and in full.
    fn answered<C>(&self, now_ns: u64, recorder: &mut Recorder<C>) {
        let ledger = &mut recorder.ledger;
        ledger.frames_answered_in_all += 1;
        ledger.partials_in_all += 1;
        ledger.content_checked += u64::from(self.body.is_checked());
        if self.due.measured {
            ledger.frames_answered += 1;
            ledger.partials += 1;
            let ages = self.ages(now_ns);
            recorder.resided(1, u128::from(ages.from_write_ns));
            recorder.answered(Some(ages), Some(ages));
        }
    }

    /// It failed.
    pub(crate) fn failed<C>(
        &self,
        outcome: RequestOutcome,
        now_ns: u64,
        recorder: &mut Recorder<C>,
    ) {
        let ledger = &mut recorder.ledger;
        if outcome == RequestOutcome::WrongBody {
            ledger.content_checked += 1;
            ledger.content_wrong += 1;
        }
        if !self.due.measured {
            return;
        }
        ledger.because(&outcome.name());
        // A lost request is an error, too: the error rate is a share of all that was offered.
        ledger.errors += 1;
        let ages = self.ages(now_ns);
        if outcome.is_lost() {
            ledger.frames_lost += 1;
            let from_schedule_ns = ages.from_schedule_ns;
            // What was never written has waited since it was due.
            let written = self.written_ns.is_some();
            let from_write_ns = if written {
                ages.from_write_ns
            } else {
                from_schedule_ns
            };
            let interval = &mut recorder.interval;
            interval.record_unanswered(from_schedule_ns, from_write_ns);
        } else {
            ledger.frames_errored += 1;
            recorder.resided(1, u128::from(ages.from_write_ns));
        }
    }
}
