//! What a writer does: it publishes by the clock, and never has more messages unconfirmed than its window allows.

use plimsoll_core::profile::Window;
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::session::Transmit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::Flow;
use crate::dialect::{Dialect, Heard};
use crate::marks::{Mark, Marks, WriterMarks};
use crate::message::{Messages, Stamp};
use crate::schedule::{Due, Schedule};
use crate::session::{Claim, Shared};
use crate::unconfirmed::{Open, Unconfirmed};

/// The most bytes that are made ready for one write, unless one message is longer.
const BATCH_MAX_BYTES: usize = 64 << 10;
/// The most messages of one write.
const BATCH_MAX: usize = 64;

/// Why messages waited that were due, besides a full socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// Measured messages that waited because as many as the window allows were unconfirmed.
    pub window_messages: u64,
    /// How long they waited for that, all together, in ns.
    pub window_ns: u64,
    /// Measured messages that waited because the broker had asked its writers to wait.
    pub flow_control_messages: u64,
    /// How long they waited for that, all together, in ns.
    pub flow_control_ns: u64,
    /// How often the broker asked the writers to wait.
    pub asked_to_wait: u64,
    /// Measured messages that waited because the broker had crashed and their writer was not connected again.
    #[serde(default)]
    pub crash_messages: u64,
    /// How long they waited for that, all together, in ns.
    #[serde(default)]
    pub crash_ns: u64,
}

impl Waits {
    /// Adds those of another writer.
    pub fn add(&mut self, other: &Self) {
        self.window_messages += other.window_messages;
        self.window_ns += other.window_ns;
        self.flow_control_messages += other.flow_control_messages;
        self.flow_control_ns += other.flow_control_ns;
        self.asked_to_wait += other.asked_to_wait;
        self.crash_messages += other.crash_messages;
        self.crash_ns += other.crash_ns;
    }
}

impl Waits {
    fn waited(&mut self, held: Held, waited_ns: u64) {
        let (messages, ns) = match held {
            Held::Window => (&mut self.window_messages, &mut self.window_ns),
            Held::FlowControl => (&mut self.flow_control_messages, &mut self.flow_control_ns),
            Held::Crash => (&mut self.crash_messages, &mut self.crash_ns),
        };
        *messages += 1;
        *ns += waited_ns;
    }
}

/// What holds the next message back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Window,
    FlowControl,
    Crash,
}

/// The account of one writer.
#[derive(Debug)]
pub(crate) struct Writer {
    window: Window,
    seed: u64,
    schedule: Schedule,
    /// The most messages that may be unconfirmed; `None` if the broker confirms none.
    unconfirmed_max: Option<u64>,
    unconfirmed: Unconfirmed,
    marks: WriterMarks,
    flow: Flow,
    /// In a closed loop, what was confirmed, and when the last of it was.
    confirms: Flow,
    last_ns: Option<u64>,
    refusals: Flow,
    waits: Waits,
    /// The broker asks its writers to wait.
    is_blocked: bool,
    /// What last held a message back, and when that ended.
    freed: Option<(Held, u64)>,
    /// The messages that are being written, and when each was due.
    batch: Vec<Due>,
    /// The same without the first, of those that are measured.
    further_dues: Vec<u64>,
    /// Their bytes.
    bytes: Vec<u8>,
    body: Vec<u8>,
}

