//! What a gateway says to its client (`docs/stt/contract.md`, sections 6 and 7), read strictly: exactly these fields.

use std::borrow::Cow;

use serde::Deserialize;

use super::synthetic::{FRAME_BYTES, FRAME_SAMPLES};

/// The message that opens a session.
pub const START: &str = r#"{"type":"start"}"#;

/// A `partial`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partial<'a> {
    /// Always `partial`.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// First frame of the batch.
    pub oldest_frame_seq: u64,
    /// Last frame of the batch.
    pub newest_frame_seq: u64,
    /// Frames in the batch.
    pub frames: u64,
    /// Root mean square of the samples.
    pub rms: f64,
    /// Sign changes over all passes.
    pub zero_crossings: u64,
    /// FNV-1a over all passes.
    pub checksum: u32,
    /// Samples times passes.
    pub samples: u64,
    /// The word that the checksum chooses.
    #[serde(borrow)]
    pub transcript: Cow<'a, str>,
    /// Bytes of PCM in the batch.
    pub audio_bytes: u64,
    /// Passes over the batch.
    pub cpu_passes: u32,
    /// Time of the flush minus its schedule.
    pub flush_lateness_ms: f64,
}

/// An `error`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the contract's fields, word for word; see section 7"
)]
pub struct ErrorMessage<'a> {
    #[serde(borrow, rename = "type")]
    pub message_type: Cow<'a, str>,
    #[serde(borrow)]
    pub stage: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    pub oldest_frame_seq: u64,
    pub newest_frame_seq: u64,
    pub frames: u64,
    pub audio_bytes: u64,
    pub oldest_age_ms: f64,
    pub newest_age_ms: f64,
    pub flush_lateness_ms: f64,
    pub inference_elapsed_ms: Option<f64>,
    pub inflight_gateway_batches: u64,
    pub gateway_buffer_frames: u64,
    pub inference_status: Option<u16>,
    pub retryable: bool,
}

/// What a gateway sent.
#[derive(Debug, Clone, PartialEq)]
pub enum GatewayMessage<'a> {
    /// An answer.
    Partial(Partial<'a>),
    /// An error that names its frames.
    Error(ErrorMessage<'a>),
}

impl<'a> GatewayMessage<'a> {
    /// Reads a text message.
    ///
    /// # Errors
    /// Which rule of the contract it breaks.
    pub fn parse(text: &'a str) -> Result<Self, &'static str> {
        // Partials are nearly all there is, so they are tried first.
        if let Ok(partial) = serde_json::from_str::<Partial<'_>>(text) {
            return partial.check().map(|()| Self::Partial(partial));
        }
        match serde_json::from_str::<ErrorMessage<'_>>(text) {
            Ok(error) => error.check().map(|()| Self::Error(error)),
            Err(_) => Err("message is neither a partial nor an error of the contract"),
        }
    }
}

impl Partial<'_> {
    /// What can be told from the message alone.
    fn check(&self) -> Result<(), &'static str> {
        if self.kind != "partial" {
            return Err("message with a partial's fields and another type");
        }
        check_frames(self.oldest_frame_seq, self.newest_frame_seq, self.frames)?;
        if !self.flush_lateness_ms.is_finite() || self.flush_lateness_ms < 0.0 {
            return Err("partial with a negative flush lateness");
        }
        Ok(())
    }

    /// Whether sizes and transcript are those of its frames and its checksum.
    #[must_use]
    pub fn sizes_and_word_are_right(&self) -> bool {
        self.audio_bytes == self.frames * FRAME_BYTES as u64
            && self.samples == self.frames * FRAME_SAMPLES as u64 * u64::from(self.cpu_passes)
            && self.transcript == super::reference::transcript(self.checksum)
    }
}

impl ErrorMessage<'_> {
    fn check(&self) -> Result<(), &'static str> {
        if self.message_type != "error" {
            return Err("message with an error's fields and another type");
        }
        check_frames(self.oldest_frame_seq, self.newest_frame_seq, self.frames)?;
        let retryable = match (&*self.stage, &*self.kind) {
            ("inference_request", "timeout" | "connection_reset" | "http_429" | "http_5xx") => true,
            ("inference_request", "http_4xx")
            | ("inference_response_parse", "parse_error")
            | ("input_buffer", "overflow") => false,
            _ => return Err("error of a stage and kind that the contract does not have"),
        };
        if self.retryable != retryable {
            return Err("error whose `retryable` is not that of its kind");
        }
        if self.audio_bytes != self.frames * FRAME_BYTES as u64 {
            return Err("error whose bytes are not those of its frames");
        }
        Ok(())
    }
}

fn check_frames(oldest: u64, newest: u64, frames: u64) -> Result<(), &'static str> {
    if oldest == 0 || newest < oldest || newest - oldest != frames.wrapping_sub(1) {
        return Err("message whose frame numbers do not fit together");
    }
    Ok(())
}
