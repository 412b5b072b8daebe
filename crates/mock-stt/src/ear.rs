//! Hears which clip is being played, and from where to where, in samples that may begin anywhere.
//!
//! A [`Bank`] knows each block of 10 ms of each clip by a rolling hash, as rsync knows the blocks of a file. An [`Ear`] rolls the same hash over
//! what comes, so a clip may begin at any sample. Once a block is known, the samples that follow must be those of the clip: audio that was
//! lost, doubled or changed is noticed at its first sample. Nothing is guessed: what is not a clip is no speech.
//!
//! Other rates and mu-law are no exception: the bank holds the clips as the client resamples and packs them, each by itself, by the same code.
//! A client that resamples otherwise is not understood; the mock is made for one client.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Blocks in a second.
const BLOCKS_PER_S: u32 = 100;
/// How far two samples of resampled audio may lie apart: a rounding, or a step of mu-law near zero.
const NEAR: u16 = 2;
/// Samples that are remembered, in seconds, so that the part of a clip before the first known block is heard too.
const REMEMBERED_S: usize = 2;
/// The factor of the rolling hash: odd, so that no sample is ever shifted out.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// All clips at one rate.
#[derive(Debug)]
pub struct Bank {
    /// Samples of a block.
    block: usize,
    rate_hz: u32,
    /// Samples of each clip, as they come over the wire.
    clips: Vec<Vec<i16>>,
    /// Hash of a block to its clip and where it begins. A block that is in two places says nothing, so it has none.
    index: HashMap<u64, Option<(usize, usize)>>,
    /// [`FACTOR`] to the power of a block: what the oldest sample of a block was multiplied by.
    oldest: u64,
}

impl Bank {
    /// The clips at this rate.
    #[must_use]
    pub fn new(rate_hz: u32, clips: Vec<Vec<i16>>) -> Self {
        let block = (rate_hz / BLOCKS_PER_S) as usize;
        let mut index = HashMap::new();
        for (number, clip) in clips.iter().enumerate() {
            for (at, samples) in (0..).step_by(block).zip(clip.chunks_exact(block)) {
                if !tells(samples) {
                    continue;
                }
                let hash = samples.iter().fold(0, |hash, sample| roll(hash, *sample));
                match index.entry(hash) {
                    Entry::Vacant(place) => {
                        place.insert(Some((number, at)));
                    }
                    Entry::Occupied(mut place) => {
                        place.insert(None);
                    }
                }
            }
        }
        let oldest = (0..block).fold(1, |power: u64, _| power.wrapping_mul(FACTOR));
        Self {
            block,
            rate_hz,
            clips,
            index,
            oldest,
        }
    }

    /// The samples of a clip, as they come over the wire.
    #[must_use]
    pub fn clip(&self, number: usize) -> &[i16] {
        &self.clips[number]
    }

    /// The clip whose block these are, and where in it they begin.
    fn find(&self, hash: u64, samples: &[i16]) -> Option<(usize, usize)> {
        let (clip, at) = (*self.index.get(&hash)?)?;
        let known = self.clips[clip].get(at..at + self.block)?;
        (known == samples).then_some((clip, at))
    }
}

/// Whether a block is more than silence.
fn tells(samples: &[i16]) -> bool {
    samples.iter().filter(|sample| **sample != 0).count() * 2 > samples.len()
}

/// The hash with one more sample. Its lowest bits are mixed in last, because a map uses them.
const fn roll(hash: u64, sample: i16) -> u64 {
    hash.wrapping_mul(FACTOR).wrapping_add(plus(sample))
}

/// A sample as the hash counts it: never 0, so that silence has a length.
const fn plus(sample: i16) -> u64 {
    (sample as u16 as u64) + 1
}

/// A clip that is being heard. Times are of the session's audio, in ms from its first sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Which clip.
    pub clip: usize,
    /// When the clip began; before 0 if its beginning never came.
    pub start_ms: i64,
    /// From when on it was heard.
    pub from_ms: u64,
    /// Until when.
    pub to_ms: u64,
}

/// Where the ear is in a clip.
#[derive(Debug, Clone, Copy)]
struct Place {
    clip: usize,
    /// The next sample of the clip.
    next: usize,
    /// The session's sample from which on it was heard.
    from: u64,
}

