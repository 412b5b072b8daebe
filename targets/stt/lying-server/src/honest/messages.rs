//! The text messages of a session (contract, sections 3 and 6) and its close codes.

use serde::{Deserialize, Serialize};

use super::reference::Answer;

/// Close codes that the contract uses.
pub mod close {
    /// The server is shutting down.
    pub const GOING_AWAY: u16 = 1001;
    /// The client broke the protocol.
    pub const PROTOCOL: u16 = 1002;
    /// A binary message that is not one frame.
    pub const UNSUPPORTED_DATA: u16 = 1003;
    /// A declared length over 64 KiB.
    pub const TOO_BIG: u16 = 1009;
    /// The input buffer is full and the policy is to close.
    pub const TRY_AGAIN_LATER: u16 = 1013;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    #[serde(rename = "type")]
    kind: String,
}

/// Whether a text is the start message: a JSON object with the one field `type`, whose value is `start`.
#[must_use]
pub fn is_start(text: &str) -> bool {
    // The derived reader would also take an array of one value for the object.
    let is_object = text
        .trim_start_matches([' ', '\t', '\r', '\n'])
        .starts_with('{');
    is_object && serde_json::from_str::<Start>(text).is_ok_and(|start| start.kind == "start")
}

/// An answer to the client: exactly the contract's fields, in its order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Partial {
    /// Always "partial".
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The batch's first frame.
    pub oldest_frame_seq: u64,
    /// The batch's last frame.
    pub newest_frame_seq: u64,
    /// Frames in the batch.
    pub frames: u64,
    /// See [`Answer::rms`].
    pub rms: f64,
    /// See [`Answer::zero_crossings`].
    pub zero_crossings: u64,
    /// See [`Answer::checksum`].
    pub checksum: u32,
    /// See [`Answer::samples`].
    pub samples: u64,
    /// See [`Answer::transcript`].
    pub transcript: &'static str,
    /// See [`Answer::audio_bytes`].
    pub audio_bytes: u64,
    /// `CPU_PASSES`.
    pub cpu_passes: u32,
    /// Time of the flush minus the scheduled time of its tick.
    pub flush_lateness_ms: f64,
}

impl Partial {
    /// The computed part of the message.
    #[must_use]
    pub fn answer(&self) -> Answer {
        Answer {
            rms: self.rms,
            zero_crossings: self.zero_crossings,
            checksum: self.checksum,
            samples: self.samples,
            transcript: self.transcript,
            audio_bytes: self.audio_bytes,
        }
    }

    /// The message as it goes on the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a struct of numbers and plain strings is always JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn start_messages_agree_with_the_shared_vectors() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/start.json");
        let vectors: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            let text = case["text"].as_str().unwrap();
            assert_eq!(Value::from(is_start(text)), case["ok"], "{}", case["id"]);
        }
    }
}
