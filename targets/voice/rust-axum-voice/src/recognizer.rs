//! Speech-to-text of one session: the connection to the provider, and what becomes of audio while there is none.

mod backlog;
mod link;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rust_axum::websocket::WebSocket;

use crate::gateway::Gateway;
use crate::limits::{AUDIO_BYTES_MAX, AUDIO_BYTES_PER_MS};
use crate::messages::SttConfig;
use crate::metrics::Outcome;
use crate::problem::{Kind, Problem};
use crate::providers::Ask;
use crate::upstream::Upstream;
use backlog::Backlog;
use link::{Heard, Link};

/// Waits before the tries to connect again: doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Tries to connect again before the client is told that there may be no more speech-to-text.
const QUICK_TRIES: u32 = 5;
/// Waits before the tries after those.
const SLOW_WAIT: Duration = Duration::from_secs(2);
/// Audio that may wait for a provider that is there, in bytes: two of the longest messages.
const WAITING_BYTES_MAX: usize = 2 * AUDIO_BYTES_MAX;
/// How long the end of a session waits for the provider to close.
const LINGER: Duration = Duration::from_secs(1);

/// What a session is told.
#[derive(Debug)]
pub enum Told {
    /// The connection is open for the first time.
    Ready,
    /// A message for the client.
    Result {
        /// `stt_result`.
        message: String,
        /// Its flag.
        is_final: bool,
        /// Its flag.
        is_speech_final: bool,
    },
    /// The connection could not be opened: there is no session.
    Unready(Problem),
    /// Something for the client to know; the session goes on.
    Problem(Problem),
}

type Opening = Pin<Box<dyn Future<Output = Result<WebSocket, String>> + Send>>;

enum State {
    Opening {
        opening: Opening,
        until: Instant,
    },
    Open(Box<Link>),
    Waiting {
        until: Instant,
    },
    /// There never was a connection, and the session is about to hear it.
    Unready,
}

/// The recogniser of one session.
pub struct Recognizer {
    gateway: Arc<Gateway>,
    upstream: Arc<Upstream>,
    ask: Ask,
    state: State,
    backlog: Backlog,
    told: VecDeque<Told>,
    was_open: bool,
    /// Tries to connect again since the connection was lost.
    tries: u32,
}

impl Recognizer {
    /// Begins to connect.
    pub fn new(gateway: &Arc<Gateway>, upstream: Arc<Upstream>, stt: &SttConfig, now: Instant) -> Self {
        let mut recognizer = Self {
            ask: Ask::listening(stt, gateway.config.provider_key.as_deref()),
            backlog: Backlog::new(gateway.config.session.audio_buffer_bytes),
            gateway: Arc::clone(gateway),
            upstream,
            state: State::Unready,
            told: VecDeque::new(),
            was_open: false,
            tries: 0,
        };
        recognizer.open(now);
        recognizer
    }

    fn open(&mut self, now: Instant) {
        let session = &self.gateway.config.session;
        // Of a connection that was lost, a provider that does not answer is known by the same time as one that has it.
        let patience = if self.was_open { session.stt_pong_timeout } else { session.ready_timeout };
        let opening = Box::pin(Arc::clone(&self.upstream).open_websocket(self.ask.clone()));
        self.state = State::Opening { opening, until: now + patience };
    }

    /// Audio of the caller. It is on its way after the next poll.
    pub fn hear(&mut self, audio: Bytes) {
        match self.state {
            State::Open(_) => self.backlog.push(audio),
            State::Opening { .. } | State::Waiting { .. } => {
                self.backlog.push(audio);
                self.backlog.trim();
            }
            State::Unready => {}
        }
    }

