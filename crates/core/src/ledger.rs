//! The ledger: every frame due is accounted for.
//!
//! There are two parts: [`Ledger`], the totals of a trial, and [`FrameLedger`], the state of one session from which
//! they are counted. Once a session is finished, this identity must always hold for frames due in the measured window:
//!
//! ```text
//! frames_due = frames_answered + frames_errored + frames_lost
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ranges of unanswered frames kept open per session. If a target skips more than that, the oldest range counts as lost
/// for good, so that a faulty target cannot fill the client's memory.
const OPEN_GAPS_MAX: usize = 1024;

/// What was due, sent, answered, lost, duplicated and reordered. Frames, partials and errors are those of the measured
/// window. Sessions, protocol faults and checked content are those of the whole trial, because they are wrong whenever
/// they happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Frames whose scheduled time lies in the measured window.
    pub frames_due: u64,
    /// Frames due in the measured window that were written to the socket.
    pub frames_sent: u64,
    /// Frames due in the measured window that a partial covered.
    pub frames_answered: u64,
    /// Frames due in the measured window that an `error` named instead.
    pub frames_errored: u64,
    /// Frames due in the measured window that nothing named until grace ended, sent or not.
    pub frames_lost: u64,
    /// Frames named again after they were named; every repetition counts.
    pub frames_duplicated: u64,
    /// Frames named after a later frame was named.
    pub frames_out_of_order: u64,
    /// Sessions whose connection was established and whose handshake succeeded.
    pub sessions_started: u64,
    /// Sessions that could not be opened before the measured window.
    pub sessions_failed: u64,
    /// Sessions that ended before the trial did.
    pub sessions_died: u64,
    /// Partials that covered at least one measured frame.
    pub partials: u64,
    /// Errors that named at least one measured frame.
    pub errors: u64,
    /// Messages that break the contract: they do not parse, have wrong fields, or name frames that were never sent.
    pub protocol_faults: u64,
    /// Partials whose content was recomputed.
    pub content_checked: u64,
    /// Partials whose content was wrong.
    pub content_wrong: u64,
    /// Frames written in the whole trial, warm-up and grace included: the most that the target's own counter can show.
    pub frames_sent_in_all: u64,
    /// Frames of the whole trial that a partial covered: the least that the target's own counter must show.
    #[serde(default)]
    pub frames_answered_in_all: u64,
    /// Partials received in the whole trial, whatever they covered.
    #[serde(default)]
    pub partials_in_all: u64,
    /// Bytes written to sockets in the whole trial.
    pub bytes_sent: u64,
    /// Bytes read from sockets in the whole trial.
    pub bytes_received: u64,
    /// How fast what the target holds grew over the measured window, as a share of the rate: the lower end of the 95 %
    /// interval of its slope. 0.01 is one more held for each hundred due, for certain. Negative if what it holds may have
    /// shrunk. `null` if the workload does not determine it, or if the window was too short for an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_slope: Option<f64>,
    /// Frames of the whole trial that the target confirmed and whose answer never came. `null` if the workload does not
    /// determine it, or if nothing is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_lost: Option<u64>,
    /// Values of the metrics that only the workload computes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, f64>,
    /// Why sessions failed or died, and what the protocol faults were, each with its count.
    pub reasons: BTreeMap<String, u64>,
}

/// The most different reasons that a ledger keeps; further ones are counted as [`OTHER_REASONS`].
const REASONS_MAX: usize = 100;
/// The most characters of a reason that are kept.
const REASON_MAX_CHARS: usize = 200;
const OTHER_REASONS: &str = "other reasons";

