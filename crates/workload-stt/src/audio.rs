//! What the sessions say: one periodic table of PCM that all of them share.
//!
//! Frame `q` of a session is the window of 320 samples at `base + q * 320` of a table without end. The synthetic table has a period of
//! 20,000 samples ([`super::synthetic`]); a WAV file is repeated, each session from its own offset. The table is kept twice: as it
//! is, to recompute answers, and masked, to be sent as it lies there. The mask's four bytes repeat after two, so it fits at
//! every window, for windows begin at whole samples.

use plimsoll_core::schedule::mix;

use super::synthetic::{FRAME_BYTES, FRAME_SAMPLES, Synthetic};

/// The mask of all binary frames. See [`plimsoll_protocol::connection`] for why a fixed mask will do.
const MASK: [u8; 4] = [0x5A, 0xC3, 0x5A, 0xC3];

/// Header of a masked binary frame of 640 bytes (RFC 6455, section 5.2): FIN and opcode 2, mask bit and a 16-bit length, the length, the mask.
pub const FRAME_HEADER: [u8; 8] = [0x82, 0xFE, 0x02, 0x80, MASK[0], MASK[1], MASK[2], MASK[3]];

/// The table.
#[derive(Debug)]
pub struct Audio {
    plain: Box<[u8]>,
    masked: Box<[u8]>,
    period_samples: u32,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Synthetic,
    File,
}

/// Why a file cannot be streamed: one line, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    /// Not a WAV file.
    #[error("not a WAV file ({reason}); convert it with: {CONVERT}")]
    NotWav {
        /// What the reader said.
        reason: String,
    },
    /// Another format.
    #[error(
        "{sample_rate_hz} Hz, {channels} channels, {bits} bits{}, but 16000 Hz mono 16-bit PCM is needed; convert it with: {CONVERT}",
        if *.float { " float" } else { "" }
    )]
    Format {
        /// Samples a second.
        sample_rate_hz: u32,
        /// Channels.
        channels: u16,
        /// Bits per sample.
        bits: u16,
        /// Whether samples are floating point.
        float: bool,
    },
    /// Less than a frame.
    #[error("only {samples} samples; at least {FRAME_SAMPLES} (20 ms) are needed")]
    TooShort {
        /// How many.
        samples: usize,
    },
    /// Too much to count in 32 bits.
    #[error("over a day of audio; give a shorter file")]
    TooLong,
}

const CONVERT: &str = "ffmpeg -i IN -ac 1 -ar 16000 -c:a pcm_s16le OUT.wav";

impl Audio {
    /// The synthetic table of the contract, section 5.
    #[must_use]
    pub fn synthetic() -> Self {
        let synthetic = Synthetic::new();
        // Session 0's frames 0.. are windows side by side: a period of 20,000 samples is 62.5 of them.
        let samples: Vec<u8> = (0..63)
            .flat_map(|seq| synthetic.frame(0, seq))
            .copied()
            .collect();
        Self::repeating(&samples[..40_000], 20_000, Source::Synthetic)
    }

    /// The samples of a WAV file: 16 kHz, mono, signed 16 bit.
    ///
    /// # Errors
    /// [`AudioError`], one line with the remedy.
    pub fn from_wav(file: &[u8]) -> Result<Self, AudioError> {
        let not_wav = |error: hound::Error| AudioError::NotWav {
            reason: error.to_string(),
        };
        let reader = hound::WavReader::new(file).map_err(not_wav)?;
        let spec = reader.spec();
        let float = spec.sample_format == hound::SampleFormat::Float;
        if (spec.sample_rate, spec.channels, spec.bits_per_sample) != (16_000, 1, 16) || float {
            return Err(AudioError::Format {
                sample_rate_hz: spec.sample_rate,
                channels: spec.channels,
                bits: spec.bits_per_sample,
                float,
            });
        }
        let mut pcm = Vec::with_capacity(file.len());
        for sample in reader.into_samples::<i16>() {
            pcm.extend_from_slice(&sample.map_err(not_wav)?.to_le_bytes());
        }
        let samples = pcm.len() / 2;
        if samples < FRAME_SAMPLES {
            return Err(AudioError::TooShort { samples });
        }
        let period_samples = u32::try_from(samples).map_err(|_| AudioError::TooLong)?;
        if period_samples > 86_400 * 16_000 {
            return Err(AudioError::TooLong);
        }
        Ok(Self::repeating(&pcm, period_samples, Source::File))
    }

    fn repeating(period: &[u8], period_samples: u32, source: Source) -> Self {
        let mut plain = period.to_vec();
        plain.extend_from_slice(&period[..FRAME_BYTES]);
        let masked = plain.iter().zip(MASK.iter().cycle()).map(|(b, m)| b ^ m);
        Self {
            masked: masked.collect(),
            plain: plain.into_boxed_slice(),
            period_samples,
            source,
        }
    }

