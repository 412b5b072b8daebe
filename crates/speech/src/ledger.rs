//! The ledger by audio cursor: what became of each frame of one session.
//!
//! Speech servers confirm audio, not frames: a final says which span of audio its text speaks for. The **final cursor** is how
//! far finals have come, or progress that rules out later words. A final over `[a, b]` answers the frames from the final
//! cursor to `b`. Frames with speech between the cursor and `a` are lost, unless a later final still comes for them. Frames
//! without speech are silence: nothing had to be said about them.
//!
//! Servers' audio times are not exact: a recogniser's idea of where a word begins and ours differ. So every rule has the
//! tolerance [`TOLERANCE_NS`].
//!
//! Audio time is nanoseconds from the session's first sample. All other times are nanoseconds since the trial began. Frames
//! are numbered from 1, as [`plimsoll_core::ledger::FrameLedger`] does, which counts what this ledger settles.

use std::collections::BTreeMap;
use std::ops::Range;

use plimsoll_core::profile::{NS_PER_MS, NS_PER_S, Window};
use plimsoll_core::schedule::Periodic;

use serde::{Deserialize, Serialize};

use crate::plan::Utterance;

mod outcome;

pub use outcome::{Account, LagSample, UtteranceOutcome};

/// How inexact a server's audio times may be: 200 ms.
///
/// - A final may end that far beyond the audio written, and overlap earlier finals by that much speech.
/// - Up to that much speech of an utterance may be missing at one place between finals, if some of the utterance is answered.
pub const TOLERANCE_NS: u64 = 200 * NS_PER_MS;

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A final speaks for it.
    Answered,
    /// It has no speech, and no final speaks for it.
    Silence,
    /// It has speech, and no final speaks for it.
    Lost,
}

/// How a message breaks the rules of audio time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Fault {
    /// It speaks for audio that was not written yet.
    BeyondTheAudio,
    /// It ends before it begins.
    Reversed,
    /// Progress went back.
    CursorBackwards,
}

impl Fault {
    /// The reason, as a ledger counts it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::BeyondTheAudio => "a result ends beyond the audio written",
            Self::Reversed => "a result ends before it begins",
            Self::CursorBackwards => "the audio cursor went backwards",
        }
    }
}

/// What a message settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Frames whose class is known now, in ascending order.
    pub settled: Vec<(Range<u64>, Class)>,
    /// Frames with speech that a final had answered before. 0 up to the tolerance.
    pub duplicated: u64,
    /// Frames answered after a later frame was.
    pub out_of_order: u64,
    /// What was wrong with the message. The rest of it counted.
    pub fault: Option<Fault>,
}

/// The state of one session.
#[derive(Debug, Clone)]
pub struct AudioLedger {
    /// When each frame is due: frame 1 at slot 0. The period is the length of a frame.
    due: Periodic,
    window: Window,
    /// Whether the dialect says that it is done with silence.
    silence_decidable: bool,
    speech: Vec<Spoken>,
    /// The class of each frame written, by its number less 1; `None` if it is open.
    classes: Vec<Option<Class>>,
    cursor_ns: u64,
    /// The utterance for which the server was asked for its finals, and when.
    flushed: Option<(usize, u64)>,
    any_text: bool,
    next_lag_at_ns: u64,
    lags: Vec<LagSample>,
    duplicated: u64,
    out_of_order: u64,
    faults: BTreeMap<Fault, u64>,
}

/// An utterance with its frames, and what is known of it.
#[derive(Debug, Clone)]
struct Spoken {
    utterance: Utterance,
    /// Its frames, by their numbers less 1: those whose middle is speech.
    frames: Range<usize>,
    first_result_ns: Option<u64>,
    final_ns: Option<u64>,
    finalisation_ns: Option<u64>,
}

