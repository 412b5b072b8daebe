//! A session without I/O: frames, times and answers go in, batches and messages come out.
//!
//! No clock, no socket: the rules are tested under a simulated clock. The worker is the rim around it.

pub mod audio;
pub mod lane;
pub mod outbox;
pub mod schedule;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::messages::{self, Circumstances, FRAME_BYTES, Inference};
use crate::metrics::{Deferral, Tally};
use audio::{AudioBuffer, Committed, OverflowPolicy, Pcm, Pool};
use lane::{Flight, Lane, Pass, Settled};
use outbox::Outbox;
use schedule::Schedule;

/// The configuration of all sessions.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// `FLUSH_INTERVAL_MS`.
    pub flush_interval: Duration,
    /// `START_TIMEOUT_MS`.
    pub start_timeout: Duration,
    /// `INFERENCE_TIMEOUT_MS`.
    pub inference_timeout: Duration,
    /// `MAX_BUFFER_FRAMES`.
    pub buffer_frames_max: usize,
    /// `OVERFLOW_POLICY`.
    pub overflow_policy: OverflowPolicy,
    /// `OUTBOX_MESSAGES`.
    pub outbox_messages_max: usize,
    /// `CPU_PASSES`.
    pub cpu_passes: u32,
}

/// Why the gateway ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The gateway shuts down.
    GoingAway,
    /// The protocol was broken, or the start did not come.
    Protocol,
    /// A binary message is not a frame.
    FrameSize,
    /// A message is too long to be looked at.
    TooLarge,
    /// The buffer is full and the policy is `close`.
    Overflow,
}

impl CloseReason {
    /// The close code.
    pub fn code(self) -> u16 {
        match self {
            Self::GoingAway => 1001,
            Self::Protocol => 1002,
            Self::FrameSize => 1003,
            Self::TooLarge => 1009,
            Self::Overflow => 1013,
        }
    }
}

/// The way out of a session: what sends its batches.
pub trait Carrier {
    /// One of `MAX_INFLIGHT_JOBS`.
    type Job;
    /// A request that was sent.
    type Request;

    /// Takes a job, if there is one left.
    fn job(&mut self) -> Option<Self::Job>;

    /// Sends a batch.
    fn send(&mut self, job: Self::Job, pcm: Pcm) -> Self::Request;
}

#[derive(Debug)]
enum Phase {
    AwaitingStart {
        until: Instant,
    },
    Streaming(Schedule),
    /// Only what is in flight is still owed, and that not for ever.
    Draining {
        until: Instant,
    },
}

/// One session. `R` stands for a request in flight.
#[derive(Debug)]
pub struct Session<R> {
    /// This session's share of `FLUSH_PHASE_JITTER_MS`.
    jitter: Duration,
    phase: Phase,
    audio: AudioBuffer,
    lane: Lane<R>,
    /// Messages for the client.
    pub outbox: Outbox,
}

impl<R> Session<R> {
    /// A session that was opened at `now` and waits for its start message.
    pub fn new(rules: &Rules, jitter: Duration, now: Instant) -> Self {
        Self {
            jitter,
            phase: Phase::AwaitingStart { until: now + rules.start_timeout },
            audio: AudioBuffer::new(rules.overflow_policy, rules.buffer_frames_max),
            lane: Lane::default(),
            outbox: Outbox::default(),
        }
    }

    /// Whether frames are welcome.
    pub fn is_started(&self) -> bool {
        matches!(self.phase, Phase::Streaming(_))
    }

    /// The first message, if it is a text.
    ///
    /// # Errors
    /// When it is not the start.
    pub fn on_start(&mut self, rules: &Rules, now: Instant, text: &[u8]) -> Result<(), CloseReason> {
        match self.phase {
            Phase::AwaitingStart { .. } if messages::is_start(text) => {
                self.phase = Phase::Streaming(Schedule::new(now + self.jitter, rules.flush_interval));
                Ok(())
            }
            Phase::Draining { .. } => Ok(()),
            _ => Err(CloseReason::Protocol),
        }
    }

    /// A message is announced, or a part of one: judges it before it is there. `bytes` is its length with this part;
    /// `is_whole` says that no part will follow.
    ///
    /// # Errors
    /// When it is not the start or a frame, whatever its content may be.
    pub fn on_announced(&self, is_text: bool, bytes: u64, is_whole: bool) -> Result<(), CloseReason> {
        match (&self.phase, is_text) {
            (Phase::Draining { .. }, _) | (Phase::AwaitingStart { .. }, true) => Ok(()),
            (Phase::AwaitingStart { .. }, false) | (Phase::Streaming(_), true) => Err(CloseReason::Protocol),
            (Phase::Streaming(_), false) => {
                let frame_bytes = FRAME_BYTES as u64;
                let can_be_a_frame = if is_whole { bytes == frame_bytes } else { bytes <= frame_bytes };
                if can_be_a_frame { Ok(()) } else { Err(CloseReason::FrameSize) }
            }
        }
    }

    /// Where the next bytes of an announced frame go. `None` if they are of no interest any more.
    pub fn place(&mut self, length: usize, pool: &mut Pool) -> Option<&mut [u8]> {
        self.is_started().then(|| self.audio.place(length, pool))
    }