    /// Where a session's frame 0 would begin, in samples; its frame 1 begins one frame later.
    #[must_use]
    pub fn base(&self, session: u32) -> u32 {
        match self.source {
            Source::Synthetic => session % self.period_samples,
            Source::File => {
                let drawn = mix(u64::from(session)) % u64::from(self.period_samples);
                u32::try_from(drawn).unwrap_or_else(|_| unreachable!("below a u32"))
            }
        }
    }

    /// The window after this one.
    #[must_use]
    pub fn advance(&self, start: u32) -> u32 {
        let next = start + FRAME_SAMPLES as u32;
        if next >= self.period_samples {
            next % self.period_samples
        } else {
            next
        }
    }

    /// The payload of a frame, masked for the wire.
    #[must_use]
    pub fn masked_frame(&self, start: u32) -> &[u8] {
        &self.masked[start as usize * 2..][..FRAME_BYTES]
    }

    /// The PCM of frames `oldest..=newest` of the session with this base, as a gateway would have buffered it.
    #[must_use]
    pub fn batch(&self, base: u32, oldest: u64, newest: u64) -> Vec<u8> {
        let period = u64::from(self.period_samples);
        (oldest..=newest)
            .flat_map(|seq| {
                let start = (u64::from(base) + seq % period * FRAME_SAMPLES as u64) % period;
                let start = usize::try_from(start).unwrap_or_else(|_| unreachable!("below a u32"));
                &self.plain[start * 2..][..FRAME_BYTES]
            })
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_protocol::websocket::{Opcode, append_client_frame};

    fn wav(spec: hound::WavSpec, samples: &[i16]) -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
        for sample in samples {
            writer.write_sample(*sample).unwrap();
        }
        writer.finalize().unwrap();
        bytes.into_inner()
    }

    const SPEC: hound::WavSpec = hound::WavSpec {
        channels: 1,
        sample_rate: 16_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };

    fn stream(audio: &Audio, session: u32, frames: u64) -> Vec<u8> {
        let mut start = audio.base(session);
        let mut wire = Vec::new();
        for _ in 0..frames {
            start = audio.advance(start);
            wire.extend_from_slice(&FRAME_HEADER);
            wire.extend_from_slice(audio.masked_frame(start));
        }
        wire
    }

    #[test]
    fn synthetic_frames_go_on_the_wire_as_the_contract_says() {
        let audio = Audio::synthetic();
        let synthetic = Synthetic::new();
        for session in [0_u32, 1, 77, 19_999, 20_000, 31_234] {
            let mut expected = Vec::new();
            for seq in 1..=130 {
                let frame = synthetic.frame(u64::from(session), seq);
                append_client_frame(&mut expected, true, Opcode::Binary, frame, MASK);
            }
            assert_eq!(stream(&audio, session, 130), expected, "session {session}");
            let base = audio.base(session);
            assert_eq!(
                audio.batch(base, 50, 99),
                synthetic.batch(u64::from(session), 50, 50)
            );
        }
    }

    #[test]
    fn a_file_repeats_without_a_seam_and_sessions_start_apart() {
        let samples: Vec<i16> = (0..1000).collect();
        let audio = Audio::from_wav(&wav(SPEC, &samples)).unwrap();
        let base = audio.base(5);
        assert_ne!(base, audio.base(6));
        let batch = audio.batch(base, 1, 10);
        for (i, sample) in batch.chunks(2).enumerate() {
            let expected = (base as usize + 320 + i) % 1000;
            assert_eq!(
                u16::from_le_bytes([sample[0], sample[1]]),
                u16::try_from(expected).unwrap()
            );
        }
        let wire = stream(&audio, 5, 10);
        let sent: Vec<u8> = wire
            .chunks(648)
            .flat_map(|frame| {
                frame[8..]
                    .iter()
                    .zip(MASK.iter().cycle())
                    .map(|(b, m)| b ^ m)
            })
            .collect();
        assert_eq!(sent, batch);
    }

    #[test]
    fn other_formats_are_refused_with_the_line_that_converts_them() {
        let stereo = hound::WavSpec {
            channels: 2,
            sample_rate: 44_100,
            ..SPEC
        };
        let error = Audio::from_wav(&wav(stereo, &[0; 2000]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("44100 Hz, 2 channels") && error.contains("ffmpeg -i"),
            "{error}"
        );
        assert!(matches!(
            Audio::from_wav(b"RIFFxxxx"),
            Err(AudioError::NotWav { .. })
        ));
        assert!(matches!(
            Audio::from_wav(&wav(SPEC, &[0; 319])),
            Err(AudioError::TooShort { samples: 319 })
        ));
    }
}
