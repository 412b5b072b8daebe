//! What a session of a check says: clips with pauses, cut into messages of any length.

use std::time::Duration;

use plimsoll_speech::clip::{Clip, RATE_HZ, SAMPLE_NS};
use plimsoll_speech::encode;
use plimsoll_speech::ledger::TOLERANCE_NS;
use plimsoll_speech::resample::{Rate, Resampler};

use crate::dialect::{Audio, Encoding};

/// Silence before the first clip.
pub(super) const LEAD: Duration = Duration::from_millis(500);

/// Silence between two clips: longer than the pause that ends a turn.
pub(super) const PAUSE: Duration = Duration::from_millis(1_500);

/// Speech, ready to be said.
#[derive(Debug, Clone)]
pub(super) struct Speech {
    /// The audio of each message, not yet packed.
    pub(super) frames: Vec<Vec<u8>>,
    /// All words, in their order.
    pub(super) words: Vec<String>,
    /// Where each clip's speech begins and ends, in audio time.
    pub(super) spans_ns: Vec<(u64, u64)>,
}

impl Speech {
    /// These clips, each after a pause, with silence at the end.
    pub(super) fn of(clips: &[&Clip], audio: Audio, tail: Duration) -> Self {
        Self::after(LEAD, clips, audio, tail)
    }

    /// The same after so much silence.
    pub(super) fn after(lead: Duration, clips: &[&Clip], audio: Audio, tail: Duration) -> Self {
        let mut pcm = Vec::new();
        let (mut words, mut spans_ns) = (Vec::new(), Vec::new());
        for (number, clip) in clips.iter().enumerate() {
            add_silence(&mut pcm, if number == 0 { lead } else { PAUSE });
            let at_ns = |sample: usize| (pcm.len() + sample) as u64 * SAMPLE_NS;
            spans_ns.push((at_ns(clip.speech.start), at_ns(clip.speech.end)));
            words.extend(clip.words.iter().cloned());
            pcm.extend_from_slice(&clip.samples);
        }
        add_silence(&mut pcm, tail);
        Self {
            frames: frames(pcm, audio),
            words,
            spans_ns,
        }
    }

    /// So much silence.
    pub(super) fn silence(length: Duration, audio: Audio) -> Self {
        Self::of(&[], audio, length)
    }

    /// The end of all speech that a server must have reached, as exactly as its times must be.
    pub(super) fn reached_at_ns(&self) -> u64 {
        let end_ns = self.spans_ns.last().map_or(0, |(_, end_ns)| *end_ns);
        end_ns.saturating_sub(TOLERANCE_NS)
    }
}

fn add_silence(pcm: &mut Vec<i16>, length: Duration) {
    let samples = length.as_millis() as usize * (RATE_HZ as usize / 1000);
    pcm.resize(pcm.len() + samples, 0);
}

/// Whole frames of the dialect's audio; the last one is filled up with silence. The audio is resampled as a whole, as a
/// microphone would have it.
fn frames(pcm: Vec<i16>, audio: Audio) -> Vec<Vec<u8>> {
    let mut pcm = pcm;
    let samples = (audio.frame_ns / SAMPLE_NS).max(1) as usize;
    pcm.resize(pcm.len().next_multiple_of(samples), 0);
    let pcm = match audio.rate_hz {
        8_000 => Resampler::to(Rate::Hz8000).resample(&pcm),
        24_000 => Resampler::to(Rate::Hz24000).resample(&pcm),
        _ => pcm,
    };
    let bytes: Vec<u8> = match audio.encoding {
        Encoding::S16le => encode::pcm_bytes(&pcm),
        Encoding::Mulaw => encode::mu_law(&pcm),
        Encoding::F32le => {
            let samples = encode::floats(&pcm).into_iter();
            samples.flat_map(f32::to_le_bytes).collect()
        }
    };
    let frames = bytes.chunks_exact(audio.frame_bytes().max(1));
    frames.map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip(samples: usize) -> Clip {
        Clip {
            name: "a".to_owned(),
            words: vec!["ah".to_owned()],
            samples: vec![1_000; samples],
            speech: 160..samples,
        }
    }

    #[test]
    fn speech_is_cut_into_whole_frames_whatever_their_length() {
        for (encoding, rate_hz) in [
            (Encoding::S16le, 16_000),
            (Encoding::Mulaw, 8_000),
            (Encoding::F32le, 24_000),
        ] {
            for frame_ms in [10, 40, 1_000] {
                let audio = Audio {
                    encoding,
                    rate_hz,
                    frame_ns: frame_ms * 1_000_000,
                };
                let clip = clip(16_000 + 7);
                let speech = Speech::of(&[&clip, &clip], audio, Duration::from_secs(1));
                // 0.5 s, a clip, 1.5 s, a clip, 1 s: 5 s and 14 samples.
                let expected = 5_001_u64.div_ceil(frame_ms) as usize;
                assert_eq!(speech.frames.len(), expected, "{audio:?}");
                let bytes = audio.frame_bytes();
                assert!(speech.frames.iter().all(|frame| frame.len() == bytes));
                assert_eq!(speech.words, ["ah", "ah"]);
                assert_eq!(speech.spans_ns[0], (510_000_000, 1_500_437_500));
            }
        }
    }
}
