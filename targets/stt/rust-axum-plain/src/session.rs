//! The rules of a session. It does no I/O and is told the time, so that its tests have a clock of their own.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseCode, close_code};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::audio::{AudioBuffer, Full};
use crate::failure::{Failure, FailureKind};
use crate::gateway::Gateway;
use crate::messages::{self, Circumstances, FRAME_BYTES, Inference, Span};
use crate::outbox::Outbox;

/// The absolute schedule of flushes, `origin + k * interval`. `Skip` makes one tick of all that are overdue and moves
/// none of those that follow.
pub fn schedule(origin: Instant, interval: Duration) -> Interval {
    let mut ticks = interval_at(origin + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// One started session.
pub struct Session {
    gateway: Arc<Gateway>,
    audio: AudioBuffer,
    /// The one place for a request.
    in_flight: Option<InFlight>,
    pub outbox: Outbox,
}

/// What is known about the request in flight.
struct InFlight {
    span: Span,
    flush_lateness: Duration,
    sent_at: Instant,
    /// Counts against `MAX_INFLIGHT_JOBS` until it is dropped.
    job: OwnedSemaphorePermit,
}

impl Session {
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let config = &gateway.config;
        let audio = AudioBuffer::new(config.overflow_policy, config.max_buffer_frames);
        Self { gateway, audio, in_flight: None, outbox: Outbox::default() }
    }

    /// Takes a binary message. An error is the code to close with.
    pub fn frame(&mut self, pcm: &[u8], now: Instant) -> Result<(), CloseCode> {
        if pcm.len() != FRAME_BYTES {
            return Err(close_code::UNSUPPORTED);
        }
        let dropped = self.audio.push(pcm, now).map_err(|Full| close_code::AGAIN)?;
        if dropped {
            self.gateway.metrics.frames_dropped.inc();
        }
        self.gateway.metrics.frames.inc();
        Ok(())
    }

    /// Runs a tick. The batch that it returns is in flight from now on, until [`Self::answer`].
    pub fn tick(&mut self, scheduled: Instant, now: Instant) -> Option<Bytes> {
        if !self.audio.is_waiting() {
            return None;
        }
        if self.in_flight.is_some() {
            return self.defer("inflight");
        }
        let flush_lateness = now.saturating_duration_since(scheduled);
        // Older than the buffer and newer than the last batch, so this is their place in the order.
        if self.has_room()
            && let Some(span) = self.audio.take_dropped()
        {
            let overflow = Failure::new(FailureKind::Overflow, "input buffer full", None);
            self.fail(&overflow, &span, flush_lateness, None, now);
        }
        if !self.audio.is_waiting() {
            return None;
        }
        if !self.has_room() {
            return self.defer("outbox");
        }
        let Some(job) = self.gateway.jobs.acquire() else {
            return self.defer("jobs");
        };
        let (span, pcm) = self.audio.take()?;
        self.gateway.metrics.buffer_frames.observe(span.frames() as f64);
        self.gateway.metrics.flush_lateness.observe(flush_lateness.as_secs_f64());
        self.in_flight = Some(InFlight { span, flush_lateness, sent_at: now, job });
        Some(pcm)
    }

    /// The request in flight has ended.
    pub fn answer(&mut self, outcome: Result<Inference, Failure>, now: Instant) {
        let Some(InFlight { span, flush_lateness, sent_at, job }) = self.in_flight.take() else {
            return;
        };
        drop(job);
        let elapsed = now - sent_at;
        self.gateway.metrics.inference.observe(elapsed.as_secs_f64());
        match outcome {
            Ok(inference) => {
                self.gateway.metrics.partials.inc();
                let cpu_passes = self.gateway.config.cpu_passes;
                self.outbox.push(messages::partial(&span, &inference, cpu_passes, flush_lateness));
            }
            Err(failure) => self.fail(&failure, &span, flush_lateness, Some(elapsed), now),
        }
    }

    /// Whether the outbox takes one more message.
    fn has_room(&self) -> bool {
        self.outbox.unsent() < self.gateway.config.outbox_messages
    }

    fn defer(&self, reason: &str) -> Option<Bytes> {
        self.gateway.metrics.ticks_deferred(reason).inc();
        None
    }

    /// Names frames that will have no transcript.
    fn fail(
        &mut self,
        failure: &Failure,
        span: &Span,
        flush_lateness: Duration,
        inference_elapsed: Option<Duration>,
        now: Instant,
    ) {
        self.gateway.metrics.errors(failure.kind).inc();
        let circumstances = Circumstances {
            flush_lateness,
            inference_elapsed,
            inflight_gateway_batches: self.gateway.jobs.in_use(),
            gateway_buffer_frames: self.audio.frames(),
        };
        self.outbox.push(messages::error(failure, span, now, &circumstances));
    }
}
