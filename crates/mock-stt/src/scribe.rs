//! Writes down what was noticed, as a session's results: truly, or with the fault that the session has.

use std::sync::Arc;

use crate::corpus::Word;
use crate::faults::Fault;
use crate::recogniser::Noticed;

/// The word in place of a right one.
const WRONG_WORD: &str = "marmalade";
/// So much of each utterance is lost.
const LOST_MS: u64 = 1_000;
/// So much after the audio a final ends.
const BEYOND_MS: u64 = 10_000;

/// A result of a session. Times are of its audio, in ms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Somebody began to speak.
    Speech {
        /// When.
        at_ms: u64,
    },
    /// A word is over. It will not change.
    Word(Word),
    /// What was said so far.
    Interim {
        /// Of audio up to here.
        upto_ms: u64,
        /// All words of the utterance.
        words: Vec<Word>,
    },
    /// What was said.
    Final(Final),
    /// Nobody spoke.
    Quiet {
        /// From here.
        from_ms: u64,
        /// To here.
        to_ms: u64,
    },
    /// All is told that the client asked to be made final.
    Flushed,
    /// A message of audio was heard wholly.
    Message {
        /// The audio that came so far.
        heard_ms: u64,
    },
}

/// An utterance that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Final {
    /// Where the part begins that this says all about.
    pub from_ms: u64,
    /// Where it ends.
    pub to_ms: u64,
    /// The end of speech.
    pub end_ms: u64,
    /// All its words; none if it was not understood.
    pub words: Vec<Word>,
    /// Whether the client asked for it.
    pub asked: bool,
    /// Whether it was told already: fault `doubled-final`.
    pub again: bool,
}

/// The words, with blanks between.
#[must_use]
pub fn text(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| &*word.text).collect();
    words.join(" ")
}

/// What is known of the other sessions.
#[derive(Debug, Default, Clone)]
pub struct Others {
    /// What another session said last.
    pub text: Vec<Arc<str>>,
    /// Whether many sessions are open.
    pub loaded: bool,
}

/// Writes for one session.
#[derive(Debug, Default)]
pub struct Scribe {
    fault: Option<Fault>,
    /// Words of the utterance, as they were told.
    said: Vec<Word>,
    /// How many words the session had.
    count: usize,
    /// The words of the utterance, as they were said.
    heard: Vec<Arc<str>>,
    onset_ms: u64,
    /// What another session said, to be said in place of this utterance.
    foreign: Vec<Arc<str>>,
}

impl Scribe {
    /// A scribe that errs like this.
    #[must_use]
    pub fn new(fault: Option<Fault>) -> Self {
        Self {
            fault,
            ..Self::default()
        }
    }

    /// Writes down what was noticed.
    pub fn write(&mut self, noticed: Noticed, others: &Others, events: &mut Vec<Event>) {
        let silent = self.fault == Some(Fault::Silent);
        match noticed {
            Noticed::Speech { at_ms } => {
                self.onset_ms = at_ms;
                self.heard.clear();
                self.foreign.clear();
                if self.fault == Some(Fault::Crosstalk) {
                    self.foreign.clone_from(&others.text);
                }
                if !silent {
                    events.push(Event::Speech { at_ms });
                }
            }
            Noticed::Word(word) => {
                if let Some(word) = self.word(word, others) {
                    self.said.push(word.clone());
                    events.push(Event::Word(word));
                }
            }
            Noticed::Interim { upto_ms } => {
                if !self.said.is_empty() {
                    let words = self.said.clone();
                    events.push(Event::Interim { upto_ms, words });
                }
            }
            Noticed::Over { from_ms, to_ms, .. } if silent => {
                events.push(Event::Quiet { from_ms, to_ms });
            }
            Noticed::Over {
                from_ms,
                to_ms,
                end_ms,
                asked,
            } => {
                let told = Final {
                    from_ms,
                    to_ms,
                    end_ms,
                    words: Vec::new(),
                    asked,
                    again: false,
                };
                self.finish(told, events);
            }
            Noticed::Quiet { from_ms, to_ms } => events.push(Event::Quiet { from_ms, to_ms }),
        }
    }

    /// The word as it is told, if it is.
    fn word(&mut self, word: Word, others: &Others) -> Option<Word> {
        let number = self.count;
        self.count += 1;
        self.heard.push(Arc::clone(&word.text));
        let instead = |text: Arc<str>| Word {
            text,
            ..word.clone()
        };
        match self.fault {
            Some(Fault::Silent) => None,
            Some(Fault::LostWord) if number % 4 == 2 => None,
            Some(Fault::LostSecond) if word.start_ms < self.onset_ms + LOST_MS => None,
            Some(Fault::WrongWords) if others.loaded && number % 2 == 1 => {
                Some(instead(WRONG_WORD.into()))
            }
            Some(Fault::Crosstalk) if !self.foreign.is_empty() => {
                let foreign = self.foreign.get(self.heard.len() - 1);
                foreign.cloned().map(instead)
            }
            Some(Fault::BeyondAudio) => Some(Word {
                start_ms: word.start_ms + BEYOND_MS,
                end_ms: word.end_ms + BEYOND_MS,
                ..word
            }),
            _ => Some(word),
        }
    }

