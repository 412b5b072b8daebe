//! What becomes of each turn of one caller.
//!
//! A turn has two legs. The *result* is due with the last block of the utterance, and the *first audio* with the text that
//! is to be spoken. A turn is complete if both came, and all of the reply, or what was left of it when the caller
//! interrupted.

use std::collections::VecDeque;

use plimsoll_core::profile::NS_PER_MS;
use serde::{Deserialize, Serialize};

use crate::marks::{ReplyMark, TranscriptMark};
use crate::progress::Progress;
use crate::script::Turn;

/// For how long an interrupted reply is watched for stale audio.
pub const WATCH_NS: u64 = 1_000 * NS_PER_MS;

/// The most turns that a caller keeps open. Older ones have failed long before.
const OPEN_MAX: usize = 16;

/// The way of one request to a provider and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// From the schedule to the arrival of the answer.
    pub end_to_end_ns: u64,
    /// When it was due, in nanoseconds since the trial began.
    pub due_ns: u64,
    /// When the provider read the request, by its mark: `CLOCK_MONOTONIC` of its machine. `None` if there was no mark.
    pub read_ns: Option<u64>,
    /// How long the provider took, by its mark; `None` if there was no mark.
    pub provider_ns: Option<u64>,
}

impl Leg {
    /// A leg that was due then and is answered now; the marks say when the provider read and when it handed over.
    pub(crate) fn of(due_ns: u64, now_ns: u64, marks_ns: Option<(u64, u64)>) -> Self {
        Self {
            end_to_end_ns: now_ns.saturating_sub(due_ns),
            due_ns,
            read_ns: marks_ns.map(|(read_ns, _)| read_ns),
            provider_ns: marks_ns.and_then(|(read_ns, handed_ns)| handed_ns.checked_sub(read_ns)),
        }
    }

    /// What the gateway and the network added. The provider may have read an interim piece before the last one was due, so
    /// it is never less than nothing.
    #[must_use]
    pub fn overhead_ns(&self) -> Option<u64> {
        Some(self.end_to_end_ns.saturating_sub(self.provider_ns?))
    }
}

/// A measured turn that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The caller.
    pub vu: u32,
    /// The turn.
    pub turn: u32,
    /// The final result of the utterance; `None` if it never came.
    pub result: Option<Leg>,
    /// The first byte of the reply; `None` if it never came.
    pub first_audio: Option<Leg>,
    /// Whether the turn is complete.
    pub complete: bool,
    /// Whether a player would have run dry.
    pub gap: bool,
    /// The latency of the interruption, if the caller interrupted: until the last stale byte, or 0.
    pub barge_in_ns: Option<u64>,
    /// The gateway's error, if it sent one for the turn.
    pub error: Option<String>,
    /// When the last block of the utterance was due, in nanoseconds since the trial began.
    pub due_ns: u64,
    /// From the schedule until the turn was over: what is missing took at least that long.
    pub waited_ns: u64,
}

impl Claim {
    /// What gateway and network added to both legs; `None` if a leg is missing, or its mark.
    #[must_use]
    pub fn overhead_ns(&self) -> Option<u64> {
        let of = |leg: Option<Leg>| leg?.overhead_ns();
        Some(of(self.result)? + of(self.first_audio)?)
    }
}

/// What was wrong with audio or text that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// It is for another caller, or for a turn that never was.
    Crossed,
    /// It came twice.
    Doubled,
    /// It came after a later part.
    OutOfOrder,
    /// A part before it never came.
    Lost,
}

/// A turn whose utterance is over and whose legs are awaited.
#[derive(Debug, Clone)]
struct Open {
    turn: Turn,
    /// The script's beginning, in nanoseconds since the trial began.
    base_ns: u64,
    measured: bool,
    heard_written_ns: u64,
    /// When the text was written; `None` before.
    spoken_ns: Option<u64>,
    result: Option<Leg>,
    reply: Progress,
    cleared: bool,
    last_stale_ns: Option<u64>,
    error: Option<String>,
}

