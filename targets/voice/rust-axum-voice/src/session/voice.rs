//! What a session says: its replies one after the other, and the end of an utterance where the provider does not say it.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use super::outbox::{Outbox, SoFar};
use super::queue::Queue;
use crate::gateway::Gateway;
use crate::limits::SPEECH_FINAL_TIMEOUT;
use crate::messages::{Speak, SttResult, TtsConfig};
use crate::metrics::Spoken;
use crate::problem::Problem;
use crate::reply::{Piece, Reply};
use crate::upstream::Upstream;

/// The reply whose audio is coming.
struct Playing {
    number: u64,
    may_be_interrupted: bool,
    so_far: SoFar,
    reply: Reply,
}

pub(super) struct Voice<'a> {
    gateway: &'a Arc<Gateway>,
    /// None before `config`, and without audio.
    provider: Option<(Arc<Upstream>, TtsConfig)>,
    queue: Queue,
    playing: Option<Playing>,
    /// When an utterance is taken to be over.
    speech_final_at: Option<Instant>,
}

impl<'a> Voice<'a> {
    pub(super) fn new(gateway: &'a Arc<Gateway>) -> Self {
        Self { gateway, provider: None, queue: Queue::default(), playing: None, speech_final_at: None }
    }

    pub(super) fn configure(&mut self, upstream: Arc<Upstream>, tts: TtsConfig) {
        self.provider = Some((upstream, tts));
    }

    /// A text to be spoken.
    pub(super) fn speak(&mut self, speak: Speak, outbox: &mut Outbox) -> Result<(), Problem> {
        if speak.flush {
            self.clear(outbox);
        }
        self.queue.push(speak)
    }

    /// Drops all that plays and waits and may be interrupted.
    pub(super) fn clear(&mut self, outbox: &mut Outbox) {
        let playing = self.playing.take_if(|playing| playing.may_be_interrupted);
        let dropped = self.queue.interrupt() + outbox.interrupt() + u64::from(playing.is_some());
        self.gateway.metrics.spoke(Spoken::Dropped, dropped);
    }

    /// Moves the reply on, by so many pieces at most, and begins the next when it is over.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, outbox: &mut Outbox, pieces_max: usize) {
        for _ in 0..pieces_max {
            let Some(playing) = self.playing.as_mut() else {
                if !self.begin() {
                    return;
                }
                continue;
            };
            let Poll::Ready(piece) = playing.reply.poll(context) else { return };
            self.take(piece, outbox);
        }
        // There may be more.
        context.waker().wake_by_ref();
    }

    /// Whether there is a reply to begin.
    fn begin(&mut self) -> bool {
        let Some((upstream, tts)) = &self.provider else { return false };
        let Some(next) = self.queue.pop() else { return false };
        self.playing = Some(Playing {
            number: next.number,
            may_be_interrupted: next.may_be_interrupted,
            so_far: SoFar::default(),
            reply: Reply::new(self.gateway, upstream, tts, &next.text),
        });
        true
    }

    fn take(&mut self, piece: Piece, outbox: &mut Outbox) {
        let Some(playing) = &mut self.playing else { return };
        match piece {
            Piece::Audio(audio) => {
                outbox.audio(audio, playing.may_be_interrupted, &mut playing.so_far);
                return;
            }
            Piece::End => {
                let provider_ms = playing.reply.provider_ms();
                outbox.complete(playing.number, playing.may_be_interrupted, provider_ms, playing.so_far.dropped_bytes);
            }
            Piece::Failed(problem) => {
                self.gateway.metrics.spoke(Spoken::Failed, 1);
                outbox.failed(problem, playing.may_be_interrupted);
            }
        }
        self.playing = None;
    }

    /// A result came: whether it leaves the utterance open although its words are final.
    pub(super) fn heard_final(&mut self, leaves_open: bool, now: Instant) {
        self.speech_final_at = leaves_open.then(|| now + SPEECH_FINAL_TIMEOUT);
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        let reply = self.playing.as_ref().map(|playing| playing.reply.until());
        reply.into_iter().chain(self.speech_final_at).min()
    }

    /// Does what is due.
    pub(super) fn wake(&mut self, now: Instant, outbox: &mut Outbox) {
        if self.speech_final_at.is_some_and(|at| at <= now) {
            self.speech_final_at = None;
            outbox.result(SttResult::FORCED.to_message(), true, now);
        }
        if let Some(playing) = self.playing.as_mut().filter(|playing| playing.reply.until() <= now) {
            let expired = playing.reply.expire();
            self.take(expired, outbox);
        }
    }

    /// Whether nothing plays or waits to play.
    pub(super) fn is_quiet(&self) -> bool {
        self.playing.is_none() && self.queue.len() == 0
    }

    /// The session is over: gives up what plays and waits.
    pub(super) fn end(&mut self, outbox: &mut Outbox) {
        let playing = usize::from(self.playing.take().is_some());
        let dropped = self.queue.len() + outbox.complete_replies() + playing;
        self.gateway.metrics.spoke(Spoken::Dropped, dropped as u64);
    }
}
