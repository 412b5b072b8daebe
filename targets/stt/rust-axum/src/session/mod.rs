//! A session without I/O: frames, times and answers go in, requests and messages come out.
//!
//! It has no clock, no socket and no runtime of its own, so that every rule of the contract can be tested with a
//! simulated clock. The gateway's end of it is `connection`.

pub mod audio;
pub mod outbox;
pub mod schedule;
pub mod slot;
pub mod tally;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::failure::Failure;
use crate::messages::{self, ErrorContext, FRAME_BYTES, Inference};
use audio::{AudioBuffer, OverflowPolicy, Pushed};
use outbox::Outbox;
use schedule::Schedule;
use slot::{InFlight, Slot};
use tally::{Deferral, Tally};

/// Duration of one frame.
const FRAME_DURATION_MS: u128 = 20;

/// The configuration that a session needs.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Time from one tick to the next.
    pub flush_interval: Duration,
    /// How long to wait for the start message.
    pub start_timeout: Duration,
    /// How long to wait for an answer.
    pub inference_timeout: Duration,
    /// Frames that may wait.
    pub buffer_frames_max: usize,
    /// What happens to more than that.
    pub overflow_policy: OverflowPolicy,
    /// Unsent messages at which ticks defer.
    pub outbox_messages_max: usize,
    /// What requests ask for and partials repeat.
    pub cpu_passes: u32,
}

/// Why the gateway ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The client broke the protocol, or did not start in time.
    Protocol,
    /// A binary message that is not one frame.
    FrameSize,
    /// A message whose declared length is over the limit.
    TooLarge,
    /// The buffer is full and the policy is `close`.
    Overflow,
    /// The gateway shuts down.
    GoingAway,
}

impl CloseReason {
    /// The WebSocket close code.
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

#[derive(Debug)]
enum Phase {
    AwaitingStart {
        until: Instant,
    },
    Streaming(Schedule),
    /// No more flushes and no more frames; only what is in flight is still owed, and that not for ever.
    Draining {
        until: Instant,
    },
}

/// One session. `R` stands for a request in flight; see [`slot`].
#[derive(Debug)]
pub struct Session<R> {
    settings: Settings,
    /// This session's share of `FLUSH_PHASE_JITTER_MS`.
    jitter: Duration,
    phase: Phase,
    audio: AudioBuffer,
    slot: Slot<R>,
    outbox: Outbox,
    tally: Tally,
}

impl<R> Session<R> {
    /// A session that was opened at `now` and waits for its start message.
    pub fn new(settings: Settings, jitter: Duration, now: Instant) -> Self {
        // A few more than one interval's worth: frames come in bursts, and growing the buffer copies it.
        let frames_expected = usize::try_from(settings.flush_interval.as_millis() / FRAME_DURATION_MS)
            .unwrap_or(usize::MAX)
            .saturating_add(2);
        Self {
            settings,
            jitter,
            phase: Phase::AwaitingStart { until: now + settings.start_timeout },
            audio: AudioBuffer::new(settings.overflow_policy, settings.buffer_frames_max, frames_expected),
            slot: Slot::default(),
            outbox: Outbox::default(),
            tally: Tally::default(),
        }
    }

    /// A text message.
    ///
    /// # Errors
    /// When it is anything but the start message, or not the first.
    pub fn on_text(&mut self, now: Instant, text: &[u8]) -> Result<(), CloseReason> {
        match self.phase {
            Phase::AwaitingStart { .. } if messages::is_start(text) => {
                self.phase = Phase::Streaming(Schedule::new(now + self.jitter, self.settings.flush_interval));
                Ok(())
            }
            Phase::AwaitingStart { .. } | Phase::Streaming(_) => Err(CloseReason::Protocol),
            Phase::Draining { .. } => Ok(()),
        }
    }

    /// A binary message.
    ///
    /// # Errors
    /// When it is not a frame, comes before the start message, or overflows a buffer whose policy is to close.
    pub fn on_binary(&mut self, now: Instant, payload: &[u8]) -> Result<(), CloseReason> {
        match self.phase {
            Phase::AwaitingStart { .. } => return Err(CloseReason::Protocol),
            Phase::Draining { .. } => return Ok(()),
            Phase::Streaming(_) => {}
        }
        if payload.len() != FRAME_BYTES {
            return Err(CloseReason::FrameSize);
        }
        match self.audio.push(now, payload) {
            Pushed::Kept => {}
            Pushed::Dropped => self.tally.frames_dropped += 1,
            Pushed::Refused => return Err(CloseReason::Overflow),
        }
        self.tally.frames += 1;
        Ok(())
    }

