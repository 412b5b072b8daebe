//! The interval of a word error rate, and of the difference of two.

use plimsoll_core::stats::{Bootstrap, Draws, quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::errors::{WordErrors, quotient};

/// A value with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The value itself.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The word error rate of a corpus with its percentile bootstrap interval: utterances are drawn with replacement, and the
/// interval lies between the quantiles `(1 ∓ confidence) / 2` of the rates (Bisani and Ney, Bootstrap Estimates for
/// Confidence Intervals in ASR Performance Evaluation, ICASSP 2004; Efron and Tibshirani, An Introduction to the
/// Bootstrap, 1993, chapter 13.3).
///
/// Utterances without reference words are left out. `None` if fewer than two remain, or if the settings make no sense.
/// The draws take utterances for independent. Those of one clip are not quite, so the interval is somewhat narrow where
/// many sessions repeat few clips.
#[must_use]
pub fn rate_interval(utterances: &[WordErrors], bootstrap: &Bootstrap) -> Option<Interval> {
    let sample = Sample::of(utterances)?;
    let mut draws = Draws(bootstrap.seed);
    interval_of(sample.rate(), bootstrap, || sample.drawn_rate(&mut draws))
}

/// By how many percentage points the word error rate under load exceeds the unloaded one, with its percentile bootstrap
/// interval: both corpora are drawn anew, independently of each other (Efron and Tibshirani, chapter 8.3). Negative if it
/// is lower. `None` as for [`rate_interval`].
#[must_use]
pub fn excess_points(
    loaded: &[WordErrors],
    unloaded: &[WordErrors],
    bootstrap: &Bootstrap,
) -> Option<Interval> {
    let (loaded, unloaded) = (Sample::of(loaded)?, Sample::of(unloaded)?);
    let mut draws = Draws(bootstrap.seed);
    let value = 100.0 * (loaded.rate() - unloaded.rate());
    interval_of(value, bootstrap, || {
        100.0 * (loaded.drawn_rate(&mut draws) - unloaded.drawn_rate(&mut draws))
    })
}

fn interval_of(
    value: f64,
    bootstrap: &Bootstrap,
    mut draw: impl FnMut() -> f64,
) -> Option<Interval> {
    let sensible = bootstrap.confidence > 0.0 && bootstrap.confidence < 1.0;
    if !sensible {
        return None;
    }
    let drawn: Vec<f64> = (0..bootstrap.resamples).map(|_| draw()).collect();
    Some(Interval {
        value,
        low: quantile(&drawn, (1.0 - bootstrap.confidence) / 2.0)?,
        high: quantile(&drawn, f64::midpoint(1.0, bootstrap.confidence))?,
    })
}

/// Errors and words of each utterance.
struct Sample(Vec<(u64, u64)>);

impl Sample {
    fn of(utterances: &[WordErrors]) -> Option<Self> {
        let with_words = utterances.iter().filter(|one| one.reference_words > 0);
        let pairs: Vec<_> = with_words
            .map(|one| (one.total(), one.reference_words))
            .collect();
        (pairs.len() >= 2).then_some(Self(pairs))
    }

    fn rate(&self) -> f64 {
        let (errors, words) = self
            .0
            .iter()
            .fold((0, 0), |(e, w), one| (e + one.0, w + one.1));
        quotient(errors, words)
    }

    fn drawn_rate(&self, draws: &mut Draws) -> f64 {
        let (mut errors, mut words) = (0, 0);
        for _ in 0..self.0.len() {
            let drawn = self.0[draws.below(self.0.len())];
            errors += drawn.0;
            words += drawn.1;
        }
        quotient(errors, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOTSTRAP: Bootstrap = Bootstrap {
        confidence: 0.95,
        resamples: 2_000,
        seed: 7,
    };

    /// An utterance of ten words with so many wrong ones.
    fn ten_words(wrong: u64) -> WordErrors {
        WordErrors {
            reference_words: 10,
            substitutions: wrong,
            ..WordErrors::default()
        }
    }

    #[test]
    fn a_corpus_rate_is_no_mean_of_rates() {
        let short = WordErrors {
            reference_words: 2,
            deletions: 2,
            ..WordErrors::default()
        };
        let all: WordErrors = [short, ten_words(1)].into_iter().sum();
        assert_eq!(all.rate(), Some(0.25));
        let interval = rate_interval(&[short, ten_words(1)], &BOOTSTRAP).unwrap();
        // Two utterances: both of one kind with probability 1/4 each.
        assert_eq!(
            (interval.value, interval.low, interval.high),
            (0.25, 0.1, 1.0)
        );
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        // Utterances of ten words, each wrong with probability 1/5: the rate is 0.2.
        let mut draws = Draws(3);
        let mut held = 0;
        for seed in 0..200 {
            let sample: Vec<_> = (0..40)
                .map(|_| ten_words((0..10).filter(|_| draws.below(5) == 0).count() as u64))
                .collect();
            let bootstrap = Bootstrap {
                resamples: 400,
                seed,
                ..BOOTSTRAP
            };
            let interval = rate_interval(&sample, &bootstrap).unwrap();
            held += u32::from(interval.low <= 0.2 && 0.2 <= interval.high);
        }
        assert!((180..=199).contains(&held), "{held} of 200");
    }

    #[test]
    fn excess_is_in_points_and_shows_what_is_certain() {
        let unloaded = [ten_words(1); 30];
        let same = excess_points(&unloaded, &unloaded, &BOOTSTRAP).unwrap();
        assert_eq!((same.value, same.low, same.high), (0.0, 0.0, 0.0));
        // Three more of ten words wrong.
        let loaded = [ten_words(4); 30];
        let excess = excess_points(&loaded, &unloaded, &BOOTSTRAP).unwrap();
        assert!((excess.value - 30.0).abs() < 1e-9 && excess.low > 29.0);
        // One utterance of garbage among few proves nothing.
        let mut garbage = [ten_words(1); 6];
        garbage[3] = ten_words(10);
        let excess = excess_points(&garbage, &unloaded, &BOOTSTRAP).unwrap();
        assert!(excess.value > 3.0 && excess.low <= 3.0, "{excess:?}");
    }

    #[test]
    fn an_excess_is_as_unsure_as_both_corpora() {
        let mixed: Vec<WordErrors> = (0..60).map(|n| ten_words(n % 5)).collect();
        let alone = rate_interval(&mixed, &BOOTSTRAP).unwrap();
        let excess = excess_points(&mixed, &mixed, &BOOTSTRAP).unwrap();
        // Variances add, so the width is √2 times one corpus's, in points.
        let ratio = (excess.high - excess.low) / (100.0 * (alone.high - alone.low));
        assert!((1.3..1.53).contains(&ratio), "{ratio}");
    }

    #[test]
    fn what_has_no_interval_is_refused() {
        assert_eq!(rate_interval(&[ten_words(1)], &BOOTSTRAP), None);
        assert_eq!(
            rate_interval(&[ten_words(1), WordErrors::default()], &BOOTSTRAP),
            None
        );
        for (confidence, resamples) in [(1.0, 10), (f64::NAN, 10), (0.9, 0)] {
            let bootstrap = Bootstrap {
                confidence,
                resamples,
                seed: 1,
            };
            assert_eq!(rate_interval(&[ten_words(1); 4], &bootstrap), None);
        }
    }
}
