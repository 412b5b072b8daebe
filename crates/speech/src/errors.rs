//! Word errors: alignment, word error rate and its interval.
//!
//! The word error rate is (substitutions + insertions + deletions) / words of the reference, over the alignment with the
//! fewest errors (Levenshtein 1966; computed as by Wagner and Fischer, The String-to-String Correction Problem, Journal
//! of the ACM 21, 1974). Of a corpus, it is all errors by all reference words, and no mean of rates. It can exceed 1.

use plimsoll_core::stats::{Bootstrap, Draws, quantile};
use serde::{Deserialize, Serialize};

/// One step of an alignment. Numbers are positions in the reference and in the hypothesis, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The same word.
    Match {
        /// Its position in the reference.
        reference: usize,
        /// Its position in the hypothesis.
        hypothesis: usize,
    },
    /// Another word in its place.
    Substitution {
        /// The word that was said.
        reference: usize,
        /// The word that was heard.
        hypothesis: usize,
    },
    /// A word that nobody said.
    Insertion {
        /// The word that was heard.
        hypothesis: usize,
    },
    /// A word that was not heard.
    Deletion {
        /// The word that was said.
        reference: usize,
    },
}

/// Which of the three neighbours a cell of the table came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Both,
    Reference,
    Hypothesis,
}

/// The alignment with the fewest errors. Of several, the one that, read from the end, prefers a pair of words to a
/// deletion, and that to an insertion.
///
/// Takes a byte of memory for each pair of words: 81 MB for an hour of speech, which has 9,000 words.
#[must_use]
pub fn align<W: PartialEq>(reference: &[W], hypothesis: &[W]) -> Vec<Step> {
    let width = hypothesis.len() + 1;
    let mut from = vec![From::Hypothesis; (reference.len() + 1) * width];
    let mut costs: Vec<u32> = (0..).take(width).collect();
    for (row, said) in reference.iter().enumerate() {
        let mut diagonal = costs[0];
        costs[0] += 1;
        from[(row + 1) * width] = From::Reference;
        for (column, heard) in hypothesis.iter().enumerate() {
            let both = diagonal + u32::from(said != heard);
            let deletion = costs[column + 1] + 1;
            let insertion = costs[column] + 1;
            diagonal = costs[column + 1];
            let (cost, origin) = if both <= deletion.min(insertion) {
                (both, From::Both)
            } else if deletion <= insertion {
                (deletion, From::Reference)
            } else {
                (insertion, From::Hypothesis)
            };
            costs[column + 1] = cost;
            from[(row + 1) * width + column + 1] = origin;
        }
    }
    traced(&from, reference, hypothesis)
}

fn traced<W: PartialEq>(from: &[From], reference: &[W], hypothesis: &[W]) -> Vec<Step> {
    let (mut row, mut column) = (reference.len(), hypothesis.len());
    let mut steps = Vec::with_capacity(row.max(column));
    while row > 0 || column > 0 {
        match from[row * (hypothesis.len() + 1) + column] {
            From::Both => {
                (row, column) = (row - 1, column - 1);
                let (reference_at, hypothesis_at) = (row, column);
                steps.push(if reference[row] == hypothesis[column] {
                    Step::Match {
                        reference: reference_at,
                        hypothesis: hypothesis_at,
                    }
                } else {
                    Step::Substitution {
                        reference: reference_at,
                        hypothesis: hypothesis_at,
                    }
                });
            }
            From::Reference => {
                row -= 1;
                steps.push(Step::Deletion { reference: row });
            }
            From::Hypothesis => {
                column -= 1;
                steps.push(Step::Insertion { hypothesis: column });
            }
        }
    }
    steps.reverse();
    steps
}

/// The errors of one utterance, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordErrors {
    /// Words of the reference.
    pub reference_words: u64,
    /// Words heard as others.
    pub substitutions: u64,
    /// Words heard that nobody said.
    pub insertions: u64,
    /// Words not heard.
    pub deletions: u64,
}

impl WordErrors {
    /// The errors between what was said and what was heard.
    #[must_use]
    pub fn between<W: PartialEq>(reference: &[W], hypothesis: &[W]) -> Self {
        Self::default().with(&align(reference, hypothesis))
    }

    /// The errors of each utterance of a session: of all of its words as one text, so it does not matter how the
    /// recogniser divided them. An inserted word belongs to the utterance of the word before it, and to the first one if
    /// there is none.
    #[must_use]
    pub fn of_each<W: PartialEq + Clone>(utterances: &[&[W]], hypothesis: &[W]) -> Vec<Self> {
        let mut errors = vec![Self::default(); utterances.len()];
        let mut owners = Vec::new();
        for (number, words) in utterances.iter().enumerate() {
            owners.extend(std::iter::repeat_n(number, words.len()));
        }
        let mut owner = 0;
        for step in align(&utterances.concat(), hypothesis) {
            match step {
                Step::Match { reference, .. }
                | Step::Substitution { reference, .. }
                | Step::Deletion { reference } => owner = owners[reference],
                Step::Insertion { .. } => {}
            }
            if let Some(of_owner) = errors.get_mut(owner) {
                *of_owner = of_owner.with(&[step]);
            }
        }
        errors
    }

    fn with(mut self, steps: &[Step]) -> Self {
        for step in steps {
            match step {
                Step::Match { .. } => {}
                Step::Substitution { .. } => self.substitutions += 1,
                Step::Insertion { .. } => self.insertions += 1,
                Step::Deletion { .. } => self.deletions += 1,
            }
            self.reference_words += u64::from(!matches!(step, Step::Insertion { .. }));
        }
        self
    }