    /// When [`Self::on_wake`] is next due; `None` if nothing is timed.
    pub fn wake_at(&self) -> Option<Instant> {
        let phase = match &self.phase {
            Phase::AwaitingStart { until } | Phase::Draining { until } => Some(*until),
            Phase::Streaming(schedule) => Some(schedule.next()),
        };
        let request = self.slot.busy().map(|in_flight| in_flight.deadline);
        match (phase, request) {
            (Some(phase), Some(request)) => Some(phase.min(request)),
            (one, other) => one.or(other),
        }
    }

    /// Does whatever is due at `now`: gives up the request, ends the wait for the start message, ticks.
    ///
    /// `reserve` takes one of the gateway's jobs and returns what sends a batch, or `None` at the gateway's cap.
    ///
    /// # Errors
    /// When the start message did not come in time, or a request in flight outlasts the drain.
    pub fn on_wake<S: FnOnce(Bytes) -> R>(
        &mut self,
        now: Instant,
        reserve: impl FnOnce() -> Option<S>,
    ) -> Result<(), CloseReason> {
        if self.slot.busy().is_some_and(|in_flight| in_flight.deadline <= now) {
            self.on_answer(now, Err(Failure::timeout()));
        }
        match &mut self.phase {
            Phase::AwaitingStart { until } if *until <= now => Err(CloseReason::Protocol),
            Phase::Draining { until } if *until <= now => Err(CloseReason::GoingAway),
            Phase::AwaitingStart { .. } | Phase::Draining { .. } => Ok(()),
            Phase::Streaming(schedule) => {
                if let Some(scheduled) = schedule.due(now) {
                    self.tick(now, now - scheduled, reserve);
                }
                Ok(())
            }
        }
    }

    /// The request in flight, to be driven; its result goes to [`Self::on_answer`].
    pub fn request_mut(&mut self) -> Option<&mut R> {
        self.slot.request_mut()
    }

    /// The request in flight has ended.
    pub fn on_answer(&mut self, now: Instant, answer: Result<Inference, Failure>) {
        // Nothing in flight, nothing to answer.
        let Some(InFlight { span, sent_at, flush_lateness, .. }) = self.slot.settle() else { return };
        let elapsed = now - sent_at;
        self.tally.inference = Some(elapsed);
        match answer {
            Ok(inference) => {
                self.tally.partials += 1;
                self.outbox.push(messages::partial(&span, &inference, self.settings.cpu_passes, flush_lateness));
            }
            Err(failure) => {
                let context = ErrorContext {
                    span,
                    now,
                    flush_lateness,
                    inference_elapsed: Some(elapsed),
                    inflight_batches: 0,
                    buffered_frames: self.audio.frames() as u64,
                };
                report(&mut self.outbox, &mut self.tally, &failure, &context);
            }
        }
    }

    /// The messages for the client.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// The gateway shuts down: from now on only the request in flight is still answered, if that comes before `until`.
    pub fn drain(&mut self, until: Instant) {
        self.phase = Phase::Draining { until };
    }

    /// Whether a draining session owes nothing any more.
    pub fn is_drained(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. }) && self.slot.busy().is_none() && self.outbox.unsent() == 0
    }

    /// The counts since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// A tick: names the dropped frames, then makes one request of the whole buffer, unless something is in the way.
    fn tick<S: FnOnce(Bytes) -> R>(
        &mut self,
        now: Instant,
        flush_lateness: Duration,
        reserve: impl FnOnce() -> Option<S>,
    ) {
        let Self { settings, audio, slot, outbox, tally, .. } = self;
        if !audio.is_waiting() {
            return;
        }
        let Some(idle) = slot.idle() else { return tally.defer(Deferral::InFlight) };
        if outbox.unsent() >= settings.outbox_messages_max {
            return tally.defer(Deferral::Outbox);
        }
        // Older than the buffer and newer than the last batch, so this is their place in the order.
        if let Some(span) = audio.take_dropped() {
            let context = ErrorContext {
                span,
                now,
                flush_lateness,
                inference_elapsed: None,
                inflight_batches: 0,
                buffered_frames: audio.frames() as u64,
            };
            report(outbox, tally, &Failure::overflow(), &context);
        }
        if audio.frames() == 0 {
            return;
        }
        let Some(send) = reserve() else { return tally.defer(Deferral::Jobs) };
        let Some(batch) = audio.take() else { return };
        tally.flush = Some((batch.span.frames(), flush_lateness));
        idle.begin(InFlight {
            request: send(batch.pcm),
            span: batch.span,
            sent_at: now,
            deadline: now + settings.inference_timeout,
            flush_lateness,
        });
    }
}

/// Names frames that will have no transcript. Like a partial it is written only while the slot is empty, so that it
/// follows everything that is older.
fn report(outbox: &mut Outbox, tally: &mut Tally, failure: &Failure, context: &ErrorContext) {
    tally.errors[failure.kind as usize] += 1;
    outbox.push(messages::error(failure, context));
}