impl Ledger {
    /// Whether every frame that was due is accounted for: answered, errored or lost.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.frames_due == self.frames_answered + self.frames_errored + self.frames_lost
    }

    /// Counts one more case of a reason.
    pub fn because(&mut self, reason: &str) {
        self.because_of(reason, 1);
    }

    /// Counts more cases of a reason. Some reasons contain text from the target: a hostile target must not fill memory
    /// and record with it.
    fn because_of(&mut self, reason: &str, count: u64) {
        if let Some(counted) = self.reasons.get_mut(reason) {
            *counted += count;
            return;
        }
        let reason = match reason.char_indices().nth(REASON_MAX_CHARS) {
            Some((end, _)) => format!("{}…", &reason[..end]),
            None => reason.to_owned(),
        };
        let known = self.reasons.contains_key(&reason);
        let reason = if known || self.reasons.len() < REASONS_MAX {
            reason
        } else {
            OTHER_REASONS.to_owned()
        };
        *self.reasons.entry(reason).or_default() += count;
    }

    /// Errors and protocol faults per partial; `None` if there was neither a partial nor a fault.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts far below 2^53 in any trial"
    )]
    pub fn error_rate(&self) -> Option<f64> {
        let bad = self.errors + self.protocol_faults;
        match (bad, self.partials) {
            (0, 0) => None,
            (bad, partials) => Some(bad as f64 / partials.max(1) as f64),
        }
    }

    /// Adds what an audit found.
    pub fn audited(&mut self, audit: Audit) {
        self.content_checked += audit.checked;
        self.content_wrong += audit.wrong;
    }

    /// Adds the totals of another engine thread. The slope of a backlog is no total: it is known once all parts of a trial
    /// are merged. If only one side has it, it stays; of two, the greater. So it is with the workload's own metrics.
    pub fn merge(&mut self, other: &Self) {
        self.frames_due += other.frames_due;
        self.frames_sent += other.frames_sent;
        self.frames_answered += other.frames_answered;
        self.frames_errored += other.frames_errored;
        self.frames_lost += other.frames_lost;
        self.frames_duplicated += other.frames_duplicated;
        self.frames_out_of_order += other.frames_out_of_order;
        self.sessions_started += other.sessions_started;
        self.sessions_failed += other.sessions_failed;
        self.sessions_died += other.sessions_died;
        self.partials += other.partials;
        self.errors += other.errors;
        self.protocol_faults += other.protocol_faults;
        self.content_checked += other.content_checked;
        self.content_wrong += other.content_wrong;
        self.frames_sent_in_all += other.frames_sent_in_all;
        self.frames_answered_in_all += other.frames_answered_in_all;
        self.partials_in_all += other.partials_in_all;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        let slopes = self.backlog_slope.into_iter().chain(other.backlog_slope);
        self.backlog_slope = slopes.reduce(f64::max);
        let lost = self.confirmed_lost.into_iter().chain(other.confirmed_lost);
        self.confirmed_lost = lost.reduce(|one, other| one + other);
        self.own.extend(other.own.clone());
        for (reason, count) in &other.reasons {
            self.because_of(reason, *count);
        }
    }
}

/// The outcome of recomputing content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Audit {
    /// Answers recomputed.
    pub checked: u64,
    /// Answers with wrong content.
    pub wrong: u64,
}

/// How a message named its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// By an answer.
    Answered,
    /// By an error.
    Errored,
}

/// What [`FrameLedger::name`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The measured frames named for the first time and in order.
    pub fresh: Range<u64>,
    /// Whether at least one measured frame was named for the first time.
    pub measured: bool,
    /// Whether the newest frame of the message is measured and was named for the first time.
    pub newest_measured: bool,
    /// Whether the oldest frame of the message is measured and was named for the first time.
    pub oldest_measured: bool,
    /// Whether the message names frames that were never sent.
    pub never_sent: bool,
}

/// Accounts for the frames of one session. Frames are numbered from 1 in the order they are sent.
#[derive(Debug, Clone)]
pub struct FrameLedger {
    /// Frames due in the measured window.
    measured: Range<u64>,
    /// The lowest frame that nothing has named or skipped yet.
    next: u64,
    /// The highest frame written.
    sent: u64,
    /// Ranges below `next` that were skipped, in ascending order.
    gaps: Vec<Range<u64>>,
    /// Measured frames in gaps that were given up.
    given_up: u64,
}

