//! Words, as the word error rate counts them.

/// The words of a text: runs of letters and apostrophes, in lower case.
///
/// - Anything else ends a word: spaces, punctuation, hyphens, dashes, symbols, and digits. So `well-known` is two words, `42`
///   is none, and `7th` is `th`. Spell numbers out in a reference: a recogniser that writes digits gets them wrong.
/// - An apostrophe counts only between two letters, whether typewritten (`'`) or typographic (U+2019). `'tis` is `tis`,
///   `dogs'` is `dogs`, `don’t` is `don't`.
/// - Letters beyond ASCII stay, in lower case: `É` is `é`, and is not `e`. A letter with a combining mark of its own is
///   another letter, so give composed text (Unicode form NFC).
/// - A language that does not put spaces between words has no words here.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_alphabetic() {
            word.extend(character.to_lowercase().filter(|c| c.is_alphabetic()));
        } else if matches!(character, '\'' | '\u{2019}')
            && !word.is_empty()
            && characters.peek().is_some_and(|next| next.is_alphabetic())
        {
            word.push('\'');
        } else if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_a_word() {
        for (text, expected) in [
            ("The kettle, at last!", "the kettle at last"),
            ("well-known — and so on…", "well known and so on"),
            ("Don't! don\u{2019}t", "don't don't"),
            (
                "'tis the dogs' 'quoted' o''clock",
                "tis the dogs quoted o clock",
            ),
            ("half past 6, the 7th of 1,000", "half past the th of"),
            ("CAFÉ Straße İzmir", "café straße izmir"),
            (" [BLANK_AUDIO] ", "blank audio"),
            (" 42 ... ' ", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn words_of_words_are_the_same_words(text in "\\PC{0,40}") {
            let once = words(&text);
            prop_assert_eq!(words(&once.join(" ")), once.clone());
            let good = |c: char| c == '\'' || !c.is_ascii() || c.is_ascii_lowercase();
            prop_assert!(once.iter().all(|word| !word.is_empty() && word.chars().all(good)));
        }
    }
}
