//! Seeded randomness that gives the same numbers on every machine and in every release.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): 64 bits of state, one
/// addition and one mix a draw. A library's default generator may change between its versions, and with it every
/// latency that a seed stands for; this one is written down.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator for a seed. Streams for different purposes differ in `stream`, so that drawing more from one
    /// leaves the others as they are.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut of_stream = Self { state: stream };
        Self {
            state: seed ^ if stream == 0 { 0 } else { of_stream.next_u64() },
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), with all 53 bits that a float of this range has.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller). Always takes two draws.
    pub fn normal(&mut self) -> f64 {
        // 1 - u is in (0, 1]: its logarithm is finite.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers() {
        // The reference implementation's output for seed 1234567.
        let mut rng = SplitMix64::new(1_234_567, 0);
        let drawn: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn streams_of_a_seed_differ() {
        assert_ne!(
            SplitMix64::new(1, 1).next_u64(),
            SplitMix64::new(1, 2).next_u64()
        );
    }

    #[test]
    fn normal_has_mean_0_and_variance_1() {
        let mut rng = SplitMix64::new(7, 0);
        let count = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..count {
            let z = rng.normal();
            sum += z;
            squares += z * z;
        }
        let n = f64::from(count);
        assert!((sum / n).abs() < 0.01, "mean {}", sum / n);
        assert!((squares / n - 1.0).abs() < 0.02, "variance {}", squares / n);
    }
}