impl FrameLedger {
    /// A ledger for a session whose frames `measured` (a range of frame numbers) are due in the measured window.
    #[must_use]
    pub fn new(measured: Range<u64>) -> Self {
        Self {
            measured,
            next: 1,
            sent: 0,
            gaps: Vec::new(),
            given_up: 0,
        }
    }

    /// Whether a frame is due in the measured window.
    #[must_use]
    pub fn is_measured(&self, seq: u64) -> bool {
        self.measured.contains(&seq)
    }

    /// The number of the last frame written.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The number of measured frames among the first `due` that are not written yet.
    #[must_use]
    pub fn unsent_measured(&self, due: u64) -> u64 {
        self.measured_in(self.sent + 1..due + 1)
    }

    /// Counts that the next frame was written.
    pub fn send(&mut self, totals: &mut Ledger) {
        self.sent += 1;
        totals.frames_sent_in_all += 1;
        totals.frames_sent += u64::from(self.is_measured(self.sent));
    }

    /// Counts a message that names the frames `oldest..=newest`; `oldest` must not be above `newest`.
    pub fn name(&mut self, oldest: u64, newest: u64, how: Naming, totals: &mut Ledger) -> Named {
        debug_assert!(oldest <= newest);
        let never_sent = oldest == 0 || newest > self.sent;
        let range = oldest.max(1)..newest.min(self.sent) + 1;
        if range.is_empty() {
            return Named {
                fresh: 0..0,
                measured: false,
                newest_measured: false,
                oldest_measured: false,
                never_sent,
            };
        }
        let oldest_is_new = self.is_open(range.start);
        let newest_is_new = self.is_open(range.end - 1);

        let (late, late_in_all) = self.close_gaps(&range);
        let first_new = range.start.max(self.next);
        let new_in_all = range.end.saturating_sub(first_new);
        let fresh_range = first_new.max(self.measured.start)..range.end.min(self.measured.end);
        let fresh = self.measured_in(first_new..range.end);
        let already =
            self.measured_in(range.start..range.end.min(self.next).max(range.start)) - late;
        match how {
            Naming::Answered => {
                totals.frames_answered += fresh + late;
                totals.frames_answered_in_all += new_in_all + late_in_all;
            }
            Naming::Errored => totals.frames_errored += fresh + late,
        }
        totals.frames_out_of_order += late;
        totals.frames_duplicated += already;
        self.advance(&range);

        Named {
            fresh: fresh_range,
            measured: fresh + late > 0,
            newest_measured: newest_is_new && self.is_measured(range.end - 1),
            oldest_measured: oldest_is_new && self.is_measured(range.start),
            never_sent,
        }
    }

    /// Whether every measured frame has been named.
    #[must_use]
    pub fn settled(&self) -> bool {
        let past_the_window = self.measured.is_empty() || self.next >= self.measured.end;
        past_the_window
            && self
                .gaps
                .iter()
                .all(|gap| self.measured_in(gap.clone()) == 0)
    }

    /// Closes the account: counts the frames that were due and those that were lost, and calls `on_lost` with each lost
    /// frame. `due` is the number of frames due so far.
    ///
    /// # Panics
    /// If more frames were sent than were due: the fault is ours, and no figure of the trial can be trusted.
    pub fn finish(&mut self, due: u64, totals: &mut Ledger, mut on_lost: impl FnMut(u64)) {
        assert!(
            self.sent <= due,
            "{} frames were sent and only {due} were due",
            self.sent
        );
        let due_end = self.measured.end.min(due + 1);
        totals.frames_due += due_end.saturating_sub(self.measured.start);
        totals.frames_lost += self.given_up;
        let rest = self.next..due_end;
        for range in self.gaps.drain(..).chain([rest]) {
            let lost = range.start.max(self.measured.start)..range.end.min(self.measured.end);
            totals.frames_lost += lost.end.saturating_sub(lost.start);
            lost.for_each(&mut on_lost);
        }
        self.measured = 0..0;
        self.given_up = 0;
    }

