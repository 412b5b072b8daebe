//! What is said in a session's audio: words at their times, and when an utterance is over. Times are of the session's audio, in ms.

use std::sync::Arc;

use crate::corpus::{Corpus, Word};
use crate::ear::{Ear, Match};

/// The audio that is looked at in one step, in ms.
const STEP_MS: u64 = 10;
/// A clip that begins so much later than it did is said again.
const AGAIN_MS: i64 = 500;
/// How often the cursor moves while nobody speaks.
const QUIET_MS: u64 = 1_000;

/// How the mock decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// So long after its last word an utterance is over.
    pub endpointing_ms: u64,
    /// So much audio lies between two interim results.
    pub interim_ms: u64,
    /// Whether the client says when an utterance is over.
    pub client_turns: bool,
}

/// What was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Noticed {
    /// Somebody began to speak.
    Speech {
        /// When.
        at_ms: u64,
    },
    /// A word is over.
    Word(Word),
    /// Time for an interim result, of audio up to here.
    Interim {
        /// How much audio came.
        upto_ms: u64,
    },
    /// An utterance is over, and all of it is final.
    Over {
        /// Where the part begins that this says all about: where the last one ended.
        from_ms: u64,
        /// Where it ends.
        to_ms: u64,
        /// The end of the last word.
        end_ms: u64,
        /// Whether the client asked for it.
        asked: bool,
    },
    /// Nobody spoke from the end of the last part to here.
    Quiet {
        /// Where the part begins.
        from_ms: u64,
        /// Where it ends.
        to_ms: u64,
    },
}

/// An utterance that is not over.
#[derive(Debug, Clone, Copy)]
struct Utterance {
    /// The end of the last word.
    end_ms: u64,
    /// The last interim result.
    told_ms: u64,
    /// There was a word since.
    news: bool,
}

/// The recogniser of one session.
#[derive(Debug)]
pub struct Recogniser {
    ear: Ear,
    rate_hz: u32,
    pace: Pace,
    /// The clip that is being heard, and which of its words comes next.
    clip: Option<(Match, usize)>,
    utterance: Option<Utterance>,
    /// Where the last final part ended.
    cursor_ms: u64,
    /// Samples that came since the last step.
    part: usize,
}

impl Recogniser {
    /// A recogniser that hears with this ear, of audio at this rate.
    #[must_use]
    pub const fn new(ear: Ear, rate_hz: u32, pace: Pace) -> Self {
        Self {
            ear,
            rate_hz,
            pace,
            clip: None,
            utterance: None,
            cursor_ms: 0,
            part: 0,
        }
    }

    /// How much audio came, in ms.
    #[must_use]
    pub fn heard_ms(&self) -> u64 {
        self.ear.heard_ms()
    }

    /// How much audio was part of no clip, in ms.
    #[must_use]
    pub fn unknown_ms(&self) -> u64 {
        self.ear.unknown_ms()
    }

    /// Audio came.
    pub fn hear(&mut self, corpus: &Corpus, samples: &[i16], noticed: &mut Vec<Noticed>) {
        let step = (u64::from(self.rate_hz) * STEP_MS / 1000) as usize;
        let mut rest = samples;
        while !rest.is_empty() {
            let (now, later) = rest.split_at((step - self.part).min(rest.len()));
            self.ear.hear(now);
            self.part += now.len();
            rest = later;
            if self.part == step {
                self.part = 0;
                self.step(corpus, noticed);
            }
        }
    }

    /// All that was said is to be final. True if there was an utterance.
    pub fn flush(&mut self, noticed: &mut Vec<Noticed>) -> bool {
        let open = self.utterance.take();
        if let Some(utterance) = open {
            self.over(utterance.end_ms, true, noticed);
        }
        open.is_some()
    }

