//! What a session heard from the server, in the words of the dialects.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_speech::errors::WordErrors;
use plimsoll_speech::ledger::TOLERANCE_NS;
use plimsoll_speech::words::words;

use super::audio::Speech;
use crate::dialect::{Cursor, Event, Facts, Fault, Kind};

/// The share of wrong words up to which they are taken for what was said. It tells words from garbage, and ranks nobody.
pub(super) const WRONG_AT_MOST: f64 = 0.8;

/// The characters of a text that are shown.
const SHOWN: usize = 120;

/// A final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Final {
    pub(super) from_ns: Option<u64>,
    pub(super) to_ns: Option<u64>,
    pub(super) text: String,
    /// The end of its last word.
    pub(super) words_to_ns: Option<u64>,
    /// How much audio was written when it came.
    pub(super) written_ns: u64,
}

/// All that a session heard.
#[derive(Debug)]
pub(super) struct Heard {
    facts: Facts,
    pub(super) is_ready: bool,
    pub(super) is_drained: bool,
    /// Why the session was refused.
    pub(super) refused: Option<Kind>,
    pub(super) errors: BTreeSet<Kind>,
    /// An error said that the session is over.
    pub(super) is_failed: bool,
    pub(super) finals: Vec<Final>,
    /// Interims with text, and how many of them came before the first final with text.
    pub(super) interims: u64,
    pub(super) interims_first: u64,
    /// How far finals and progress have come.
    cursor_ns: u64,
    /// What is not final yet: its text, and how far it goes.
    open: (String, u64),
    /// How often the dialect was broken, in which way.
    faults: BTreeMap<Fault, u64>,
    /// The server broke the WebSocket, or the connection failed.
    pub(super) broke: bool,
    pub(super) unknown: u64,
    /// How the connection ended, in words.
    pub(super) over: Option<String>,
}

impl Heard {
    pub(super) fn new(facts: Facts) -> Self {
        Self {
            facts,
            is_ready: false,
            is_drained: false,
            refused: None,
            errors: BTreeSet::new(),
            is_failed: false,
            finals: Vec::new(),
            interims: 0,
            interims_first: 0,
            cursor_ns: 0,
            open: (String::new(), 0),
            faults: BTreeMap::new(),
            broke: false,
            unknown: 0,
            over: None,
        }
    }

    pub(super) fn note(&mut self, event: Event<'_>, written_ns: u64) {
        match event {
            Event::Ready => self.is_ready = true,
            Event::Interim { cursor_ns, text } => {
                let has_words = !text.trim().is_empty();
                self.interims += u64::from(has_words);
                let is_first = self.finals.iter().all(|told| told.text.trim().is_empty());
                self.interims_first += u64::from(has_words && is_first);
                self.open = (text.to_owned(), cursor_ns.unwrap_or(0));
            }
            Event::Final {
                from_ns,
                to_ns,
                text,
                words,
            } => {
                self.cursor_ns = self.cursor_ns.max(to_ns.unwrap_or(0));
                self.open = (String::new(), 0);
                self.finals.push(Final {
                    from_ns,
                    to_ns,
                    text: text.to_owned(),
                    words_to_ns: words.last().and_then(|word| word.to_ns),
                    written_ns,
                });
            }
            Event::Progress { upto_ns } => self.cursor_ns = self.cursor_ns.max(upto_ns),
            Event::Drained => self.is_drained = true,
            // The first reason is the reason.
            Event::Refused { kind } => {
                self.refused.get_or_insert(kind);
            }
            Event::Error { kind, fatal } => {
                self.errors.insert(kind);
                self.is_failed |= fatal;
            }
            Event::Unknown => self.unknown += 1,
            Event::Fault(fault) => *self.faults.entry(fault).or_default() += 1,
            Event::Received { .. } | Event::Speech { .. } | Event::Ignored => {}
        }
    }