impl AudioLedger {
    /// The ledger of a session whose frames are due as `due` says and whose audio holds these utterances, in the order of
    /// time. `silence_decidable`: whether the dialect's cursor moves in silence. If not, lag counts to the end of the last
    /// speech due only.
    #[must_use]
    pub fn new(
        due: Periodic,
        window: Window,
        utterances: &[Utterance],
        silence_decidable: bool,
    ) -> Self {
        let spoken = |utterance: &Utterance| Spoken {
            utterance: *utterance,
            frames: speech_frames(utterance, due.period_ns),
            first_result_ns: None,
            final_ns: None,
            finalisation_ns: None,
        };
        Self {
            due,
            window,
            silence_decidable,
            speech: utterances.iter().map(spoken).collect(),
            classes: Vec::new(),
            cursor_ns: 0,
            flushed: None,
            any_text: false,
            next_lag_at_ns: due.first_ns.saturating_add(NS_PER_S),
            lags: Vec::new(),
            duplicated: 0,
            out_of_order: 0,
            faults: BTreeMap::new(),
        }
    }

    /// The next frame was written.
    pub fn written(&mut self) {
        self.classes.push(None);
    }

    /// The audio written, in nanoseconds.
    #[must_use]
    pub fn written_ns(&self) -> u64 {
        (self.classes.len() as u64).saturating_mul(self.due.period_ns)
    }

    /// The final cursor.
    #[must_use]
    pub fn cursor_ns(&self) -> u64 {
        self.cursor_ns
    }

    /// Time has come to this: samples the lag of each second that is over. Every event does so first.
    pub fn tick(&mut self, now_ns: u64) {
        let until_ns = now_ns.min(self.window.end_ns.saturating_sub(1));
        self.next_lag_at_ns = self
            .next_lag_at_ns
            .max(first_second_from(self.due.first_ns, self.window.start_ns));
        while self.next_lag_at_ns <= until_ns {
            self.lags.push(LagSample {
                at_ns: self.next_lag_at_ns,
                lag_ns: self.lag_ns(self.next_lag_at_ns),
            });
            self.next_lag_at_ns += NS_PER_S;
        }
    }

    /// The audio due less the final cursor, at a time.
    #[must_use]
    pub fn lag_ns(&self, now_ns: u64) -> u64 {
        let frames = self.due.due_before(now_ns.saturating_add(1));
        let audio_due_ns = frames.saturating_mul(self.due.period_ns);
        let begun = self
            .speech
            .partition_point(|spoken| spoken.utterance.onset_ns < audio_due_ns);
        let wanted_ns = match begun.checked_sub(1) {
            _ if self.silence_decidable => audio_due_ns,
            Some(last) => audio_due_ns.min(self.speech[last].utterance.end_ns),
            None => 0,
        };
        wanted_ns.saturating_sub(self.cursor_ns)
    }

    /// Text came that may change, with words, about the audio up to `upto_ns`.
    pub fn interim(&mut self, at_ns: u64, upto_ns: u64) -> Heard {
        self.tick(at_ns);
        let mut heard = Heard::default();
        let upto_ns = self.within_the_audio(upto_ns, &mut heard);
        self.texted(at_ns, self.frames_between(self.cursor_ns, upto_ns));
        self.counted(heard)
    }

    /// Text came that will not change, with words, about the audio from `from_ns` to `to_ns`. A final without words is
    /// [`AudioLedger::progress`] to its end.
    pub fn final_text(&mut self, at_ns: u64, from_ns: u64, to_ns: u64) -> Heard {
        self.tick(at_ns);
        let mut heard = Heard::default();
        if from_ns > to_ns {
            heard.fault = Some(Fault::Reversed);
            return self.counted(heard);
        }
        let to_ns = self.within_the_audio(to_ns, &mut heard);
        let from_ns = from_ns.min(to_ns);
        let answered = self.frames_between(from_ns, to_ns);
        let passed = self.frames_between(self.cursor_ns, from_ns);
        let seen = self.frames_between(0, self.cursor_ns);
        self.cursor_ns = self.cursor_ns.max(to_ns);

        let (mut again, mut late) = (0_u64, 0_u64);
        for at in self.speech_in(answered.clone()) {
            again += u64::from(self.classes[at] == Some(Class::Answered));
        }
        for at in common(&seen, &answered) {
            late += u64::from(self.classes[at].is_none());
        }
        if again.saturating_mul(self.due.period_ns) > TOLERANCE_NS {
            heard.duplicated = again;
        }
        heard.out_of_order = late;
        self.settle(answered.clone(), Class::Answered, &mut heard);
        self.pass(passed, &mut heard);
        self.forgive(&answered, &mut heard);
        self.texted(at_ns, answered.clone());
        self.finalised(at_ns, &answered);
        self.counted(heard)
    }

