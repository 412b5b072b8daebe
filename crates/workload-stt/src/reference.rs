//! The reference computation: what an inference server answers for a batch of PCM.
//!
//! The source of every fact here is `docs/stt/contract.md`, section 5. Two ways to the same answer:
//!
//! - [`compute`] follows the text of the contract, sample by sample, and is the definition;
//! - [`compute_interleaved`] answers several batches at once and is what a busy simulator (and a client that
//!   checks answers) calls. Tests hold it equal to [`compute`].
//!
//! # Why interleave
//!
//! The checksum is a serial chain: each step needs the last one's product, so one batch runs at the latency of a
//! multiplication (about 4 cycles a step) whatever the machine could do beside it. Different batches are independent,
//! so [`LANES`] chains side by side fill the gaps. All arithmetic fits 16-bit lanes, which every x86-64 and AArch64
//! has vector multiplies for, and the compiler uses them: the prime is `2^24 + 0x193` and each step's operand has 16 bits, hence, with the state
//! split as `hi:lo` and `l = lo ^ operand`,
//!
//! ```text
//! lo' = l * 0x193                                     (mod 2^16)
//! hi' = hi * 0x193 + (l * 0x193 >> 16) + (l << 8)     (mod 2^16)
//! ```

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

mod lanes;

pub use lanes::{LANES, Scratch, checksums_interleaved};

/// Passes over a batch where a request does not say (`CPU_PASSES`).
pub const DEFAULT_PASSES: u32 = 4;

/// FNV-1a, 32 bit: the value a checksum starts at.
pub const FNV_OFFSET: u32 = 2_166_136_261;

/// FNV-1a, 32 bit: the prime that each step multiplies by.
pub const FNV_PRIME: u32 = 16_777_619;

/// The transcript of a batch is the word at `checksum mod 24`.
pub const WORDS: [&str; 24] = [
    "the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "hello", "world", "yes", "no",
    "okay", "right", "left", "stop", "go", "wait", "ready", "done", "again", "now", "later",
    "never",
];

/// The inference server's answer: exactly these fields, in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Root mean square of the samples, 0 for an empty batch.
    pub rms: f64,
    /// Sign changes (negative ↔ non-negative) between consecutive samples, running on across passes.
    pub zero_crossings: u64,
    /// FNV-1a over the samples of all passes.
    pub checksum: u32,
    /// Samples in the batch times passes.
    pub samples: u64,
    /// A word chosen by the checksum: see [`transcript`].
    pub transcript: Cow<'static, str>,
    /// Length of the request's body, in bytes.
    pub audio_bytes: u64,
}

impl Answer {
    /// Reads an answer as strictly as the contract asks of a gateway: one JSON object, every field once, no other
    /// field, nothing behind it.
    ///
    /// # Errors
    /// [`NotAnAnswer`], with what is wrong.
    pub fn from_json(body: &[u8]) -> Result<Self, NotAnAnswer> {
        // The derived reader would also take an array of six values for the object.
        let first = body
            .iter()
            .find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        if first.is_some_and(|&byte| byte != b'{') {
            return Err(NotAnAnswer("not a JSON object".to_owned()));
        }
        serde_json::from_slice(body).map_err(|error| NotAnAnswer(error.to_string()))
    }

    /// Assembles the answer from a pass over the samples and the checksum.
    fn assemble(once: &OnePass, passes: u32, checksum: u32, audio_bytes: usize) -> Self {
        Self {
            rms: once.rms(passes),
            zero_crossings: once.crossings_over(passes),
            checksum,
            samples: once.samples * u64::from(passes),
            transcript: Cow::Borrowed(transcript(checksum)),
            audio_bytes: audio_bytes as u64,
        }
    }
}

/// The body is not whole 16-bit samples. An inference server answers 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body has {bytes} bytes, an odd number: send whole 16-bit samples")]
pub struct OddLength {
    /// Length of the body.
    pub bytes: usize,
}

/// The text is not an inference server's answer (`parse_error`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an inference answer: {0}")]
pub struct NotAnAnswer(String);

/// The word for a checksum.
#[must_use]
pub fn transcript(checksum: u32) -> &'static str {
    WORDS[checksum as usize % WORDS.len()]
}

/// The answer for one batch of signed 16-bit little-endian PCM.
///
/// # Errors
/// [`OddLength`] when the body does not hold whole samples.
///
/// # Examples
/// ```
/// use plimsoll_workload_stt::reference::compute;
/// let answer = compute(&[], 4)?;
/// assert_eq!(answer.checksum, 2_166_136_261);
/// # Ok::<(), plimsoll_workload_stt::reference::OddLength>(())
/// ```
pub fn compute(pcm: &[u8], passes: u32) -> Result<Answer, OddLength> {
    check_length(pcm)?;
    Ok(Answer::assemble(
        &OnePass::over(pcm),
        passes,
        checksum(pcm, passes),
        pcm.len(),
    ))
}

