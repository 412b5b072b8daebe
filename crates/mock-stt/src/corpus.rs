//! The clips that the mock knows, as they come in each format, with the words of each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_speech::clip::{Clip, RATE_HZ};
use plimsoll_speech::corpus::CorpusError;
use plimsoll_speech::encode;
use plimsoll_speech::resample::{Rate, Resampler};

use crate::audio::{Decoder, Encoding, Format};
use crate::ear::Bank;

/// A word, and when it is spoken, in ms from the clip's first sample, or from the session's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word: lower case.
    pub text: Arc<str>,
    /// Its beginning.
    pub start_ms: u64,
    /// Its end.
    pub end_ms: u64,
}

/// All clips.
#[derive(Debug, Default)]
pub struct Corpus {
    clips: Vec<Clip>,
    words: Vec<Vec<Word>>,
    banks: BTreeMap<Format, Arc<Bank>>,
}

impl Corpus {
    /// Reads the project's corpus: those of its clips that are there.
    ///
    /// # Errors
    /// What keeps it from being read, in one line.
    pub fn read(folder: &Path) -> Result<Self, CorpusError> {
        plimsoll_speech::corpus::Corpus::pinned(folder).map(|corpus| Self::of(corpus.clips))
    }

    /// These clips.
    #[must_use]
    pub fn of(clips: Vec<Clip>) -> Self {
        Self {
            words: clips.iter().map(words).collect(),
            clips,
            banks: BTreeMap::new(),
        }
    }

    /// The clips.
    #[must_use]
    pub fn clips(&self) -> &[Clip] {
        &self.clips
    }

    /// The words of a clip.
    #[must_use]
    pub fn words(&self, clip: usize) -> &[Word] {
        &self.words[clip]
    }

    /// The clips as they come in this format. They are made once for each.
    pub fn bank(&mut self, format: Format) -> Arc<Bank> {
        // A sample of 16 bits is the same as a float.
        let encoding = match format.encoding {
            Encoding::F32le => Encoding::S16le,
            other => other,
        };
        let format = Format { encoding, ..format };
        let clips = &self.clips;
        let made = self.banks.entry(format).or_insert_with(|| {
            let all = clips.iter().map(|clip| as_it_comes(&clip.samples, format));
            Arc::new(Bank::new(format.rate_hz, all.collect()))
        });
        Arc::clone(made)
    }
}

/// The words of a clip at their estimated times: each begins where the one before ends.
fn words(clip: &Clip) -> Vec<Word> {
    let ms = |samples: usize| samples as u64 * 1000 / u64::from(RATE_HZ);
    let ends = clip.word_ends();
    let starts = std::iter::once(clip.speech.start).chain(ends.iter().copied());
    let spans = starts.zip(&ends).zip(&clip.words);
    let words = spans.map(|((start, end), text)| Word {
        text: text.as_str().into(),
        start_ms: ms(start),
        end_ms: ms(*end),
    });
    words.collect()
}

/// The samples of a clip after it was resampled and packed, as a client does it, and read again.
fn as_it_comes(samples: &[i16], format: Format) -> Vec<i16> {
    let resampled = match format.rate_hz {
        8_000 => Resampler::to(Rate::Hz8000).resample(samples),
        24_000 => Resampler::to(Rate::Hz24000).resample(samples),
        // Others are refused when a session opens.
        _ => samples.to_vec(),
    };
    if format.encoding != Encoding::MuLaw {
        return resampled;
    }
    let mut heard = Vec::with_capacity(resampled.len());
    Decoder::default().decode(format.encoding, &encode::mu_law(&resampled), &mut heard);
    heard
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of its clips that git keeps, at least.
    #[test]
    fn the_projects_corpus_is_known() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/stt-real/corpus");
        let corpus = Corpus::read(Path::new(folder)).expect("it is in the repository");
        assert!(!corpus.clips().is_empty());
        for clip in 0..corpus.clips().len() {
            let words = corpus.words(clip);
            assert!((6..=14).contains(&words.len()));
            assert!(words.windows(2).all(|two| two[0].end_ms == two[1].start_ms));
            let end = corpus.clips()[clip].speech.end as u64;
            assert_eq!(words.last().map(|word| word.end_ms), Some(end / 16));
        }
    }
}
