//! Samples as bytes, in the encodings that recognisers take besides little-endian PCM.

/// What G.711 adds to a magnitude before it takes the logarithm, in units of 16-bit samples: 33 × 4.
const BIAS: u16 = 132;

/// The largest magnitude that has a code of its own; larger ones have the same.
const CLIP: u16 = 32_767 - BIAS;

/// Signed 16-bit little-endian PCM.
#[must_use]
pub fn pcm_bytes(samples: &[i16]) -> Vec<u8> {
    samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect()
}

/// 32-bit floats from −1 up to 1: the sample by 32,768, which is exact.
#[must_use]
pub fn floats(samples: &[i16]) -> Vec<f32> {
    samples
        .iter()
        .map(|sample| f32::from(*sample) / 32_768.0)
        .collect()
}

/// μ-law, of samples at 8 kHz (ITU-T G.711, 1988, tables 2a and 2b): sign, segment and step, all bits inverted. G.711 counts
/// in 14 bits; a 16-bit sample is four times as large.
#[must_use]
pub fn mu_law(samples: &[i16]) -> Vec<u8> {
    samples.iter().map(|sample| mu_law_of(*sample)).collect()
}

fn mu_law_of(sample: i16) -> u8 {
    let magnitude = sample.unsigned_abs().min(CLIP) + BIAS;
    // The position of the highest bit, from 7 to 14, is the segment plus 7.
    let segment = 8 - magnitude.leading_zeros();
    let step = (magnitude >> (segment + 3)) & 0x0F;
    let sign = if sample < 0 { 0x80 } else { 0 };
    let [_, code] =
        (sign | u16::try_from(segment << 4).unwrap_or_else(|_| unreachable!("at most 7")) | step)
            .to_be_bytes();
    !code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G.711, table 2a, positive values: for each segment, in 14 bits, where it begins and how wide its steps are.
    const SEGMENTS: [(i32, i32); 8] = [
        (0, 2),
        (31, 4),
        (95, 8),
        (223, 16),
        (479, 32),
        (991, 64),
        (2_015, 128),
        (4_063, 256),
    ];

    /// The decision values x1, x2, … x128 of table 2a: the first step is 0 to 1, then 15 steps of 2 up to 31, then 16 steps of
    /// each segment up to 8,159.
    fn decisions() -> Vec<i32> {
        let mut decisions = vec![0];
        for (number, (begin, width)) in SEGMENTS.into_iter().enumerate() {
            let first = if number == 0 { 1 } else { begin };
            let steps = if number == 0 { 15 } else { 16 };
            decisions.extend((0..steps).map(|step| first + step * width));
        }
        decisions.push(8_159);
        decisions
    }

    #[test]
    fn the_table_is_that_of_the_recommendation() {
        let decisions = decisions();
        assert_eq!(decisions.len(), 129);
        // Decision values that table 2a prints, by their numbers.
        for (number, value) in [
            (1, 0),
            (2, 1),
            (17, 31),
            (33, 95),
            (49, 223),
            (65, 479),
            (81, 991),
            (97, 2_015),
            (113, 4_063),
            (114, 4_319),
            (128, 7_903),
            (129, 8_159),
        ] {
            assert_eq!(decisions[number - 1], value, "x{number}");
        }
    }

    #[test]
    fn every_sample_has_the_code_of_its_interval() {
        let decisions = decisions();
        for sample in i16::MIN..=i16::MAX {
            // The interval of the magnitude; on a decision value, the upper one. 14-bit values times four are 16-bit ones.
            let magnitude = i32::from(sample).abs();
            let interval = decisions[1..128]
                .iter()
                .filter(|decision| **decision * 4 <= magnitude)
                .count();
            let code = 0xFF - u8::try_from(interval).unwrap();
            let expected = if sample < 0 { code & 0x7F } else { code };
            assert_eq!(mu_law_of(sample), expected, "{sample}");
        }
    }

    #[test]
    fn codes_that_the_recommendation_prints() {
        // The largest values are 10000000 and 00000000, zero is 11111111 and 01111111.
        assert_eq!(
            mu_law(&[i16::MAX, i16::MIN, 0, -1]),
            [0x80, 0x00, 0xFF, 0x7F]
        );
        // 4063 begins segment 8: 10001111. 2015 begins segment 7: 10011111.
        assert_eq!(
            mu_law(&[4_063 * 4, 2_015 * 4, -2_015 * 4]),
            [0x8F, 0x9F, 0x1F]
        );
    }

    #[test]
    fn pcm_and_floats_are_exact() {
        assert_eq!(pcm_bytes(&[1, -2]), [1, 0, 0xFE, 0xFF]);
        assert_eq!(
            floats(&[i16::MIN, 0, 16_384, i16::MAX]),
            [-1.0, 0.0, 0.5, 32_767.0 / 32_768.0]
        );
    }
}