/// The hearing of one session.
#[derive(Debug)]
pub struct Ear {
    bank: Arc<Bank>,
    /// What came last, so many samples at least as a block has.
    recent: Vec<i16>,
    /// The hash of the last block, and how many samples it is of.
    hash: u64,
    hashed: usize,
    /// How many of them are not 0.
    sounding: usize,
    heard: u64,
    place: Option<Place>,
    /// Samples that sound and belong to no clip.
    unknown: u64,
}

impl Ear {
    /// An ear that knows these clips.
    #[must_use]
    pub fn new(bank: Arc<Bank>) -> Self {
        Self {
            bank,
            recent: Vec::new(),
            hash: 0,
            hashed: 0,
            sounding: 0,
            heard: 0,
            place: None,
            unknown: 0,
        }
    }

    /// Audio came. The match is that of its last sample, so hand over little at a time.
    pub fn hear(&mut self, samples: &[i16]) {
        for sample in samples {
            self.sample(*sample);
        }
    }

    /// How much audio came, in ms.
    #[must_use]
    pub fn heard_ms(&self) -> u64 {
        self.ms(self.heard)
    }

    /// How much audio sounded and was part of no clip, in ms.
    #[must_use]
    pub fn unknown_ms(&self) -> u64 {
        self.ms(self.unknown)
    }

    /// The clip that is being heard.
    #[must_use]
    pub fn current(&self) -> Option<Match> {
        let place = self.place?;
        let start = self.heard.cast_signed() - i64::try_from(place.next).unwrap_or(i64::MAX);
        Some(Match {
            clip: place.clip,
            start_ms: start * 1000 / i64::from(self.bank.rate_hz),
            from_ms: self.ms(place.from),
            to_ms: self.heard_ms(),
        })
    }

    fn ms(&self, samples: u64) -> u64 {
        samples * 1000 / u64::from(self.bank.rate_hz)
    }

    fn sample(&mut self, sample: i16) {
        self.heard += 1;
        self.remember(sample);
        if let Some(place) = &mut self.place {
            let expected = self.bank.clips[place.clip].get(place.next);
            if expected.is_some_and(|expected| expected.abs_diff(sample) <= NEAR) {
                place.next += 1;
                return;
            }
            self.place = None;
            // What was hashed before the clip is not what came last.
            (self.hash, self.hashed, self.sounding) = (0, 0, 0);
        }
        self.unknown += u64::from(sample != 0);
        self.search(sample);
    }

    /// Looks for the block that ends with this sample.
    fn search(&mut self, sample: i16) {
        let block = self.bank.block;
        self.hash = roll(self.hash, sample);
        self.sounding += usize::from(sample != 0);
        self.hashed += 1;
        if self.hashed > block {
            self.hashed = block;
            let gone = self.recent[self.recent.len() - block - 1];
            self.hash = self
                .hash
                .wrapping_sub(plus(gone).wrapping_mul(self.bank.oldest));
            self.sounding -= usize::from(gone != 0);
        }
        if self.hashed < block || self.sounding * 2 <= block {
            return;
        }
        let samples = &self.recent[self.recent.len() - block..];
        let Some((clip, at)) = self.bank.find(self.hash, samples) else {
            return;
        };
        let before = self.before(clip, at);
        let sounding = self.recent[self.recent.len() - block - before..]
            .iter()
            .filter(|sample| **sample != 0)
            .count();
        self.unknown = self.unknown.saturating_sub(sounding as u64);
        self.place = Some(Place {
            clip,
            next: at + block,
            from: self.heard - (block + before) as u64,
        });
    }

    /// How many samples before the block that was found were those of the clip too.
    fn before(&self, clip: usize, at: usize) -> usize {
        let earlier = &self.recent[..self.recent.len() - self.bank.block];
        let known = &self.bank.clips[clip][..at];
        let both = earlier.iter().rev().zip(known.iter().rev());
        both.take_while(|(one, other)| one.abs_diff(**other) <= NEAR)
            .count()
    }

