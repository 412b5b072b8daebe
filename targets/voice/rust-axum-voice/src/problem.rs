//! What can be wrong: the kinds of `error` messages.

/// The kind of an `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message that is none of the contract's.
    BadMessage,
    /// A message that needs a session that is ready, or audio.
    NotReady,
    /// A `config` that is not one, or not wanted any more.
    BadConfig,
    /// A text or audio that is longer than is taken.
    TooLarge,
    /// A provider, encoding or format that is not known here.
    Unsupported,
    /// The connection for speech-to-text is lost; another is tried.
    SttLost,
    /// There is no connection for speech-to-text.
    SttFailed,
    /// Audio of the caller that nobody will recognise.
    AudioDropped,
    /// No reply, or not all of it.
    TtsFailed,
    /// A reply that did not come, or not go on, in time.
    TtsTimeout,
    /// The provider of the reply has had enough.
    TtsRateLimited,
}

impl Kind {
    /// Every kind, in the order of their discriminants, so that `kind as usize` indexes an array of this length.
    pub const ALL: [Self; 11] = [
        Self::BadMessage,
        Self::NotReady,
        Self::BadConfig,
        Self::TooLarge,
        Self::Unsupported,
        Self::SttLost,
        Self::SttFailed,
        Self::AudioDropped,
        Self::TtsFailed,
        Self::TtsTimeout,
        Self::TtsRateLimited,
    ];

    /// Its name, as `error.kind` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadMessage => "bad_message",
            Self::NotReady => "not_ready",
            Self::BadConfig => "bad_config",
            Self::TooLarge => "too_large",
            Self::Unsupported => "unsupported",
            Self::SttLost => "stt_lost",
            Self::SttFailed => "stt_failed",
            Self::AudioDropped => "audio_dropped",
            Self::TtsFailed => "tts_failed",
            Self::TtsTimeout => "tts_timeout",
            Self::TtsRateLimited => "tts_rate_limited",
        }
    }
}

/// Most characters of a message: parts of it are quoted from elsewhere.
const MESSAGE_CHARS_MAX: usize = 200;

/// Something that is wrong, and what a client is told about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What it is.
    pub kind: Kind,
    /// For people.
    pub message: String,
    /// Whether the same may go well a moment later.
    pub retryable: bool,
}

impl Problem {
    /// A problem that stays.
    pub fn new(kind: Kind, message: impl std::fmt::Display) -> Self {
        Self { kind, message: shortened(message), retryable: false }
    }

    /// A problem that may be over soon.
    pub fn passing(kind: Kind, message: impl std::fmt::Display) -> Self {
        Self { kind, message: shortened(message), retryable: true }
    }
}

fn shortened(message: impl std::fmt::Display) -> String {
    message.to_string().chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminants_index_the_list() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
