//! The account of one request, from when it is taken until it is answered or given up.

use plimsoll_core::profile::NS_PER_S;
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_workload_http::outcome::RequestOutcome;

use super::answer::Answer;
use super::record;
use super::request::{Asked, Kind};
use crate::caller::{Claim, Heard};
use crate::turns::Leg;

/// How long the whole answer to a GET may take, from the write.
const GET_WITHIN_NS: u64 = 10 * NS_PER_S;
/// The same of a reply: the contract allows 10 s to its first byte.
const SPEAK_WITHIN_NS: u64 = 20 * NS_PER_S;

/// Where requests are entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Book {
    /// They are the load: the ledger and the trial's latencies have them.
    Ledger,
    /// The trial's frames are turns. Requests are kept apart, so that no fast answer is taken for a turn.
    Apart,
}

/// A request that a connection has.
#[derive(Debug)]
pub(super) struct InHand {
    pub(super) asked: Asked,
    /// When it could first have been written; before it is due if nothing held it back.
    pub(super) free_since_ns: u64,
    pub(super) written_ns: Option<u64>,
    /// Whether it was sent once more on another connection.
    pub(super) again: bool,
    pub(super) answer: Answer,
}

impl InHand {
    pub(super) fn new(asked: Asked, free_since_ns: u64) -> Self {
        Self {
            asked,
            free_since_ns,
            written_ns: None,
            again: false,
            answer: Answer::new(asked),
        }
    }

    /// It was written. If it is sent once more, the first time counts.
    pub(super) fn written(
        &mut self,
        now_ns: u64,
        book: Book,
        heard: &mut Heard,
        recorder: &mut Recorder<Claim>,
    ) {
        if self.written_ns.is_some() {
            return;
        }
        self.written_ns = Some(now_ns);
        heard.speaks += u64::from(self.asked.kind == Kind::Speak);
        if book == Book::Ledger {
            recorder.ledger.frames_sent_in_all += 1;
            recorder.ledger.frames_sent += u64::from(self.asked.measured);
        }
    }

    /// When its answer will have taken too long, if it was written.
    pub(super) fn overdue_at_ns(&self) -> Option<u64> {
        let within_ns = match self.asked.kind {
            Kind::Root | Kind::Voices => GET_WITHIN_NS,
            Kind::Speak => SPEAK_WITHIN_NS,
        };
        Some(self.written_ns? + within_ns)
    }

    /// What it is, without an answer, when the trial is over.
    pub(super) fn at_the_end(&self) -> RequestOutcome {
        match self.written_ns {
            Some(_) => RequestOutcome::Unanswered,
            None => RequestOutcome::NeverWritten,
        }
    }

    /// It is over: answered rightly, or failed.
    pub(super) fn ended(
        &self,
        how: Result<(), RequestOutcome>,
        now_ns: u64,
        book: Book,
        recorder: &mut Recorder<Claim>,
    ) {
        if matches!(how, Ok(()) | Err(RequestOutcome::WrongBody)) {
            recorder.ledger.content_checked += 1;
            let uncounted = how.is_err() && !self.answer.flawed;
            recorder.ledger.content_wrong += u64::from(uncounted);
        }
        if let (Err(outcome), true) = (how, self.asked.measured) {
            let name = self.asked.kind.name();
            recorder
                .ledger
                .because(&format!("{name}: {}", outcome.name()));
        }
        let ages = self.ages(now_ns);
        if book == Book::Ledger {
            self.enter(how, ages, recorder);
        }
        // Of `GET /` alone there may be millions, and the ledger says all.
        let is_kept = book == Book::Apart || self.asked.kind != Kind::Root;
        if is_kept && self.asked.measured {
            recorder
                .claims
                .push(Claim::Request(self.claim(how, ages.from_schedule_ns)));
        }
    }

    /// What is kept of it: of a reply the first byte counts, if any came.
    fn claim(&self, how: Result<(), RequestOutcome>, waited_ns: u64) -> record::Claim {
        let due_ns = self.asked.at_ns;
        let complete = Leg::of(due_ns, due_ns + waited_ns, None);
        record::Claim {
            kind: self.asked.kind,
            leg: match self.asked.kind {
                Kind::Speak => self.answer.reply.first_audio,
                Kind::Root | Kind::Voices => how.is_ok().then_some(complete),
            },
            right: how.is_ok(),
            lost: how.is_err_and(RequestOutcome::is_lost),
            gap: self.answer.reply.gap,
            waited_ns,
        }
    }

    /// How old it is.
    fn ages(&self, now_ns: u64) -> Ages {
        let written_ns = self.written_ns.unwrap_or(self.asked.at_ns);
        Ages {
            from_schedule_ns: now_ns.saturating_sub(self.asked.at_ns),
            from_write_ns: now_ns.saturating_sub(written_ns),
        }
    }

    /// The latency of a right answer: of a reply its first byte counts.
    fn latency(&self, ages: Ages) -> Ages {
        let Some(first) = self.answer.reply.first_audio else {
            return ages;
        };
        let late_ns = ages.from_schedule_ns.saturating_sub(ages.from_write_ns);
        Ages {
            from_schedule_ns: first.end_to_end_ns,
            from_write_ns: first.end_to_end_ns.saturating_sub(late_ns),
        }
    }

    fn enter(&self, how: Result<(), RequestOutcome>, ages: Ages, recorder: &mut Recorder<Claim>) {
        let ledger = &mut recorder.ledger;
        if how.is_ok() {
            ledger.frames_answered_in_all += 1;
            ledger.partials_in_all += 1;
        }
        if !self.asked.measured {
            return;
        }
        let outcome = match how {
            Ok(()) => {
                ledger.frames_answered += 1;
                ledger.partials += 1;
                recorder.resided(1, u128::from(ages.from_write_ns));
                let latency = self.latency(ages);
                recorder.answered(Some(latency), Some(latency));
                return;
            }
            Err(outcome) => outcome,
        };
        ledger.errors += 1;
        if outcome.is_lost() {
            ledger.frames_lost += 1;
            let interval = &mut recorder.interval;
            interval.record_unanswered(ages.from_schedule_ns, ages.from_write_ns);
        } else {
            ledger.frames_errored += 1;
            if self.written_ns.is_some() {
                recorder.resided(1, u128::from(ages.from_write_ns));
            }
        }
    }
}
