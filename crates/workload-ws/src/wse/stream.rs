//! Data messages at a fixed pace: the tests `throughput`, `matrix` and `formats` in dialect `wse`.
//!
//! The server acknowledges no data message. So a *barrier*, an application ping, goes out behind one every 100 ms, and behind the last that is measured: a
//! connection's bytes are read in order, so the pong proves that the server read every message before it. That is what answers them. Whether it did
//! anything with them only its own counters tell.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::ledger::Naming;
use plimsoll_core::profile::{NS_PER_MS, Profile};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{SessionPlan, session_plan_over};
use plimsoll_core::session::{Account, NoArrivals, SessionMachines};
use serde::{Deserialize, Serialize};

use super::{Line, PingIds};
use crate::formats::Format;
use crate::payload::Content;
use crate::wire::Repeated;
use plimsoll_protocol::connection::Endpoint;
use plimsoll_protocol::paced::{
    Concerned, Dialogue, FrameAccount, Message, Opening, PacedSession, Written,
};

/// The least time between two barriers of a session.
const BARRIER_PERIOD_NS: u64 = 100 * NS_PER_MS;

/// The number of the ping that asks whether the format is decoded; barriers count from 1.
const PROOF: u64 = PingIds::EACH - 1;

/// The workload.
#[derive(Debug)]
pub struct WseMessages {
    shared: Arc<Shared>,
    period_ns: u64,
    proof: Mutex<DecodeProof>,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    messages: Repeated,
    format: Format,
}

/// Whether the server decodes the format that it is sent: each session asks once, in that very format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodeProof {
    /// Sessions that asked.
    pub asked: u64,
    /// Sessions that were answered.
    pub answered: u64,
}

impl DecodeProof {
    /// Whether every session's question was answered. If not, the format is opaque: the server may not even look at it.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.asked > 0 && self.answered == self.asked
    }
}

impl WseMessages {
    /// Sessions with `endpoint`, whose request has a token and asks for a session of the `format`, that send `content` every `period_ns` (at least 1).
    #[must_use]
    pub fn new(endpoint: Endpoint, content: &Content, format: Format, period_ns: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                endpoint,
                messages: Repeated::new(content),
                format,
            }),
            period_ns: period_ns.max(1),
            proof: Mutex::default(),
        }
    }

    /// What the sessions found out about the format; ask after the trial is settled.
    #[must_use]
    pub fn decode_proof(&self) -> DecodeProof {
        *self.proof.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionMachines for WseMessages {
    type Session = PacedSession<StreamDialogue>;
    type Arrivals = NoArrivals;

    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        session_plan_over(self.period_ns, id, sessions, profile, seed)
    }

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        let dialogue = StreamDialogue {
            ids: PingIds::of(plan.id),
            line: Line::default(),
            barriers: Barriers::default(),
            question: None,
            shared: Arc::clone(&self.shared),
        };
        PacedSession::new(&self.shared.endpoint, plan, self.period_ns, dialogue)
    }

    /// Nothing of the messages comes back, so there is no content to be checked.
    fn settle(&self, questions: &[Question], _account: Account<'_>) {
        let answered = questions.iter().filter(|question| question.answered);
        *self.proof.lock().unwrap_or_else(PoisonError::into_inner) = DecodeProof {
            asked: questions.len() as u64,
            answered: answered.count() as u64,
        };
    }
}

/// What a session asked in the format of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    answered: bool,
}

/// What one session says, and how it takes the pongs.
#[derive(Debug)]
pub struct StreamDialogue {
    ids: PingIds,
    line: Line,
    barriers: Barriers,
    /// The question in the session's format, once it is asked.
    question: Option<Question>,
    shared: Arc<Shared>,
}

/// The barriers of a session that have no pong yet.
#[derive(Debug, Default)]
struct Barriers {
    /// Number of a barrier and the newest frame before it, in the order sent.
    open: VecDeque<(u64, u64)>,
    /// Barriers sent.
    sent: u64,
    /// When the last one was.
    last_ns: u64,
    /// The newest frame that a pong has proven.
    proven: u64,
}