    fn step(&mut self, corpus: &Corpus, noticed: &mut Vec<Noticed>) {
        let now_ms = self.ear.heard_ms();
        if let Some(heard) = self.ear.current() {
            self.words(corpus, heard, noticed);
        }
        match &mut self.utterance {
            None if now_ms >= self.cursor_ms + QUIET_MS => {
                let (from_ms, to_ms) = (self.cursor_ms, now_ms);
                self.cursor_ms = now_ms;
                noticed.push(Noticed::Quiet { from_ms, to_ms });
            }
            None => {}
            Some(utterance) => {
                let silent_ms = now_ms.saturating_sub(utterance.end_ms);
                if !self.pace.client_turns && silent_ms >= self.pace.endpointing_ms {
                    let end_ms = utterance.end_ms;
                    self.utterance = None;
                    self.over(end_ms, false, noticed);
                } else if utterance.news && now_ms >= utterance.told_ms + self.pace.interim_ms {
                    utterance.news = false;
                    utterance.told_ms = now_ms;
                    noticed.push(Noticed::Interim { upto_ms: now_ms });
                }
            }
        }
    }

    /// Notices the words of the clip that were heard: at least their second half, up to their end.
    fn words(&mut self, corpus: &Corpus, heard: Match, noticed: &mut Vec<Noticed>) {
        let mut next = match self.clip {
            // After a gap the clip seems to have begun earlier, and after doubled audio a little later.
            Some((last, next))
                if last.clip == heard.clip && heard.start_ms < last.start_ms + AGAIN_MS =>
            {
                next
            }
            _ => 0,
        };
        let words = corpus.words(heard.clip);
        let in_session = |ms: u64| u64::try_from(heard.start_ms + ms.cast_signed()).unwrap_or(0);
        while let Some(word) = words.get(next) {
            let (start_ms, end_ms) = (in_session(word.start_ms), in_session(word.end_ms));
            if heard.to_ms > start_ms && heard.from_ms <= start_ms.midpoint(end_ms) {
                self.speech(
                    start_ms.max(heard.from_ms),
                    heard.to_ms.min(end_ms),
                    noticed,
                );
            }
            if heard.to_ms < end_ms {
                break;
            }
            next += 1;
            if heard.from_ms <= start_ms.midpoint(end_ms) {
                noticed.push(Noticed::Word(Word {
                    text: Arc::clone(&word.text),
                    start_ms,
                    end_ms,
                }));
                if let Some(utterance) = &mut self.utterance {
                    utterance.news = true;
                }
            }
        }
        self.clip = Some((heard, next));
    }

    /// Somebody speaks.
    fn speech(&mut self, at_ms: u64, to_ms: u64, noticed: &mut Vec<Noticed>) {
        let utterance = self.utterance.get_or_insert_with(|| {
            noticed.push(Noticed::Speech { at_ms });
            Utterance {
                end_ms: to_ms,
                told_ms: at_ms,
                news: false,
            }
        });
        utterance.end_ms = utterance.end_ms.max(to_ms);
    }

