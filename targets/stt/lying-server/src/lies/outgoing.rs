//! Lies about what is said: one session's honest answers go in, what goes on the wire comes out, in order and in time.

use std::collections::VecDeque;

use super::{Lie, Parameters, Plan};
use crate::honest::messages::Partial;
use crate::honest::reference::Answer;

/// `wrong_seq`: how far off the frames are that it names.
const SEQ_OFFSET: u64 = 1_000_000;

/// Something for the connection to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Utterance {
    /// Send this partial, true or false.
    Partial(String),
    /// Send this text, which is no partial.
    Noise(String),
    /// Shut the sending half of the connection.
    HalfClose,
    /// Send half of this text's frame, then reset the connection.
    ResetMidFrame(String),
}

/// An answer that is repeated without end.
#[derive(Debug)]
struct Repetition {
    text: String,
    next_us: u64,
}

/// What one session says. Without a lie, its answers as they are.
#[derive(Debug)]
pub struct Outgoing {
    lie: Lie,
    parameters: Parameters,
    started_us: u64,
    answers: u64,
    /// `out_of_order`: the answer that waits for its successor.
    held: Option<Partial>,
    /// What is due, and when; times never decrease.
    queue: VecDeque<(u64, Utterance)>,
    /// `half_close`: when, until it is done.
    half_close_us: Option<u64>,
    repetition: Option<Repetition>,
}

impl Outgoing {
    /// The mouth of a session that started at `started_us`.
    #[must_use]
    pub fn new(plan: Plan, started_us: u64) -> Self {
        let begins_us = started_us + plan.parameters.after_us();
        Self {
            lie: plan.lie,
            parameters: plan.parameters,
            started_us,
            answers: 0,
            held: None,
            queue: VecDeque::new(),
            half_close_us: (plan.lie == Lie::HalfClose).then_some(begins_us),
            repetition: None,
        }
    }

    /// The honest answer `partial` is due at `now_us`. `others` is the content of another session's last answer, if there is one.
    pub fn answer(&mut self, now_us: u64, partial: Partial, others: Option<Answer>) {
        self.answers += 1;
        match self.lie {
            Lie::NeverAnswerSome => {}
            Lie::LateAfterWindow => {
                let opens_us = self.started_us + self.parameters.duration_us();
                self.say(now_us.max(opens_us), &partial);
            }
            Lie::GrowLatency => {
                let late_us = self.parameters.duration_us().saturating_mul(self.answers);
                self.say(now_us.saturating_add(late_us), &partial);
            }
            Lie::ResetMidFrame if self.begun(now_us) => {
                self.push(now_us, Utterance::ResetMidFrame(partial.to_json()));
            }
            Lie::Flood if self.begun(now_us) => {
                self.repetition = Some(Repetition {
                    text: partial.to_json(),
                    next_us: now_us,
                });
                self.say(now_us, &partial);
            }
            _ if self.held.is_some() => self.release_after(now_us, &partial),
            _ if self.answers.is_multiple_of(self.parameters.every()) => {
                self.strike(now_us, partial, others);
            }
            _ => self.say(now_us, &partial),
        }
    }

    /// The lies that strike every so many answers, on an answer that is struck.
    fn strike(&mut self, now_us: u64, mut partial: Partial, others: Option<Answer>) {
        match self.lie {
            Lie::SkipFlush => {}
            Lie::AnswerTwice => {
                self.say(now_us, &partial);
                self.say(now_us, &partial);
            }
            Lie::OutOfOrder => self.held = Some(partial),
            Lie::WrongContent => {
                partial.checksum = partial.checksum.wrapping_add(1);
                self.say(now_us, &partial);
            }
            Lie::OthersContent => self.say(now_us, &with_content_of(partial, others)),
            Lie::WrongSeq => {
                partial.oldest_frame_seq += SEQ_OFFSET;
                partial.newest_frame_seq += SEQ_OFFSET;
                self.say(now_us, &partial);
            }
            Lie::ExtraField => {
                self.push(now_us, Utterance::Partial(with_extra_field(&partial)));
            }
            Lie::Garbage => {
                let text = "partial: {oldest_frame_seq".to_owned();
                self.push(now_us, Utterance::Noise(text));
                self.say(now_us, &partial);
            }
            Lie::Oversize => {
                let text = oversize(self.parameters.bytes);
                self.push(now_us, Utterance::Noise(text));
                self.say(now_us, &partial);
            }
            _ => self.say(now_us, &partial),
        }
    }

    /// When [`Outgoing::next`] next has something; `None` when only an answer can change that.
    #[must_use]
    pub fn due_us(&self) -> Option<u64> {
        let queued = self.queue.front().map(|(due_us, _)| *due_us);
        let repeated = self.repetition.as_ref().map(|again| again.next_us);
        [queued, repeated, self.half_close_us]
            .into_iter()
            .flatten()
            .min()
    }

    /// What to say at `now_us`, if anything. Call until it gives `None`.
    pub fn next(&mut self, now_us: u64) -> Option<Utterance> {
        if self
            .half_close_us
            .take_if(|due_us| *due_us <= now_us)
            .is_some()
        {
            return Some(Utterance::HalfClose);
        }
        if self
            .queue
            .front()
            .is_some_and(|(due_us, _)| *due_us <= now_us)
        {
            return self.queue.pop_front().map(|(_, utterance)| utterance);
        }
        let again = self.repetition.as_mut()?;
        if again.next_us > now_us {
            return None;
        }
        again.next_us += self.parameters.duration_us().max(1);
        Some(Utterance::Partial(again.text.clone()))
    }

    fn begun(&self, now_us: u64) -> bool {
        now_us >= self.started_us + self.parameters.after_us()
    }

    fn say(&mut self, due_us: u64, partial: &Partial) {
        self.push(due_us, Utterance::Partial(partial.to_json()));
    }

    fn push(&mut self, due_us: u64, utterance: Utterance) {
        self.queue.push_back((due_us, utterance));
    }

    /// `out_of_order`: says this answer, then the one before it that was held.
    fn release_after(&mut self, now_us: u64, partial: &Partial) {
        self.say(now_us, partial);
        if let Some(held) = self.held.take() {
            self.say(now_us, &held);
        }
    }
}

/// The partial with another session's content. Its frames, samples and bytes stay, so that nothing but a computation tells.
fn with_content_of(partial: Partial, others: Option<Answer>) -> Partial {
    match others {
        Some(other) => Partial {
            rms: other.rms,
            zero_crossings: other.zero_crossings,
            checksum: other.checksum,
            transcript: other.transcript,
            ..partial
        },
        None => partial,
    }
}

fn with_extra_field(partial: &Partial) -> String {
    let mut text = partial.to_json();
    text.truncate(text.len() - 1);
    text + r#","confidence":0.93}"#
}

/// A JSON text of about that many bytes.
fn oversize(bytes: Option<u64>) -> String {
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    format!(
        r#"{{"type":"partial","transcript":"{}"}}"#,
        "a".repeat(bytes.unwrap_or(0))
    )
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