    fn remember(&mut self, sample: i16) {
        let most = REMEMBERED_S * self.bank.rate_hz as usize;
        if self.recent.len() >= 2 * most {
            self.recent.drain(..most);
        }
        self.recent.push(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::schedule::mix;
    use proptest::prelude::*;

    const RATE_HZ: u32 = 16_000;
    const BLOCK: usize = 160;

    /// Noise that is the same each time.
    fn noise(seed: u64, samples: usize) -> Vec<i16> {
        let draws = (0..samples as u64).map(|at| mix(seed ^ mix(at)));
        draws.map(|draw| (draw as u16).cast_signed() / 4).collect()
    }

    fn bank() -> Arc<Bank> {
        let clips = (0..3).map(|clip| noise(clip, 4_000));
        Arc::new(Bank::new(RATE_HZ, clips.collect()))
    }

    /// What is heard at the end of each block of 10 ms.
    fn matches(audio: &[i16]) -> Vec<Option<Match>> {
        let mut ear = Ear::new(bank());
        let blocks = audio.chunks(BLOCK);
        blocks
            .map(|block| {
                ear.hear(block);
                ear.current()
            })
            .collect()
    }

    #[test]
    fn a_clip_is_heard_wherever_it_begins() {
        for pause in [0, 1, 159, 160, 8_003] {
            let audio = [vec![0; pause], noise(1, 4_000), vec![0; 3_000]].concat();
            let all = matches(&audio);
            let heard: Vec<Match> = all.iter().flatten().copied().collect();
            // A block is known as soon as it is whole.
            assert!(heard.len() >= 23, "{} of 25", heard.len());
            let start_ms = pause.cast_signed() as i64 / 16;
            assert!(
                heard
                    .iter()
                    .all(|heard| heard.clip == 1 && heard.start_ms == start_ms),
                "{heard:?}"
            );
            assert_eq!(heard[0].from_ms, start_ms as u64);
            assert_eq!(all.last(), Some(&None), "after its end");
        }
    }

    #[test]
    fn audio_that_is_lost_is_noticed() {
        let clip = noise(2, 4_000);
        let audio = [&clip[..1_600], &clip[1_920..]].concat();
        let all = matches(&audio);
        let starts: Vec<i64> = all.iter().flatten().map(|heard| heard.start_ms).collect();
        assert!(starts.contains(&0) && starts.contains(&-20), "{starts:?}");
        let last = all.iter().flatten().next_back().expect("heard again");
        assert_eq!(last.from_ms, 100, "from the cut on");
    }

    #[test]
    fn what_is_no_clip_is_counted_and_nothing_else() {
        let mut ear = Ear::new(bank());
        ear.hear(&noise(77, 1_600));
        let before_ms = ear.unknown_ms();
        assert_eq!(ear.current(), None);
        // A sample of noise may be 0.
        assert!((98..=100).contains(&before_ms), "{before_ms}");
        ear.hear(&noise(0, 4_000));
        ear.hear(&vec![0; 16_000]);
        assert_eq!(ear.unknown_ms(), before_ms);
        assert_eq!(ear.heard_ms(), 100 + 250 + 1_000);
    }

    /// The same voice says "the" the same each time: such blocks name no clip, and the part before the first block that does is heard all the same.
    #[test]
    fn what_two_clips_share_is_no_clip_until_they_differ() {
        let shared = noise(9, 1_600);
        let clips = (0..2).map(|clip| [shared.clone(), noise(clip, 1_600)].concat());
        let clips: Vec<Vec<i16>> = clips.collect();
        let mut ear = Ear::new(Arc::new(Bank::new(RATE_HZ, clips.clone())));
        ear.hear(&[0; 480]);
        ear.hear(&clips[1][..1_600]);
        assert_eq!(ear.current(), None);
        ear.hear(&clips[1][1_600..1_760]);
        let heard = ear.current().expect("they differ");
        assert_eq!((heard.clip, heard.start_ms, heard.from_ms), (1, 30, 30));
        assert_eq!(ear.unknown_ms(), 0);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(audio in prop::collection::vec(-3_i16..3, 0..2_000), at in 0_usize..3_900, length in 0_usize..200) {
            let clip = noise(1, 4_000);
            let end = (at + length).min(clip.len());
            let _ = matches(&[&audio, &clip[at..end], &audio].concat());
        }

        #[test]
        fn a_long_session_forgets_and_hears_on(pauses in prop::collection::vec(0_usize..50_000, 1..4)) {
            let mut ear = Ear::new(bank());
            for (pause, clip) in pauses.into_iter().zip([0, 2, 1].into_iter().cycle()) {
                ear.hear(&vec![0; pause]);
                let start_ms = ear.heard.cast_signed() * 1000 / 16_000;
                ear.hear(&noise(clip, 4_000));
                let heard = ear.current().expect("a clip");
                prop_assert_eq!((heard.clip as u64, heard.start_ms), (clip, start_ms));
            }
        }
    }
}
