//! A clip: speech of known words, and where in it the speech is.

use std::ops::Range;

/// Samples a second of all clips.
pub const RATE_HZ: u32 = 16_000;

/// The length of a sample in nanoseconds.
pub const SAMPLE_NS: u64 = 62_500;

/// The blocks in which energy is measured: 10 ms.
const BLOCK_SAMPLES: usize = 160;

/// A block is speech if its energy is at most so many times below the loudest block's: 35 dB. The noise of the loudest
/// synthetic voice is at −41 dB.
const QUIETER_AT_MOST: u64 = 3_162;

/// What [`Clip::trimmed`] leaves before and after the speech: 100 ms.
const MARGIN_SAMPLES: usize = 10 * BLOCK_SAMPLES;

/// Speech of known words: 16 kHz, one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clip {
    /// The file's name without its ending.
    pub name: String,
    /// What is said.
    pub words: Vec<String>,
    /// The sound.
    pub samples: Vec<i16>,
    /// The samples from the onset of speech to its end.
    pub speech: Range<usize>,
}

impl Clip {
    /// The clip of these samples with its speech found by energy ([`speech_of`]), and without the silence that is more
    /// than 100 ms away from it. So the pauses of a session are what its plan says. `None` without any sound.
    #[must_use]
    pub fn trimmed(name: String, words: Vec<String>, samples: &[i16]) -> Option<Self> {
        let speech = speech_of(samples)?;
        let start = speech.start.saturating_sub(MARGIN_SAMPLES);
        let end = samples.len().min(speech.end + MARGIN_SAMPLES);
        Some(Self {
            name,
            words,
            samples: samples[start..end].to_vec(),
            speech: speech.start - start..speech.end - start,
        })
    }

    /// Estimates where each word ends, in samples: the speech is shared out by the words' letters, one more for each word.
    /// The last one ends where the speech does. Nobody says more of a clip that only its text describes.
    #[must_use]
    pub fn word_ends(&self) -> Vec<usize> {
        let weight = |word: &String| word.chars().count() + 1;
        let all: usize = self.words.iter().map(weight).sum();
        let mut so_far = 0;
        let ends = self.words.iter().map(|word| {
            so_far += weight(word);
            self.speech.start + self.speech.len() * so_far / all
        });
        ends.collect()
    }
}

/// The samples from the onset of speech to its end, known to 10 ms: the borders of the first and the last block of 10 ms
/// whose energy is at most 35 dB below the loudest one's. `None` if all is silence.
///
/// The loudest block must be speech, and noise must be 35 dB below it. In a noisier recording, everything is speech.
#[must_use]
pub fn speech_of(samples: &[i16]) -> Option<Range<usize>> {
    let energies: Vec<u64> = samples.chunks(BLOCK_SAMPLES).map(energy).collect();
    let loudest = energies
        .iter()
        .copied()
        .max()
        .filter(|loudest| *loudest > 0)?;
    let is_speech = |energy: &u64| energy * QUIETER_AT_MOST >= loudest;
    let first = energies.iter().position(is_speech)?;
    let last = energies.iter().rposition(is_speech)?;
    Some(first * BLOCK_SAMPLES..samples.len().min((last + 1) * BLOCK_SAMPLES))
}

fn energy(block: &[i16]) -> u64 {
    let squares = block.iter().map(|sample| i64::from(*sample).pow(2));
    squares.sum::<i64>().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many blocks of a square wave each.
    fn blocks(levels: &[(usize, i16)]) -> Vec<i16> {
        let wave =
            |level: i16| (0..BLOCK_SAMPLES).map(move |n| if n % 2 == 0 { level } else { -level });
        let levels = levels
            .iter()
            .flat_map(|(count, level)| std::iter::repeat_n(*level, *count));
        levels.flat_map(wave).collect()
    }

    #[test]
    fn speech_is_what_is_within_35_db_of_the_loudest() {
        // 10,000 / 56 is 45 dB, 10,000 / 200 is 34 dB.
        let samples = blocks(&[
            (20, 56),
            (1, 200),
            (5, 10_000),
            (3, 0),
            (2, 10_000),
            (30, 56),
        ]);
        assert_eq!(speech_of(&samples), Some(20 * 160..31 * 160));
        assert_eq!(speech_of(&blocks(&[(3, 0)])), None);
        assert_eq!(speech_of(&[]), None);
        assert_eq!(speech_of(&[0, 0, 7]), Some(0..3));
        assert_eq!(speech_of(&[i16::MIN; 200]), Some(0..200));
    }

    #[test]
    fn silence_around_speech_is_cut_to_100_ms() {
        let samples = blocks(&[(25, 0), (5, 9_000), (4, 0)]);
        let clip = Clip::trimmed("a".into(), vec!["ah".into()], &samples).unwrap();
        assert_eq!(clip.samples.len(), 19 * 160);
        assert_eq!(clip.speech, 10 * 160..15 * 160);
        assert_eq!(speech_of(&clip.samples), Some(clip.speech));
        assert_eq!(Clip::trimmed("a".into(), Vec::new(), &[0; 400]), None);
    }

    #[test]
    fn words_share_the_speech_by_their_letters() {
        let clip = Clip {
            name: "a".into(),
            words: ["a", "bee", "is"].map(str::to_owned).to_vec(),
            samples: vec![1; 2_000],
            speech: 100..1_000,
        };
        assert_eq!(clip.word_ends(), [300, 700, 1_000]);
    }
}
