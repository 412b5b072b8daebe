//! Word errors: alignment and word error rate.
//!
//! The word error rate is (substitutions + insertions + deletions) / words of the reference, over the alignment with the
//! fewest errors (Levenshtein 1966; computed as by Wagner and Fischer, The String-to-String Correction Problem, Journal
//! of the ACM 21, 1974). Of a corpus, it is all errors by all reference words, and no mean of rates. It can exceed 1.

use schemars::JsonSchema;
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
enum Origin {
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
    let mut from = vec![Origin::Hypothesis; (reference.len() + 1) * width];
    let mut costs: Vec<u32> = (0..).take(width).collect();
    for (row, said) in reference.iter().enumerate() {
        let mut diagonal = costs[0];
        costs[0] += 1;
        from[(row + 1) * width] = Origin::Reference;
        for (column, heard) in hypothesis.iter().enumerate() {
            let both = diagonal + u32::from(said != heard);
            let deletion = costs[column + 1] + 1;
            let insertion = costs[column] + 1;
            diagonal = costs[column + 1];
            let (cost, origin) = if both <= deletion.min(insertion) {
                (both, Origin::Both)
            } else if deletion <= insertion {
                (deletion, Origin::Reference)
            } else {
                (insertion, Origin::Hypothesis)
            };
            costs[column + 1] = cost;
            from[(row + 1) * width + column + 1] = origin;
        }
    }
    traced(&from, reference, hypothesis)
}

fn traced<W: PartialEq>(from: &[Origin], reference: &[W], hypothesis: &[W]) -> Vec<Step> {
    let (mut row, mut column) = (reference.len(), hypothesis.len());
    let mut steps = Vec::with_capacity(row.max(column));
    while row > 0 || column > 0 {
        match from[row * (hypothesis.len() + 1) + column] {
            Origin::Both => {
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
            Origin::Reference => {
                row -= 1;
                steps.push(Step::Deletion { reference: row });
            }
            Origin::Hypothesis => {
                column -= 1;
                steps.push(Step::Insertion { hypothesis: column });
            }
        }
    }
    steps.reverse();
    steps
}

/// The errors of one utterance, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

#[expect(
    clippy::cast_precision_loss,
    reason = "words of a trial, far below 2^53"
)]
pub(crate) fn quotient(errors: u64, words: u64) -> f64 {
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
        // `oh` is new, `hid` was heard as `hit`; `uh` stands for one of two words; `very` is new.
        let totals: Vec<u64> = found.iter().map(WordErrors::total).collect();
        assert_eq!(totals, [2, 2, 1]);
        assert_eq!(found.iter().copied().sum::<WordErrors>().reference_words, 9);
        assert_eq!(WordErrors::of_each::<String>(&[], &heard), []);
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
