//! What one session says: clips in a drawn order with drawn pauses, cut into frames.
//!
//! Each clip begins at a border of frames. So a frame is a piece of a clip or silence, and nothing else: all sessions share the
//! packed frames of the clips, which are made before the trial.

use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::stats::Draws;

use crate::clip::{Clip, RATE_HZ, SAMPLE_NS};

/// The shortest and the longest pause that is drawn, in milliseconds.
const PAUSE_MS: std::ops::RangeInclusive<usize> = 400..=1_600;

/// How long a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameLength {
    ms: u32,
}

impl FrameLength {
    /// The lengths that there are, in milliseconds.
    pub const CHOICES_MS: [u32; 4] = [20, 40, 80, 100];

    /// One of [`FrameLength::CHOICES_MS`]; `None` for another.
    #[must_use]
    pub fn of_ms(ms: u32) -> Option<Self> {
        Self::CHOICES_MS.contains(&ms).then_some(Self { ms })
    }

    /// In milliseconds.
    #[must_use]
    pub fn ms(self) -> u32 {
        self.ms
    }

    /// In nanoseconds.
    #[must_use]
    pub fn ns(self) -> u64 {
        u64::from(self.ms) * NS_PER_MS
    }

    /// In samples of a clip.
    #[must_use]
    pub fn samples(self) -> usize {
        (self.ms * (RATE_HZ / 1000)) as usize
    }
}

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sound {
    /// Nothing.
    Silence,
    /// A piece of a clip. The last one of a clip is filled up with silence.
    Piece {
        /// The clip's position in the corpus.
        clip: usize,
        /// The piece, from 0.
        piece: usize,
    },
}

/// A clip as a session says it. All times are the session's audio time: nanoseconds from its first sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utterance {
    /// The clip's position in the corpus.
    pub clip: usize,
    /// When its first frame begins.
    pub begin_ns: u64,
    /// When speech begins.
    pub onset_ns: u64,
    /// When speech ends.
    pub end_ns: u64,
}

/// A word as a session says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpokenWord<'a> {
    /// The word.
    pub word: &'a str,
    /// The position of its utterance in the plan.
    pub utterance: usize,
    /// About when it ends ([`Clip::word_ends`]), in the session's audio time. The last word's end is the utterance's.
    pub end_ns: u64,
}

/// What one session says, from its first frame to its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioPlan {
    frame: FrameLength,
    frames: u64,
    utterances: Vec<Utterance>,
    /// The first frame of each utterance, from 0, and how many it has.
    places: Vec<(u64, u64)>,
}

impl AudioPlan {
    /// The plan of a session with so many frames. Clips come in an order drawn from the seed. Once all were said, a new
    /// order is drawn, which does not begin with the clip said last. Silence between the end of one's speech and the onset
    /// of the next is 0.4 to 1.6 s and up to a frame more, likewise before the first. No utterance is cut off at the end.
    #[must_use]
    pub fn new(clips: &[Clip], frame: FrameLength, frames: u64, seed: u64) -> Self {
        let mut plan = Self {
            frame,
            frames,
            utterances: Vec::new(),
            places: Vec::new(),
        };
        let mut draws = Draws(seed);
        let mut order: Vec<usize> = (0..clips.len()).collect();
        if clips.is_empty() {
            return plan;
        }
        loop {
            let last = plan.utterances.last().map(|said| said.clip);
            shuffle(&mut order, last, &mut draws);
            for clip in &order {
                let pause_ms = PAUSE_MS.start() + draws.below(PAUSE_MS.count());
                if !plan.say(*clip, &clips[*clip], pause_ms as u64 * NS_PER_MS) {
                    return plan;
                }
            }
        }
    }

    /// Adds an utterance, if it still fits.
    fn say(&mut self, number: usize, clip: &Clip, pause_ns: u64) -> bool {
        let spoken_until_ns = self.utterances.last().map_or(0, |said| said.end_ns);
        let lead_ns = clip.speech.start as u64 * SAMPLE_NS;
        let wanted = (spoken_until_ns + pause_ns)
            .saturating_sub(lead_ns)
            .div_ceil(self.frame.ns());
        let free = self.places.last().map_or(0, |(first, count)| first + count);
        let first = wanted.max(free);
        let count = clip.samples.len().div_ceil(self.frame.samples()) as u64;
        if first + count > self.frames {
            return false;
        }
        let begin_ns = first * self.frame.ns();
        self.places.push((first, count));
        self.utterances.push(Utterance {
            clip: number,
            begin_ns,
            onset_ns: begin_ns + lead_ns,
            end_ns: begin_ns + clip.speech.end as u64 * SAMPLE_NS,
        });
        true
    }

    /// The length of its frames.
    #[must_use]
    pub fn frame(&self) -> FrameLength {
        self.frame
    }