    fn over(&mut self, end_ms: u64, asked: bool, noticed: &mut Vec<Noticed>) {
        let (from_ms, to_ms) = (self.cursor_ms, self.ear.heard_ms());
        self.cursor_ms = to_ms;
        noticed.push(Noticed::Over {
            from_ms,
            to_ms,
            end_ms,
            asked,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::Format;
    use crate::toy;

    const PACE: Pace = Pace {
        endpointing_ms: 300,
        interim_ms: 200,
        client_turns: false,
    };

    fn noticed_of(pace: Pace, audio: &[i16], piece: usize) -> (Vec<Noticed>, Recogniser, Corpus) {
        let mut corpus = toy::corpus();
        let ear = Ear::new(corpus.bank(Format::USUAL));
        let mut recogniser = Recogniser::new(ear, 16_000, pace);
        let mut noticed = Vec::new();
        for piece in audio.chunks(piece) {
            recogniser.hear(&corpus, piece, &mut noticed);
        }
        (noticed, recogniser, corpus)
    }

    fn told(noticed: &[Noticed]) -> String {
        let words = noticed.iter().filter_map(|noticed| match noticed {
            Noticed::Word(word) => Some(word.text.to_string()),
            Noticed::Over { .. } => Some("|".to_owned()),
            _ => None,
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_utterance_has_its_words_at_their_times() {
        let audio = toy::audio(&[(500, 0), (800, 1)], 1_000);
        let (noticed, ..) = noticed_of(PACE, &audio, 640);
        assert_eq!(told(&noticed), "one two three | four five |");
        // Words of the first clip are from 100 to 800 ms.
        let expected = [
            Noticed::Speech { at_ms: 600 },
            Noticed::Word(Word {
                text: "one".into(),
                start_ms: 600,
                end_ms: 800,
            }),
            Noticed::Interim { upto_ms: 800 },
        ];
        assert_eq!(noticed[..3], expected);
        let over = noticed
            .iter()
            .find(|noticed| matches!(noticed, Noticed::Over { .. }));
        let expected = Noticed::Over {
            from_ms: 0,
            to_ms: 1_600,
            end_ms: 1_300,
            asked: false,
        };
        assert_eq!(over, Some(&expected));
    }

    #[test]
    fn it_is_the_same_however_audio_is_cut() {
        let audio = toy::audio(&[(503, 0), (1_207, 1)], 2_500);
        let (expected, ..) = noticed_of(PACE, &audio, 320);
        assert!(expected.contains(&Noticed::Quiet {
            from_ms: 3_560,
            to_ms: 4_560
        }));
        for piece in [1, 7, 160, 1_000, 80_000] {
            assert_eq!(noticed_of(PACE, &audio, piece).0, expected, "{piece}");
        }
    }

    #[test]
    fn the_client_may_say_when_an_utterance_is_over() {
        let audio = toy::audio(&[(500, 0)], 1_000);
        let pace = Pace {
            client_turns: true,
            ..PACE
        };
        let (mut noticed, mut recogniser, _) = noticed_of(pace, &audio, 640);
        assert_eq!(told(&noticed), "one two three");
        assert!(recogniser.flush(&mut noticed));
        assert_eq!(told(&noticed), "one two three |");
        assert!(!recogniser.flush(&mut noticed), "nothing since");
    }

    #[test]
    fn a_word_that_was_lost_is_not_said() {
        let mut audio = toy::audio(&[(500, 0)], 1_000);
        // Most of the second word, from 800 to 1000 ms.
        audio.drain(800 * 16..960 * 16);
        let (noticed, ..) = noticed_of(PACE, &audio, 640);
        assert_eq!(told(&noticed), "one three |");
    }

    /// Also where clips of one voice begin with the same word.
    #[test]
    fn each_clip_of_the_project_is_understood_in_each_format() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../targets/stt-real/corpus");
        let mut corpus =
            Corpus::read(std::path::Path::new(folder)).expect("it is in the repository");
        for rate_hz in [8_000, 16_000, 24_000] {
            let bank = corpus.bank(Format::s16le(rate_hz));
            let half = rate_hz as usize / 2;
            let ear = Ear::new(std::sync::Arc::clone(&bank));
            let mut recogniser = Recogniser::new(ear, rate_hz, PACE);
            for clip in 0..corpus.clips().len() {
                let audio = [vec![0; half], bank.clip(clip).to_vec(), vec![0; half]].concat();
                let mut noticed = Vec::new();
                recogniser.hear(&corpus, &audio, &mut noticed);
                let expected = format!("{} |", corpus.clips()[clip].words.join(" "));
                assert_eq!(told(&noticed), expected, "{}", corpus.clips()[clip].name);
            }
            assert_eq!(recogniser.unknown_ms(), 0);
        }
    }

    #[test]
    fn a_clip_may_be_said_again() {
        let audio = toy::audio(&[(500, 1), (700, 1)], 500);
        let (noticed, ..) = noticed_of(PACE, &audio, 640);
        assert_eq!(told(&noticed), "four five | four five |");
    }
}
