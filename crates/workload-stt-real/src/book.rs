//! The frames of one session: when they are due, when they were written, and what became of them, in the words of the trial's
//! ledger.
//!
//! The ledger by audio cursor ([`AudioLedger`]) says what a result settles. A frame of silence that finals or progress passed
//! needs no words: it counts as answered, when the cursor passed it.

use std::ops::Range;

use plimsoll_core::ledger::WriteLags;
use plimsoll_core::profile::Window;
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_speech::ledger::{Account, AudioLedger, Class, Heard};
use plimsoll_speech::plan::Sound;

use crate::script::Script;

/// The book of one session.
#[derive(Debug)]
pub(crate) struct Book {
    script: Script,
    ledger: AudioLedger,
    lags: WriteLags,
    written: u64,
    /// Frames due in the window, by their numbers.
    measured: Range<u64>,
}

impl Book {
    pub(crate) fn new(script: Script, window: Window, silence_decidable: bool) -> Self {
        let Script { due, frames, .. } = script;
        let end = frames.min(due.due_before(window.end_ns)) + 1;
        let first = (due.due_before(window.start_ns) + 1).min(end);
        Self {
            ledger: AudioLedger::new(due, window, script.audio.utterances(), silence_decidable),
            lags: WriteLags::with_room_for(frames),
            written: 0,
            measured: first..end,
            script,
        }
    }

    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    /// When the next frame is due; `None` after the last.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        (self.written < self.script.frames).then(|| self.script.due.due_ns(self.written))
    }

    /// What the next frame holds.
    pub(crate) fn next_sound(&self) -> Sound {
        self.script.audio.sound(self.written + 1)
    }

    /// How many frames were written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The audio written.
    pub(crate) fn written_ns(&self) -> u64 {
        self.ledger.written_ns()
    }

    /// The final cursor.
    pub(crate) fn cursor_ns(&self) -> u64 {
        self.ledger.cursor_ns()
    }

    /// Whether the frame written last is the last one of an utterance.
    pub(crate) fn ended_an_utterance(&self) -> bool {
        let at = self.script.audio.sound(self.written);
        let next = self.script.audio.sound(self.written + 1);
        match (at, next) {
            (Sound::Silence, _) => false,
            (Sound::Piece { .. }, Sound::Silence) => true,
            (Sound::Piece { .. }, Sound::Piece { piece, .. }) => piece == 0,
        }
    }

    /// Measured frames that were due before this time and are not written.
    pub(crate) fn owed(&self, now_ns: u64) -> u64 {
        let due = self.script.due.due_before(now_ns) + 1;
        let end = self.measured.end.min(due);
        end.saturating_sub(self.measured.start.max(self.written + 1))
    }

    /// The next frame was written.
    pub(crate) fn wrote<C>(&mut self, write_ns: u64, recorder: &mut Recorder<C>) {
        let due_ns = self.script.due.due_ns(self.written);
        self.written += 1;
        self.ledger.written();
        self.lags
            .push(self.written, write_ns.saturating_sub(due_ns));
        recorder.ledger.frames_sent_in_all += 1;
        recorder.ledger.frames_sent += u64::from(self.measured.contains(&self.written));
    }

    /// The server was asked for its finals.
    pub(crate) fn flushed(&mut self, at_ns: u64) {
        self.ledger.flush_written(at_ns);
    }

    /// Text came that may change.
    pub(crate) fn interim<C>(&mut self, now_ns: u64, upto_ns: u64, recorder: &mut Recorder<C>) {
        let heard = self.ledger.interim(now_ns, upto_ns);
        self.settle(&heard, now_ns, recorder);
    }

    /// Text came that will not change.
    pub(crate) fn final_text<C>(
        &mut self,
        now_ns: u64,
        (from_ns, to_ns): (u64, u64),
        recorder: &mut Recorder<C>,
    ) {
        let heard = self.ledger.final_text(now_ns, from_ns, to_ns);
        recorder.ledger.partials_in_all += 1;
        let answered = heard.settled.iter();
        let answered = answered.filter(|(_, class)| *class == Class::Answered);
        let frames = answered.flat_map(|(frames, _)| self.measured_in(frames));
        if let (Some(oldest), Some(newest)) = (frames.clone().min(), frames.max()) {
            recorder.ledger.partials += 1;
            let ages = [newest, oldest].map(|seq| Some(self.ages(seq, now_ns)));
            recorder.answered(ages[0], ages[1]);
        }
        self.settle(&heard, now_ns, recorder);
    }

    /// No later words will be about the audio before this time.
    pub(crate) fn progress<C>(&mut self, now_ns: u64, upto_ns: u64, recorder: &mut Recorder<C>) {
        let heard = self.ledger.progress(now_ns, upto_ns);
        self.settle(&heard, now_ns, recorder);
    }

    /// The trial is over.
    pub(crate) fn finish<C>(self, now_ns: u64, recorder: &mut Recorder<C>) -> Account {
        let due = self.script.due.due_before(now_ns + 1);
        let due = due.min(self.script.frames);
        let (account, heard) = self.ledger.clone().finish(now_ns, due);
        let end = self.measured.end.min(due + 1);
        recorder.ledger.frames_due += end.saturating_sub(self.measured.start);
        self.settle(&heard, now_ns, recorder);
        account
    }

    fn measured_in(&self, frames: &Range<u64>) -> Range<u64> {
        let start = frames.start.max(self.measured.start);
        start..frames.end.min(self.measured.end).max(start)
    }

    fn ages(&self, seq: u64, now_ns: u64) -> Ages {
        let from_schedule_ns = now_ns.saturating_sub(self.script.due.due_ns(seq - 1));
        Ages {
            from_schedule_ns,
            from_write_ns: from_schedule_ns.saturating_sub(self.lags.lag_ns(seq)),
        }
    }

    /// Adds to the trial's ledger what a message settled.
    fn settle<C>(&self, heard: &Heard, now_ns: u64, recorder: &mut Recorder<C>) {
        for (frames, class) in &heard.settled {
            let measured = self.measured_in(frames);
            // Nobody passed over silence that was never written.
            let end = match class {
                Class::Lost => measured.start,
                Class::Answered | Class::Silence => measured.end.min(self.written + 1),
            };
            let answered = measured.start..end.max(measured.start);
            for seq in answered.end..measured.end {
                let ages = self.ages(seq, now_ns);
                let since = (ages.from_schedule_ns, ages.from_write_ns);
                recorder.interval.record_unanswered(since.0, since.1);
                recorder.ledger.frames_lost += 1;
            }
            let count = answered.end - answered.start;
            let ages_ns = answered.map(|seq| u128::from(self.ages(seq, now_ns).from_write_ns));
            recorder.resided(count, ages_ns.sum());
            recorder.ledger.frames_answered += count;
            if *class != Class::Lost {
                let in_all = frames.start..frames.end.min(self.written + 1);
                recorder.ledger.frames_answered_in_all += in_all.end.saturating_sub(in_all.start);
            }
        }
        recorder.ledger.frames_duplicated += heard.duplicated;
        recorder.ledger.frames_out_of_order += heard.out_of_order;
        if let Some(fault) = heard.fault {
            recorder.protocol_fault(fault.text());
        }
    }
}
