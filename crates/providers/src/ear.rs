//! Hears utterances in a caller's audio, however the gateway cuts it, and checks that every block came once and in order.

use std::collections::VecDeque;

use plimsoll_workload_voice::marks::{CALLER_BLOCK_BYTES, CALLER_MARK_BYTES, CallerMark, SAMPLES};

/// Blocks of speech between two interim results: 200 ms.
const INTERIM_BLOCKS: u32 = 10;
/// The gaps that are remembered, so that a block that comes late is told from one that comes again. Older ones are forgotten.
const GAPS_MAX: usize = 32;

/// What the provider has to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The caller.
    pub vu: u32,
    /// The first block of the utterance.
    pub from: u32,
    /// The last block that was heard of it.
    pub to: u32,
    /// Whether the utterance is over.
    pub last: bool,
}

/// What became of the blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks that came.
    pub read: u64,
    /// Blocks that had not come before a later one.
    pub missing: u64,
    /// Of all that were missing, blocks that came after all.
    pub reordered: u64,
    /// Blocks that came again.
    pub doubled: u64,
    /// Blocks of another caller, without a mark, or with other samples.
    pub foreign: u64,
}

/// The hearing of one session.
#[derive(Debug, Default)]
pub struct Ear {
    /// The beginning of a block that has not fully arrived.
    part: Vec<u8>,
    vu: Option<u32>,
    newest: u32,
    /// First and last block of each gap.
    gaps: VecDeque<(u32, u32)>,
    utterance: Option<Utterance>,
}

#[derive(Debug, Clone, Copy)]
struct Utterance {
    from: u32,
    to: u32,
}

impl Ear {
    /// Audio came.
    pub fn hear(&mut self, audio: &[u8], blocks: &mut Blocks, mut on_heard: impl FnMut(Heard)) {
        let mut rest = audio;
        if !self.part.is_empty() {
            let taken = (CALLER_BLOCK_BYTES - self.part.len()).min(rest.len());
            self.part.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            if self.part.len() < CALLER_BLOCK_BYTES {
                return;
            }
            let part = std::mem::take(&mut self.part);
            if let Some(heard) = self.block(&part, blocks) {
                on_heard(heard);
            }
            self.part = part;
            self.part.clear();
        }
        let mut whole = rest.chunks_exact(CALLER_BLOCK_BYTES);
        for block in &mut whole {
            if let Some(heard) = self.block(block, blocks) {
                on_heard(heard);
            }
        }
        self.part.extend_from_slice(whole.remainder());
    }

    /// The gateway asks for what there is: the utterance, if one has begun, is over.
    pub fn finalize(&mut self) -> Option<Heard> {
        let utterance = self.utterance.take()?;
        Some(Heard {
            vu: self.vu?,
            from: utterance.from,
            to: utterance.to,
            last: true,
        })
    }

    /// Whether a block was missing. It is not any more.
    fn fill(&mut self, block: u32) -> bool {
        let around = |(from, to): &(u32, u32)| (*from..=*to).contains(&block);
        let Some(at) = self.gaps.iter().position(around) else {
            return false;
        };
        let Some((from, to)) = self.gaps.remove(at) else {
            return false;
        };
        let sides = [
            (from, block.saturating_sub(1)),
            (block.saturating_add(1), to),
        ];
        self.remember(sides);
        true
    }

    fn remember<const N: usize>(&mut self, gaps: [(u32, u32); N]) {
        self.gaps
            .extend(gaps.into_iter().filter(|(from, to)| from <= to));
        while self.gaps.len() > GAPS_MAX {
            self.gaps.pop_front();
        }
    }