    /// All errors.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.substitutions + self.insertions + self.deletions
    }

    /// The word error rate; `None` without reference words.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.reference_words > 0).then(|| quotient(self.total(), self.reference_words))
    }
}

impl std::iter::Sum for WordErrors {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            reference_words: sum.reference_words + one.reference_words,
            substitutions: sum.substitutions + one.substitutions,
            insertions: sum.insertions + one.insertions,
            deletions: sum.deletions + one.deletions,
        })
    }
}

/// A value with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

#[expect(
    clippy::cast_precision_loss,
    reason = "words of a trial, far below 2^53"
)]
fn quotient(errors: u64, words: u64) -> f64 {
    errors as f64 / words as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;
    use proptest::prelude::*;

    fn errors(reference: &str, hypothesis: &str) -> WordErrors {
        WordErrors::between(&words(reference), &words(hypothesis))
    }

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
    fn alignment_by_hand() {
        // the cat sat on the mat / the cat on a mat please: `sat` is missing, `the` is `a`, `please` is new.
        let (reference, hypothesis) = (
            words("the cat sat on the mat"),
            words("the cat on a mat please"),
        );
        assert_eq!(
            align(&reference, &hypothesis),
            [
                Step::Match {
                    reference: 0,
                    hypothesis: 0
                },
                Step::Match {
                    reference: 1,
                    hypothesis: 1
                },
                Step::Deletion { reference: 2 },
                Step::Match {
                    reference: 3,
                    hypothesis: 2
                },
                Step::Substitution {
                    reference: 4,
                    hypothesis: 3
                },
                Step::Match {
                    reference: 5,
                    hypothesis: 4
                },
                Step::Insertion { hypothesis: 5 },
            ]
        );
        let found = errors("the cat sat on the mat", "the cat on a mat please");
        assert_eq!(
            (found.substitutions, found.insertions, found.deletions),
            (1, 1, 1)
        );
        assert_eq!(found.rate(), Some(0.5));
    }

    #[test]
    fn nothing_heard_is_all_wrong_and_nothing_said_has_no_rate() {
        assert_eq!(errors("a b c", "").rate(), Some(1.0));
        assert_eq!(errors("a", "b c d").rate(), Some(3.0));
        assert_eq!(
            errors("", "b"),
            WordErrors {
                insertions: 1,
                ..WordErrors::default()
            }
        );
        assert_eq!(errors("", "b").rate(), None);
    }

    #[test]
    fn a_session_is_aligned_as_one_text() {
        let said = [
            words("deep snow hid the cave"),
            words("keep warm"),
            words("push gently"),
        ];
        let said: Vec<&[String]> = said.iter().map(Vec::as_slice).collect();
        let heard = words("oh deep snow hit the cave uh push very gently");
        let found = WordErrors::of_each(&said, &heard);
        // `oh` and `uh` are insertions, `hid` a substitution, `keep warm` is not heard, but for `uh` in place of one word.
        let totals: Vec<u64> = found.iter().map(WordErrors::total).collect();
        assert_eq!(totals, [2, 2, 1]);
        assert_eq!(found.iter().copied().sum::<WordErrors>().reference_words, 9);
        assert_eq!(WordErrors::of_each::<String>(&[], &heard), []);
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

    proptest! {
        #[test]
        fn an_alignment_visits_each_word_once_and_is_no_longer_than_it_must_be(
            reference in prop::collection::vec(0_u8..4, 0..12),
            hypothesis in prop::collection::vec(0_u8..4, 0..12),
        ) {
            let steps = align(&reference, &hypothesis);
            let (mut said, mut heard) = (0, 0);
            for step in &steps {
                match *step {
                    Step::Match { reference: r, hypothesis: h } => {
                        prop_assert_eq!((r, h), (said, heard));
                        prop_assert_eq!(reference[r], hypothesis[h]);
                        (said, heard) = (said + 1, heard + 1);
                    }
                    Step::Substitution { reference: r, hypothesis: h } => {
                        prop_assert_eq!((r, h), (said, heard));
                        prop_assert_ne!(reference[r], hypothesis[h]);
                        (said, heard) = (said + 1, heard + 1);
                    }
                    Step::Insertion { hypothesis: h } => { prop_assert_eq!(h, heard); heard += 1; }
                    Step::Deletion { reference: r } => { prop_assert_eq!(r, said); said += 1; }
                }
            }
            prop_assert_eq!((said, heard), (reference.len(), hypothesis.len()));
            let total = WordErrors::between(&reference, &hypothesis).total();
            prop_assert_eq!(total, WordErrors::between(&hypothesis, &reference).total());
            prop_assert!(total as usize >= reference.len().abs_diff(hypothesis.len()));
            prop_assert!(total as usize <= reference.len().max(hypothesis.len()));
            prop_assert_eq!(total as usize, distance(&reference, &hypothesis));
        }

        #[test]
        fn utterances_share_out_all_errors(
            utterances in prop::collection::vec(prop::collection::vec(0_u8..4, 1..5), 1..5),
            hypothesis in prop::collection::vec(0_u8..4, 0..20),
        ) {
            let said: Vec<&[u8]> = utterances.iter().map(Vec::as_slice).collect();
            let each: WordErrors = WordErrors::of_each(&said, &hypothesis).into_iter().sum();
            prop_assert_eq!(each, WordErrors::between(&utterances.concat(), &hypothesis));
        }
    }

    /// The distance by its definition.
    fn distance(a: &[u8], b: &[u8]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                table[i][j] = if i == 0 || j == 0 {
                    i + j
                } else {
                    let both = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    both.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
                };
            }
        }
        table[a.len()][b.len()]
    }
}
