//! The frames of all clips as they go on the wire, made before the trial. All sessions share them.

use plimsoll_speech::clip::{Clip, RATE_HZ};
use plimsoll_speech::encode::{floats, mu_law, pcm_bytes};
use plimsoll_speech::plan::{FrameLength, Sound, piece};
use plimsoll_speech::resample::{Rate, Resampler};

use crate::dialect::{Audio, Dialect, Encoding};

/// The mask of all messages. RFC 6455 asks for unpredictable masks to protect proxies from what a malicious page sends; a load
/// client sends only its own bytes.
pub(crate) const MASK: [u8; 4] = [0x53, 0x50, 0x45, 0x41];

/// Packed frames.
#[derive(Debug)]
pub(crate) struct Frames {
    silence: Vec<u8>,
    /// Of each clip, its frames in their order.
    clips: Vec<Vec<Vec<u8>>>,
}

impl Frames {
    pub(crate) fn new(clips: &[Clip], frame: FrameLength, dialect: &dyn Dialect) -> Self {
        let audio = dialect.audio();
        let resampler = rate(&audio).map(Resampler::to);
        let packed = |samples: &[i16]| {
            let mut wire = Vec::new();
            let message = dialect.pack(&encoded(samples, audio.encoding));
            message.append_wire(MASK, &mut wire);
            wire
        };
        let of_clip = |clip: &Clip| {
            let count = clip.samples.len().div_ceil(frame.samples());
            let padded: Vec<i16> = (0..count)
                .flat_map(|number| piece(&clip.samples, number, frame))
                .collect();
            let samples = resampler
                .as_ref()
                .map_or_else(|| padded.clone(), |filter| filter.resample(&padded));
            samples
                .chunks(samples_of_frame(frame, &audio))
                .map(packed)
                .collect()
        };
        Self {
            silence: packed(&vec![0; samples_of_frame(frame, &audio)]),
            clips: clips.iter().map(of_clip).collect(),
        }
    }

    /// The bytes of a frame.
    pub(crate) fn of(&self, sound: Sound) -> &[u8] {
        match sound {
            Sound::Silence => &self.silence,
            Sound::Piece { clip, piece } => &self.clips[clip][piece],
        }
    }

    /// The bytes of a frame of silence.
    pub(crate) fn silence(&self) -> &[u8] {
        &self.silence
    }
}

fn samples_of_frame(frame: FrameLength, audio: &Audio) -> usize {
    frame.samples() * audio.rate_hz as usize / RATE_HZ as usize
}

/// The rate to resample to; `None` for that of the clips.
fn rate(audio: &Audio) -> Option<Rate> {
    match audio.rate_hz {
        8_000 => Some(Rate::Hz8000),
        24_000 => Some(Rate::Hz24000),
        _ => None,
    }
}

fn encoded(samples: &[i16], encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::S16le => pcm_bytes(samples),
        Encoding::F32le => floats(samples)
            .iter()
            .flat_map(|sample| sample.to_le_bytes())
            .collect(),
        Encoding::Mulaw => mu_law(samples),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Options, by_name};

    fn clip() -> Clip {
        let samples: Vec<i16> = (0..1_000).map(|at| (at % 100) * 50).collect();
        Clip {
            name: "a".to_owned(),
            words: vec!["a".to_owned()],
            speech: 0..samples.len(),
            samples,
        }
    }

    #[test]
    fn each_dialect_gets_whole_frames_of_its_own_rate() {
        for (name, frame_ms, payload_bytes) in [
            ("deepgram", 40, 1_280),
            ("vosk", 20, 640),
            // Four bytes for three, and the JSON around them.
            ("openai-realtime", 40, 2_560 + 45 + 2),
        ] {
            let frame = FrameLength::of_ms(frame_ms).unwrap();
            let options = Options {
                frame_ms: Some(u64::from(frame_ms)),
                ..Options::default()
            };
            let dialect = by_name(name, &options).unwrap();
            let frames = Frames::new(&[clip()], frame, &*dialect);
            let header_bytes = 8;
            assert_eq!(
                frames.silence().len(),
                payload_bytes + header_bytes,
                "{name}"
            );
            let count = 1_000_usize.div_ceil(frame.samples());
            let all = &frames.clips[0];
            assert_eq!(all.len(), count);
            assert!(
                all.iter()
                    .all(|bytes| bytes.len() == frames.silence().len())
            );
        }
    }
}
