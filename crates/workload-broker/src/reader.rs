//! What a reader does: it checks each message, counts it, and settles it.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_core::profile::{NS_PER_MS, Window};
use plimsoll_core::recorder::{Ages, Recorder};

use crate::backlog::Flow;
use crate::dialect::Heard;
use crate::marks::{Arrival, Mark, Marks, ReaderMarks, When};
use crate::message::{Checked, MessageFault};
use crate::session::{Claim, Line, Shared};
use crate::writer::Waits;

/// The longest time that a pass of the engine takes. What was made later than that after a pass began cannot arrive in it.
const PASS_MAX_NS: u64 = 100 * NS_PER_MS;

/// The account of one reader.
#[derive(Debug)]
pub(crate) struct Reader {
    window: Window,
    marks: ReaderMarks,
    flow: Flow,
    /// When the last message arrived for the first time.
    last_ns: Option<u64>,
    /// How long it keeps a message before it settles it.
    settles_after_ns: u64,
    /// What is to be settled, and from when on, in the order of arrival.
    unsettled: VecDeque<(u64, u64)>,
    /// The handles of one settlement.
    handles: Vec<u64>,
    faults: BTreeMap<&'static str, u64>,
    compared: u64,
}

impl Reader {
    /// Reader `number` of messages of so many writers, each with at most `messages_max`. It settles each message
    /// `settles_after_ns` after it came; 0: at once, all of a read together.
    pub(crate) fn new(
        number: u32,
        writers: u32,
        messages_max: u64,
        window: Window,
        settles_after_ns: u64,
    ) -> Self {
        Self {
            window,
            marks: ReaderMarks::new(number, writers, messages_max),
            flow: Flow::until(window.grace_end_ns),
            last_ns: None,
            settles_after_ns,
            unsettled: VecDeque::new(),
            handles: Vec::new(),
            faults: BTreeMap::new(),
            compared: 0,
        }
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// When the next message is to be settled.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.unsettled.front().map(|(_, at_ns)| *at_ns)
    }

    pub(crate) fn heard(
        &mut self,
        heard: &Heard<'_>,
        now_ns: u64,
        shared: &Shared,
        recorder: &mut Recorder<Claim>,
    ) {
        match *heard {
            Heard::Delivered {
                payload,
                handle,
                redelivered,
            } => {
                self.unsettled
                    .push_back((handle, now_ns + self.settles_after_ns));
                recorder.ledger.partials_in_all += 1;
                match shared.messages.check(payload) {
                    Ok(checked) => self.arrived(checked, redelivered, now_ns, shared, recorder),
                    Err(fault) => self.faulty(fault, recorder),
                }
            }
            Heard::Refused { why, .. } => {
                recorder.ledger.errors += 1;
                recorder.ledger.because(why);
            }
            Heard::Confirmed { .. } => recorder.protocol_fault("confirmation to a reader"),
            Heard::Blocked(_) | Heard::Ready => {}
        }
    }

    fn faulty(&mut self, fault: MessageFault, recorder: &mut Recorder<Claim>) {
        *self.faults.entry(fault.name()).or_default() += 1;
        recorder.protocol_fault(&fault.to_string());
        if matches!(fault, MessageFault::DamagedBody { .. }) {
            recorder.ledger.content_wrong += 1;
        }
    }

    fn arrived(
        &mut self,
        checked: Checked,
        redelivered: bool,
        now_ns: u64,
        shared: &Shared,
        recorder: &mut Recorder<Claim>,
    ) {
        let Checked { stamp, compared } = checked;
        self.compared += u64::from(compared);
        recorder.ledger.content_checked += u64::from(compared);
        if stamp.made_ns() > now_ns + PASS_MAX_NS {
            return recorder.protocol_fault("delivery of a message that is not due yet");
        }
        // The engine's time is that of the beginning of its pass, and another thread may have written since.
        let now_ns = now_ns.max(stamp.made_ns());
        let mark = self.marks.delivered(&Arrival {
            writer: stamp.writer,
            number: stamp.sequence,
            measured: stamp.measured,
            when: if now_ns < self.window.start_ns {
                When::Before
            } else if now_ns < self.window.end_ns {
                When::InWindow
            } else {
                When::Drained
            },
            redelivered,
        });
        match mark {
            Mark::Again => return,
            Mark::NeverDue => {
                return recorder.protocol_fault("delivery of a message that was never sent");
            }
            Mark::First => {}
        }
        self.flow.count(now_ns);
        self.last_ns = Some(now_ns);
        recorder.ledger.frames_answered_in_all += 1;
        if !stamp.measured {
            return;
        }
        recorder.ledger.frames_answered += 1;
        recorder.ledger.partials += 1;
        let ages = Ages {
            from_schedule_ns: now_ns.saturating_sub(stamp.intended_ns),
            from_write_ns: now_ns.saturating_sub(stamp.made_ns()),
        };
        recorder.answered(Some(ages), Some(ages));
        shared.await_more(-1);
    }

    /// Settles what is to be settled by now.
    pub(crate) fn settle_due(&mut self, now_ns: u64, line: &mut Line) {
        self.handles.clear();
        while let Some((handle, _)) = self.unsettled.pop_front_if(|(_, at_ns)| *at_ns <= now_ns) {
            self.handles.push(handle);
        }
        if !self.handles.is_empty() {
            line.dialect.settle(&mut line.out, &self.handles);
            let settled = u64::try_from(self.handles.len()).unwrap_or(0);
            self.marks.settled(settled);
        }
        line.dialect.flush(&mut line.out);
    }

    /// The connection is gone, and nothing that came over it can be settled any more.
    pub(crate) fn abandon(&mut self) {
        self.unsettled.clear();
    }

    pub(crate) fn claim(&mut self) -> Claim {
        let faults = self.faults.iter();
        Claim {
            marks: Marks::Reader(self.marks.clone()),
            seed: 0,
            flow: std::mem::take(&mut self.flow),
            confirms: Flow::default(),
            last_ns: self.last_ns,
            refusals: Flow::default(),
            waits: Waits::default(),
            faults: faults
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            compared: self.compared,
            crossing: None,
        }
    }
}
