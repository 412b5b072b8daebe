//! Crosstalk: a final whose text belongs to another session.

/// A text fits what was said if at most this share of its words is wrong.
pub const FITS_AT_MOST: f64 = 0.3;

/// A text does not fit what was said if at least this share of its words is wrong.
pub const FOREIGN_FROM: f64 = 0.8;

/// Shorter texts fit too many utterances by chance: they are not judged.
pub const WORDS_AT_LEAST: usize = 4;

/// Which of the others' utterances the text of a final fits, if it does not fit the session's own; the first one, by its
/// position. `own` is what the session says around the final's time: a text without times is compared with all that was said.
///
/// A final may be part of an utterance. So its words are compared with the part of the utterance that they fit best, and
/// the errors are divided by the words of the final: at most [`FITS_AT_MOST`] against another session's utterance, at least
/// [`FOREIGN_FROM`] against the session's own. So two sentences that share a fifth of their words are not told apart: of the
/// pairs of the project's own sentences, 93 % are. Finals of fewer than [`WORDS_AT_LEAST`] words are never crosstalk.
pub fn crosses<'a, W: PartialEq + 'a>(
    text: &[W],
    own: &[W],
    others: impl IntoIterator<Item = &'a [W]>,
) -> Option<usize> {
    if text.len() < WORDS_AT_LEAST || wrong_share(text, own) < FOREIGN_FROM {
        return None;
    }
    others
        .into_iter()
        .position(|other| wrong_share(text, other) <= FITS_AT_MOST)
}

/// The errors of a text against the part of the reference that it fits best, by the words of the text. The text is not
/// empty. It is Levenshtein's distance in which the reference may begin and end anywhere (Sellers, The Theory and
/// Computation of Evolutionary Distances: Pattern Recognition, Journal of Algorithms 1, 1980).
#[expect(
    clippy::cast_precision_loss,
    reason = "words of a text, far below 2^53"
)]
fn wrong_share<W: PartialEq>(text: &[W], reference: &[W]) -> f64 {
    let mut costs: Vec<usize> = vec![0; reference.len() + 1];
    for word in text {
        let mut diagonal = costs[0];
        costs[0] += 1;
        for (at, said) in reference.iter().enumerate() {
            let both = diagonal + usize::from(word != said);
            diagonal = costs[at + 1];
            costs[at + 1] = both.min(costs[at] + 1).min(diagonal + 1);
        }
    }
    let least = costs.into_iter().min().unwrap_or(text.len());
    least as f64 / text.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    /// The sentences of the corpus.
    fn sentences() -> Vec<Vec<String>> {
        let text = include_str!("../../../targets/stt-real/corpus/sentences.txt");
        text.lines().map(words).collect()
    }

    fn crossed(text: &str, own: &str, others: &[&str]) -> Option<usize> {
        let others: Vec<_> = others.iter().map(|other| words(other)).collect();
        crosses(&words(text), &words(own), others.iter().map(Vec::as_slice))
    }

    const OWN: &str = "deep snow hid the entrance to the cave";
    const OTHER: &str = "a curious crowd gathered around the street magician";

    #[test]
    fn a_text_of_another_session_crosses() {
        assert_eq!(
            crossed(OTHER, OWN, &["yellow tulips stood in a jug", OTHER]),
            Some(1)
        );
        // With two of eight words wrong.
        assert_eq!(
            crossed(
                "a curious cloud gathered round the street magician",
                OWN,
                &[OTHER]
            ),
            Some(0)
        );
        // Its end, its beginning.
        let jug = "yellow tulips stood in a jug on a kitchen table";
        assert_eq!(crossed("jug on a kitchen table", OWN, &[jug]), Some(0));
        assert_eq!(crossed("a curious crowd gathered", OWN, &[OTHER]), Some(0));
    }

    #[test]
    fn wrong_own_and_short_texts_do_not() {
        for text in [
            OWN,
            "snow hid the entrance",
            // Garbage is no crosstalk: it fits nobody.
            "thank you for watching this video",
            // Three of eight wrong: fits neither.
            "the curious clown gathered round a street magician",
            // Its only `the` is a quarter of it, and was said here too.
            "gathered around the street",
            // Too short to tell.
            "around the street",
            "",
        ] {
            assert_eq!(crossed(text, OWN, &[OTHER]), None, "{text}");
        }
        // Half of it was really said here: no proof.
        assert_eq!(
            crossed(OTHER, "he gathered around the street again", &[OTHER]),
            None
        );
    }

    #[test]
    fn nearly_every_pair_of_our_sentences_is_told_apart() {
        let sentences = sentences();
        let (mut pairs, mut found, mut wrong) = (0, 0, 0);
        for (n, own) in sentences.iter().enumerate() {
            for (m, other) in sentences.iter().enumerate().filter(|(m, _)| *m != n) {
                pairs += 1;
                found += u32::from(crosses(other, own, [other.as_slice()]).is_some());
                // Its own sentence, with each other one as a candidate.
                wrong += u32::from(crosses(own, own, [sentences[m].as_slice()]).is_some());
            }
        }
        assert_eq!(wrong, 0);
        let share = f64::from(found) / f64::from(pairs);
        assert!(share > 0.9, "{share}");
    }
}
