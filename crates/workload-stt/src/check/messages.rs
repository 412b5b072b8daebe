//! The two messages that a gateway sends, read strictly, and the ledger of the frames that they name.

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer};

use crate::reference;
use crate::synthetic::Synthetic;

/// Two correct programs may print or read a number so that its last bits differ; anything more is another number.
const SAME_NUMBER: f64 = 1e-9;

/// `partial`: exactly these fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Partial {
    #[serde(rename = "type")]
    _type: String,
    pub(super) oldest_frame_seq: u64,
    pub(super) newest_frame_seq: u64,
    pub(super) frames: u64,
    pub(super) rms: f64,
    pub(super) zero_crossings: u64,
    pub(super) checksum: u32,
    pub(super) samples: u64,
    pub(super) transcript: String,
    pub(super) audio_bytes: u64,
    pub(super) cpu_passes: u32,
    pub(super) flush_lateness_ms: f64,
}

/// `error`: exactly these fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorMessage {
    #[serde(rename = "type")]
    _type: String,
    pub(super) stage: String,
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) oldest_frame_seq: u64,
    pub(super) newest_frame_seq: u64,
    pub(super) frames: u64,
    pub(super) audio_bytes: u64,
    pub(super) oldest_age_ms: f64,
    pub(super) newest_age_ms: f64,
    pub(super) flush_lateness_ms: f64,
    #[serde(deserialize_with = "present")]
    pub(super) inference_elapsed_ms: Option<f64>,
    pub(super) inflight_gateway_batches: u64,
    pub(super) gateway_buffer_frames: u64,
    #[serde(deserialize_with = "present")]
    pub(super) inference_status: Option<u16>,
    pub(super) retryable: bool,
}

/// A field that may be null but must be there.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    field: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(field)
}

/// What a gateway says about a batch of frames.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    Partial(Partial),
    Error(ErrorMessage),
}

impl Message {
    /// Reads a text message; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Kind {
            r#type: String,
        }
        let wrong = |error: serde_json::Error| format!("{error} in {text}");
        let kind: Kind = serde_json::from_str(text).map_err(wrong)?;
        match kind.r#type.as_str() {
            "partial" => serde_json::from_str(text).map(Self::Partial).map_err(wrong),
            "error" => serde_json::from_str(text).map(Self::Error).map_err(wrong),
            _ => Err(format!("neither a partial nor an error: {text}")),
        }
    }

    /// The frames that the message names.
    pub(super) fn range(&self) -> RangeInclusive<u64> {
        match self {
            Self::Partial(m) => m.oldest_frame_seq..=m.newest_frame_seq,
            Self::Error(m) => m.oldest_frame_seq..=m.newest_frame_seq,
        }
    }

    fn frames(&self) -> u64 {
        match self {
            Self::Partial(m) => m.frames,
            Self::Error(m) => m.frames,
        }
    }

    /// One line for people.
    pub(super) fn summary(&self) -> String {
        let range = self.range();
        let (oldest, newest) = (range.start(), range.end());
        match self {
            Self::Partial(_) => format!("partial {oldest}-{newest}"),
            Self::Error(m) => format!("error {}/{} {oldest}-{newest}", m.stage, m.kind),
        }
    }
}

/// Checks that a partial's content is the reference computation over the synthetic frames that it names.
pub(super) fn check_content(partial: &Partial, session: u64) -> Result<(), String> {
    let pcm = Synthetic::new().batch(session, partial.oldest_frame_seq, partial.frames);
    let expected =
        reference::compute(&pcm, partial.cpu_passes).map_err(|error| error.to_string())?;
    let same = (partial.rms - expected.rms).abs() <= SAME_NUMBER * expected.rms.abs()
        && partial.zero_crossings == expected.zero_crossings
        && partial.checksum == expected.checksum
        && partial.samples == expected.samples
        && partial.transcript == expected.transcript
        && partial.audio_bytes == expected.audio_bytes;
    if same {
        return Ok(());
    }
    Err(format!(
        "frames {}-{} computed as rms {} zero_crossings {} checksum {} samples {} transcript {:?} audio_bytes {}, \
         not as {} {} {} {} {:?} {}",
        partial.oldest_frame_seq,
        partial.newest_frame_seq,
        partial.rms,
        partial.zero_crossings,
        partial.checksum,
        partial.samples,
        partial.transcript,
        partial.audio_bytes,
        expected.rms,
        expected.zero_crossings,
        expected.checksum,
        expected.samples,
        expected.transcript,
        expected.audio_bytes,
    ))
}

