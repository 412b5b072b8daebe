//! What a caller says and when: drawn from the seed, the caller and the turn, and never moved by what the gateway does.
//!
//! A caller sends audio all the time, silence included. Every [`Script::TURN_NS`] it begins an utterance. It asks for a reply
//! 300 ms after the end of the utterance, whether the result has come or not, and sometimes interrupts the reply.

use plimsoll_core::profile::NS_PER_MS;
use plimsoll_core::schedule::mix;

use crate::marks::{BLOCK_MS, CallerMark, SpeakMark};

/// The length of a block, in nanoseconds.
pub const BLOCK_NS: u64 = BLOCK_MS * NS_PER_MS;
/// From the end of an utterance to the text that is to be spoken.
const PAUSE_NS: u64 = 300 * NS_PER_MS;
/// The blocks of an utterance: 1.5 to 3.5 s.
const SPEECH_BLOCKS: (u64, u64) = (75, 175);
/// The characters of a text.
const TEXT_CHARS: (u64, u64) = (35, 65);
/// Blocks of a reply for each character of its text: 60 ms.
pub const BLOCKS_PER_CHAR: u32 = 3;
/// One reply in so many is interrupted, after this share of it in percent.
const BARGE_IN_ONE_OF: u64 = 10;
const BARGE_IN_PERCENT: (u64, u64) = (40, 60);

/// What the draws are for, so that they do not shift each other.
#[derive(Debug, Clone, Copy)]
enum Draw {
    Phase,
    Speech,
    Text,
    BargeIn,
    BargeInAfter,
}

/// The script of one caller. Times are from the moment when its session was ready.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    seed: u64,
    vu: u32,
    /// Blocks that one message carries.
    chunk_blocks: u32,
    /// Blocks before the first utterance.
    phase_blocks: u64,
    /// How many turns the caller has before it hangs up.
    turns: u32,
}

/// A turn of a script. Block numbers are from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its number, from 0.
    pub number: u32,
    /// The first block of the utterance.
    pub from: u32,
    /// The last block of the utterance.
    pub to: u32,
    /// When the message with that block is due.
    pub heard_ns: u64,
    /// When the text is due.
    pub speak_ns: u64,
    /// The characters of the text.
    pub chars: u32,
    /// When the caller interrupts the reply, if it does.
    pub barge_in_ns: Option<u64>,
}

impl Turn {
    /// A turn that is never due.
    pub const NEVER: Self = Self {
        number: 0,
        from: u32::MAX,
        to: u32::MAX,
        // Later than any trial, and no sum of it with a trial's time overflows.
        heard_ns: u64::MAX / 2,
        speak_ns: u64::MAX / 2,
        chars: 0,
        barge_in_ns: None,
    };

    /// The blocks of a whole reply from a mock provider.
    #[must_use]
    pub fn reply_blocks(&self) -> u32 {
        self.chars * BLOCKS_PER_CHAR
    }
}

impl Script {
    /// From the beginning of an utterance to that of the next.
    pub const TURN_NS: u64 = 8_000 * NS_PER_MS;
    /// From the end of the last reply, if the provider took no time, until the caller hangs up.
    const FAREWELL_NS: u64 = 2_000 * NS_PER_MS;
    const TURN_BLOCKS: u64 = Self::TURN_NS / BLOCK_NS;

    /// The script of a caller that sends `chunk_blocks` blocks in a message.
    #[must_use]
    pub fn new(seed: u64, vu: u32, chunk_blocks: u32) -> Self {
        let mut script = Self {
            seed,
            vu,
            chunk_blocks: chunk_blocks.max(1),
            phase_blocks: 0,
            turns: u32::MAX,
        };
        script.phase_blocks = script.within(Draw::Phase, 0, (0, Self::TURN_BLOCKS - 1));
        script
    }

    /// The same for a caller who hangs up after `ns`: it begins no turn that could not end by then.
    #[must_use]
    pub fn until(mut self, ns: u64) -> Self {
        let fits = |number: &u32| {
            let turn = self.turn(*number);
            let reply_ns = u64::from(turn.reply_blocks()) * BLOCK_NS;
            turn.speak_ns + reply_ns + Self::FAREWELL_NS <= ns
        };
        self.turns = (0..u32::MAX)
            .find(|number| !fits(number))
            .unwrap_or(u32::MAX);
        self
    }

