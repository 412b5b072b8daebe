//! The server that cases are tried on.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::secret::Secret;
use plimsoll_host::signals::Stop;
use plimsoll_speech::clip::Clip;

use super::Make;
use super::speech::Spoken;
use crate::dialect::{Dialect, OptionError, Options};

/// The times of a check. Tests of the check have shorter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How long anything may take that must come. Real recognisers are slow on one core.
    pub patience: Duration,
    /// How long a session that opens without a word of the server is watched for a refusal.
    pub look: Duration,
    /// How long a session is idle.
    pub idle: Duration,
    /// How much faster than its own time audio is sent.
    pub speed: u32,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            look: Duration::from_secs(1),
            // Deepgram closes after 10 s.
            idle: Duration::from_secs(12),
            speed: 1,
        }
    }
}

/// Where a server is, and how it is tried.
#[derive(Debug, Clone)]
pub(super) struct Server<'a> {
    pub(super) address: SocketAddr,
    /// What its clients call it.
    pub(super) host: String,
    pub(super) times: Times,
    pub(super) stop: Option<&'a Stop>,
    pub(super) numbers: &'a AtomicU64,
}

impl Server<'_> {
    /// A number that no other session of this check has.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the user wants no more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(Stop::requested)
    }
}

/// So many clips are enough.
const CLIPS: usize = 3;

/// The server, the dialect to speak to it, and what the cases share.
pub(super) struct Site<'a> {
    make: &'a Make,
    /// The user's.
    pub(super) options: Options,
    clips: &'a [Clip],
    pub(super) server: Server<'a>,
    /// The session that several cases are about, once one of them has run it.
    spoken: OnceCell<Result<Spoken, String>>,
}

impl<'a> Site<'a> {
    pub(super) fn new(
        make: &'a Make,
        options: Options,
        clips: &'a [Clip],
        server: Server<'a>,
    ) -> Self {
        Self {
            make,
            options,
            clips,
            server,
            spoken: OnceCell::new(),
        }
    }

    /// The user's key.
    pub(super) fn key(&self) -> Option<&Secret> {
        self.options.key.as_ref().map(|key| &key.value)
    }

    /// The dialect with the user's options.
    pub(super) fn dialect(&self) -> Result<Box<dyn Dialect>, String> {
        self.dialect_of(&self.options)
            .map_err(|error| error.to_string())
    }

    /// The dialect with other options.
    pub(super) fn dialect_of(&self, options: &Options) -> Result<Box<dyn Dialect>, OptionError> {
        (self.make)(options)
    }

    /// One of the clips, from 0; where there are fewer, one is said again.
    pub(super) fn clip(&self, number: usize) -> &'a Clip {
        &self.clips[number % self.clips.len().min(CLIPS)]
    }

    /// The spoken session; it is run at most once.
    pub(super) fn spoken(&self) -> Result<&Spoken, String> {
        let spoken = self.spoken.get_or_init(|| Spoken::run(self));
        spoken.as_ref().map_err(Clone::clone)
    }
}
