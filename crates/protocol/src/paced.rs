//! A session that sends frames at a fixed pace over a WebSocket: what all such workloads share.
//!
//! A workload brings a [`Dialogue`]: what it says first, what each frame is, what an answer means. The session does the rest: it opens,
//! keeps the absolute schedule, finishes what was half written, accounts for every frame, and says farewell.

use std::ops::Range;

use plimsoll_core::ledger::{FrameLedger, Naming, WriteLags};
use plimsoll_core::profile::Window;
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::schedule::{Periodic, SessionPlan};
use plimsoll_core::session::{Disconnect, Phase, Session, Transmit};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connection::{Connection, Endpoint, Incoming};
use crate::life::Life;
use crate::websocket::{Opcode, close};

/// What is said in a paced session.
pub trait Dialogue: Send {
    /// What is kept until the trial is settled.
    type Claim: Send + Serialize + DeserializeOwned;

    /// The text message that opens a session, if there is one.
    fn greeting(&self) -> Option<&'static str>;

    /// Frame `seq` (from 1) as it goes on the wire, in two slices. Asked for again until [`Dialogue::frame_written`], with the same bytes each time.
    fn frame(&mut self, seq: u64) -> (&[u8], &[u8]);

    /// The frame asked for last was written.
    fn frame_written(&mut self);

    /// Whether the upgrade alone opens the session. If not, each message goes to [`Dialogue::opening`] until that says that it is open.
    fn opens_by_upgrade(&self) -> bool {
        true
    }

    /// A message came before the session was open.
    fn opening(&mut self, _message: Message<'_>) -> Opening {
        Opening::Open
    }

    /// The most frames that one write may carry when several are due. More than one needs [`Dialogue::frames`].
    fn burst_max(&self) -> u64 {
        1
    }

    /// Frames `first..first + count` one behind the other, like [`Dialogue::frame`]; `count` is at most [`Dialogue::burst_max`].
    fn frames(&mut self, first: u64, count: u64) -> (&[u8], &[u8]) {
        debug_assert_eq!(count, 1);
        self.frame(first)
    }

    /// The frames asked for last were written.
    fn frames_written(&mut self, _written: Written) {
        self.frame_written();
    }

    /// Client frames that go out before the next frame of the load: replies, and questions about the frames before them. The session empties it.
    fn outbox(&mut self) -> Option<&mut Vec<u8>> {
        None
    }

    /// A message came.
    fn received(
        &mut self,
        message: Message<'_>,
        now_ns: u64,
        frames: &mut FrameAccount,
        recorder: &mut Recorder<Self::Claim>,
    );

    /// The trial is over: the last chance to keep a claim.
    fn finish(&mut self, _recorder: &mut Recorder<Self::Claim>) {}
}

/// How far the opening of a session has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// More messages are awaited.
    More,
    /// The session is open.
    Open,
    /// The target does not want it, for this reason.
    Refused(String),
}

/// What was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The last frame that was.
    pub newest: u64,
    /// It is the last one that is due in the measured window.
    pub last_measured: bool,
    /// When.
    pub at_ns: u64,
}