    /// Whether nothing more can come of the session.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_some() || self.refused.is_some() || self.is_failed
    }

    /// How far the server has come. What a dialect drops at the end, because it is not final then, counts.
    pub(super) fn reached_ns(&self) -> u64 {
        match self.facts.says_drained {
            true => self.cursor_ns,
            false => self.cursor_ns.max(self.open.1),
        }
    }

    /// All text: of finals, and where a dialect drops at the end what is not final, that too.
    pub(super) fn text(&self) -> String {
        let finals = self.finals.iter().map(|told| told.text.as_str());
        let open = (!self.facts.says_drained).then_some(self.open.0.as_str());
        let glue = match self.facts.cursor {
            Cursor::Inferred => "",
            _ => " ",
        };
        finals.chain(open).collect::<Vec<_>>().join(glue)
    }

    /// Passes when the text is about what was said; in words, how well.
    pub(super) fn must_be(&self, said: &[String]) -> Result<String, String> {
        let text = self.text();
        let errors = WordErrors::between(said, &words(&text));
        let rate = errors.rate().unwrap_or(0.0);
        let seen = format!("{:.0} % of {} words wrong", rate * 100.0, said.len());
        if rate <= WRONG_AT_MOST {
            return Ok(seen);
        }
        let heard = shown(&text);
        Err(format!("{seen}; heard {heard}{}", self.remarks()))
    }

    /// Passes when every final has a span within the audio, and no two of them speak for the same.
    pub(super) fn must_have_spans(&self) -> Result<String, String> {
        let mut spans = Vec::with_capacity(self.finals.len());
        for told in &self.finals {
            let text = shown(&told.text);
            let (Some(from_ns), Some(to_ns)) = (told.from_ns, told.to_ns) else {
                return Err(format!("a final without times: {text}"));
            };
            let end_ns = to_ns.max(told.words_to_ns.unwrap_or(0));
            if end_ns > told.written_ns + TOLERANCE_NS {
                let (end, written) = (seconds(end_ns), seconds(told.written_ns));
                return Err(format!(
                    "a final up to {end} when {written} were sent: {text}"
                ));
            }
            spans.push((from_ns, to_ns));
        }
        spans.sort_unstable();
        let mut upto_ns = 0;
        for (from_ns, to_ns) in &spans {
            if upto_ns > from_ns + TOLERANCE_NS && *to_ns > from_ns + TOLERANCE_NS {
                let (from, to, upto) = (seconds(*from_ns), seconds(*to_ns), seconds(upto_ns));
                return Err(format!(
                    "a final from {from} to {to}, though one before it goes up to {upto}"
                ));
            }
            upto_ns = upto_ns.max(*to_ns);
        }
        match spans.len() {
            0 if self.facts.says_drained => Err(format!("no final came{}", self.remarks())),
            count => Ok(format!("{count} finals, up to {}", seconds(upto_ns))),
        }
    }

    /// The longest stretch of speech that no final speaks for.
    pub(super) fn uncovered_ns(&self, speech: &Speech) -> u64 {
        let spans = self.finals.iter();
        let spans = spans.filter_map(|told| Some((told.from_ns?, told.to_ns?)));
        let mut spans: Vec<(u64, u64)> =
            spans.chain([(self.cursor_ns, self.reached_ns())]).collect();
        spans.sort_unstable();
        let of_each = speech.spans_ns.iter().map(|(onset_ns, end_ns)| {
            let (mut at_ns, mut longest_ns) = (*onset_ns, 0);
            for (from_ns, to_ns) in &spans {
                longest_ns = longest_ns.max((*from_ns).min(*end_ns).saturating_sub(at_ns));
                at_ns = at_ns.max(*to_ns);
            }
            longest_ns.max(end_ns.saturating_sub(at_ns))
        });
        of_each.max().unwrap_or(0)
    }

    /// Passes when every message was as the dialect has it.
    pub(super) fn must_be_sound(&self) -> Result<String, String> {
        let faults = self.faults.iter();
        let mut told: Vec<String> = faults
            .map(|(fault, count)| format!("{fault} ({count} times)"))
            .collect();
        if self.broke {
            told.extend(self.over.clone());
        }
        match (told.is_empty(), self.unknown) {
            (false, _) => Err(told.join("; ")),
            (true, 0) => Ok("no fault".to_owned()),
            (true, unknown) => Ok(format!(
                "no fault; {unknown} messages of types that the dialect does not know"
            )),
        }
    }

    /// What went wrong beside it, to end a sentence.
    pub(super) fn remarks(&self) -> String {
        let mut remarks = String::new();
        if let Some(kind) = self.refused {
            remarks += &format!("; refused ({})", told(kind));
        }
        if !self.errors.is_empty() {
            let kinds: Vec<String> = self.errors.iter().map(|kind| told(*kind)).collect();
            remarks += &format!("; the server reported an error ({})", kinds.join(", "));
        }
        if let Some(over) = &self.over {
            remarks += &format!("; {over}");
        }
        remarks
    }
}