    /// The turn with this number; [`Turn::NEVER`] after the last.
    #[must_use]
    pub fn turn(&self, number: u32) -> Turn {
        if number >= self.turns {
            return Turn {
                number,
                ..Turn::NEVER
            };
        }
        let before = self.phase_blocks + u64::from(number) * Self::TURN_BLOCKS;
        let speech = self.within(Draw::Speech, number, SPEECH_BLOCKS);
        let [from, to] =
            [before + 1, before + speech].map(|block| u32::try_from(block).unwrap_or(u32::MAX));
        let chars = self.within(Draw::Text, number, TEXT_CHARS);
        let heard_ns = self.block_due_ns(to);
        let speak_ns = heard_ns + PAUSE_NS;
        let barges_in = self
            .draw(Draw::BargeIn, number)
            .is_multiple_of(BARGE_IN_ONE_OF);
        let barge_in_ns = barges_in.then(|| {
            let percent = self.within(Draw::BargeInAfter, number, BARGE_IN_PERCENT);
            let reply_ns = chars * u64::from(BLOCKS_PER_CHAR) * BLOCK_NS;
            speak_ns + reply_ns * percent / 100
        });
        Turn {
            number,
            from,
            to,
            heard_ns,
            speak_ns,
            chars: u32::try_from(chars).unwrap_or(u32::MAX),
            barge_in_ns,
        }
    }

    /// The mark of a block. It is a function of its number alone.
    #[must_use]
    pub fn mark(&self, block: u32) -> CallerMark {
        let before = u64::from(block.max(1) - 1);
        let speech = before.checked_sub(self.phase_blocks).and_then(|since| {
            let turn = self.turn(u32::try_from(since / Self::TURN_BLOCKS).ok()?);
            (turn.from <= block && block <= turn.to).then_some(block == turn.to)
        });
        CallerMark {
            vu: self.vu,
            block,
            speech: speech.is_some(),
            last: speech == Some(true),
        }
    }

    /// When message `chunk`, from 0, is due: its last sample has been heard then.
    #[must_use]
    pub fn chunk_due_ns(&self, chunk: u64) -> u64 {
        (chunk + 1) * u64::from(self.chunk_blocks) * BLOCK_NS
    }

    /// The message with this block.
    #[must_use]
    pub fn chunk_of(&self, block: u32) -> u64 {
        u64::from(block.max(1) - 1) / u64::from(self.chunk_blocks)
    }

    /// When the message with this block is due.
    #[must_use]
    pub fn block_due_ns(&self, block: u32) -> u64 {
        self.chunk_due_ns(self.chunk_of(block))
    }

    /// The blocks of message `chunk`, in order.
    pub fn blocks_of(&self, chunk: u64) -> impl Iterator<Item = u32> + use<> {
        let blocks = u64::from(self.chunk_blocks);
        (chunk * blocks..(chunk + 1) * blocks)
            .map(|before| u32::try_from(before + 1).unwrap_or(u32::MAX))
    }

    /// The text of a turn. It begins with the mark and has as many characters as the turn says.
    #[must_use]
    pub fn text(&self, turn: &Turn) -> String {
        const WORDS: &str =
            "the quick answer to your question is on its way and will be with you in a moment ";
        let mark = SpeakMark {
            vu: self.vu,
            turn: turn.number,
        };
        let mut text = mark.to_string();
        let length = (turn.chars as usize).max(text.len() + 1);
        text.extend(WORDS.chars().cycle().take(length - text.len()));
        text
    }

    fn draw(&self, what: Draw, turn: u32) -> u64 {
        let of_vu = mix(self.seed ^ mix(u64::from(self.vu) + 1));
        mix(of_vu ^ mix((u64::from(turn) << 8) | (what as u64 + 1)))
    }