/// A message from the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Text.
    Text(&'a str),
    /// Binary.
    Binary(&'a [u8]),
}

/// The frames of a session: when they are due, when they were written, what became of them.
#[derive(Debug)]
pub struct FrameAccount {
    schedule: Periodic,
    /// When the next frame is due; far away while the session is not open.
    next_due_ns: u64,
    window: Window,
    ledger: FrameLedger,
    lags: WriteLags,
}

impl FrameAccount {
    fn new(plan: &SessionPlan, period_ns: u64) -> Self {
        let lifetime_ns = plan.window.grace_end_ns.saturating_sub(plan.connect_at_ns);
        Self {
            schedule: Periodic {
                first_ns: plan.first_due_ns,
                period_ns,
            },
            next_due_ns: u64::MAX,
            window: plan.window,
            ledger: FrameLedger::new(0..0),
            lags: WriteLags::with_room_for(lifetime_ns / period_ns + 1),
        }
    }

    /// A message named the frames `oldest..=newest` (from 1, `oldest` not above `newest`): into the ledger and, when it is an answer, into the
    /// latencies.
    pub fn named<C>(
        &mut self,
        oldest: u64,
        newest: u64,
        how: Naming,
        now_ns: u64,
        recorder: &mut Recorder<C>,
    ) -> Concerned {
        let named = self.ledger.name(oldest, newest, how, &mut recorder.ledger);
        if named.never_sent {
            recorder.protocol_fault("message names frames that were never sent");
            return Concerned::NeverSent;
        }
        if !named.fresh.is_empty() {
            let count = named.fresh.end - named.fresh.start;
            let latency_ns = self.latency_sum_ns(named.fresh, now_ns);
            recorder.resided(count, latency_ns);
        }
        if how == Naming::Answered {
            let ages = |seq| self.ages(seq, now_ns);
            recorder.answered(
                named.newest_measured.then(|| ages(newest)),
                named.oldest_measured.then(|| ages(oldest)),
            );
        }
        if named.measured {
            Concerned::Measured
        } else {
            Concerned::Others
        }
    }

    /// An answer came for this one frame (from 1); counts it too. Whether that frame was ever sent.
    pub fn answered<C>(&mut self, seq: u64, now_ns: u64, recorder: &mut Recorder<C>) -> bool {
        match self.named(seq, seq, Naming::Answered, now_ns, recorder) {
            Concerned::Measured => recorder.ledger.partials += 1,
            Concerned::Others => {}
            Concerned::NeverSent => return false,
        }
        recorder.ledger.partials_in_all += 1;
        true
    }

    /// The session is open: frames are due from the next slot of its schedule on.
    fn open(&mut self, now_ns: u64) {
        self.schedule = self.schedule.starting_at(now_ns);
        self.next_due_ns = self.schedule.first_ns;
        let first = self.schedule.due_before(self.window.start_ns) + 1;
        let end = self.schedule.due_before(self.window.end_ns) + 1;
        self.ledger = FrameLedger::new(first..end);
    }

    fn written<C>(&mut self, count: u64, write_ns: u64, recorder: &mut Recorder<C>) -> Written {
        for _ in 0..count {
            self.ledger.send(&mut recorder.ledger);
            let lag_ns = write_ns.saturating_sub(self.next_due_ns);
            self.lags.push(self.ledger.sent(), lag_ns);
            // Saturating: a frame that was half written when the trial ended is finished after its session was.
            self.next_due_ns = self.next_due_ns.saturating_add(self.schedule.period_ns);
        }
        let newest = self.ledger.sent();
        Written {
            newest,
            last_measured: self.ledger.is_measured(newest) && !self.ledger.is_measured(newest + 1),
            at_ns: write_ns,
        }
    }

    /// Of the frames that are due, how many one write may carry: at most `most`, and all of them measured or none, for the engine records one lateness
    /// for a write, that of its first frame. The next frame must be due.
    fn due_together(&self, now_ns: u64, most: u64) -> u64 {
        if most <= 1 {
            return 1;
        }
        let edges_ns = [self.window.start_ns, self.window.end_ns];
        let edge_ns = edges_ns.into_iter().find(|edge| self.next_due_ns < *edge);
        let until_ns = edge_ns.map_or(now_ns, |edge| now_ns.min(edge - 1));
        let behind_ns = until_ns.saturating_sub(self.next_due_ns);
        (behind_ns / self.schedule.period_ns + 1).min(most)
    }

    /// Ages from the write of these frames, summed. The schedule is even, so its part is that of the two ends; how late each was written is not: a
    /// target that takes nothing for a while and then all at once makes the middle of a batch later than its ends.
    fn latency_sum_ns(&self, frames: Range<u64>, now_ns: u64) -> u128 {
        let age_ns = |seq: u64| u128::from(now_ns.saturating_sub(self.schedule.due_ns(seq - 1)));
        let ends_ns = age_ns(frames.start) + age_ns(frames.end - 1);
        let from_schedule_ns = u128::from(frames.end - frames.start) * ends_ns / 2;
        from_schedule_ns.saturating_sub(self.lags.sum_ns(frames))
    }

    /// Measured frames that were due before `now_ns` and are not written yet.
    fn owed(&self, now_ns: u64) -> u64 {
        let due = self.schedule.due_before(now_ns);
        self.ledger.unsent_measured(due)
    }

    fn ages(&self, seq: u64, now_ns: u64) -> Ages {
        let from_schedule_ns = now_ns.saturating_sub(self.schedule.due_ns(seq - 1));
        Ages {
            from_schedule_ns,
            from_write_ns: from_schedule_ns.saturating_sub(self.lags.lag_ns(seq)),
        }
    }

    /// The trial is over: what was due and not named is lost, and was waited for until now.
    fn finish<C>(&mut self, now_ns: u64, recorder: &mut Recorder<C>) {
        let due = self.schedule.due_before(now_ns + 1);
        let (schedule, lags) = (self.schedule, &self.lags);
        let interval = &mut recorder.interval;
        self.ledger.finish(due, &mut recorder.ledger, |seq| {
            let waited_ns = now_ns.saturating_sub(schedule.due_ns(seq - 1));
            interval.record_unanswered(waited_ns, waited_ns.saturating_sub(lags.lag_ns(seq)));
        });
        self.next_due_ns = u64::MAX;
    }
}

/// Which frames a message concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concerned {
    /// At least one measured frame, named for the first time.
    Measured,
    /// Frames outside the window, or named before.
    Others,
    /// Frames that were never sent: a protocol fault, already counted.
    NeverSent,
}

/// The machine of one session.
#[derive(Debug)]
pub struct PacedSession<D> {
    connection: Connection,
    stage: Life,
    /// What [`Session::transmit`] gave last and the socket has not wholly taken.
    current: Option<Current>,
    frames: FrameAccount,
    dialogue: D,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    Control { bytes: usize },
    Frames { count: u64 },
}

