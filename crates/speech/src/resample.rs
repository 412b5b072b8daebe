//! Resampling from 16 kHz, with whole numbers only: the same bytes on each machine.
//!
//! The filter is a sinc with a Kaiser window (Oppenheim and Schafer, Discrete-Time Signal Processing, chapters 4.6 and
//! 7.5.3), as a bank of phases. Its taps are rounded to 2^-20, and the sum of each phase is exactly 1.
//!
//! Quality, as the tests measure it: the pass band is flat to 0.1 dB, and what would be an alias or an image is at least 75 dB
//! down. To 8 kHz the pass band ends at 3.4 kHz, that of telephones (ITU-T G.711); to 24 kHz it ends at 7.2 kHz.

use std::f64::consts::PI;

const TAP_BITS: u32 = 20;

/// The Kaiser window's shape: 80 dB (Oppenheim and Schafer, equation 7.75: 0.1102 × (80 − 8.7)).
const BETA: f64 = 7.86;

/// A rate that recognisers take besides 16 kHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rate {
    /// 8,000 samples a second.
    Hz8000,
    /// 24,000 samples a second.
    Hz24000,
}

/// A filter for one rate. Making it takes milliseconds, so make it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resampler {
    up: usize,
    down: usize,
    /// Taps of each phase, the newest sample's first.
    phases: Vec<Vec<i64>>,
    /// How many input samples after its own time an output sample depends on.
    ahead: usize,
}

impl Resampler {
    /// From 16 kHz to this rate.
    #[must_use]
    pub fn to(rate: Rate) -> Self {
        match rate {
            // Between 3.4 and 4.0 kHz.
            Rate::Hz8000 => Self::new(1, 2, 69, 3_700.0 / 16_000.0),
            // Between 7.2 and 8.0 kHz, at 48 kHz.
            Rate::Hz24000 => Self::new(3, 2, 51, 7_600.0 / 48_000.0),
        }
    }

    /// A filter that multiplies the rate by `up / down`. It reaches `reach` input samples to each side. `cutoff` is a share of
    /// the rate of the prototype, which is `up` times the input's.
    fn new(up: usize, down: usize, reach: usize, cutoff: f64) -> Self {
        let phases = (0..up).map(|phase| taps_of(phase, up, reach, cutoff));
        Self {
            up,
            down,
            phases: phases.collect(),
            ahead: reach,
        }
    }

    /// The same sound at the other rate. Before and after it is silence; the filter delays nothing. There are
    /// `⌈samples × up / down⌉` output samples, so a whole number of frames stays one.
    #[must_use]
    pub fn resample(&self, samples: &[i16]) -> Vec<i16> {
        let length = (samples.len() * self.up).div_ceil(self.down);
        let output = (0..length).map(|n| {
            let (at, phase) = (n * self.down / self.up, n * self.down % self.up);
            let sum: i64 = self.phases[phase]
                .iter()
                .enumerate()
                .filter_map(|(tap, weight)| {
                    let from = (at + self.ahead).checked_sub(tap)?;
                    Some(weight * i64::from(*samples.get(from)?))
                })
                .sum();
            rounded(sum)
        });
        output.collect()
    }
}

fn rounded(sum: i64) -> i16 {
    let value = (sum + (1 << (TAP_BITS - 1))) >> TAP_BITS;
    let clamped = value.clamp(i64::from(i16::MIN), i64::from(i16::MAX));
    i16::try_from(clamped).unwrap_or_else(|_| unreachable!("clamped"))
}

/// The taps of one phase, whose sum is 2^20.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "taps are at most 2^20, and a filter has some hundred of them"
)]
fn taps_of(phase: usize, up: usize, reach: usize, cutoff: f64) -> Vec<i64> {
    let width = 2.0 * cutoff * up as f64;
    let taps = (0..=2 * reach).map(|tap| {
        // The distance from the output sample, in input samples.
        let x = tap as f64 - reach as f64 + phase as f64 / up as f64;
        let inside = 1.0 - (x / (reach as f64 + 1.0)).powi(2);
        let window = bessel_i0(BETA * inside.max(0.0).sqrt()) / bessel_i0(BETA);
        let sinc = if x == 0.0 {
            1.0
        } else {
            (PI * width * x).sin() / (PI * width * x)
        };
        width * sinc * window
    });
    let taps: Vec<f64> = taps.collect();
    let sum: f64 = taps.iter().sum();
    let scale = f64::from(1 << TAP_BITS) / sum;
    let mut taps: Vec<i64> = taps
        .iter()
        .map(|tap| (tap * scale).round() as i64)
        .collect();
    // What rounding left over, of the millionth part, goes to the largest tap.
    taps[reach] += (1 << TAP_BITS) - taps.iter().sum::<i64>();
    taps
}