/// A kind in the words of records.
pub(super) fn told(kind: Kind) -> String {
    let word = serde_json::to_value(kind).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// Audio time in seconds.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a session")]
pub(super) fn seconds(ns: u64) -> String {
    format!("{:.2} s", ns as f64 / 1e9)
}

/// A text in quotes, cut where it is long.
pub(super) fn shown(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn heard(finals: &[(u64, u64)]) -> Heard {
        let mut heard = Heard::new(Facts::default());
        for (from_ns, to_ns) in finals {
            let told = Event::Final {
                from_ns: Some(*from_ns),
                to_ns: Some(*to_ns),
                text: "ah",
                words: &[],
            };
            heard.note(told, 10 * S);
        }
        heard
    }

    #[test]
    fn finals_may_come_in_any_order_and_speak_for_audio_once() {
        let told = heard(&[(5 * S, 7 * S), (0, 5 * S)]).must_have_spans();
        assert_eq!(told.unwrap(), "2 finals, up to 7.00 s");
        assert!(
            heard(&[(0, 5 * S), (5 * S - S / 5, 7 * S)])
                .must_have_spans()
                .is_ok()
        );
        let told = heard(&[(0, 5 * S), (4 * S, 7 * S)]).must_have_spans();
        assert_eq!(
            told.unwrap_err(),
            "a final from 4.00 s to 7.00 s, though one before it goes up to 5.00 s"
        );
        let told = heard(&[(0, 11 * S)]).must_have_spans();
        assert_eq!(
            told.unwrap_err(),
            "a final up to 11.00 s when 10.00 s were sent: \"ah\""
        );
        assert_eq!(heard(&[]).must_have_spans().unwrap_err(), "no final came");
    }

    #[test]
    fn uncovered_speech_is_the_longest_stretch_without_a_final() {
        let speech = Speech {
            frames: Vec::new(),
            words: Vec::new(),
            spans_ns: vec![(S, 3 * S), (5 * S, 8 * S)],
        };
        for (finals, expected) in [
            (&[(0, 10 * S)][..], 0),
            (&[(0, 4 * S), (4 * S, 9 * S)], 0),
            (&[(0, 4 * S)], 3 * S),
            (&[(0, 4 * S), (6 * S, 9 * S)], S),
            (&[(2 * S, 4 * S), (4 * S, 6 * S)], 2 * S),
        ] {
            assert_eq!(heard(finals).uncovered_ns(&speech), expected, "{finals:?}");
        }
    }

    #[test]
    fn what_a_dialect_drops_at_its_end_counts_while_it_is_open() {
        for (says_drained, text, reached_ns) in [(true, "ah", 2 * S), (false, "ah and oh", 4 * S)] {
            let facts = Facts {
                says_drained,
                ..Facts::default()
            };
            let mut heard = Heard {
                facts,
                ..heard(&[(0, 2 * S)])
            };
            let open = Event::Interim {
                cursor_ns: Some(4 * S),
                text: "and oh",
            };
            heard.note(open, 10 * S);
            assert_eq!(
                (heard.text().as_str(), heard.reached_ns()),
                (text, reached_ns)
            );
        }
    }

    #[test]
    fn words_are_told_from_garbage() {
        let said: Vec<String> = ["so", "it", "is", "said", "now"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(
            heard(&[]).must_be(&said).unwrap_err(),
            "100 % of 5 words wrong; heard \"\""
        );
        let mut heard = heard(&[]);
        heard.note(
            Event::Final {
                from_ns: None,
                to_ns: None,
                text: "Now!",
                words: &[],
            },
            0,
        );
        assert_eq!(heard.must_be(&said).unwrap(), "80 % of 5 words wrong");
    }
}