    /// How many frames it has.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The plan of a session that says only one of these utterances, from its first frame on; no frames if there is no such one.
    #[must_use]
    pub fn turn(&self, number: usize) -> Self {
        let place = self.places.get(number).copied();
        let said = self.utterances.get(number).map(|said| Utterance {
            clip: said.clip,
            begin_ns: 0,
            onset_ns: said.onset_ns - said.begin_ns,
            end_ns: said.end_ns - said.begin_ns,
        });
        Self {
            frame: self.frame,
            frames: place.map_or(0, |(_, count)| count),
            utterances: said.into_iter().collect(),
            places: place.map(|(_, count)| (0, count)).into_iter().collect(),
        }
    }

    /// All utterances, in the order of time; none overlaps another.
    #[must_use]
    pub fn utterances(&self) -> &[Utterance] {
        &self.utterances
    }

    /// The position of the utterance whose speech is heard at an audio time; `None` in a pause.
    #[must_use]
    pub fn spoken_at(&self, audio_ns: u64) -> Option<usize> {
        let number = self
            .utterances
            .partition_point(|said| said.onset_ns <= audio_ns)
            .checked_sub(1)?;
        (audio_ns < self.utterances[number].end_ns).then_some(number)
    }

    /// All words, in the order of time. `clips` are those that the plan was made of.
    #[must_use]
    pub fn words<'a>(&self, clips: &'a [Clip]) -> Vec<SpokenWord<'a>> {
        let mut words = Vec::new();
        for (utterance, said) in self.utterances.iter().enumerate() {
            let clip = &clips[said.clip];
            let ends = clip.words.iter().zip(clip.word_ends());
            words.extend(ends.map(|(word, end)| SpokenWord {
                word,
                utterance,
                end_ns: said.begin_ns + end as u64 * SAMPLE_NS,
            }));
        }
        words
    }

    /// What frame `seq` holds; frames are numbered from 1, as in the ledger. Silence beyond the last.
    #[must_use]
    pub fn sound(&self, seq: u64) -> Sound {
        let Some(at) = seq.checked_sub(1) else {
            return Sound::Silence;
        };
        let number = self.places.partition_point(|(first, _)| *first <= at);
        match number
            .checked_sub(1)
            .map(|number| (number, self.places[number]))
        {
            Some((number, (first, count))) if at < first + count => Sound::Piece {
                clip: self.utterances[number].clip,
                piece: usize::try_from(at - first)
                    .unwrap_or_else(|_| unreachable!("a piece of a clip in memory")),
            },
            _ => Sound::Silence,
        }
    }

    /// All frames in their order.
    pub fn sounds(&self) -> impl Iterator<Item = Sound> + '_ {
        (1..=self.frames).map(|seq| self.sound(seq))
    }
}

/// The samples of a piece of a clip, filled up with silence.
#[must_use]
pub fn piece(samples: &[i16], piece: usize, frame: FrameLength) -> Vec<i16> {
    let from = samples.len().min(piece.saturating_mul(frame.samples()));
    let mut samples: Vec<i16> = samples[from..]
        .iter()
        .take(frame.samples())
        .copied()
        .collect();
    samples.resize(frame.samples(), 0);
    samples
}