    /// The server will say nothing more about the audio up to `upto_ns`. Speech before it that no final covers is lost at the end,
    /// unless one still comes.
    pub fn progress(&mut self, at_ns: u64, upto_ns: u64) -> Heard {
        self.tick(at_ns);
        let mut heard = Heard::default();
        if upto_ns.saturating_add(TOLERANCE_NS) < self.cursor_ns {
            heard.fault = Some(Fault::CursorBackwards);
            return self.counted(heard);
        }
        let upto_ns = self.within_the_audio(upto_ns, &mut heard);
        let passed = self.frames_between(self.cursor_ns, upto_ns);
        self.cursor_ns = self.cursor_ns.max(upto_ns);
        self.pass(passed, &mut heard);
        self.counted(heard)
    }

    /// A flush or the end was written: the server is to give its finals for what it has.
    pub fn flush_written(&mut self, at_ns: u64) {
        self.tick(at_ns);
        let written = self.classes.len();
        let over = self
            .speech
            .partition_point(|spoken| spoken.frames.end <= written);
        self.flushed = over.checked_sub(1).map(|last| (last, at_ns));
    }

    /// Closes the account of a session with so many frames due, written or not. Frames that are still open are lost or
    /// silence.
    ///
    /// # Panics
    /// If more frames were written than were due: the fault is ours, and no figure of the trial can be trusted.
    #[must_use]
    pub fn finish(mut self, at_ns: u64, frames_due: u64) -> (Account, Heard) {
        self.tick(at_ns);
        let due = usize::try_from(frames_due).unwrap_or(usize::MAX);
        assert!(
            self.classes.len() <= due,
            "{} frames were written and only {due} were due",
            self.classes.len()
        );
        self.classes.resize(due, None);
        self.cursor_ns = u64::MAX;
        let mut heard = Heard::default();
        self.pass(0..due, &mut heard);
        self.settle(0..due, Class::Lost, &mut heard);
        let heard = self.counted(heard);
        (self.account(at_ns), heard)
    }

    /// Cuts an audio time to what was written, and notes a fault if it is beyond by more than the tolerance.
    fn within_the_audio(&self, audio_ns: u64, heard: &mut Heard) -> u64 {
        let written_ns = self.written_ns();
        if audio_ns > written_ns.saturating_add(TOLERANCE_NS) {
            heard.fault = Some(Fault::BeyondTheAudio);
        }
        audio_ns.min(written_ns)
    }

    /// The frames written between two audio times, each rounded to the nearest border of frames: spans side by side share no
    /// frame.
    fn frames_between(&self, from_ns: u64, to_ns: u64) -> Range<usize> {
        let border = |audio_ns: u64| {
            let frames = audio_ns.saturating_add(self.due.period_ns / 2) / self.due.period_ns;
            usize::try_from(frames)
                .unwrap_or(usize::MAX)
                .min(self.classes.len())
        };
        let from = border(from_ns);
        from..border(to_ns).max(from)
    }

    /// Positions of the utterances with a frame in this range.
    fn utterances_in(&self, frames: &Range<usize>) -> Range<usize> {
        let first = self
            .speech
            .partition_point(|spoken| spoken.frames.end <= frames.start);
        let end = self
            .speech
            .partition_point(|spoken| spoken.frames.start < frames.end);
        first..end.max(first)
    }

    /// The frames with speech in this range.
    fn speech_in(&self, frames: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let utterances = &self.speech[self.utterances_in(&frames)];
        utterances
            .iter()
            .flat_map(move |spoken| common(&spoken.frames, &frames))
    }

    /// Settles what finals left out of these frames: silence, and speech within the tolerance.
    fn pass(&mut self, frames: Range<usize>, heard: &mut Heard) {
        let mut silent_from = frames.start;
        for number in self.utterances_in(&frames) {
            let spoken = common(&self.speech[number].frames, &frames);
            self.settle(silent_from..spoken.start, Class::Silence, heard);
            silent_from = silent_from.max(spoken.end);
        }
        self.settle(silent_from..frames.end, Class::Silence, heard);
        self.forgive(&frames, heard);
    }