/// The modified Bessel function of order 0, by its power series (Abramowitz and Stegun, 9.6.12).
fn bessel_i0(x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..60 {
        term *= (x / (2.0 * f64::from(k))).powi(2);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::corpus::Corpus;

    /// A sine of full scale less 3 dB.
    #[expect(clippy::cast_possible_truncation, reason = "below a full scale")]
    fn sine(frequency_hz: f64, seconds: u32) -> Vec<i16> {
        let angle = |n: u32| 2.0 * PI * frequency_hz * f64::from(n) / 16_000.0;
        (0..seconds * 16_000)
            .map(|n| (23_000.0 * angle(n).sin()).round() as i16)
            .collect()
    }

    /// The level of a frequency in decibels below the sine's, without the edges (by a Hann-windowed discrete Fourier sum).
    #[expect(clippy::cast_precision_loss, reason = "a few thousand samples")]
    fn level_db(samples: &[i16], rate_hz: f64, frequency_hz: f64) -> f64 {
        let inner = &samples[samples.len() / 4..samples.len() * 3 / 4];
        let (mut real, mut imaginary, mut weights) = (0.0, 0.0, 0.0);
        for (n, sample) in inner.iter().enumerate() {
            let weight = 0.5 - 0.5 * (2.0 * PI * n as f64 / inner.len() as f64).cos();
            let angle = 2.0 * PI * frequency_hz * n as f64 / rate_hz;
            real += weight * f64::from(*sample) * angle.cos();
            imaginary += weight * f64::from(*sample) * angle.sin();
            weights += weight;
        }
        20.0 * (2.0 * real.hypot(imaginary) / weights / 23_000.0).log10()
    }

    #[test]
    fn eight_khz_is_flat_to_3400_hz_and_without_aliases() {
        let resampler = Resampler::to(Rate::Hz8000);
        for frequency_hz in [100.0, 1_000.0, 2_000.0, 3_000.0, 3_400.0] {
            let found = level_db(
                &resampler.resample(&sine(frequency_hz, 1)),
                8_000.0,
                frequency_hz,
            );
            assert!(found.abs() < 0.1, "{frequency_hz} Hz: {found} dB");
        }
        for frequency_hz in [4_000.0, 4_500.0, 5_000.0, 6_000.0, 7_500.0] {
            let alias_hz = 8_000.0 - frequency_hz;
            let found = level_db(
                &resampler.resample(&sine(frequency_hz, 1)),
                8_000.0,
                alias_hz,
            );
            assert!(
                found < -75.0,
                "{frequency_hz} Hz: {found} dB at {alias_hz} Hz"
            );
        }
    }

    #[test]
    fn twenty_four_khz_is_flat_to_7200_hz_and_without_images() {
        let resampler = Resampler::to(Rate::Hz24000);
        for frequency_hz in [100.0, 1_000.0, 5_000.0, 7_000.0, 7_200.0] {
            let output = resampler.resample(&sine(frequency_hz, 1));
            let found = level_db(&output, 24_000.0, frequency_hz);
            assert!(found.abs() < 0.1, "{frequency_hz} Hz: {found} dB");
            // The image at 16 kHz − f is above 12 kHz for f < 4 kHz, and appears at 8 kHz + f.
            let image_hz = f64::min(16_000.0 - frequency_hz, 8_000.0 + frequency_hz);
            let found = level_db(&output, 24_000.0, image_hz);
            assert!(
                found < -75.0,
                "{frequency_hz} Hz: {found} dB at {image_hz} Hz"
            );
        }
    }

    #[test]
    fn nothing_is_delayed_and_full_scale_does_not_wrap() {
        for (rate, up, down) in [(Rate::Hz8000, 1, 2), (Rate::Hz24000, 3, 2)] {
            let resampler = Resampler::to(rate);
            let mut impulse = vec![0; 1_000];
            impulse[500] = 20_000;
            let output = resampler.resample(&impulse);
            let loudest = (0..output.len()).max_by_key(|n| output[*n]).unwrap();
            assert_eq!(
                (output.len(), loudest),
                (1_000 * up / down, 500 * up / down)
            );
            let square: Vec<i16> = (0..400)
                .map(|n| if n / 50 % 2 == 0 { i16::MAX } else { i16::MIN })
                .collect();
            let output = resampler.resample(&square);
            assert!(output.contains(&i16::MAX) && output.contains(&i16::MIN));
            // A constant stays itself.
            assert!(
                resampler.resample(&[12_345; 600])[100..200]
                    .iter()
                    .all(|sample| *sample == 12_345)
            );
            assert!(resampler.resample(&[]).is_empty());
            assert_eq!(resampler.resample(&[1; 320]).len(), 320 * up / down);
        }
    }

    #[test]
    fn the_clips_resampled_are_golden() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/stt-real/corpus");
        let corpus = Corpus::pinned(folder.as_ref()).unwrap();
        let clip = corpus
            .clips
            .iter()
            .find(|clip| clip.name == "051-en-us")
            .unwrap();
        let digest = |samples: Vec<i16>| {
            let bytes: Vec<u8> = samples
                .iter()
                .flat_map(|sample| sample.to_le_bytes())
                .collect();
            let digest = Sha256::digest(bytes);
            digest
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!(
            digest(Resampler::to(Rate::Hz8000).resample(&clip.samples)),
            "f598ada9a6925ca5"
        );
        assert_eq!(
            digest(Resampler::to(Rate::Hz24000).resample(&clip.samples)),
            "b0e59d49511e6b79"
        );
    }
}
