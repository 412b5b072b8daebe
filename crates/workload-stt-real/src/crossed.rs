//! Finals with the words of another session.

use std::collections::BTreeSet;
use std::ops::Range;

use plimsoll_core::profile::NS_PER_S;
use plimsoll_speech::clip::Clip;
use plimsoll_speech::crosstalk::crosses;
use plimsoll_speech::words::words;

use crate::hearing::Said;
use crate::script::Script;
use crate::stream::Claim;

/// How inexact the span of a final may be before its words are taken for those of another session.
const SPAN_TOLERANCE_NS: u64 = 5 * NS_PER_S;
/// How long after it was said an utterance of another session can come out here.
const BEHIND_MAX_NS: u64 = 60 * NS_PER_S;

/// The words of all texts, in the order in which they came.
pub(crate) fn words_of(said: &[Said]) -> Vec<String> {
    // Texts without spans are pieces of one text, and may end within a word.
    let mut pieces = String::new();
    for text in said {
        if text.span_ns.is_some() && !pieces.is_empty() {
            pieces.push(' ');
        }
        pieces.push_str(&text.text);
    }
    words(&pieces)
}

/// Of all finals, how many have the words that another session was saying and their own was not.
pub(crate) fn count(said: &[(&Claim, Script)], clips: &[Clip]) -> u64 {
    let is_crossed = |at: usize, text: &Said| {
        // Pieces of a text are too short to be judged one by one.
        let Some((from_ns, to_ns)) = text.span_ns else {
            return false;
        };
        let heard = words(&text.text);
        let around = from_ns.saturating_sub(SPAN_TOLERANCE_NS)..to_ns + SPAN_TOLERANCE_NS;
        let own = clips_said(&said[at].1, &around);
        let own_words: Vec<String> = own
            .iter()
            .flat_map(|clip| clips[*clip].words.iter().cloned())
            .collect();
        // Gathered only for a text that does not fit the session's own words.
        let others = || others_said(said, at, text.at_ns).into_iter();
        let foreign = std::iter::once_with(others).flatten();
        let foreign = foreign.filter(|clip| !own.contains(clip));
        let foreign = foreign.map(|clip| clips[clip].words.as_slice());
        crosses(&heard, &own_words, foreign).is_some()
    };
    let mut crossed = 0;
    for (at, (claim, _)) in said.iter().enumerate() {
        let texts = claim.heard.said.iter();
        crossed += texts.filter(|text| is_crossed(at, text)).count() as u64;
    }
    crossed
}

/// The clips that sessions other than this one said in the minute before a time of the trial.
fn others_said(said: &[(&Claim, Script)], at: usize, now_ns: u64) -> BTreeSet<usize> {
    let others = said.iter().enumerate().filter(|(other, _)| *other != at);
    others
        .flat_map(|(_, (_, script))| {
            let now_ns = now_ns.saturating_sub(script.due.first_ns);
            clips_said(script, &(now_ns.saturating_sub(BEHIND_MAX_NS)..now_ns))
        })
        .collect()
}

/// The clips of which a session said some in this span of its audio time, in their order.
fn clips_said(script: &Script, span_ns: &Range<u64>) -> Vec<usize> {
    let said = script.audio.utterances().iter();
    let within = said.filter(|said| said.onset_ns < span_ns.end && said.end_ns > span_ns.start);
    within.map(|said| said.clip).collect()
}