/// Which frames were named: each exactly once, in order.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    named: u64,
}

impl Ledger {
    /// The newest frame named so far.
    pub(super) fn named(&self) -> u64 {
        self.named
    }

    /// Enters a message; `sent` frames have been sent by now.
    pub(super) fn enter(&mut self, message: &Message, sent: u64) -> Result<(), String> {
        let range = message.range();
        let follows = *range.start() == self.named + 1;
        let counted =
            range.end() >= range.start() && message.frames() == range.end() - range.start() + 1;
        if !follows || !counted || *range.end() > sent {
            return Err(format!(
                "{} with frames={} after frame {} was named and {sent} were sent",
                message.summary(),
                message.frames(),
                self.named
            ));
        }
        self.named = *range.end();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = r#"{"type":"partial","oldest_frame_seq":1,"newest_frame_seq":1,"frames":1,"rms":2425.5023191083533,
        "zero_crossings":7,"checksum":1745339397,"samples":1280,"transcript":"now","audio_bytes":640,"cpu_passes":4,
        "flush_lateness_ms":0.5}"#;

    const TIMEOUT: &str = r#"{"type":"error","stage":"inference_request","kind":"timeout","message":"no answer","oldest_frame_seq":2,
        "newest_frame_seq":4,"frames":3,"audio_bytes":1920,"oldest_age_ms":70,"newest_age_ms":30,"flush_lateness_ms":0,
        "inference_elapsed_ms":500.2,"inflight_gateway_batches":0,"gateway_buffer_frames":0,"inference_status":null,
        "retryable":true}"#;

    #[test]
    fn the_golden_partial_is_read_and_its_content_checked() {
        let Ok(Message::Partial(partial)) = Message::parse(GOLDEN) else {
            panic!("not read");
        };
        assert_eq!(check_content(&partial, 0), Ok(()));
        assert!(
            check_content(&partial, 1).is_err(),
            "another session's audio"
        );
        let wrong = Partial {
            checksum: 1,
            ..partial
        };
        assert!(check_content(&wrong, 0).is_err());
    }

    #[test]
    fn fields_are_exactly_these() {
        for (from, to) in [
            ("\"samples\":1280,", ""),
            ("\"samples\":1280", "\"samples\":1280,\"language\":\"en\""),
            ("\"samples\":1280", "\"samples\":\"1280\""),
            ("\"checksum\":1745339397", "\"checksum\":-1"),
            ("\"type\":\"partial\"", "\"type\":\"final\""),
        ] {
            assert!(Message::parse(&GOLDEN.replace(from, to)).is_err(), "{to}");
        }
        assert!(Message::parse(TIMEOUT).is_ok());
        for absent in [
            "\"inference_status\":null,",
            "\"inference_elapsed_ms\":500.2,",
        ] {
            assert!(TIMEOUT.contains(absent));
            assert!(
                Message::parse(&TIMEOUT.replace(absent, "")).is_err(),
                "null is not absence: {absent}"
            );
        }
    }

    #[test]
    fn the_ledger_takes_each_frame_once_and_in_order() {
        let golden = Message::parse(GOLDEN).expect("legal");
        let timeout = Message::parse(TIMEOUT).expect("legal");
        let mut ledger = Ledger::default();
        assert!(ledger.enter(&timeout, 10).is_err(), "frame 1 is missing");
        assert_eq!(ledger.enter(&golden, 10), Ok(()));
        assert!(ledger.enter(&golden, 10).is_err(), "named twice");
        assert!(ledger.enter(&timeout, 3).is_err(), "frame 4 was not sent");
        assert_eq!(ledger.enter(&timeout, 4), Ok(()));
        assert_eq!(ledger.named(), 4);
        let miscounted =
            Message::parse(&TIMEOUT.replace("\"frames\":3", "\"frames\":2")).expect("legal");
        assert!(Ledger { named: 1 }.enter(&miscounted, 10).is_err());
    }
}
