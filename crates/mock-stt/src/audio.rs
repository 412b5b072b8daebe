//! What a dialect's audio is: bytes to samples of 16 bits, however a client cuts them.

use serde::Serialize;

/// How a sample is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Signed, 16 bits, little-endian.
    S16le,
    /// Float, 32 bits, little-endian, from -1 to 1.
    F32le,
    /// Mu-law, 8 bits (ITU-T G.711).
    MuLaw,
}

/// How audio is written: one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Format {
    /// A sample.
    pub encoding: Encoding,
    /// Samples per second.
    pub rate_hz: u32,
}

impl Format {
    /// The format of most dialects.
    pub const USUAL: Self = Self {
        encoding: Encoding::S16le,
        rate_hz: 16_000,
    };

    /// Signed 16 bits at this rate.
    #[must_use]
    pub const fn s16le(rate_hz: u32) -> Self {
        Self {
            encoding: Encoding::S16le,
            rate_hz,
        }
    }

    /// Whether the mock can hear it: it has the clips at these rates.
    #[must_use]
    pub const fn is_known(self) -> bool {
        matches!(
            (self.encoding, self.rate_hz),
            (Encoding::MuLaw, 8_000) | (Encoding::S16le | Encoding::F32le, 8_000 | 16_000 | 24_000)
        )
    }
}

/// Bytes to samples. The rest of a sample waits for the next bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    /// Appends the samples of these bytes.
    pub fn decode(&mut self, encoding: Encoding, bytes: &[u8], pcm: &mut Vec<i16>) {
        match encoding {
            Encoding::S16le => self.each(bytes, |sample| pcm.push(i16::from_le_bytes(sample))),
            Encoding::F32le => {
                self.each(bytes, |sample| {
                    pcm.push(of_float(f32::from_le_bytes(sample)))
                });
            }
            Encoding::MuLaw => pcm.extend(bytes.iter().map(|byte| of_mu_law(*byte))),
        }
    }

    fn each<const N: usize>(&mut self, bytes: &[u8], mut on_sample: impl FnMut([u8; N])) {
        let mut bytes = bytes;
        if !self.rest.is_empty() {
            let taken = (N - self.rest.len()).min(bytes.len());
            self.rest.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if let Some(sample) = self.rest.first_chunk() {
                on_sample(*sample);
                self.rest.clear();
            }
        }
        let (whole, rest) = bytes.as_chunks::<N>();
        whole.iter().for_each(|sample| on_sample(*sample));
        self.rest.extend_from_slice(rest);
    }
}

/// A float sample. What is beyond full scale is clipped, and what is no number is silence.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
pub fn of_float(sample: f32) -> i16 {
    (sample * 32_768.0).round() as i16
}

/// A mu-law sample, as ITU-T G.711 expands it: 14 bits, here in the upper ones of 16.
#[must_use]
pub fn of_mu_law(byte: u8) -> i16 {
    const BIAS: i16 = 0x84;
    let code = !byte;
    let (exponent, mantissa) = ((code >> 4) & 0x7, i16::from(code & 0xF));
    let magnitude = (((mantissa << 3) + BIAS) << exponent) - BIAS;
    if code & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mu_law_is_that_of_g_711() {
        // Table 2a: the ends of the scale, its middle, and the first value of a segment.
        for (byte, sample) in [
            (0x80, 32_124),
            (0x00, -32_124),
            (0xFF, 0),
            (0x7F, 0),
            (0x8F, 16_764),
            (0xEF, 132),
        ] {
            assert_eq!(of_mu_law(byte), sample, "{byte:#x}");
        }
    }

    #[test]
    fn floats_are_clipped() {
        for (float, sample) in [
            (0.0, 0),
            (0.5, 16_384),
            (-1.0, -32_768),
            (1.0, 32_767),
            (-9.0, -32_768),
            (f32::NAN, 0),
        ] {
            assert_eq!(of_float(float), sample, "{float}");
        }
    }

    proptest! {
        #[test]
        fn samples_are_the_same_however_they_are_cut(bytes: Vec<u8>, sizes in prop::collection::vec(1_usize..9, 1..9)) {
            for encoding in [Encoding::S16le, Encoding::F32le, Encoding::MuLaw] {
                let (mut whole, mut cut) = (Vec::new(), Vec::new());
                Decoder::default().decode(encoding, &bytes, &mut whole);
                let (mut decoder, mut at) = (Decoder::default(), 0);
                for size in sizes.iter().cycle() {
                    let end = (at + size).min(bytes.len());
                    decoder.decode(encoding, &bytes[at..end], &mut cut);
                    at = end;
                    if at == bytes.len() { break; }
                }
                prop_assert_eq!(&whole, &cut);
            }
        }
    }
}