/// Fisher and Yates's shuffle (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2 P), so that `last` does
/// not come first.
fn shuffle(order: &mut [usize], last: Option<usize>, draws: &mut Draws) {
    for place in (1..order.len()).rev() {
        order.swap(place, draws.below(place + 1));
    }
    if order.len() > 1 && order.first().copied() == last {
        let other = 1 + draws.below(order.len() - 1);
        order.swap(0, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A clip of so many samples that is speech except for its edges.
    fn clip(samples: usize, lead: usize, tail: usize) -> Clip {
        Clip {
            name: String::new(),
            words: vec!["word".to_owned()],
            samples: (1..).take(samples).collect(),
            speech: lead..samples - tail,
        }
    }

    fn forty_ms() -> FrameLength {
        FrameLength::of_ms(40).unwrap()
    }

    #[test]
    fn frames_are_20_40_80_or_100_ms() {
        let samples = FrameLength::CHOICES_MS.map(|ms| FrameLength::of_ms(ms).unwrap().samples());
        assert_eq!(samples, [320, 640, 1_280, 1_600]);
        assert_eq!(FrameLength::of_ms(60), None);
    }

    #[test]
    fn all_clips_are_said_before_one_comes_again() {
        let clips = vec![clip(1_000, 0, 0); 7];
        let plan = AudioPlan::new(&clips, forty_ms(), 20_000, 3);
        let said: Vec<usize> = plan.utterances().iter().map(|said| said.clip).collect();
        assert!(said.len() > 350, "{}", said.len());
        for round in said.chunks_exact(7) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4, 5, 6]);
        }
        assert!(said.windows(2).all(|pair| pair[0] != pair[1]));
        let other: Vec<usize> = AudioPlan::new(&clips, forty_ms(), 20_000, 4)
            .utterances()
            .iter()
            .map(|said| said.clip)
            .collect();
        assert_ne!(said, other);
        assert_eq!(plan, AudioPlan::new(&clips, forty_ms(), 20_000, 3));
    }

    #[test]
    fn a_plan_of_no_clips_or_no_room_is_silence() {
        assert!(
            AudioPlan::new(&[], forty_ms(), 5, 1)
                .sounds()
                .eq([Sound::Silence; 5])
        );
        assert!(
            AudioPlan::new(&[clip(16_000, 0, 0)], forty_ms(), 20, 1)
                .sounds()
                .eq([Sound::Silence; 20])
        );
    }

    #[test]
    fn a_lone_clip_repeats() {
        let plan = AudioPlan::new(&[clip(16_000, 0, 0)], forty_ms(), 1_000, 1);
        assert!(plan.utterances().len() > 14);
    }

    #[test]
    fn words_end_within_their_utterance_and_the_last_one_with_it() {
        let mut clips = vec![clip(16_000, 100, 100); 2];
        clips[1].words = ["a", "bee", "is"].map(str::to_owned).to_vec();
        let plan = AudioPlan::new(&clips, forty_ms(), 200, 1);
        let words = plan.words(&clips);
        for (utterance, said) in plan.utterances().iter().enumerate() {
            let of_it: Vec<_> = words
                .iter()
                .filter(|word| word.utterance == utterance)
                .collect();
            assert!(
                of_it
                    .iter()
                    .map(|word| word.word)
                    .eq(&clips[said.clip].words)
            );
            assert!(of_it.is_sorted_by_key(|word| word.end_ns) && of_it[0].end_ns > said.onset_ns);
            assert_eq!(of_it.last().unwrap().end_ns, said.end_ns);
        }
        assert!(words.is_sorted_by_key(|word| word.end_ns));
    }

    proptest! {
        #[test]
        fn frames_hold_the_clips_at_their_times_with_the_pauses_said(
            lengths in prop::collection::vec((400_usize..9_000, 0_usize..150, 0_usize..150), 1..6),
            ms in prop::sample::select(FrameLength::CHOICES_MS.to_vec()),
            frames in 0_u64..800,
            seed: u64,
        ) {
            let clips: Vec<Clip> = lengths.iter().map(|(samples, lead, tail)| clip(*samples, *lead, *tail)).collect();
            let frame = FrameLength::of_ms(ms).unwrap();
            let plan = AudioPlan::new(&clips, frame, frames, seed);
            let mut samples = Vec::new();
            for sound in plan.sounds() {
                match sound {
                    Sound::Silence => samples.resize(samples.len() + frame.samples(), 0),
                    Sound::Piece { clip, piece: number } => samples.extend(piece(&clips[clip].samples, number, frame)),
                }
            }
            prop_assert_eq!(samples.len() as u64, frames * frame.samples() as u64);

            let at = |ns: u64| usize::try_from(ns / SAMPLE_NS).unwrap();
            let mut expected = vec![0; samples.len()];
            let mut spoken_until_ns = 0;
            for (number, said) in plan.utterances().iter().enumerate() {
                let clip = &clips[said.clip];
                expected[at(said.begin_ns)..][..clip.samples.len()].copy_from_slice(&clip.samples);
                prop_assert_eq!(at(said.onset_ns), at(said.begin_ns) + clip.speech.start);
                prop_assert_eq!(at(said.end_ns), at(said.begin_ns) + clip.speech.end);
                let pause_ns = said.onset_ns - spoken_until_ns;
                prop_assert!((400 * NS_PER_MS..=1_600 * NS_PER_MS + frame.ns()).contains(&pause_ns), "{}", pause_ns);
                prop_assert_eq!(plan.spoken_at(said.onset_ns), Some(number));
                prop_assert_eq!(plan.spoken_at(said.end_ns - 1), Some(number));
                prop_assert_eq!(plan.spoken_at(said.end_ns), None);
                prop_assert_eq!(plan.spoken_at(said.onset_ns - 1), None);
                spoken_until_ns = said.end_ns;
            }
            prop_assert_eq!(samples, expected);
            // The end is no more than the longest pause and clip away.
            let longest_ns = 1_600 * NS_PER_MS + (9_000 * SAMPLE_NS) + 2 * frame.ns();
            prop_assert!(frames * frame.ns() <= spoken_until_ns + longest_ns + 150 * SAMPLE_NS);
            prop_assert_eq!(plan.sound(0), Sound::Silence);
            prop_assert_eq!(plan.sound(frames + 1), Sound::Silence);
        }
    }
}
