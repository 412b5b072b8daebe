//! The latency model of `docs/stt/contract.md`, section 5: pure, seeded by whoever passes the generator in.

use std::time::Duration;

use crate::random::SplitMix64;

/// Parameters of the model, all in milliseconds or plain numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyModel {
    /// `MODEL_BATCH_WAIT_MAX_MS`: the first term is uniform from 0 to this.
    pub batch_wait_max_ms: f64,
    /// `MODEL_DELAY_MS`: median of the second term, a log-normal.
    pub delay_ms: f64,
    /// `MODEL_JITTER_SIGMA`: the log-normal's sigma.
    pub jitter_sigma: f64,
    /// `MODEL_LONGTAIL_MULT`: what the second term is multiplied by in the long tail.
    pub longtail_mult: f64,
    /// `MODEL_LONGTAIL_PROB`: the share of requests in the long tail.
    pub longtail_prob: f64,
}

impl LatencyModel {
    /// No drawn latency is longer than an hour, whatever the parameters.
    pub const MAX: Duration = Duration::from_secs(3600);

    /// The latency of the next request. Every draw takes as much from the generator, whatever the parameters, so
    /// that two runs which differ in one parameter differ in nothing else.
    pub fn draw(&self, rng: &mut SplitMix64) -> Duration {
        let batch_wait_ms = rng.unit() * self.batch_wait_max_ms;
        let model_ms = self.delay_ms * (self.jitter_sigma * rng.normal()).exp();
        let in_the_tail = rng.unit() < self.longtail_prob;
        let model_ms = if in_the_tail {
            model_ms * self.longtail_mult
        } else {
            model_ms
        };
        Duration::try_from_secs_f64((batch_wait_ms + model_ms) / 1e3)
            .unwrap_or(Self::MAX)
            .min(Self::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    const DEFAULT: LatencyModel = LatencyModel {
        batch_wait_max_ms: 20.0,
        delay_ms: 75.0,
        jitter_sigma: 0.15,
        longtail_mult: 3.0,
        longtail_prob: 0.01,
    };

    fn draws_ms(model: &LatencyModel, seed: u64) -> Vec<f64> {
        let mut rng = SplitMix64::new(seed, 0);
        (0..DRAWS)
            .map(|_| model.draw(&mut rng).as_secs_f64() * 1e3)
            .collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    fn share(draws: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
        draws.iter().filter(|&&ms| holds(ms)).count() as f64 / draws.len() as f64
    }

    /// The seeds are fixed, so these tests give the same verdict every time.
    fn assert_share(draws: &[f64], at_most_ms: f64, expected: f64) {
        let seen = share(draws, |ms| ms <= at_most_ms);
        assert!(
            (seen - expected).abs() < 0.006,
            "{seen} of the draws are <= {at_most_ms} ms, the formula says {expected}"
        );
    }

    #[test]
    fn the_first_term_is_uniform() {
        let draws = draws_ms(
            &LatencyModel {
                delay_ms: 0.0,
                ..DEFAULT
            },
            1,
        );
        for tenth in 0..=10 {
            assert_share(&draws, f64::from(tenth) * 2.0, f64::from(tenth) / 10.0);
        }
    }

    #[test]
    fn the_second_term_is_log_normal() {
        let draws = draws_ms(
            &LatencyModel {
                batch_wait_max_ms: 0.0,
                longtail_prob: 0.0,
                ..DEFAULT
            },
            2,
        );
        // Quantiles of the standard normal.
        for (z, expected) in [
            (-2.326_348, 0.01),
            (-1.281_552, 0.1),
            (0.0, 0.5),
            (1.0, 0.841_345),
            (2.326_348, 0.99),
        ] {
            assert_share(&draws, 75.0 * (0.15_f64 * z).exp(), expected);
        }
    }

    #[test]
    fn the_tail_multiplies_the_second_term_only() {
        let model = LatencyModel {
            jitter_sigma: 0.0,
            longtail_prob: 0.25,
            ..DEFAULT
        };
        let draws = draws_ms(&model, 3);
        assert!(
            draws
                .iter()
                .all(|ms| (75.0..95.0).contains(ms) || (225.0..245.0).contains(ms))
        );
        assert_share(&draws, 100.0, 0.75);
    }

    #[test]
    fn the_default_has_the_mean_of_its_formula() {
        let draws = draws_ms(&DEFAULT, 4);
        let mean = draws.iter().sum::<f64>() / f64::from(u32::try_from(draws.len()).expect("few"));
        // 10 + 75 exp(sigma^2 / 2) (1 + 0.01 (3 - 1))
        let expected = 10.0 + 75.0 * (0.15_f64 * 0.15 / 2.0).exp() * 1.02;
        assert!(
            (mean - expected).abs() < 0.3,
            "mean {mean}, the formula says {expected}"
        );
    }

    #[test]
    fn a_seed_repeats_and_another_seed_does_not() {
        assert_eq!(draws_ms(&DEFAULT, 5), draws_ms(&DEFAULT, 5));
        assert_ne!(draws_ms(&DEFAULT, 5), draws_ms(&DEFAULT, 6));
    }

    #[test]
    fn parameters_do_not_shift_each_others_draws() {
        let plain = draws_ms(
            &LatencyModel {
                longtail_prob: 0.0,
                ..DEFAULT
            },
            8,
        );
        let tailed = draws_ms(
            &LatencyModel {
                longtail_prob: 0.01,
                ..DEFAULT
            },
            8,
        );
        let same = plain.iter().zip(&tailed).filter(|(a, b)| a == b).count();
        assert!(
            same > DRAWS * 98 / 100 && same < DRAWS,
            "{same} draws are the same"
        );
    }

    #[test]
    fn wild_parameters_are_bounded() {
        let model = LatencyModel {
            delay_ms: 1e300,
            longtail_mult: 1e300,
            longtail_prob: 1.0,
            ..DEFAULT
        };
        assert_eq!(model.draw(&mut SplitMix64::new(1, 0)), LatencyModel::MAX);
    }
}
