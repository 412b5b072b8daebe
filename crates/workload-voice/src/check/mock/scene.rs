//! What a case wants of the providers, and what they saw of it.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::session::PATIENCE;
use super::super::wire::Head;
use super::listen::{Ending, Opening};
use super::speak::Reply;

/// One case's part of the mock providers.
pub(in super::super) struct Scene {
    name: String,
    /// Whether it keeps what it hears.
    remembers: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How the next connections of recognition are answered; then the usual way.
    openings: VecDeque<Opening>,
    usual: Opening,
    /// Whether pings of the gateway are not answered.
    deaf: bool,
    /// How a text is answered, try by try; then the last way again.
    replies: HashMap<String, VecDeque<Reply>>,
    seen: Seen,
}

/// What the providers saw.
#[derive(Default)]
pub(in super::super) struct Seen {
    /// When each connection of recognition was asked for.
    pub(in super::super) attempts: Vec<Instant>,
    /// Those that were opened.
    pub(in super::super) listeners: Vec<Listener>,
    /// Requests for a reply.
    pub(in super::super) asked: Vec<Asked>,
}

/// An open connection of recognition.
pub(in super::super) struct Listener {
    pub(in super::super) path: String,
    pub(in super::super) query: String,
    pub(in super::super) head: Head,
    pub(in super::super) audio: Vec<u8>,
    pub(in super::super) texts: Vec<String>,
    pub(in super::super) opened: Instant,
    pub(in super::super) ended: Option<Instant>,
    pub(super) writer: Arc<Mutex<TcpStream>>,
    /// What its thread shall do to it.
    pub(super) ending: Option<Ending>,
}

/// A request for a reply.
#[derive(Debug, Clone)]
pub(in super::super) struct Asked {
    /// Which of the two addresses it came to.
    pub(in super::super) place: usize,
    pub(in super::super) path: String,
    pub(in super::super) query: String,
    pub(in super::super) head: Head,
    pub(in super::super) body: Value,
    pub(in super::super) ended: Option<(Instant, How)>,
}

/// How a request for a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum How {
    /// Everything was handed over.
    Whole,
    /// The gateway left before that.
    Cancelled,
    /// The provider broke it off.
    BrokenOff,
}

impl Scene {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            remembers: true,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn forgetful() -> Self {
        Self {
            remembers: false,
            ..Self::new("nobody".to_owned())
        }
    }

    /// The model that a `config` names.
    pub(in super::super) fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next connections of recognition are answered so.
    pub(in super::super) fn opens(&self, openings: impl IntoIterator<Item = Opening>) {
        self.state().openings.extend(openings);
    }

    /// All others are answered so.
    pub(in super::super) fn usually_opens(&self, opening: Opening) {
        self.state().usual = opening;
    }

    /// From now on pings are not answered, on open connections, too.
    pub(in super::super) fn goes_deaf(&self) {
        self.state().deaf = true;
    }

    /// A text is answered so, try by try, and from the last on always so.
    pub(in super::super) fn answers(&self, text: &str, replies: impl IntoIterator<Item = Reply>) {
        let replies = replies.into_iter().collect();
        self.state().replies.insert(text.to_owned(), replies);
    }

    pub(super) fn next_opening(&self) -> Opening {
        let mut state = self.state();
        state.seen.attempts.push(Instant::now());
        let opening = state.openings.pop_front().unwrap_or(state.usual);
        self.changed.notify_all();
        opening
    }

    pub(super) fn next_reply(&self, text: &str) -> Reply {
        let mut state = self.state();
        match state.replies.get_mut(text) {
            None => Reply::short(),
            Some(replies) if replies.len() > 1 => replies.pop_front().unwrap_or_default(),
            Some(replies) => replies.front().cloned().unwrap_or_default(),
        }
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.state().deaf
    }

    pub(super) fn remembers(&self) -> bool {
        self.remembers
    }

    /// Changes what was seen.
    pub(super) fn note<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        let changed = change(&mut self.state().seen);
        self.changed.notify_all();
        changed
    }

    /// What was seen so far.
    pub(in super::super) fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.state().seen)
    }

    /// Waits until something is seen; the error says that `what` was not.
    pub(in super::super) fn until<T>(
        &self,
        what: &str,
        limit: Duration,
        look: impl Fn(&Seen) -> Option<T>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + limit;
        let mut state = self.state();
        loop {
            if let Some(found) = look(&state.seen) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("{what}: not within {} ms", limit.as_millis()));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the connection of recognition with this number, from 0.
    pub(in super::super) fn until_open(
        &self,
        number: usize,
        limit: Duration,
    ) -> Result<Instant, String> {
        let what = format!("STT connection {}", number + 1);
        self.until(&what, limit, |seen| {
            seen.listeners.get(number).map(|it| it.opened)
        })
    }

    /// What a connection of recognition has heard, once that are so many bytes or `limit` is over.
    pub(in super::super) fn heard(&self, number: usize, bytes: usize, limit: Duration) -> Vec<u8> {
        let audio = |seen: &Seen| seen.listeners.get(number).map(|it| it.audio.clone());
        let enough = |seen: &Seen| audio(seen).filter(|audio| audio.len() >= bytes);
        let heard = self.until("audio", limit, enough);
        heard.unwrap_or_else(|_| self.look(audio).unwrap_or_default())
    }

    /// Has a connection of recognition say something.
    pub(in super::super) fn say(&self, number: usize, frames: &[u8]) -> Result<(), String> {
        use std::io::Write as _;
        self.until_open(number, PATIENCE)?;
        let writer = self.look(|seen| Arc::clone(&seen.listeners[number].writer));
        let mut stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let said = stream.write_all(frames);
        said.map_err(|error| format!("the gateway left its STT connection: {error}"))
    }

    /// Ends a connection of recognition.
    pub(in super::super) fn end(&self, number: usize, ending: Ending) -> Result<(), String> {
        self.until_open(number, PATIENCE)?;
        self.note(|seen| seen.listeners[number].ending = Some(ending));
        let ended = |seen: &Seen| seen.listeners[number].ended.map(drop);
        self.until("the end of the STT connection", PATIENCE, ended)
    }

    /// Waits for the request for a reply with this number, from 0.
    pub(in super::super) fn until_asked(&self, number: usize) -> Result<Asked, String> {
        let what = format!("TTS request {}", number + 1);
        self.until(&what, PATIENCE, |seen| seen.asked.get(number).cloned())
    }

    /// Waits for the end of a request.
    pub(in super::super) fn until_ended(&self, number: usize) -> Result<(Instant, How), String> {
        let what = format!("the end of TTS request {}", number + 1);
        let ended = |seen: &Seen| seen.asked.get(number).and_then(|asked| asked.ended);
        self.until(&what, PATIENCE, ended)
    }

    /// How many requests for a reply there were.
    pub(in super::super) fn asked(&self) -> usize {
        self.look(|seen| seen.asked.len())
    }
}