    /// What there is to tell.
    pub fn poll(&mut self, context: &mut Context<'_>, now: Instant) -> Poll<Told> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Poll::Ready(told);
            }
            match &mut self.state {
                State::Opening { opening, .. } => match opening.as_mut().poll(context) {
                    Poll::Ready(Ok(socket)) => self.opened(socket, now),
                    Poll::Ready(Err(error)) => self.not_opened(&error, now),
                    Poll::Pending => return Poll::Pending,
                },
                State::Open(link) => match link.poll(context, now, &mut self.backlog) {
                    Poll::Ready(Heard::Result(told)) => return Poll::Ready(told),
                    Poll::Ready(Heard::Lost(why)) => self.lost(why, now),
                    Poll::Pending => {
                        // A provider that is there will take what waits, or not answer a ping.
                        self.backlog.trim_to(WAITING_BYTES_MAX.max(self.backlog.bytes_max));
                        self.tell_dropped_if_caught_up();
                        if self.told.is_empty() {
                            return Poll::Pending;
                        }
                    }
                },
                State::Waiting { .. } | State::Unready => return Poll::Pending,
            }
        }
    }

    /// When [`Self::wake`] is due.
    pub fn wake_at(&self) -> Option<Instant> {
        match &self.state {
            State::Opening { until, .. } | State::Waiting { until } => Some(*until),
            State::Open(link) => Some(link.wake_at()),
            State::Unready => None,
        }
    }

    /// Does what is due. Poll it afterwards.
    pub fn wake(&mut self, now: Instant) {
        match &mut self.state {
            State::Opening { until, .. } if *until <= now => self.not_opened("no answer in time", now),
            State::Waiting { until } if *until <= now => self.open(now),
            State::Open(link) => {
                if let Some(why) = link.wake(now) {
                    self.lost(why, now);
                }
            }
            State::Opening { .. } | State::Waiting { .. } | State::Unready => {}
        }
    }

    fn opened(&mut self, socket: WebSocket, now: Instant) {
        let pong_timeout = self.gateway.config.session.stt_pong_timeout;
        self.state = State::Open(Box::new(Link::new(socket, pong_timeout, now)));
        self.tries = 0;
        if !self.was_open {
            self.was_open = true;
            self.told.push_back(Told::Ready);
        }
    }

    fn not_opened(&mut self, why: &str, now: Instant) {
        self.gateway.metrics.stt(Outcome::Failed);
        if self.was_open {
            self.wait(why, now);
        } else {
            self.state = State::Unready;
            let told = format_args!("cannot connect for speech-to-text: {why}");
            self.told.push_back(Told::Unready(Problem::passing(Kind::SttFailed, told)));
        }
    }

    fn lost(&mut self, why: &str, now: Instant) {
        self.gateway.metrics.stt(Outcome::Failed);
        self.backlog.drop_begun_block();
        self.backlog.trim();
        let told = format_args!("the connection for speech-to-text is lost: {why}");
        self.told.push_back(Told::Problem(Problem::passing(Kind::SttLost, told)));
        self.wait(why, now);
    }

    /// Waits for the next try. When the quick ones are over the client is told, and the slow ones go on without a word.
    fn wait(&mut self, why: &str, now: Instant) {
        let wait = if self.tries < QUICK_TRIES { FIRST_WAIT * 2_u32.pow(self.tries) } else { SLOW_WAIT };
        self.state = State::Waiting { until: now + wait };
        if self.tries == QUICK_TRIES {
            let told = format_args!("speech-to-text did not come back: {why}");
            self.told.push_back(Told::Problem(Problem::new(Kind::SttFailed, told)));
            self.tell_dropped();
        }
        self.tries += 1;
    }

    /// What was dropped is told once, when what was kept is on its way.
    fn tell_dropped_if_caught_up(&mut self) {
        if self.backlog.is_empty() {
            self.tell_dropped();
        }
    }

    fn tell_dropped(&mut self) {
        let dropped_bytes = std::mem::take(&mut self.backlog.dropped_bytes);
        if dropped_bytes > 0 {
            let told = format_args!("{} ms of audio were dropped", dropped_bytes.div_ceil(AUDIO_BYTES_PER_MS as u64));
            self.told.push_back(Told::Problem(Problem::new(Kind::AudioDropped, told)));
        }
    }

    /// Ends it in order, with a moment for the provider to take what is on its way.
    pub async fn close(mut self) {
        match &mut self.state {
            State::Open(link) => {
                self.gateway.metrics.stt(Outcome::Complete);
                let _ = tokio::time::timeout(LINGER, link.close(&mut self.backlog)).await;
            }
            State::Opening { .. } => self.gateway.metrics.stt(Outcome::Cancelled),
            State::Waiting { .. } | State::Unready => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::limits::AUDIO_BLOCK_BYTES;

    /// One that has lost its connection. Nothing of it is polled, so it connects nowhere.
    fn lost(now: Instant) -> Recognizer {
        let buffer = |name: &str| (name == "AUDIO_BUFFER_MS").then(|| "100".into());
        let gateway = Gateway::new(Config::from_lookup(buffer).expect("a good configuration"));
        let stt = SttConfig { model: "m".to_owned(), language: "en".to_owned(), punctuation: true };
        let mut recognizer = Recognizer::new(&gateway, gateway.upstream(), &stt, now);
        recognizer.was_open = true;
        recognizer.lost("a test", now);
        recognizer
    }

    /// What was told since the last look.
    fn told(recognizer: &mut Recognizer) -> Vec<(Kind, bool)> {
        let problem = |told| match told {
            Told::Problem(problem) => (problem.kind, problem.retryable),
            other => panic!("{other:?}"),
        };
        recognizer.told.drain(..).map(problem).collect()
    }

    #[test]
    fn five_quick_tries_and_then_slow_ones_without_a_word() {
        let mut now = Instant::now();
        let mut recognizer = lost(now);
        assert_eq!(told(&mut recognizer), [(Kind::SttLost, true)]);
        for (wait_ms, expected) in [
            (100, vec![]),
            (200, vec![]),
            (400, vec![]),
            (800, vec![]),
            (1600, vec![(Kind::SttFailed, false)]),
            (2000, vec![]),
            (2000, vec![]),
            (2000, vec![]),
        ] {
            let due = recognizer.wake_at().expect("another try");
            assert_eq!(due - now, Duration::from_millis(wait_ms));
            now = due;
            recognizer.wake(now);
            assert!(matches!(recognizer.state, State::Opening { .. }));
            recognizer.not_opened("a test", now);
            assert_eq!(told(&mut recognizer), expected, "after {wait_ms} ms");
        }
    }

    #[test]
    fn what_was_dropped_is_told_with_the_failure_and_the_newest_is_kept_after_it() {
        let now = Instant::now();
        let mut recognizer = lost(now);
        let block = Bytes::from_static(&[0; AUDIO_BLOCK_BYTES]);
        (0..7).for_each(|_| recognizer.hear(block.clone()));
        recognizer.tries = QUICK_TRIES;
        told(&mut recognizer);
        recognizer.not_opened("a test", now);
        assert_eq!(told(&mut recognizer), [(Kind::SttFailed, false), (Kind::AudioDropped, false)]);
        (0..3).for_each(|_| recognizer.hear(block.clone()));
        recognizer.tell_dropped();
        let Some(Told::Problem(problem)) = recognizer.told.pop_front() else { panic!("nothing was told") };
        assert_eq!(problem.message, "60 ms of audio were dropped");
        let kept = std::iter::from_fn(|| recognizer.backlog.take(usize::MAX)).map(|audio| audio.len()).sum::<usize>();
        assert_eq!(kept, 5 * AUDIO_BLOCK_BYTES);
    }
}