/// A turn that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What is kept of it, if it is measured.
    pub claim: Option<Claim>,
    /// Result and first audio together, from the schedule, if both came.
    pub latency_ns: Option<u64>,
    /// The same from the writes.
    pub latency_from_write_ns: Option<u64>,
    /// Since its last block was due.
    pub due_for_ns: u64,
    /// Since its last block was written.
    pub written_for_ns: u64,
}

/// The turns of one caller that are not over.
#[derive(Debug, Default)]
pub struct Turns {
    vu: u32,
    open: VecDeque<Open>,
    /// Turns that ended before all of them had come, the oldest first: the rest may still come. As many as may be open.
    over: VecDeque<Over>,
    /// Of a slow caller: what it reads may be minutes old, so no turn is given up before the trial ends.
    slow: bool,
}

/// A turn that is over and of which more may come.
#[derive(Debug)]
struct Over {
    turn: Turn,
    /// When the caller interrupted its reply, if it did.
    cleared_ns: Option<u64>,
    has_result: bool,
}

/// Audio of an interrupted reply that came after its turn was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateAudio {
    /// The caller.
    pub vu: u32,
    /// The turn.
    pub turn: u32,
    /// From the interruption until then.
    pub after_ns: u64,
}

impl Turns {
    /// None yet, of this caller.
    #[must_use]
    pub fn new(vu: u32) -> Self {
        Self {
            vu,
            ..Self::default()
        }
    }

    /// None yet, of this slow caller.
    #[must_use]
    pub fn of_slow(vu: u32) -> Self {
        Self {
            vu,
            slow: true,
            ..Self::default()
        }
    }

    /// The message with the last block of this turn's utterance was written. Returns a turn that is given up for it.
    pub fn heard(
        &mut self,
        turn: Turn,
        base_ns: u64,
        measured: bool,
        write_ns: u64,
    ) -> Option<Ended> {
        let given_up = (self.open.len() >= OPEN_MAX && !self.slow)
            .then(|| self.end(0, write_ns))
            .flatten();
        self.open.push_back(Open {
            turn,
            base_ns,
            measured,
            heard_written_ns: write_ns,
            spoken_ns: None,
            result: None,
            reply: Progress::default(),
            cleared: false,
            last_stale_ns: None,
            error: None,
        });
        given_up
    }

    /// The text of this turn was written.
    pub fn spoken(&mut self, turn: u32, write_ns: u64) {
        if let Some(open) = self.find(turn) {
            open.spoken_ns = Some(write_ns);
        }
    }

    /// The caller interrupted this turn's reply.
    pub fn cleared(&mut self, turn: u32) {
        if let Some(open) = self.find(turn) {
            open.cleared = true;
        }
    }

    /// A final result with this mark came.
    ///
    /// # Errors
    /// It is another caller's, or it came before.
    pub fn result(&mut self, mark: &TranscriptMark, now_ns: u64) -> Result<Option<Ended>, Wrong> {
        if mark.vu != self.vu {
            return Err(Wrong::Crossed);
        }
        let open = self.open.iter_mut().find(|open| open.turn.to == mark.to);
        let Some(open) = open.filter(|open| open.result.is_none()) else {
            let mut over = self.over.iter_mut();
            let given_up = over.find(|over| over.turn.to == mark.to && !over.has_result);
            let Some(over) = given_up else {
                return Err(Wrong::Doubled);
            };
            over.has_result = true;
            return Ok(None);
        };
        open.result_came(now_ns, Some((mark.read_ns, mark.handed_ns)));
        if mark.from != open.turn.from {
            return Err(Wrong::Lost);
        }
        let turn = open.turn.number;
        Ok(self.end_if_complete(turn, now_ns))
    }