    fn finish(&mut self, told: Final, events: &mut Vec<Event>) {
        let mut told = told;
        // What is left of another session's words comes at the end of the last one.
        for text in self.foreign.drain(..).skip(self.heard.len()) {
            let word = Word {
                text,
                start_ms: told.end_ms,
                end_ms: told.end_ms,
            };
            self.said.push(word.clone());
            events.push(Event::Word(word));
        }
        told.words = std::mem::take(&mut self.said);
        match self.fault {
            Some(Fault::LostSecond) => {
                told.from_ms = (self.onset_ms + LOST_MS).min(told.to_ms);
            }
            Some(Fault::BeyondAudio) => {
                told.to_ms += BEYOND_MS;
                told.end_ms += BEYOND_MS;
            }
            _ => {}
        }
        events.push(Event::Final(told.clone()));
        if self.fault == Some(Fault::DoubledFinal) {
            told.again = true;
            events.push(Event::Final(told));
        }
    }

    /// What was really said in the last utterance.
    #[must_use]
    pub fn heard(&self) -> &[Arc<str>] {
        &self.heard
    }

    /// Whether the fault of this scribe changes these words.
    #[must_use]
    pub fn errs(&self, others: &Others) -> Option<Fault> {
        self.fault.filter(|fault| match fault {
            Fault::Crosstalk => !others.text.is_empty(),
            Fault::WrongWords => others.loaded,
            Fault::LostWord
            | Fault::LostSecond
            | Fault::DoubledFinal
            | Fault::BeyondAudio
            | Fault::Silent => true,
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(number: u64) -> Word {
        Word {
            text: format!("w{number}").into(),
            start_ms: 1_000 + 300 * number,
            end_ms: 1_300 + 300 * number,
        }
    }

    /// What is told of an utterance of six words, from 1000 to 2800 ms.
    fn told(fault: Option<Fault>, others: &Others) -> Vec<Event> {
        let (mut scribe, mut events) = (Scribe::new(fault), Vec::new());
        let mut noticed = vec![Noticed::Speech { at_ms: 1_000 }];
        noticed.extend((0..6).map(|number| Noticed::Word(word(number))));
        noticed.extend([
            Noticed::Interim { upto_ms: 2_800 },
            Noticed::Over {
                from_ms: 0,
                to_ms: 3_100,
                end_ms: 2_800,
                asked: false,
            },
        ]);
        for noticed in noticed {
            scribe.write(noticed, others, &mut events);
        }
        events
    }

    fn finals(events: &[Event]) -> Vec<(u64, u64, String)> {
        let finals = events.iter().filter_map(|event| match event {
            Event::Final(told) => Some((told.from_ms, told.to_ms, text(&told.words))),
            _ => None,
        });
        finals.collect()
    }

    /// The words, as they were told one by one.
    fn words(events: &[Event]) -> String {
        let words = events.iter().filter_map(|event| match event {
            Event::Word(word) => Some(word.clone()),
            _ => None,
        });
        text(&words.collect::<Vec<_>>())
    }

    #[test]
    fn an_honest_scribe_tells_what_was_said() {
        let events = told(None, &Others::default());
        assert_eq!(
            finals(&events),
            [(0, 3_100, "w0 w1 w2 w3 w4 w5".to_owned())]
        );
        assert_eq!(words(&events), "w0 w1 w2 w3 w4 w5");
    }

    #[test]
    fn each_fault_is_told_in_finals_and_word_by_word() {
        let others = Others {
            text: ["a", "b", "c"].map(Arc::from).to_vec(),
            loaded: true,
        };
        let honest = "w0 w1 w2 w3 w4 w5";
        for (fault, finals_of, text) in [
            (Fault::LostWord, vec![(0, 3_100)], "w0 w1 w3 w4 w5"),
            (Fault::LostSecond, vec![(2_000, 3_100)], "w4 w5"),
            (Fault::DoubledFinal, vec![(0, 3_100); 2], honest),
            (Fault::BeyondAudio, vec![(0, 13_100)], honest),
            (Fault::Crosstalk, vec![(0, 3_100)], "a b c"),
            (Fault::Silent, vec![], ""),
            (
                Fault::WrongWords,
                vec![(0, 3_100)],
                "w0 marmalade w2 marmalade w4 marmalade",
            ),
            (Fault::Stall, vec![(0, 3_100)], honest),
        ] {
            let events = told(Some(fault), &others);
            let expected: Vec<(u64, u64, String)> = finals_of
                .into_iter()
                .map(|(from_ms, to_ms)| (from_ms, to_ms, text.to_owned()))
                .collect();
            assert_eq!(finals(&events), expected, "{fault:?}");
            assert_eq!(words(&events), text, "{fault:?}");
        }
    }

    /// Otherwise sessions that have each other's texts would all have the same one soon.
    #[test]
    fn what_was_said_is_known_whatever_is_told() {
        let others = Others {
            text: ["a", "b", "c"].map(Arc::from).to_vec(),
            loaded: true,
        };
        for fault in Fault::ALL {
            let mut scribe = Scribe::new(Some(fault));
            scribe.write(Noticed::Speech { at_ms: 1_000 }, &others, &mut Vec::new());
            for number in 0..3 {
                scribe.write(Noticed::Word(word(number)), &others, &mut Vec::new());
            }
            assert_eq!(scribe.heard(), ["w0", "w1", "w2"].map(Arc::from));
        }
    }

    #[test]
    fn a_longer_text_of_another_session_is_told_wholly() {
        let others = Others {
            text: ["a", "b", "c", "d", "e", "f", "g", "h"]
                .map(Arc::from)
                .to_vec(),
            loaded: false,
        };
        let events = told(Some(Fault::Crosstalk), &others);
        assert_eq!(words(&events), "a b c d e f g h");
        let alone = told(Some(Fault::Crosstalk), &Others::default());
        assert_eq!(words(&alone), "w0 w1 w2 w3 w4 w5");
    }
}
