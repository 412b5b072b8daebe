//! The reference computation (contract, section 5), which an inference server would do: this target does it itself.

/// FNV-1a, 32 bit: where a checksum starts, and what each step multiplies by.
const FNV_OFFSET: u32 = 2_166_136_261;
const FNV_PRIME: u32 = 16_777_619;

/// The transcript of a batch is the word at `checksum mod 24`.
const WORDS: [&str; 24] = [
    "the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "hello", "world", "yes", "no",
    "okay", "right", "left", "stop", "go", "wait", "ready", "done", "again", "now", "later",
    "never",
];

/// What an inference server says about one batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Root mean square of the samples, 0 for an empty batch.
    pub rms: f64,
    /// Sign changes between consecutive samples, running on across passes.
    pub zero_crossings: u64,
    /// FNV-1a over the samples of all passes.
    pub checksum: u32,
    /// Samples in the batch times passes.
    pub samples: u64,
    /// A word chosen by the checksum.
    pub transcript: &'static str,
    /// Length of the batch in bytes.
    pub audio_bytes: u64,
}

/// The word for a checksum.
#[must_use]
pub fn transcript(checksum: u32) -> &'static str {
    WORDS[checksum as usize % WORDS.len()]
}

/// Computes the answer for a batch of signed 16-bit little-endian samples. A last odd byte is not a sample and only counts in
/// `audio_bytes`; sessions accept whole frames only, so there is none.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "the sum of squares of any batch that fits the input buffer is below 2^53"
)]
pub fn compute(pcm: &[u8], passes: u32) -> Answer {
    let mut checksum = FNV_OFFSET;
    let mut zero_crossings = 0;
    let mut samples = 0;
    let mut squares = 0_u64;
    let mut last_negative = None;
    for pass in 0..passes {
        for pair in pcm.chunks_exact(2) {
            let sample = i32::from(i16::from_le_bytes([pair[0], pair[1]]));
            let shifted = (sample + 32_768).unsigned_abs().wrapping_add(pass);
            checksum = (checksum ^ (shifted & 0xFFFF)).wrapping_mul(FNV_PRIME);
            let negative = sample < 0;
            zero_crossings += u64::from(last_negative.is_some_and(|last| last != negative));
            last_negative = Some(negative);
            squares += u64::from((sample * sample).unsigned_abs());
            samples += 1;
        }
    }
    Answer {
        rms: if samples == 0 {
            0.0
        } else {
            (squares as f64 / samples as f64).sqrt()
        },
        zero_crossings,
        checksum,
        samples,
        transcript: transcript(checksum),
        audio_bytes: pcm.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The synthetic frame of the contract.
    fn synthetic(session: u64, seq: u64) -> Vec<u8> {
        (0..320)
            .map(|i| i16::try_from((seq * 320 + session + i) * 17 % 20_000).unwrap() - 10_000)
            .flat_map(i16::to_le_bytes)
            .collect()
    }

    #[test]
    fn golden_vector_of_the_contract() {
        let answer = compute(&synthetic(0, 1), 4);
        assert_eq!(answer.checksum, 1_745_339_397);
        assert_eq!(answer.zero_crossings, 7);
        assert_eq!(answer.samples, 1280);
        assert!((answer.rms - 2_425.502_319_108_353_3).abs() < 1e-9);
        assert_eq!(answer.transcript, "now");
        assert_eq!(answer.audio_bytes, 640);
    }

    #[test]
    fn agrees_with_the_shared_vectors() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/reference.json");
        let vectors: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            let pcm = if let Some(hex) = case["pcm"].as_str() {
                (0..hex.len())
                    .step_by(2)
                    .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                    .collect()
            } else {
                let from = |key: &str| case["pcm_from"][key].as_u64().unwrap();
                (0..from("frames"))
                    .flat_map(|frame| synthetic(from("session"), from("first_seq") + frame))
                    .collect::<Vec<_>>()
            };
            let passes = u32::try_from(case["passes"].as_u64().unwrap()).unwrap();
            let (answer, expect) = (compute(&pcm, passes), &case["expect"]);
            assert_eq!(answer.checksum, expect["checksum"], "{}", case["id"]);
            assert_eq!(answer.zero_crossings, expect["zero_crossings"]);
            assert_eq!(answer.samples, expect["samples"]);
            assert_eq!(answer.transcript, expect["transcript"]);
            assert_eq!(answer.audio_bytes, expect["audio_bytes"]);
            let rms = expect["rms"].as_f64().unwrap();
            assert!((answer.rms - rms).abs() <= rms * 1e-9, "{}", case["id"]);
        }
    }
}
