//! One session as the contract wants it (sections 3 and 4), without I/O.
//!
//! The caller hands in messages and the time and asks [`Session::advance`] what happened. The one request that may be in flight is a
//! field, not a count: [`Job`] is made in one place, from the idle state only.

use super::messages::{Partial, close, is_start};
use super::reference;

/// A frame of audio: 20 ms of 16 kHz mono.
pub const FRAME_BYTES: usize = 640;

/// What is the same for every session of the process.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Time between a session's flushes.
    pub flush_interval_us: u64,
    /// How long the start message may take.
    pub start_timeout_us: u64,
    /// Time from a flush to its answer, also named in each partial (in milliseconds).
    pub model_delay_us: u64,
    /// Passes of the reference computation.
    pub cpu_passes: u32,
    /// Frames that may wait for a flush; one more closes the session.
    pub max_buffer_frames: usize,
}

/// What a session did when it was given time.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A batch is answered: this partial is due to the client now.
    Answer(Box<Partial>),
    /// A tick found a request in flight: the audio waits.
    TickDeferred,
    /// The session must be closed with this code.
    Close(u16),
}

/// A batch whose answer is awaited.
#[derive(Debug)]
struct Job {
    answer_due_us: u64,
    partial: Box<Partial>,
}

#[derive(Debug)]
enum Stage {
    /// The start message has not come yet.
    Waiting { deadline_us: u64 },
    /// Audio may come.
    Running,
    /// No more ticks; what is in flight is still answered.
    Draining,
}

/// One session.
#[derive(Debug)]
pub struct Session {
    rules: Rules,
    jitter_us: u64,
    stage: Stage,
    buffer: Vec<u8>,
    /// Number of the frame received last.
    newest_seq: u64,
    next_tick_us: u64,
    in_flight: Option<Job>,
}

impl Session {
    /// A session whose connection was upgraded at `now_us`. `jitter_us` is its own draw of the flush schedule's jitter.
    #[must_use]
    pub fn new(rules: Rules, jitter_us: u64, now_us: u64) -> Self {
        Self {
            rules,
            jitter_us,
            stage: Stage::Waiting {
                deadline_us: now_us + rules.start_timeout_us,
            },
            buffer: Vec::new(),
            newest_seq: 0,
            next_tick_us: u64::MAX,
            in_flight: None,
        }
    }

    /// Whether the start message has come.
    #[must_use]
    pub fn started(&self) -> bool {
        !matches!(self.stage, Stage::Waiting { .. })
    }

    /// Whether a request is in flight.
    #[must_use]
    pub fn in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// A text message.
    ///
    /// # Errors
    /// The code to close with, when it is not the start message in its place.
    pub fn text(&mut self, now_us: u64, text: &str) -> Result<(), u16> {
        if self.started() || !is_start(text) {
            return Err(close::PROTOCOL);
        }
        self.stage = Stage::Running;
        self.next_tick_us = now_us + self.jitter_us + self.rules.flush_interval_us;
        Ok(())
    }

    /// A binary message: one frame.
    ///
    /// # Errors
    /// The code to close with: before the start message, of another size, or with no room left.
    pub fn binary(&mut self, payload: &[u8]) -> Result<(), u16> {
        if !self.started() {
            return Err(close::PROTOCOL);
        }
        if payload.len() != FRAME_BYTES {
            return Err(close::UNSUPPORTED_DATA);
        }
        if self.buffer.len() >= self.rules.max_buffer_frames * FRAME_BYTES {
            return Err(close::TRY_AGAIN_LATER);
        }
        self.newest_seq += 1;
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    /// When [`Session::advance`] next has something to do; `None` when only a message can change that.
    #[must_use]
    pub fn due_us(&self) -> Option<u64> {
        let answer = self.in_flight.as_ref().map(|job| job.answer_due_us);
        let own = match self.stage {
            Stage::Waiting { deadline_us } => Some(deadline_us),
            Stage::Running => Some(self.next_tick_us),
            Stage::Draining => None,
        };
        [answer, own].into_iter().flatten().min()
    }

    /// Does what is due at `now_us`, in the order in which it fell due, up to the next event. Call until it gives `None`.
    pub fn advance(&mut self, now_us: u64) -> Option<Event> {
        while self.due_us().is_some_and(|due_us| due_us <= now_us) {
            let due_us = self.due_us()?;
            if let Some(job) = self.in_flight.take_if(|job| job.answer_due_us == due_us) {
                return Some(Event::Answer(job.partial));
            }
            if !self.started() {
                return Some(Event::Close(close::PROTOCOL));
            }
            let tick_us = self.next_tick_us;
            self.next_tick_us += self.rules.flush_interval_us;
            if self.buffer.is_empty() {
                continue;
            }
            if self.in_flight.is_some() {
                return Some(Event::TickDeferred);
            }
            self.in_flight = Some(self.flush(tick_us, now_us));
        }
        None
    }

    /// Stops the ticks: the server is shutting down.
    pub fn drain(&mut self) {
        self.stage = Stage::Draining;
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds of lateness, far below 2^53"
    )]
    fn flush(&mut self, tick_us: u64, now_us: u64) -> Job {
        let frames = (self.buffer.len() / FRAME_BYTES) as u64;
        let answer = reference::compute(&self.buffer, self.rules.cpu_passes);
        self.buffer.clear();
        Job {
            answer_due_us: now_us + self.rules.model_delay_us,
            partial: Box::new(Partial {
                kind: "partial",
                oldest_frame_seq: self.newest_seq - frames + 1,
                newest_frame_seq: self.newest_seq,
                frames,
                rms: answer.rms,
                zero_crossings: answer.zero_crossings,
                checksum: answer.checksum,
                samples: answer.samples,
                transcript: answer.transcript,
                audio_bytes: answer.audio_bytes,
                cpu_passes: self.rules.cpu_passes,
                flush_lateness_ms: now_us.saturating_sub(tick_us) as f64 / 1000.0,
            }),
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
