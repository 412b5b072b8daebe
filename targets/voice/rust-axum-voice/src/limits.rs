//! Sizes and times that the contract fixes, and what they are counted in.

use std::time::Duration;

/// Bytes of a millisecond of a caller's audio: 16 samples of two bytes.
pub const AUDIO_BYTES_PER_MS: usize = 32;
/// Bytes of 20 ms of a caller's audio, less than which is not dropped.
pub const AUDIO_BLOCK_BYTES: usize = 20 * AUDIO_BYTES_PER_MS;
/// Bytes of 20 ms of a reply, likewise: 24 samples a millisecond.
pub const REPLY_BLOCK_BYTES: usize = 20 * 24 * 2;

/// For the `config` of a session.
pub const CONFIG_TIMEOUT: Duration = Duration::from_secs(10);
/// A result that waits longer for a slow reader is dropped.
pub const RESULT_WAIT: Duration = Duration::from_millis(500);
/// A socket that takes nothing for so long is closed.
pub const BLOCKED_TIMEOUT: Duration = Duration::from_secs(10);
/// After a final result, for another one, before the utterance is taken to be over.
pub const SPEECH_FINAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The most of a binary message, in bytes.
pub const AUDIO_BYTES_MAX: usize = 5 << 20;
/// The most that a text may declare, in bytes.
pub const TEXT_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The most that a binary may declare, in bytes.
pub const BINARY_MESSAGE_BYTES_MAX: usize = 10 << 20;

/// With a fraction.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
