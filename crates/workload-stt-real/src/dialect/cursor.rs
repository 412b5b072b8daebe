//! How far finals have come, and the spans of words.

use super::event::{Event, Fault, Word};
use super::{NS_PER_MS, Sink};

/// How far the final cursor may seem to go back: a server's spans may overlap a little at their seams.
pub const OVERLAP_TOLERANCE_NS: u64 = 200 * NS_PER_MS;

/// Where a dialect's finals are words, the silence between two of them belongs to the later one if it is shorter than
/// this. Speakers pause within a sentence, and servers put the edges of words some ten milliseconds off; a pause between
/// two utterances is longer.
pub const WORD_GAP_MAX_NS: u64 = 400 * NS_PER_MS;

/// How far finals have come.
#[derive(Debug, Default)]
pub(super) struct FinalCursor {
    at_ns: u64,
}

impl FinalCursor {
    /// The cursor.
    pub(super) fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Reports a final, with a fault before it if it goes back.
    pub(super) fn report(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        text: &str,
        words: &[Word<'_>],
        sink: &mut Sink<'_>,
    ) {
        if to_ns < from_ns {
            return sink(Event::Fault(Fault::Reversed));
        }
        if to_ns + OVERLAP_TOLERANCE_NS < self.at_ns {
            sink(Event::Fault(Fault::CursorBack));
        }
        self.at_ns = self.at_ns.max(to_ns);
        sink(Event::Final {
            from_ns: Some(from_ns),
            to_ns: Some(to_ns),
            text,
            words,
        });
    }

    /// Where a final that begins with a word at `start_ns` begins: at the cursor if that is near.
    pub(super) fn start_of_word_ns(&self, start_ns: u64) -> u64 {
        if start_ns > self.at_ns && start_ns - self.at_ns < WORD_GAP_MAX_NS {
            self.at_ns
        } else {
            start_ns
        }
    }

    /// Reports that nothing will come before `upto_ns`, if that is news.
    pub(super) fn progress(&mut self, upto_ns: u64, sink: &mut Sink<'_>) {
        if upto_ns > self.at_ns {
            self.at_ns = upto_ns;
            sink(Event::Progress { upto_ns });
        }
    }
}