    /// A final result without a mark came: it is of the oldest turn that has none.
    ///
    /// # Errors
    /// No turn waits for one.
    pub fn unmarked_result(&mut self, now_ns: u64) -> Result<Option<Ended>, Wrong> {
        let open = self.open.iter_mut().find(|open| open.result.is_none());
        let Some(open) = open else {
            return Err(Wrong::Doubled);
        };
        open.result_came(now_ns, None);
        let turn = open.turn.number;
        Ok(self.end_if_complete(turn, now_ns))
    }

    /// A block of a reply begins. Returns whether it is of an interrupted reply whose turn is over.
    ///
    /// # Errors
    /// It is not the next block of a reply to a turn of this caller.
    pub fn block_begins(
        &mut self,
        mark: &ReplyMark,
        now_ns: u64,
    ) -> Result<Option<LateAudio>, Wrong> {
        if mark.vu != self.vu {
            return Err(Wrong::Crossed);
        }
        let Some(open) = self.find(mark.turn).filter(|open| open.spoken_ns.is_some()) else {
            let mut over = self.over.iter();
            let over = over.find(|over| over.turn.number == mark.turn);
            let late = |cleared_ns| LateAudio {
                vu: mark.vu,
                turn: mark.turn,
                after_ns: now_ns.saturating_sub(cleared_ns),
            };
            return over
                .map(|over| over.cleared_ns.map(late))
                .ok_or(Wrong::Crossed);
        };
        if open.cleared {
            open.last_stale_ns = Some(now_ns);
        }
        let due_ns = open.base_ns + open.turn.speak_ns;
        open.reply.begins(mark, due_ns, now_ns).map(|()| None)
    }

    /// A block of a reply is complete.
    pub fn block_complete(&mut self, mark: &ReplyMark, now_ns: u64) -> Option<Ended> {
        let open = self.find(mark.turn)?;
        if open.cleared {
            open.last_stale_ns = Some(now_ns);
        }
        open.reply.complete(mark);
        self.end_if_complete(mark.turn, now_ns)
    }

    /// An error came. One of speech recognition is of no turn: the session goes on, and the result may still come. Any
    /// other is of the newest turn that was spoken and has no whole reply yet, or else of the newest.
    pub fn error(&mut self, kind: &str, now_ns: u64) -> Option<Ended> {
        if kind.starts_with("stt_") || kind == "audio_dropped" {
            return None;
        }
        let speaks = |open: &Open| open.spoken_ns.is_some() && !open.reply.whole;
        let spoken = self.open.iter().rposition(speaks);
        let at = spoken.or_else(|| self.open.len().checked_sub(1))?;
        let open = self.open.get_mut(at)?;
        open.error.get_or_insert_with(|| kind.to_owned());
        // The result may still come.
        let over = open.result.is_some();
        over.then(|| self.end(at, now_ns)).flatten()
    }

    /// When an interrupted turn has been watched for long enough; `None` if none is.
    #[must_use]
    pub fn watched_until_ns(&self) -> Option<u64> {
        if self.slow {
            return None;
        }
        // Whoever still waits for the result is watched for as long.
        let have_result = self.open.iter().filter(|open| open.result.is_some());
        have_result.filter_map(Open::watched_until_ns).min()
    }

    /// Ends an interrupted turn that has been watched for long enough.
    pub fn watched(&mut self, now_ns: u64) -> Option<Ended> {
        if self.slow {
            return None;
        }
        let at = self.open.iter().position(|open| open.is_watched(now_ns))?;
        self.end(at, now_ns)
    }

    /// Ends the oldest turn, however far it has come.
    pub fn give_up(&mut self, now_ns: u64) -> Option<Ended> {
        self.end(0, now_ns)
    }