    fn within(&self, what: Draw, turn: u32, (least, most): (u64, u64)) -> u64 {
        least + self.draw(what, turn) % (most - least + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::profile::NS_PER_S;

    fn scripts() -> impl Iterator<Item = Script> {
        (0..200).map(|vu| Script::new(7, vu, 5))
    }

    #[test]
    fn turns_are_as_specified() {
        let (mut speech_ns, mut barge_ins, mut turns) = (0, 0, 0);
        for script in scripts() {
            for number in 0..20 {
                let turn = script.turn(number);
                let blocks = u64::from(turn.to - turn.from + 1);
                assert!((75..=175).contains(&blocks));
                assert!((35..=65).contains(&turn.chars));
                assert_eq!(turn.speak_ns, turn.heard_ns + 300 * NS_PER_MS);
                let reply_ns = u64::from(turn.reply_blocks()) * BLOCK_NS;
                if let Some(at_ns) = turn.barge_in_ns {
                    let after = (at_ns - turn.speak_ns) * 100 / reply_ns;
                    assert!((39..=60).contains(&after), "{after} %");
                    barge_ins += 1;
                }
                // The reply ends before the next turn's text, for providers that answer within 400 ms.
                let next = script.turn(number + 1);
                assert!(turn.speak_ns + reply_ns + 400 * NS_PER_MS < next.speak_ns);
                assert_eq!(next.from - turn.from, 400);
                speech_ns += blocks * BLOCK_NS;
                turns += 1;
            }
        }
        let mean_s = speech_ns / turns / (NS_PER_S / 100);
        assert!(
            (245..=255).contains(&mean_s),
            "{mean_s} hundredths of a second"
        );
        assert!((350..=450).contains(&barge_ins), "{barge_ins} of {turns}");
    }

    #[test]
    fn a_block_has_the_mark_of_its_turn() {
        let script = Script::new(7, 3, 5);
        let marks: Vec<CallerMark> = (1..2_000).map(|block| script.mark(block)).collect();
        for number in 0..4 {
            let turn = script.turn(number);
            let speaks = |block: u32| marks[block as usize - 1].speech;
            assert!(turn.from == 1 || !speaks(turn.from - 1));
            assert!((turn.from..=turn.to).all(speaks));
            assert!(!speaks(turn.to + 1));
            assert!(marks[turn.to as usize - 1].last);
        }
        let last = marks.iter().filter(|mark| mark.last).count();
        let spoken = (0..).take_while(|n| script.turn(*n).to < 2_000).count();
        assert_eq!(last, spoken);
    }

    #[test]
    fn a_caller_who_hangs_up_begins_no_turn_that_could_not_end() {
        for script in scripts() {
            let short = script.until(30_000 * NS_PER_MS);
            let had = (0..10)
                .take_while(|n| short.turn(*n) == script.turn(*n))
                .count();
            assert!((2..=3).contains(&had), "{had}");
            let last = script.turn(u32::try_from(had).unwrap() - 1);
            assert!(
                last.speak_ns + u64::from(last.reply_blocks()) * BLOCK_NS <= 28_000 * NS_PER_MS
            );
            let never = short.turn(u32::try_from(had).unwrap());
            assert!(never.heard_ns > 1 << 62);
            let spoken = (1..5_000).filter(|block| short.mark(*block).last).count();
            assert_eq!(spoken, had);
        }
    }

    #[test]
    fn a_message_is_due_when_its_last_sample_was_heard() {
        let script = Script::new(7, 3, 5);
        assert_eq!(script.chunk_due_ns(0), 100 * NS_PER_MS);
        assert_eq!(script.blocks_of(0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(script.block_due_ns(5), 100 * NS_PER_MS);
        assert_eq!(script.block_due_ns(6), 200 * NS_PER_MS);
        assert_eq!(Script::new(7, 3, 1).block_due_ns(6), 120 * NS_PER_MS);
    }

    #[test]
    fn texts_begin_with_their_mark_and_have_their_length() {
        for script in scripts() {
            let turn = script.turn(12);
            let text = script.text(&turn);
            assert_eq!(text.chars().count(), turn.chars as usize);
            let mark = SpeakMark::read(&text).expect("a mark");
            assert_eq!((mark.vu, mark.turn), (script.vu, 12));
        }
    }

    #[test]
    fn a_seed_repeats_and_callers_differ() {
        let turns = |seed, vu| -> Vec<Turn> {
            let script = Script::new(seed, vu, 5);
            (0..10).map(|number| script.turn(number)).collect()
        };
        assert_eq!(turns(1, 1), turns(1, 1));
        assert_ne!(turns(1, 1), turns(1, 2));
        assert_ne!(turns(1, 1), turns(2, 1));
        // Callers are spread over a turn.
        let early = scripts().filter(|script| script.phase_blocks < 200).count();
        assert!((80..120).contains(&early), "{early} of 200");
    }
}
