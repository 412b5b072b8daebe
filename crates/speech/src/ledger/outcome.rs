//! What a session's ledger comes to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AudioLedger, Class, Fault, Spoken};

/// How far a server was behind at one second of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagSample {
    /// When, in nanoseconds since the trial began.
    pub at_ns: u64,
    /// Audio due less final cursor, in nanoseconds.
    pub lag_ns: u64,
}

/// What became of one utterance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtteranceOutcome {
    /// Its position in the session's plan.
    pub utterance: usize,
    /// Its first text with words, less the due time of the frame with its onset; `None` if it never came.
    pub first_result_ns: Option<u64>,
    /// The final that covers its end, less the due time of the frame with the end; `None` if it never came.
    pub final_ns: Option<u64>,
    /// Flush or end written, to the last final after it; `None` if none was asked for, or none came.
    pub finalisation_ns: Option<u64>,
    /// Its speech that no final covers.
    pub uncovered_ns: u64,
    /// From the due time of its end until the account was closed: what never came took at least that long.
    pub waited_ns: u64,
}

/// The account of one session. Frames and utterances are those of the measured window: due there, an utterance with its
/// end. Faults, duplicates and order are those of the whole session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Frames due. Each is in exactly one of the next three.
    pub frames_due: u64,
    /// Frames that a final speaks for.
    pub frames_answered: u64,
    /// Frames without speech that no final speaks for.
    pub frames_silent: u64,
    /// Frames with speech that no final speaks for.
    pub frames_lost: u64,
    /// Frames with speech that were answered again, each time counted.
    pub frames_duplicated: u64,
    /// Frames answered after a later frame was.
    pub frames_out_of_order: u64,
    /// Speech that no final covers: the gate `speech_uncovered_ms`.
    pub speech_uncovered_ns: u64,
    /// Speech that was answered again: the gate `speech_duplicated_ms`.
    pub speech_duplicated_ns: u64,
    /// Messages that break the rules of audio time.
    pub faults: BTreeMap<Fault, u64>,
    /// One for each whole second of the session in the window.
    pub lags: Vec<LagSample>,
    /// In the order of time.
    pub utterances: Vec<UtteranceOutcome>,
    /// Whether an utterance was due and not one word came in the whole session: the gate `sessions_silent`.
    pub silent: bool,
}

impl AudioLedger {
    /// Adds up; every frame has its class.
    pub(super) fn account(self, at_ns: u64) -> Account {
        let mut account = Account {
            frames_duplicated: self.duplicated,
            frames_out_of_order: self.out_of_order,
            speech_duplicated_ns: self.duplicated.saturating_mul(self.due.period_ns),
            ..Account::default()
        };
        for (slot, class) in (0..).zip(self.classes.iter().flatten()) {
            if !self.window.contains(self.due.due_ns(slot)) {
                continue;
            }
            account.frames_due += 1;
            match class {
                Class::Answered => account.frames_answered += 1,
                Class::Silence => account.frames_silent += 1,
                Class::Lost => account.frames_lost += 1,
            }
        }
        account.speech_uncovered_ns = account.frames_lost.saturating_mul(self.due.period_ns);
        for (number, spoken) in self.speech.iter().enumerate() {
            account
                .utterances
                .extend(self.outcome(number, spoken, at_ns));
        }
        account.silent = !self.any_text && !account.utterances.is_empty();
        account.lags = self.lags;
        account.faults = self.faults;
        account
    }

    /// What became of an utterance; `None` if its end was not due in the window.
    fn outcome(&self, number: usize, spoken: &Spoken, at_ns: u64) -> Option<UtteranceOutcome> {
        let classes = self.classes.get(spoken.frames.clone())?;
        let end_due_ns = self.due.due_ns(spoken.frames.end as u64 - 1);
        let lost = classes
            .iter()
            .filter(|class| **class == Some(Class::Lost))
            .count() as u64;
        self.window.contains(end_due_ns).then(|| UtteranceOutcome {
            utterance: number,
            first_result_ns: spoken.first_result_ns,
            final_ns: spoken.final_ns,
            finalisation_ns: spoken.finalisation_ns,
            uncovered_ns: lost.saturating_mul(self.due.period_ns),
            waited_ns: at_ns.saturating_sub(end_due_ns),
        })
    }
}