    /// Takes short runs of open frames for answered: those within the tolerance, of utterances with a frame in this range of
    /// which some is answered. A run that may still grow, because the cursor has not reached its end, has to wait.
    fn forgive(&mut self, frames: &Range<usize>, heard: &mut Heard) {
        let passed = self.frames_between(0, self.cursor_ns).end;
        for number in self.utterances_in(frames) {
            let spoken = self.speech[number].frames.clone();
            let known = spoken.start..spoken.end.min(passed);
            if !self.classes[known.clone()].contains(&Some(Class::Answered)) {
                continue;
            }
            let mut at = known.start;
            while at < known.end {
                let open = self.classes[at..known.end]
                    .iter()
                    .take_while(|class| class.is_none());
                let run = at..at + open.count();
                let is_over = run.end < known.end || run.end == spoken.end;
                if is_over && (run.len() as u64).saturating_mul(self.due.period_ns) <= TOLERANCE_NS
                {
                    self.settle(run.clone(), Class::Answered, heard);
                }
                at = run.end.max(at + 1);
            }
        }
    }

    /// Gives the open frames of this range their class.
    fn settle(&mut self, frames: Range<usize>, class: Class, heard: &mut Heard) {
        for at in frames {
            if self.classes[at].is_some() {
                continue;
            }
            self.classes[at] = Some(class);
            let seq = at as u64 + 1;
            match heard.settled.last_mut() {
                Some((settled, last)) if settled.end == seq && *last == class => settled.end += 1,
                _ => heard.settled.push((seq..seq + 1, class)),
            }
        }
    }

    /// Text with words came about these frames: the first of each utterance among them counts.
    fn texted(&mut self, at_ns: u64, frames: Range<usize>) {
        self.any_text = true;
        for number in self.utterances_in(&frames) {
            let due_ns = self.due.due_ns(self.speech[number].frames.start as u64);
            self.speech[number]
                .first_result_ns
                .get_or_insert(at_ns.saturating_sub(due_ns));
        }
    }

    /// A final came for these frames: it counts for each utterance whose end it covers.
    fn finalised(&mut self, at_ns: u64, frames: &Range<usize>) {
        if let Some((number, flushed_ns)) = self.flushed {
            self.speech[number].finalisation_ns = Some(at_ns.saturating_sub(flushed_ns));
        }
        let tolerated = usize::try_from(TOLERANCE_NS / self.due.period_ns).unwrap_or(usize::MAX);
        for number in self.utterances_in(frames) {
            let spoken = &mut self.speech[number];
            if frames.end.saturating_add(tolerated) >= spoken.frames.end {
                let due_ns = self.due.due_ns(spoken.frames.end as u64 - 1);
                spoken.final_ns.get_or_insert(at_ns.saturating_sub(due_ns));
            }
        }
    }

    /// Adds up what a message came to.
    fn counted(&mut self, mut heard: Heard) -> Heard {
        heard
            .settled
            .sort_unstable_by_key(|(frames, _)| frames.start);
        self.duplicated += heard.duplicated;
        self.out_of_order += heard.out_of_order;
        if let Some(fault) = heard.fault {
            *self.faults.entry(fault).or_default() += 1;
        }
        heard
    }
}

/// The frames whose middle is speech; at least the one with the onset.
fn speech_frames(utterance: &Utterance, frame_ns: u64) -> Range<usize> {
    let from_middle = |audio_ns: u64| {
        let frame = audio_ns.saturating_sub(frame_ns / 2).div_ceil(frame_ns);
        usize::try_from(frame).unwrap_or(usize::MAX - 1)
    };
    let (first, end) = (
        from_middle(utterance.onset_ns),
        from_middle(utterance.end_ns),
    );
    if first < end {
        return first..end;
    }
    let with_onset = usize::try_from(utterance.onset_ns / frame_ns).unwrap_or(usize::MAX - 1);
    with_onset..with_onset + 1
}

/// The first whole second of a session that is not before `start_ns`.
fn first_second_from(first_ns: u64, start_ns: u64) -> u64 {
    let seconds = start_ns.saturating_sub(first_ns).div_ceil(NS_PER_S).max(1);
    first_ns.saturating_add(seconds.saturating_mul(NS_PER_S))
}

fn common(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

#[cfg(test)]
mod tests;
