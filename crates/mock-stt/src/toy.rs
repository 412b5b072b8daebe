//! A small corpus of noise for tests: two clips with words at known times.

use plimsoll_core::schedule::mix;
use plimsoll_speech::clip::Clip;

use crate::corpus::Corpus;

fn clip(seed: u64, ms: u64, words: &[&str], speech_ms: std::ops::Range<usize>) -> Clip {
    let samples = (0..ms * 16).map(|at| {
        // The upper bits of a draw, as a quiet sample.
        let [high, low, ..] = mix(seed ^ mix(at)).to_be_bytes();
        i16::from_be_bytes([high, low]) / 4
    });
    Clip {
        name: format!("toy-{seed}"),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        samples: samples.collect(),
        speech: speech_ms.start * 16..speech_ms.end * 16,
    }
}

/// Two clips. The first lasts a second: `one`, `two` and `three` from 100 ms on, of 200, 200 and 300 ms. The second lasts 600 ms: `four` and `five` from 50 to 550 ms.
pub(crate) fn corpus() -> Corpus {
    Corpus::of(vec![
        clip(1, 1_000, &["one", "two", "three"], 100..800),
        clip(2, 600, &["four", "five"], 50..550),
    ])
}

/// Audio in which each clip comes after a pause in ms, with so much silence at the end.
pub(crate) fn audio(plan: &[(usize, usize)], end_ms: usize) -> Vec<i16> {
    let corpus = corpus();
    let mut samples = Vec::new();
    for (pause_ms, clip) in plan {
        samples.extend(std::iter::repeat_n(0, pause_ms * 16));
        samples.extend_from_slice(&corpus.clips()[*clip].samples);
    }
    samples.extend(std::iter::repeat_n(0, end_ms * 16));
    samples
}