    fn measured_in(&self, range: Range<u64>) -> u64 {
        range
            .end
            .min(self.measured.end)
            .saturating_sub(range.start.max(self.measured.start))
    }

    fn is_open(&self, seq: u64) -> bool {
        seq >= self.next || self.gaps.iter().any(|gap| gap.contains(&seq))
    }

    /// Removes `range` from the gaps. Returns how many measured frames, and how many frames in all, were in them.
    fn close_gaps(&mut self, range: &Range<u64>) -> (u64, u64) {
        if self.gaps.is_empty() || range.start >= self.next {
            return (0, 0);
        }
        let (mut late, mut late_in_all) = (0, 0);
        let mut kept = Vec::with_capacity(self.gaps.len() + 1);
        for gap in std::mem::take(&mut self.gaps) {
            let hit = gap.start.max(range.start)..gap.end.min(range.end);
            if hit.is_empty() {
                kept.push(gap);
                continue;
            }
            late += self.measured_in(hit.clone());
            late_in_all += hit.end - hit.start;
            kept.extend(
                [gap.start..hit.start, hit.end..gap.end]
                    .into_iter()
                    .filter(|r| !r.is_empty()),
            );
        }
        self.gaps = kept;
        (late, late_in_all)
    }

    fn advance(&mut self, range: &Range<u64>) {
        if range.end <= self.next {
            return;
        }
        if range.start > self.next {
            if self.gaps.len() == OPEN_GAPS_MAX {
                let oldest = self.gaps.remove(0);
                self.given_up += self.measured_in(oldest);
            }
            self.gaps.push(self.next..range.start);
        }
        self.next = range.end;
    }
}

/// Remembers how late each of the last frames of a session was written, so that an answer's latency can also be given
/// from the write.
///
/// The memory is bounded: a frame answered more than [`WriteLags::CAPACITY`] frames after it was sent has its latency
/// from the schedule in both records.
#[derive(Debug, Clone)]
pub struct WriteLags {
    /// Write lag in microseconds, by frame number modulo the capacity.
    ring: Box<[u32]>,
    /// The newest frame remembered.
    newest: u64,
}

impl WriteLags {
    /// The most frames remembered: 82 s of audio at 50 frames a second.
    pub const CAPACITY: usize = 4096;

    /// Room for `frames` frames: a power of two, at most [`WriteLags::CAPACITY`].
    #[must_use]
    pub fn with_room_for(frames: u64) -> Self {
        let frames = usize::try_from(frames).unwrap_or(Self::CAPACITY);
        let capacity = frames.clamp(1, Self::CAPACITY).next_power_of_two();
        Self {
            ring: vec![0; capacity].into_boxed_slice(),
            newest: 0,
        }
    }

    /// Records that frame `seq`, the one after the last, was written `lag_ns` after its schedule.
    pub fn push(&mut self, seq: u64, lag_ns: u64) {
        let slot = self.slot(seq);
        self.ring[slot] = u32::try_from(lag_ns / 1000).unwrap_or(u32::MAX);
        self.newest = seq;
    }

    /// How late frame `seq` was written, in nanoseconds; 0 if it is no longer remembered.
    #[must_use]
    pub fn lag_ns(&self, seq: u64) -> u64 {
        let remembered = seq <= self.newest && self.newest - seq < self.ring.len() as u64;
        if remembered {
            u64::from(self.ring[self.slot(seq)]) * 1000
        } else {
            0
        }
    }

    /// The sum of these lags over a range of frames, in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self, frames: Range<u64>) -> u128 {
        frames.map(|seq| u128::from(self.lag_ns(seq))).sum()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "masked to the ring's length"
    )]
    fn slot(&self, seq: u64) -> usize {
        (seq as usize) & (self.ring.len() - 1)
    }
}

#[cfg(test)]
mod tests;