/// The answers for several batches, each with its number of passes, in their order: equal to [`compute`] of each.
///
/// `scratch` is working memory, kept between calls so that it is allocated once.
pub fn compute_interleaved(
    batches: &[(&[u8], u32)],
    scratch: &mut Scratch,
) -> Vec<Result<Answer, OddLength>> {
    checksums_interleaved(batches, scratch)
        .into_iter()
        .zip(batches)
        .map(|(checksum, &(pcm, passes))| {
            check_length(pcm)?;
            Ok(Answer::assemble(
                &OnePass::over(pcm),
                passes,
                checksum,
                pcm.len(),
            ))
        })
        .collect()
}

/// The checksum of one batch, step by step as the contract words it. A last odd byte is not a sample and is left out.
#[must_use]
pub fn checksum(pcm: &[u8], passes: u32) -> u32 {
    let mut state = FNV_OFFSET;
    for pass in 0..passes {
        for sample in samples(pcm) {
            // (x + 32768 + p) & 0xFFFF
            let operand = biased(sample).wrapping_add(pass as u16);
            state = (state ^ u32::from(operand)).wrapping_mul(FNV_PRIME);
        }
    }
    state
}

fn check_length(pcm: &[u8]) -> Result<(), OddLength> {
    if pcm.len().is_multiple_of(2) {
        Ok(())
    } else {
        Err(OddLength { bytes: pcm.len() })
    }
}

/// The samples of a batch.
fn samples(pcm: &[u8]) -> impl ExactSizeIterator<Item = i16> + '_ {
    pcm.as_chunks::<2>()
        .0
        .iter()
        .map(|&bytes| i16::from_le_bytes(bytes))
}

/// `x + 32768` in 16 bits: flips the sign bit.
fn biased(sample: i16) -> u16 {
    sample.cast_unsigned() ^ 0x8000
}

/// The sum of the squares of two samples: at most 2^31, so exact in 32 bits without a sign.
fn squares(one: [u8; 2], other: [u8; 2]) -> u64 {
    let (x, y) = (i16::from_le_bytes(one), i16::from_le_bytes(other));
    let (x, y) = (i32::from(x), i32::from(y));
    u64::from((x * x).wrapping_add(y * y).cast_unsigned())
}

/// What one pass over the samples gives. Every pass sees the same samples, so more passes follow in closed form.
struct OnePass {
    samples: u64,
    sum_of_squares: u64,
    crossings: u64,
    /// Whether the step from the last sample to the first one, at the seam of two passes, is a crossing.
    seam_crosses: bool,
}

impl OnePass {
    /// Samples whose crossings a 16-bit sum takes in one go; a block also keeps the loops vectorised.
    const BLOCK_SAMPLES: usize = 1024;

    fn over(pcm: &[u8]) -> Self {
        let (pairs, _) = pcm.as_chunks::<2>();
        // Two samples at a time, for which processors have an instruction: it takes half the time.
        let (fours, rest) = pcm.as_chunks::<4>();
        let mut sum_of_squares = rest
            .as_chunks::<2>()
            .0
            .iter()
            .map(|x| squares(*x, [0; 2]))
            .sum();
        for block in fours.chunks(Self::BLOCK_SAMPLES / 2) {
            let of_block = block.iter().map(|&[a, b, c, d]| squares([a, b], [c, d]));
            sum_of_squares += of_block.sum::<u64>();
        }
        // The sign is the top bit of the second byte. Neighbours differ where the XOR of the two has that bit.
        let next = pairs.get(1..).unwrap_or_default();
        let mut crossings = 0_u64;
        for (left, right) in pairs
            .chunks(Self::BLOCK_SAMPLES)
            .zip(next.chunks(Self::BLOCK_SAMPLES))
        {
            let in_block: u16 = left
                .iter()
                .zip(right)
                .map(|(&l, &r)| (u16::from_le_bytes(l) ^ u16::from_le_bytes(r)) >> 15)
                .sum();
            crossings += u64::from(in_block);
        }
        let seam_crosses = match (pairs.first(), pairs.last()) {
            (Some(first), Some(last)) => (first[1] ^ last[1]) & 0x80 != 0,
            _ => false,
        };
        Self {
            samples: pairs.len() as u64,
            sum_of_squares,
            crossings,
            seam_crosses,
        }
    }

    fn crossings_over(&self, passes: u32) -> u64 {
        let passes = u64::from(passes);
        self.crossings * passes + u64::from(self.seam_crosses) * passes.saturating_sub(1)
    }

    /// `passes` times the squares over `passes` times the samples: the passes cancel, and both integers are exact
    /// in an f64 (up to 2^23 samples), so the quotient is the same to the last bit.
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53, see above")]
    fn rms(&self, passes: u32) -> f64 {
        if self.samples == 0 || passes == 0 {
            return 0.0;
        }
        (self.sum_of_squares as f64 / self.samples as f64).sqrt()
    }
}

#[cfg(test)]
mod tests;