impl Writer {
    /// Writer `number`, whose session has this seed. It has at most `messages_max` messages in the trial, and at most
    /// `unconfirmed_max` of them unconfirmed; `None` if the broker confirms none.
    pub(crate) fn new(
        number: u32,
        seed: u64,
        schedule: Schedule,
        window: Window,
        messages_max: u64,
        unconfirmed_max: Option<u64>,
    ) -> Self {
        Self {
            confirms: if schedule.is_closed() {
                Flow::until(window.grace_end_ns)
            } else {
                Flow::default()
            },
            window,
            seed,
            schedule,
            unconfirmed_max,
            unconfirmed: Unconfirmed::default(),
            marks: WriterMarks::new(number, messages_max),
            flow: Flow::until(window.grace_end_ns),
            last_ns: None,
            refusals: Flow::default(),
            waits: Waits::default(),
            is_blocked: false,
            freed: None,
            batch: Vec::with_capacity(BATCH_MAX),
            further_dues: Vec::with_capacity(BATCH_MAX),
            bytes: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// How many more messages may be written now, and what allows no more.
    fn room(&self) -> (u64, Option<Held>) {
        if self.is_blocked {
            return (0, Some(Held::FlowControl));
        }
        match self.unconfirmed_max {
            None => (u64::MAX, None),
            Some(most) => match most.saturating_sub(self.unconfirmed.len()) {
                0 => (0, Some(Held::Window)),
                room => (room, None),
            },
        }
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        if self.is_writing() || self.room().0 == 0 {
            return None;
        }
        self.schedule.peek().map(|due| due.at_ns)
    }

    /// Measured messages that could have been written and were not. What is in a write that the socket does not take is
    /// not the client's.
    pub(crate) fn owed(&self, now_ns: u64) -> u64 {
        if self.is_writing() {
            return 0;
        }
        self.schedule.measured_before(now_ns).min(self.room().0)
    }

    pub(crate) fn is_writing(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Whether it has written all its messages, and all of them are answered.
    pub(crate) fn is_done(&self) -> bool {
        !self.is_writing() && self.schedule.peek().is_none() && self.unconfirmed.len() == 0
    }

    /// Makes the messages that are due and may be written ready to be written together.
    pub(crate) fn make(&mut self, now_ns: u64, messages: &Messages, dialect: &mut dyn Dialect) {
        let (mut room, _) = self.room();
        self.schedule.look(now_ns);
        let is_closed = self.schedule.is_closed();
        self.bytes.clear();
        self.further_dues.clear();
        while room > 0
            && self.batch.len() < BATCH_MAX
            && (self.batch.is_empty() || self.bytes.len() + messages.bytes() <= BATCH_MAX_BYTES)
            && self.schedule.peek().is_some_and(|due| due.at_ns <= now_ns)
        {
            let Some(due) = self.schedule.take_at(now_ns) else {
                break;
            };
            // A schedule and its marks number alike. If the marks are full, so is the account: write no more.
            if self.marks.due(due.measured) != Some(due.number) {
                break;
            }
            let stamp = Stamp {
                writer: self.marks.writer(),
                sequence: due.number,
                intended_ns: due.at_ns,
                late_us: (now_ns - due.at_ns) / plimsoll_core::profile::NS_PER_US,
                measured: due.measured,
            };
            messages.encode(&stamp, &mut self.body);
            dialect.publish(&mut self.bytes, &self.body, due.number);
            if due.measured && !is_closed && !self.batch.is_empty() {
                self.further_dues.push(due.at_ns);
            }
            self.batch.push(due);
            room -= 1;
        }
        dialect.flush(&mut self.bytes);
    }

    pub(crate) fn transmit(&self) -> Option<Transmit<'_>> {
        let first = self.batch.first()?;
        Some(Transmit {
            head: &self.bytes,
            body: &[],
            due_ns: (!self.schedule.is_closed()).then_some(first.at_ns),
            held_until_ns: self.freed.map(|(_, at_ns)| at_ns),
            measured: first.measured,
        })
    }

    pub(crate) fn further_dues(&self) -> &[u64] {
        &self.further_dues
    }

    /// The socket took all that was made.
    pub(crate) fn sent(&mut self, write_ns: u64, shared: &Shared, recorder: &mut Recorder<Claim>) {
        let mut awaited = 0;
        let arrivals = shared.arrivals();
        for due in &self.batch {
            self.marks.written(due.number);
            self.flow.count(write_ns);
            recorder.ledger.frames_sent_in_all += arrivals.max(1);
            if due.measured {
                recorder.ledger.frames_sent += arrivals.max(1);
                let confirms = arrivals == 0 && self.unconfirmed_max.is_some();
                awaited += i64::try_from(arrivals).unwrap_or(0) + i64::from(confirms);
            }
            if self.unconfirmed_max.is_some() {
                let open = Open {
                    due_ns: due.at_ns,
                    written_ns: write_ns,
                    measured: due.measured,
                };
                self.unconfirmed.push(due.number, open);
            }
            if let Some((held, until_ns)) = self.freed.filter(|_| due.measured)
                && until_ns > due.at_ns
            {
                self.waits.waited(held, until_ns - due.at_ns);
            }
        }
        shared.await_more(awaited);
        self.batch.clear();
        self.further_dues.clear();
    }

    pub(crate) fn heard(
        &mut self,
        heard: &Heard<'_>,
        now_ns: u64,
        shared: &Shared,
        recorder: &mut Recorder<Claim>,
    ) {
        let (_, held) = self.room();
        match *heard {
            Heard::Confirmed { tag, up_to: false } => {
                let mark = self.marks.confirmed(tag, self.window.contains(now_ns));
                self.answered(mark, tag, now_ns, shared, recorder);
            }
            Heard::Confirmed { tag, up_to: true } => {
                self.confirmed_up_to(tag, now_ns, shared, recorder);
            }
            Heard::Refused {
                tag: Some(tag),
                why,
            } => {
                recorder.ledger.because(why);
                let mark = self.marks.refused(tag);
                if mark == Mark::NeverDue {
                    recorder.protocol_fault("refusal of a message that was never sent");
                }
                if let Some(open) = self.unconfirmed.take(tag) {
                    self.refusals.count(now_ns);
                    if open.measured {
                        let arrivals = i64::try_from(shared.arrivals().max(1)).unwrap_or(1);
                        shared.await_more(-arrivals);
                    }
                }
            }
            Heard::Refused { tag: None, why } => {
                recorder.ledger.because(why);
                self.marks.refused_unnamed();
            }
            Heard::Blocked(blocked) => {
                self.waits.asked_to_wait += u64::from(blocked && !self.is_blocked);
                self.is_blocked = blocked;
            }
            Heard::Delivered { .. } => recorder.protocol_fault("delivery to a writer"),
            Heard::Ready => {}
        }
        if let (Some(held), (1.., _)) = (held, self.room()) {
            self.freed = Some((held, now_ns));
        }
    }

    /// Counts confirmations by the time, if anybody wants to know it.
    fn count_confirmed(&mut self, now_ns: u64, messages: u32) {
        if messages > 0 && self.schedule.is_closed() {
            self.confirms.count_several(now_ns, messages);
            self.last_ns = Some(now_ns);
        }
    }

    fn confirmed_up_to(
        &mut self,
        tag: u64,
        now_ns: u64,
        shared: &Shared,
        recorder: &mut Recorder<Claim>,
    ) {
        let in_window = self.window.contains(now_ns);
        let unconfirmed = &mut self.unconfirmed;
        let (mut awaited, mut confirmed) = (0, 0);
        let mark = self.marks.confirmed_up_to(tag, in_window, |number| {
            if let Some(open) = unconfirmed.take(number) {
                awaited += latency(&open, now_ns, shared, recorder);
                confirmed += 1;
            }
        });
        self.count_confirmed(now_ns, confirmed);
        shared.await_more(-awaited);
        if mark == Mark::NeverDue {
            recorder.protocol_fault("confirmation of a message that was never sent");
        }
    }

    fn answered(
        &mut self,
        mark: Mark,
        tag: u64,
        now_ns: u64,
        shared: &Shared,
        recorder: &mut Recorder<Claim>,
    ) {
        match mark {
            Mark::First => {
                self.count_confirmed(now_ns, 1);
                if let Some(open) = self.unconfirmed.take(tag) {
                    let awaited = latency(&open, now_ns, shared, recorder);
                    shared.await_more(-awaited);
                }
            }
            Mark::Again => recorder.protocol_fault("second confirmation of a message"),
            Mark::NeverDue => {
                recorder.protocol_fault("confirmation of a message that was never sent");
            }
        }
    }

    /// The connection is gone: what was not wholly taken is not written, and nothing will be confirmed. `crashed`: lost in
    /// the broker's crash, so that there is going to be another one.
    pub(crate) fn abandon(&mut self, crashed: bool) {
        if crashed {
            self.marks.crashed();
            self.is_blocked = false;
        }
        self.batch.clear();
        self.further_dues.clear();
        self.unconfirmed.clear();
    }

    /// There is a connection again. What was due meanwhile waited for it.
    pub(crate) fn back(&mut self, now_ns: u64) {
        self.freed = Some((Held::Crash, now_ns));
    }

    pub(crate) fn claim(&mut self, now_ns: u64) -> Claim {
        self.schedule.end();
        // What was due and was never made was due all the same.
        while self.schedule.peek().is_some_and(|due| due.at_ns < now_ns) {
            let due = self.schedule.take();
            if due.and_then(|due| self.marks.due(due.measured)).is_none() {
                break;
            }
        }
        Claim {
            marks: Marks::Writer(self.marks.clone()),
            seed: self.seed,
            flow: std::mem::take(&mut self.flow),
            confirms: std::mem::take(&mut self.confirms),
            last_ns: self.last_ns,
            refusals: std::mem::take(&mut self.refusals),
            waits: self.waits,
            faults: Vec::new(),
            compared: 0,
            crossing: None,
        }
    }
}

/// Records the latency of a confirmation. Returns how many answers are awaited no more.
fn latency(open: &Open, now_ns: u64, shared: &Shared, recorder: &mut Recorder<Claim>) -> i64 {
    let without_readers = shared.arrivals() == 0;
    if without_readers {
        recorder.ledger.frames_answered_in_all += 1;
        recorder.ledger.partials_in_all += 1;
    }
    if !open.measured {
        return 0;
    }
    let ages = Ages {
        from_schedule_ns: now_ns.saturating_sub(open.due_ns),
        from_write_ns: now_ns.saturating_sub(open.written_ns),
    };
    recorder.confirmed(ages);
    if without_readers {
        recorder.ledger.frames_answered += 1;
        recorder.ledger.partials += 1;
        recorder.answered(Some(ages), Some(ages));
    }
    i64::from(without_readers)
}