impl<D: Dialogue> PacedSession<D> {
    /// A session with this plan that sends a frame every `period_ns`, which must not be zero.
    #[must_use]
    pub fn new(endpoint: &Endpoint, plan: &SessionPlan, period_ns: u64, dialogue: D) -> Self {
        Self {
            connection: Connection::new(endpoint, plan.seed),
            stage: Life::Opening,
            current: None,
            frames: FrameAccount::new(plan, period_ns),
            dialogue,
        }
    }

    /// What is to be written: what was begun, then control messages, then the frame that is due.
    fn to_transmit(&self, now_ns: u64) -> Option<Current> {
        let control = self.connection.control().len();
        match self.current {
            Some(current) => Some(current),
            None if control > 0 => Some(Current::Control { bytes: control }),
            None if self.stage == Life::Open && self.frames.next_due_ns <= now_ns => {
                let most = self.dialogue.burst_max();
                let count = self.frames.due_together(now_ns, most);
                Some(Current::Frames { count })
            }
            None => None,
        }
    }

    /// Queues what the dialogue has to say beside the frames.
    fn post(&mut self) {
        if matches!(self.stage, Life::Opening | Life::Open)
            && let Some(frames) = self.dialogue.outbox()
            && !frames.is_empty()
        {
            self.connection.queue_frames(frames);
        }
    }
}

impl<D: Dialogue> Session for PacedSession<D> {
    type Claim = D::Claim;

    fn phase(&self) -> Phase {
        self.stage.phase()
    }

    fn next_due_ns(&self) -> Option<u64> {
        (self.stage == Life::Open).then_some(self.frames.next_due_ns)
    }

    fn owed(&self, now_ns: u64) -> u64 {
        match self.stage {
            Life::Open => self.frames.owed(now_ns),
            Life::Opening | Life::Died | Life::Failed | Life::Finished => 0,
        }
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.current = self.to_transmit(now_ns);
        Some(match self.current? {
            Current::Control { bytes } => Transmit {
                head: &self.connection.control()[..bytes],
                body: &[],
                due_ns: None,
                held_until_ns: None,
                measured: false,
            },
            Current::Frames { count } => {
                let first = self.frames.ledger.sent() + 1;
                let (head, body) = self.dialogue.frames(first, count);
                Transmit {
                    head,
                    body,
                    due_ns: Some(self.frames.next_due_ns),
                    held_until_ns: None,
                    measured: self.frames.window.contains(self.frames.next_due_ns),
                }
            }
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<D::Claim>) {
        match self.current.take() {
            Some(Current::Control { bytes }) => self.connection.control_sent(bytes),
            Some(Current::Frames { count }) => {
                let written = self.frames.written(count, write_ns, recorder);
                self.dialogue.frames_written(written);
                self.post();
            }
            None => {}
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<D::Claim>) {
        let Self {
            connection,
            stage,
            frames,
            dialogue,
            ..
        } = self;
        let mut over = None;
        let was_opening = *stage == Life::Opening;
        connection.received(bytes, |incoming| {
            let message = match incoming {
                Incoming::Opened => None,
                Incoming::Text(text) => Some(Message::Text(text)),
                Incoming::Binary(binary) => Some(Message::Binary(binary)),
                // The first reason is the one: a refusal in words comes before the close frame.
                Incoming::Over(reason) => {
                    over.get_or_insert_with(|| reason.to_owned());
                    return;
                }
            };
            let opening = match message {
                None if dialogue.opens_by_upgrade() => Opening::Open,
                None => Opening::More,
                Some(message) if *stage == Life::Opening => dialogue.opening(message),
                Some(message) => {
                    dialogue.received(message, now_ns, frames, recorder);
                    Opening::More
                }
            };
            match opening {
                Opening::More => {}
                Opening::Open => {
                    *stage = Life::Open;
                    recorder.session_started();
                    frames.open(now_ns);
                }
                Opening::Refused(reason) => {
                    over.get_or_insert(reason);
                }
            }
        });
        if let Some(greeting) = dialogue.greeting()
            && was_opening
            && *stage == Life::Open
        {
            connection.queue(Opcode::Text, greeting.as_bytes());
        }
        self.post();
        if let Some(reason) = over {
            self.stage.over(&reason, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.connection.held_bytes()
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, recorder: &mut Recorder<D::Claim>) {
        self.stage.over(how.reason(), recorder);
        self.connection.abandon();
    }

    fn settled(&self) -> bool {
        self.stage != Life::Open || self.frames.ledger.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<D::Claim>) {
        match self.stage {
            Life::Opening if now_ns >= self.frames.window.start_ns => {
                recorder.session_failed(Disconnect::TimedOut.reason());
            }
            Life::Open | Life::Died => {
                self.frames.finish(now_ns, recorder);
                self.connection.close(close::NORMAL);
            }
            Life::Opening | Life::Failed | Life::Finished => {}
        }
        self.dialogue.finish(recorder);
        self.stage = Life::Finished;
    }
}