impl Barriers {
    /// Frames were written: the number of the barrier that follows them, if one does.
    fn follow(&mut self, written: Written) -> Option<u64> {
        let due = self.sent == 0 || written.at_ns - self.last_ns >= BARRIER_PERIOD_NS;
        if !due && !written.last_measured {
            return None;
        }
        self.last_ns = written.at_ns;
        self.sent += 1;
        self.open.push_back((self.sent, written.newest));
        Some(self.sent)
    }

    /// A pong came: the frames that it is the first to prove, from the oldest to the newest.
    ///
    /// # Errors
    /// No such barrier is open.
    fn pong(&mut self, number: u64) -> Result<(u64, u64), &'static str> {
        let place = self.open.iter().position(|(sent, _)| *sent == number);
        let place = place.ok_or("pong for no barrier that is open")?;
        // Barriers before it that got no pong of their own are proven with it.
        let newest = self
            .open
            .drain(..=place)
            .next_back()
            .map_or(0, |(_, newest)| newest);
        let oldest = self.proven + 1;
        self.proven = newest;
        Ok((oldest, newest))
    }
}

impl Dialogue for StreamDialogue {
    type Claim = Question;

    fn greeting(&self) -> Option<&'static str> {
        None
    }

    fn frame(&mut self, seq: u64) -> (&[u8], &[u8]) {
        self.frames(seq, 1)
    }

    fn frame_written(&mut self) {}

    fn opens_by_upgrade(&self) -> bool {
        false
    }

    fn opening(&mut self, message: Message<'_>) -> Opening {
        let opening = self.line.opening(message);
        if opening == Opening::Open {
            let question = self.shared.format.ping(self.ids.id(PROOF));
            self.line.say(question.opcode, &question.bytes);
            self.question = Some(Question { answered: false });
        }
        opening
    }

    fn burst_max(&self) -> u64 {
        self.shared.messages.most()
    }

    fn frames(&mut self, _first: u64, count: u64) -> (&[u8], &[u8]) {
        (self.shared.messages.messages(count), &[])
    }

    fn frames_written(&mut self, written: Written) {
        if let Some(number) = self.barriers.follow(written) {
            // In JSON whatever the format of the messages: that is a ping that the server is known to answer.
            let barrier = Format::Json.ping(self.ids.id(number));
            self.line.say(barrier.opcode, &barrier.bytes);
        }
    }

    fn outbox(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut self.line.outbox)
    }

    fn received(
        &mut self,
        message: Message<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<Question>,
    ) {
        let Some(number) = self.line.pong(message, self.ids, recorder) else {
            return;
        };
        if number == PROOF {
            self.question = Some(Question { answered: true });
            return;
        }
        let (oldest, newest) = match self.barriers.pong(number) {
            Ok(proven) => proven,
            Err(fault) => return recorder.protocol_fault(fault),
        };
        let named = frames.named(oldest, newest, Naming::Answered, now_ns, recorder);
        recorder.ledger.partials_in_all += 1;
        recorder.ledger.partials += u64::from(named == Concerned::Measured);
    }

    fn finish(&mut self, recorder: &mut Recorder<Question>) {
        recorder.claims.extend(self.question);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(newest: u64, at_ms: u64, last_measured: bool) -> Written {
        Written {
            newest,
            last_measured,
            at_ns: at_ms * NS_PER_MS,
        }
    }

    #[test]
    fn a_barrier_every_100_ms_and_behind_the_last_measured_frame() {
        let mut barriers = Barriers::default();
        assert_eq!(barriers.follow(written(1, 5_000, false)), Some(1));
        assert_eq!(barriers.follow(written(2, 5_099, false)), None);
        assert_eq!(barriers.follow(written(3, 5_100, false)), Some(2));
        assert_eq!(barriers.follow(written(4, 5_101, true)), Some(3));
        assert_eq!(barriers.pong(1), Ok((1, 1)));
        // The second has no pong of its own; the third one's proves its frames as well.
        assert_eq!(barriers.pong(3), Ok((2, 4)));
        assert!(
            barriers.pong(2).is_err() && barriers.pong(3).is_err() && barriers.pong(9).is_err()
        );
    }
}
