//! Synthetic audio: frames that anyone can compute from a session's number and a frame's number.
//!
//! Sample `i` of frame `q` of session `s` is `((q*320 + s + i) * 17 mod 20000) - 10000`
//! (`docs/stt/contract.md`, section 5). The formula depends on `q*320 + s + i` only, and repeats every 20,000
//! samples: so the audio of all sessions is one periodic table, every frame is a window of it, and consecutive
//! frames of a session are consecutive windows. A client sends straight from the table, and can keep the answers it
//! expects by the window's place in it.

/// Samples in a frame: 20 ms at 16 kHz.
pub const FRAME_SAMPLES: usize = 320;

/// Bytes in a frame.
pub const FRAME_BYTES: usize = FRAME_SAMPLES * 2;

/// Samples after which the table begins again.
pub const PERIOD_SAMPLES: usize = 20_000;

/// The table of synthetic audio, as the bytes that go on the wire.
#[derive(Debug, Clone)]
pub struct Synthetic {
    /// One period and one frame more, so that a window at the period's end is in one piece.
    pcm: Box<[u8]>,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self::new()
    }
}

impl Synthetic {
    /// Makes the table: 40,640 bytes.
    #[must_use]
    pub fn new() -> Self {
        let pcm = (0..PERIOD_SAMPLES + FRAME_SAMPLES)
            .flat_map(|n| table_sample(n).to_le_bytes())
            .collect();
        Self { pcm }
    }

    /// The bytes of one frame: session numbers start at 0, frame numbers at 1.
    #[must_use]
    pub fn frame(&self, session: u64, seq: u64) -> &[u8] {
        let start = window_start(session, seq) * 2;
        &self.pcm[start..start + FRAME_BYTES]
    }

    /// The bytes of `frames` consecutive frames from `first_seq` on: a batch as a gateway would send it.
    #[must_use]
    pub fn batch(&self, session: u64, first_seq: u64, frames: u64) -> Vec<u8> {
        (first_seq..first_seq + frames)
            .flat_map(|seq| self.frame(session, seq))
            .copied()
            .collect()
    }
}

/// Where a frame's window starts in the table, in samples: 0..[`PERIOD_SAMPLES`].
#[must_use]
pub fn window_start(session: u64, seq: u64) -> usize {
    const PERIOD: u64 = PERIOD_SAMPLES as u64;
    // Both reduced first, so that no session or frame number overflows.
    ((seq % PERIOD * FRAME_SAMPLES as u64 + session % PERIOD) % PERIOD) as usize
}

/// Sample `n` of the table.
fn table_sample(n: usize) -> i16 {
    // 0..20000 less 10000 always fits.
    ((n * 17 % PERIOD_SAMPLES) as u16).cast_signed() - 10_000
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    fn by_the_formula(session: u64, seq: u64) -> Vec<u8> {
        (0..320_u128)
            .map(|i| (u128::from(seq) * 320 + u128::from(session) + i) * 17 % 20_000)
            .flat_map(|n| (i16::try_from(n).expect("below 20000") - 10_000).to_le_bytes())
            .collect()
    }

    proptest! {
        #[test]
        fn frames_follow_the_formula(session: u64, seq: u64) {
            static SYNTHETIC: LazyLock<Synthetic> = LazyLock::new(Synthetic::new);
            prop_assert_eq!(SYNTHETIC.frame(session, seq), by_the_formula(session, seq));
        }
    }

    #[test]
    fn the_last_window_is_whole() {
        // Session 19999, frame 0 starts at the period's last sample.
        assert_eq!(window_start(19_999, 0), PERIOD_SAMPLES - 1);
        assert_eq!(Synthetic::new().frame(19_999, 0), by_the_formula(19_999, 0));
    }

    #[test]
    fn a_batch_is_its_frames_in_a_row() {
        let synthetic = Synthetic::new();
        let batch = synthetic.batch(3, 120, 10);
        assert_eq!(batch.len(), 10 * FRAME_BYTES);
        for (frame, seq) in batch.chunks(FRAME_BYTES).zip(120..) {
            assert_eq!(frame, by_the_formula(3, seq));
        }
    }
}
