//! How a session's audio is heard.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Instant;

use bytes::Bytes;

use crate::lies::fiction::FalseEar;
use crate::messages::SttResult;
use crate::stt::Stt;

/// A connection that is being made.
type Connecting = Pin<Box<dyn Future<Output = Option<Stt>> + Send>>;

/// What hears.
pub(crate) enum Ear {
    /// Nothing: a session without audio, or one whose provider is lost.
    Deaf,
    /// Nothing yet, and audio is kept: only the liar says `ready` before.
    Connecting(Connecting, Vec<Bytes>),
    /// A provider.
    Provider(Box<Stt>),
    /// The liar itself.
    False(FalseEar),
}

/// What came of it.
pub(crate) enum Heard {
    Result(SttResult),
    /// There is no provider any more, or there never was.
    Lost,
    /// The provider is there.
    Connected(Box<Stt>, Vec<Bytes>),
}

impl Ear {
    /// Audio came; results that are there at once.
    pub(crate) async fn hear(&mut self, audio: Bytes) -> Vec<SttResult> {
        match self {
            Self::Deaf => {}
            Self::Connecting(_, kept) => kept.push(audio),
            Self::Provider(stt) => stt.hear(audio).await,
            Self::False(ear) => return ear.hear(&audio),
        }
        Vec::new()
    }

    /// What is heard next; for ever if nothing is.
    pub(crate) async fn next(&mut self) -> Heard {
        match self {
            Self::Deaf | Self::False(_) => pending().await,
            Self::Provider(stt) => stt.next().await.map_or(Heard::Lost, Heard::Result),
            Self::Connecting(connecting, kept) => match connecting.as_mut().await {
                Some(stt) => Heard::Connected(Box::new(stt), std::mem::take(kept)),
                None => Heard::Lost,
            },
        }
    }

    /// When [`Ear::keep_alive`] is to be called.
    pub(crate) fn keep_alive_at(&self) -> Option<Instant> {
        match self {
            Self::Provider(stt) => Some(stt.keep_alive_at()),
            _ => None,
        }
    }

    /// Keeps the provider waiting, if it is time.
    pub(crate) async fn keep_alive(&mut self) {
        if let Self::Provider(stt) = self {
            stt.keep_alive().await;
        }
    }

    /// The session is over.
    pub(crate) async fn close(&mut self) {
        if let Self::Provider(stt) = self {
            stt.close().await;
        }
        *self = Self::Deaf;
    }
}