    /// Whether no measured turn is open.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.open.iter().all(|open| !open.measured)
    }

    fn find(&mut self, turn: u32) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.turn.number == turn)
    }

    fn end_if_complete(&mut self, turn: u32, now_ns: u64) -> Option<Ended> {
        let at = self.open.iter().position(|open| open.turn.number == turn)?;
        let open = &self.open[at];
        let failed = open.error.is_some() && open.result.is_some();
        // An interrupted turn is watched first.
        let complete = !open.cleared && open.result.is_some() && open.reply.whole;
        let watched = open.is_watched(now_ns) && !self.slow;
        (complete || failed || watched)
            .then(|| self.end(at, now_ns))
            .flatten()
    }

    fn end(&mut self, at: usize, now_ns: u64) -> Option<Ended> {
        let open = self.open.remove(at)?;
        if open.cleared || open.result.is_none() {
            if self.over.len() >= OPEN_MAX {
                self.over.pop_front();
            }
            self.over.push_back(open.over());
        }
        Some(open.ended(self.vu, now_ns))
    }
}

impl Claim {
    /// Of a turn that was due and that the client could not even begin.
    #[must_use]
    pub fn never_written(vu: u32, turn: u32, due_ns: u64, waited_ns: u64) -> Self {
        Self {
            vu,
            turn,
            result: None,
            first_audio: None,
            complete: false,
            gap: false,
            barge_in_ns: None,
            error: None,
            due_ns,
            waited_ns,
        }
    }
}

impl Open {
    fn result_came(&mut self, now_ns: u64, marks_ns: Option<(u64, u64)>) {
        self.result = Some(Leg::of(self.base_ns + self.turn.heard_ns, now_ns, marks_ns));
    }

    fn over(&self) -> Over {
        let cleared_ns = self.turn.barge_in_ns.filter(|_| self.cleared);
        Over {
            turn: self.turn,
            cleared_ns: cleared_ns.map(|at_ns| self.base_ns + at_ns),
            has_result: self.result.is_some(),
        }
    }

    /// Whether the caller interrupted its reply, it has been watched for long enough, and its result is there.
    fn is_watched(&self, now_ns: u64) -> bool {
        let until_ns = self.watched_until_ns();
        self.result.is_some() && until_ns.is_some_and(|until| until <= now_ns)
    }

    /// When it has been watched for long enough, if the caller interrupted its reply.
    fn watched_until_ns(&self) -> Option<u64> {
        let at_ns = self.turn.barge_in_ns.filter(|_| self.cleared)?;
        Some(self.base_ns + at_ns + WATCH_NS)
    }

    fn ended(self, vu: u32, now_ns: u64) -> Ended {
        let interrupted = self.cleared && self.reply.first_audio.is_some();
        let complete = self.error.is_none()
            && self.result.is_some()
            && self.reply.first_audio.is_some()
            && (self.reply.whole || interrupted);
        let legs = self.result.zip(self.reply.first_audio);
        let legs_ns = legs.map(|(result, first)| result.end_to_end_ns + first.end_to_end_ns);
        let lag_ns = |written_ns: Option<u64>, due_ns: u64| {
            written_ns.map_or(0, |written| written.saturating_sub(self.base_ns + due_ns))
        };
        let lags_ns = lag_ns(Some(self.heard_written_ns), self.turn.heard_ns)
            + lag_ns(self.spoken_ns, self.turn.speak_ns);
        let barge_in_ns = self.turn.barge_in_ns.filter(|_| self.cleared).map(|at_ns| {
            let last_ns = self.last_stale_ns.unwrap_or(0);
            last_ns.saturating_sub(self.base_ns + at_ns)
        });
        let due_for_ns = now_ns.saturating_sub(self.base_ns + self.turn.heard_ns);
        Ended {
            claim: self.measured.then_some(Claim {
                vu,
                turn: self.turn.number,
                result: self.result,
                first_audio: self.reply.first_audio,
                complete,
                gap: self.reply.gap,
                barge_in_ns,
                error: self.error,
                due_ns: self.base_ns + self.turn.heard_ns,
                waited_ns: due_for_ns,
            }),
            latency_ns: legs_ns.filter(|_| complete),
            latency_from_write_ns: legs_ns
                .filter(|_| complete)
                .map(|ns| ns.saturating_sub(lags_ns)),
            due_for_ns,
            written_for_ns: now_ns.saturating_sub(self.heard_written_ns),
        }
    }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