    /// The frame is there as a whole.
    ///
    /// # Errors
    /// When it overflows a buffer whose policy is to close.
    pub fn on_frame(&mut self, now: Instant, pool: &mut Pool, tally: &mut Tally) -> Result<(), CloseReason> {
        if !self.is_started() {
            return Ok(());
        }
        match self.audio.commit(now, pool) {
            Committed::Kept => {}
            Committed::Dropped => tally.dropped(),
            Committed::Refused => return Err(CloseReason::Overflow),
        }
        tally.frame();
        Ok(())
    }

    /// When [`Self::on_wake`] is next due.
    pub fn wake_at(&self) -> Instant {
        let phase = match &self.phase {
            Phase::AwaitingStart { until } | Phase::Draining { until } => *until,
            Phase::Streaming(schedule) => schedule.next(),
        };
        self.lane.flight().map_or(phase, |flight| phase.min(flight.deadline))
    }

    /// Does what is due at `now`: gives up a request, ends the wait for the start, ticks. Returns the request that was
    /// given up.
    ///
    /// # Errors
    /// When the start did not come in time, or a request outlasts the drain.
    pub fn on_wake<C: Carrier<Request = R>>(
        &mut self,
        rules: &Rules,
        now: Instant,
        carrier: &mut C,
        pool: &mut Pool,
        tally: &mut Tally,
    ) -> Result<Option<R>, CloseReason> {
        let mut given_up = None;
        if self.lane.flight().is_some_and(|flight| flight.deadline <= now) {
            given_up = self.on_answer(rules, now, Err(Failure::TIMEOUT), tally);
        }
        match &mut self.phase {
            Phase::AwaitingStart { until } if *until <= now => return Err(CloseReason::Protocol),
            Phase::Draining { until } if *until <= now => return Err(CloseReason::GoingAway),
            Phase::AwaitingStart { .. } | Phase::Draining { .. } => {}
            Phase::Streaming(schedule) => {
                if let Some(scheduled) = schedule.due(now) {
                    self.tick(rules, now, now - scheduled, carrier, pool, tally);
                }
            }
        }
        Ok(given_up)
    }

    /// A tick: names what was dropped, then makes a request of the whole buffer, unless something is in the way.
    fn tick<C: Carrier<Request = R>>(
        &mut self,
        rules: &Rules,
        now: Instant,
        flush_lateness: Duration,
        carrier: &mut C,
        pool: &mut Pool,
        tally: &mut Tally,
    ) {
        let Self { audio, lane, outbox, .. } = self;
        if !audio.is_waiting() {
            return;
        }
        if lane.flight().is_some() {
            return tally.deferred(Deferral::InFlight);
        }
        if outbox.unsent() >= rules.outbox_messages_max {
            return tally.deferred(Deferral::Outbox);
        }
        // They are older than the buffer and newer than the last batch: this is their place in the order.
        if let Some(span) = audio.take_dropped() {
            let buffered_frames = audio.frames() as u64;
            let circumstances = Circumstances {
                span,
                now,
                flush_lateness,
                inference_elapsed: None,
                inflight_batches: 0,
                buffered_frames,
            };
            report(outbox, tally, &Failure::OVERFLOW, &circumstances);
        }
        if audio.frames() == 0 {
            return;
        }
        let Some(job) = carrier.job() else { return tally.deferred(Deferral::Jobs) };
        lane.launch(|pass: Pass| {
            let (span, pcm) = audio.take(pool).expect("there are frames");
            tally.flush(span.frames(), flush_lateness);
            let request = carrier.send(job, pcm);
            Flight { request, span, sent_at: now, deadline: now + rules.inference_timeout, flush_lateness, pass }
        });
    }

    /// The request in flight has ended. Returns what stood for it.
    pub fn on_answer(
        &mut self,
        rules: &Rules,
        now: Instant,
        answer: Result<Inference<'_>, Failure>,
        tally: &mut Tally,
    ) -> Option<R> {
        let Settled { request, span, sent_at, flush_lateness } = self.lane.settle()?;
        let elapsed = now - sent_at;
        tally.inference(elapsed);
        match answer {
            Ok(inference) => {
                tally.partial();
                let cpu_passes = rules.cpu_passes;
                self.outbox.push_text(|text| messages::partial(text, &span, &inference, cpu_passes, flush_lateness));
            }
            Err(failure) => {
                let circumstances = Circumstances {
                    span,
                    now,
                    flush_lateness,
                    inference_elapsed: Some(elapsed),
                    inflight_batches: 0,
                    buffered_frames: self.audio.frames() as u64,
                };
                report(&mut self.outbox, tally, &failure, &circumstances);
            }
        }
        Some(request)
    }

    /// The gateway shuts down: from now on only the request in flight is answered, if that comes before `until`.
    pub fn drain(&mut self, until: Instant) {
        self.phase = Phase::Draining { until };
    }

    /// Whether a draining session owes nothing any more.
    pub fn is_drained(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. }) && self.lane.flight().is_none() && self.outbox.unsent() == 0
    }

    /// The session is over: gives its memory back, and returns the request that nobody waits for any more.
    pub fn end(&mut self, pool: &mut Pool) -> Option<R> {
        self.audio.discard(pool);
        self.lane.settle().map(|settled| settled.request)
    }
}

/// Names frames that will have no transcript. Like a partial, this is done only while nothing is in flight, so that it
/// comes after everything older.
fn report(outbox: &mut Outbox, tally: &mut Tally, failure: &Failure, circumstances: &Circumstances) {
    tally.error(failure.kind);
    outbox.push_text(|text| messages::error(text, failure, circumstances));
}