    fn block(&mut self, block: &[u8], blocks: &mut Blocks) -> Option<Heard> {
        blocks.read += 1;
        let mark = CallerMark::read(block);
        let mark = mark.filter(|mark| mark.vu == *self.vu.get_or_insert(mark.vu));
        let Some(mark) = mark else {
            blocks.foreign += 1;
            return None;
        };
        let intact = block[CALLER_MARK_BYTES..] == *SAMPLES.of_caller(mark.speech);
        blocks.foreign += u64::from(!intact);
        if mark.block <= self.newest {
            if self.fill(mark.block) {
                blocks.reordered += 1;
            } else {
                blocks.doubled += 1;
            }
            return None;
        }
        // A session that is opened anew goes on somewhere: what came before was another connection's.
        if self.newest > 0 && mark.block > self.newest + 1 {
            blocks.missing += u64::from(mark.block - self.newest - 1);
            self.remember([(self.newest + 1, mark.block - 1)]);
        }
        self.newest = mark.block;
        if !mark.speech {
            return None;
        }
        let utterance = self.utterance.get_or_insert(Utterance {
            from: mark.block,
            to: mark.block,
        });
        utterance.to = mark.block;
        let heard = Heard {
            vu: mark.vu,
            from: utterance.from,
            to: mark.block,
            last: mark.last,
        };
        if mark.last {
            self.utterance = None;
            return Some(heard);
        }
        (heard.to - heard.from + 1)
            .is_multiple_of(INTERIM_BLOCKS)
            .then_some(heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Blocks `from..=to`; those of `speech` are spoken, and the last of them ends the utterance.
    fn audio(
        numbers: impl IntoIterator<Item = u32>,
        speech: std::ops::RangeInclusive<u32>,
    ) -> Vec<u8> {
        let numbers = numbers.into_iter();
        numbers
            .flat_map(|block| {
                let mark = CallerMark {
                    vu: 5,
                    block,
                    speech: speech.contains(&block),
                    last: block == *speech.end(),
                };
                let mut bytes = Vec::new();
                mark.append_block(&mut bytes);
                bytes
            })
            .collect()
    }

    fn heard(ear: &mut Ear, audio: &[u8]) -> (Vec<(u32, u32, bool)>, Blocks) {
        let (mut all, mut blocks) = (Vec::new(), Blocks::default());
        ear.hear(audio, &mut blocks, |heard| {
            assert_eq!(heard.vu, 5);
            all.push((heard.from, heard.to, heard.last));
        });
        (all, blocks)
    }

    #[test]
    fn an_utterance_has_interim_results_and_one_final_one() {
        let (all, blocks) = heard(&mut Ear::default(), &audio(1..=40, 4..=28));
        assert_eq!(all, [(4, 13, false), (4, 23, false), (4, 28, true)]);
        let expected = Blocks {
            read: 40,
            ..Blocks::default()
        };
        assert_eq!(blocks, expected);
    }

    #[test]
    fn what_is_asked_for_early_is_final() {
        let mut ear = Ear::default();
        heard(&mut ear, &audio(1..=10, 4..=28));
        let finalized = ear.finalize().expect("an utterance");
        assert_eq!(
            (finalized.from, finalized.to, finalized.last),
            (4, 10, true)
        );
        assert_eq!(ear.finalize(), None);
    }

    #[test]
    fn lost_doubled_and_reordered_blocks_are_counted() {
        let mut ear = Ear::default();
        let numbers = [1, 2, 2, 6, 4, 7, 4, 5];
        let (_, blocks) = heard(&mut ear, &audio(numbers, 50..=60));
        // 3 never came; 2 came again, and 4 too; 4 and 5 came late.
        let expected = Blocks {
            read: 8,
            missing: 3,
            reordered: 2,
            doubled: 2,
            foreign: 0,
        };
        assert_eq!(blocks, expected);
        let (_, blocks) = heard(&mut ear, &[0; 2 * CALLER_BLOCK_BYTES]);
        assert_eq!(blocks.foreign, 2);
    }

    #[test]
    fn a_changed_sample_is_seen() {
        let mut changed = audio(1..=3, 50..=60);
        changed[CALLER_BLOCK_BYTES + 100] ^= 1;
        let (_, blocks) = heard(&mut Ear::default(), &changed);
        assert_eq!((blocks.read, blocks.foreign), (3, 1));
    }

    #[test]
    fn a_session_may_begin_anywhere() {
        let (_, blocks) = heard(&mut Ear::default(), &audio(100..=110, 200..=210));
        assert_eq!(blocks.missing, 0);
    }

    #[test]
    fn gaps_are_forgotten_at_last() {
        let mut ear = Ear::default();
        let (_, blocks) = heard(&mut ear, &audio((1..1_000).step_by(2), 2_000..=2_001));
        assert_eq!((blocks.missing, ear.gaps.len()), (499, GAPS_MAX));
        let (_, blocks) = heard(&mut ear, &audio([2, 998], 2_000..=2_001));
        assert_eq!((blocks.doubled, blocks.reordered), (1, 1));
    }

    proptest! {
        #[test]
        fn every_block_is_counted_once(numbers in prop::collection::vec(1_u32..60, 1..80)) {
            let (_, blocks) = heard(&mut Ear::default(), &audio(numbers.iter().copied(), 100..=101));
            let (first, newest) = (numbers[0], numbers.iter().copied().max().unwrap_or(0));
            // What came before the first block of a session is not known to be missing.
            let fresh: std::collections::BTreeSet<u32> = numbers.iter().copied().filter(|number| *number >= first).collect();
            prop_assert_eq!(blocks.read, numbers.len() as u64);
            prop_assert_eq!(blocks.missing - blocks.reordered, u64::from(newest - first + 1) - fresh.len() as u64);
            prop_assert_eq!(blocks.doubled, numbers.len() as u64 - fresh.len() as u64);
        }

        #[test]
        fn it_hears_the_same_however_audio_is_cut(sizes in prop::collection::vec(1_usize..2_000, 1..30)) {
            let whole = audio(1..=60, 4..=48);
            let expected = heard(&mut Ear::default(), &whole);
            let mut ear = Ear::default();
            let (mut at, mut all, mut blocks) = (0, Vec::new(), Blocks::default());
            for size in sizes.iter().cycle() {
                let end = (at + size).min(whole.len());
                ear.hear(&whole[at..end], &mut blocks, |heard| all.push((heard.from, heard.to, heard.last)));
                at = end;
                if at == whole.len() { break; }
            }
            prop_assert_eq!((all, blocks), expected);
        }
    }
}
