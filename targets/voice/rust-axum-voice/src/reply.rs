//! A text on its way to being audio: the request, its second try, its time limits.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use hyper::StatusCode;
use tokio::time::Sleep;

use crate::gateway::Gateway;
use crate::limits::milliseconds;
use crate::messages::TtsConfig;
use crate::metrics::Outcome;
use crate::problem::{Kind, Problem};
use crate::providers::{Ask, TtsProvider};
use crate::upstream::{Answer, Upstream};

/// What comes of a text.
#[derive(Debug)]
pub enum Piece {
    /// Audio, at least a byte.
    Audio(Bytes),
    /// No more: it was whole.
    End,
    /// No more, but it was not.
    Failed(Problem),
}

type Sending = Pin<Box<dyn Future<Output = Result<Answer, String>> + Send>>;

enum Stage {
    Asking(Sending),
    Answering(Box<Answer>),
    Over,
}

/// A reply that is being made. Dropping it cancels it.
pub struct Reply {
    gateway: Arc<Gateway>,
    upstream: Arc<Upstream>,
    provider: TtsProvider,
    ask: Ask,
    stage: Stage,
    tries: u32,
    /// When this try began.
    asked_at: Instant,
    /// When the next byte must be there.
    until: Instant,
    provider_ms: Option<f64>,
    first_came: bool,
}

impl Reply {
    /// Asks for a text to be spoken.
    pub fn new(gateway: &Arc<Gateway>, upstream: &Arc<Upstream>, tts: &TtsConfig, text: &str) -> Self {
        let ask = Ask::speech(tts, gateway.config.provider_key.as_deref(), text);
        let now = Instant::now();
        Self {
            gateway: Arc::clone(gateway),
            upstream: Arc::clone(upstream),
            provider: tts.provider,
            stage: Stage::Asking(Box::pin(Arc::clone(upstream).send(ask.clone()))),
            ask,
            tries: 1,
            asked_at: now,
            // For both tries together: whoever waits for the reply does not care how often it was asked for.
            until: now + gateway.config.session.tts_first_timeout,
            provider_ms: None,
            first_came: false,
        }
    }

    /// When [`Self::expire`] is due.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// The provider's time from the request to the first byte; 0 before that.
    pub fn provider_ms(&self) -> f64 {
        self.provider_ms.unwrap_or(0.0)
    }

    /// The next piece.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        loop {
            match &mut self.stage {
                Stage::Asking(sending) => match ready!(sending.as_mut().poll(context)) {
                    Ok(answer) if answer.status().is_success() => self.stage = Stage::Answering(Box::new(answer)),
                    Ok(answer) => {
                        let status = answer.status();
                        if let Some(failed) = self.failed(status.is_server_error(), &refused(status)) {
                            return Poll::Ready(failed);
                        }
                    }
                    Err(error) => {
                        let problem = Problem::passing(Kind::TtsFailed, format_args!("the provider failed: {error}"));
                        if let Some(failed) = self.failed(true, &problem) {
                            return Poll::Ready(failed);
                        }
                    }
                },
                Stage::Answering(answer) => match ready!(answer.poll_data(context)) {
                    Some(Ok(audio)) => {
                        self.came();
                        return Poll::Ready(Piece::Audio(audio));
                    }
                    Some(Err(error)) => {
                        let told = format_args!("the provider broke off: {error}");
                        let problem = Problem::passing(Kind::TtsFailed, told);
                        if let Some(failed) = self.failed(!self.first_came, &problem) {
                            return Poll::Ready(failed);
                        }
                    }
                    None if self.first_came => {
                        self.end(Outcome::Complete);
                        return Poll::Ready(Piece::End);
                    }
                    None => {
                        self.end(Outcome::Failed);
                        let problem = Problem::passing(Kind::TtsFailed, "the provider sent no audio");
                        return Poll::Ready(Piece::Failed(problem));
                    }
                },
                Stage::Over => return Poll::Pending,
            }
        }
    }

    /// The next byte did not come in time.
    pub fn expire(&mut self) -> Piece {
        self.end(Outcome::Failed);
        let told = if self.first_came { "the provider stopped in the middle" } else { "the provider did not answer" };
        Piece::Failed(Problem::passing(Kind::TtsTimeout, told))
    }

    fn came(&mut self) {
        let Stage::Answering(answer) = &self.stage else { return };
        let now = Instant::now();
        self.until = now + self.gateway.config.session.tts_gap_timeout;
        if !self.first_came {
            self.first_came = true;
            let own_clock = || milliseconds(now.duration_since(self.asked_at));
            self.provider_ms = Some(answer.provider_ms().unwrap_or_else(own_clock));
        }
    }

    /// This try has failed; none if another one begins.
    fn failed(&mut self, may_try_again: bool, problem: &Problem) -> Option<Piece> {
        self.end(Outcome::Failed);
        if !may_try_again || self.tries == 2 {
            return Some(Piece::Failed(problem.clone()));
        }
        self.tries = 2;
        self.asked_at = Instant::now();
        self.stage = Stage::Asking(Box::pin(Arc::clone(&self.upstream).send(self.ask.clone())));
        None
    }

    fn end(&mut self, outcome: Outcome) {
        self.stage = Stage::Over;
        self.gateway.metrics.tts(self.provider, outcome);
    }
}

/// What an answer without audio means.
fn refused(status: StatusCode) -> Problem {
    let told = format!("the provider answered with status {}", status.as_u16());
    match status {
        StatusCode::TOO_MANY_REQUESTS => Problem::passing(Kind::TtsRateLimited, told),
        status if status.is_server_error() => Problem::passing(Kind::TtsFailed, told),
        _ => Problem::new(Kind::TtsFailed, told),
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Over) {
            self.end(Outcome::Cancelled);
        }
    }
}

/// A reply with a timer of its own, for whoever has none.
pub struct TimedReply {
    reply: Reply,
    timer: Pin<Box<Sleep>>,
    armed_for: Instant,
}

impl TimedReply {
    /// The reply, timed.
    pub fn new(reply: Reply) -> Self {
        let until = reply.until();
        Self { reply, timer: Box::pin(tokio::time::sleep_until(until.into())), armed_for: until }
    }

    /// [`Reply::provider_ms`].
    pub fn provider_ms(&self) -> f64 {
        self.reply.provider_ms()
    }

    /// The next piece.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        loop {
            if let Poll::Ready(piece) = self.reply.poll(context) {
                return Poll::Ready(piece);
            }
            ready!(self.timer.as_mut().poll(context));
            // Each byte puts the limit off; the timer is only set again when it fires.
            if self.armed_for == self.reply.until() {
                return Poll::Ready(self.reply.expire());
            }
            self.armed_for = self.reply.until();
            self.timer.as_mut().reset(self.armed_for.into());
        }
    }
}
