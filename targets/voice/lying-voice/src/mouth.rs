//! The replies of one session: the one that plays, and those that wait.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::gateway::Gateway;
use crate::messages::{Speak, TtsConfig};
use crate::reply::{Event, Reply, Said};
use crate::tts::Order;

/// The replies of one session.
#[derive(Debug, Default)]
pub(crate) struct Mouth {
    /// How many `speak` there were.
    speaks: u64,
    waiting: VecDeque<(u64, Speak)>,
    playing: Option<Playing>,
}

#[derive(Debug)]
struct Playing {
    number: u64,
    is_interruptible: bool,
    reply: Reply,
    provider_ms: f64,
    /// The reply has said its last word, which may not be written yet.
    is_said: bool,
    /// `ignore_clear`: when it is dropped after all.
    stops_at: Option<Instant>,
}

/// What was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) speaks: u64,
    /// Whether that which plays is among them.
    pub(crate) playing: bool,
}

impl Mouth {
    /// A `speak` came. It waits until [`Mouth::begin`].
    pub(crate) fn speak(&mut self, speak: Speak) -> Dropped {
        self.speaks += 1;
        let dropped = if speak.flush { self.drop_all(|_| true) } else { Dropped { speaks: 0, playing: false } };
        self.waiting.push_back((self.speaks, speak));
        dropped
    }

    /// A `clear` came. What plays goes on for that time if there is one.
    pub(crate) fn clear(&mut self, goes_on: Option<Duration>) -> Dropped {
        let Some(goes_on) = goes_on else { return self.drop_all(|_| true) };
        if let Some(playing) = self.playing.as_mut().filter(|playing| playing.is_interruptible) {
            playing.stops_at.get_or_insert_with(|| Instant::now() + goes_on);
        }
        self.drop_all(|_| false)
    }

    /// Drops what goes on after a `clear`, if its time is up.
    pub(crate) fn stop(&mut self, now: Instant) -> bool {
        let is_over = self.stops_at().is_some_and(|at| at <= now);
        if is_over {
            self.playing = None;
        }
        is_over
    }

    /// When [`Mouth::stop`] is to be asked.
    pub(crate) fn stops_at(&self) -> Option<Instant> {
        self.playing.as_ref()?.stops_at
    }

    /// Asks for the next reply, if one waits and none plays.
    pub(crate) fn begin(&mut self, gateway: &Arc<Gateway>, voice: &TtsConfig, place: &str, session: u64) {
        if self.playing.is_some() {
            return;
        }
        let Some((number, speak)) = self.waiting.pop_front() else { return };
        let order = Order { text: speak.text, voice: voice.clone(), place: place.to_owned() };
        self.playing = Some(Playing {
            number,
            is_interruptible: speak.allow_interruption,
            reply: Reply::begin(gateway, order, Some(session)),
            provider_ms: 0.0,
            is_said: false,
            stops_at: None,
        });
    }

    /// What the reply that plays says next; for ever if it says nothing.
    pub(crate) async fn next(&mut self) -> Event {
        let Some(playing) = self.playing.as_mut().filter(|playing| !playing.is_said) else {
            return pending().await;
        };
        let event = playing.reply.next().await;
        match event.said {
            Said::Begins(provider_ms) => playing.provider_ms = provider_ms,
            Said::Complete | Said::Failed(_) => playing.is_said = true,
            Said::Audio(_) => {}
        }
        event
    }

    /// The last word of what plays is written: its number, and what the provider took.
    pub(crate) fn finish(&mut self) -> Option<(u64, f64)> {
        let playing = self.playing.take()?;
        Some((playing.number, playing.provider_ms))
    }

    /// Whether nothing plays and nothing waits.
    pub(crate) fn is_quiet(&self) -> bool {
        self.playing.is_none() && self.waiting.is_empty()
    }

    /// How many have not ended.
    pub(crate) fn open(&self) -> u64 {
        self.waiting.len() as u64 + u64::from(self.playing.is_some())
    }

    /// Drops what may be interrupted; of what plays only if `playing_too`.
    fn drop_all(&mut self, playing_too: impl Fn(&Playing) -> bool) -> Dropped {
        let waited = self.waiting.len();
        self.waiting.retain(|(_, speak)| !speak.allow_interruption);
        let goes = |playing: &mut Playing| playing.is_interruptible && playing_too(playing);
        let playing = self.playing.take_if(goes).is_some();
        Dropped { speaks: (waited - self.waiting.len()) as u64 + u64::from(playing), playing }
    }
}
