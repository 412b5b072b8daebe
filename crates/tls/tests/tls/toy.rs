//! A session that knows nothing of TLS: numbered messages at a fixed pace, each sent back.

use std::sync::{Arc, Mutex};

use plimsoll_core::ledger::{FrameLedger, Naming};
use plimsoll_core::profile::{NS_PER_MS, Window};
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::schedule::{Periodic, SessionPlan};
use plimsoll_core::session::{
    Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit, Unconnected,
};

const HEAD_BYTES: usize = 8;
const HELLO: &[u8] = b"hello";
pub(crate) const BYE: &[u8] = b"bye";

/// Messages of this size, the first eight bytes its number, each second millisecond.
pub(crate) struct Toys {
    pub(crate) message_bytes: usize,
}

/// What a session saw, for its test.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) plain: Vec<u8>,
    pub(crate) sent: u64,
    /// When its messages were written.
    pub(crate) written_ns: Vec<u64>,
    pub(crate) gone: Vec<Disconnect>,
    /// It has had enough: whatever comes next ends its connection.
    pub(crate) leaves: bool,
    /// It connects again when its connection has ended.
    pub(crate) returns: bool,
}

pub(crate) struct Toy {
    pub(crate) seen: Arc<Mutex<Seen>>,
    phase: Phase,
    /// A message that is none of the load.
    control: &'static [u8],
    /// When the message was due that is being written, if one is. Whatever happens then, it is finished first.
    begun_ns: Option<u64>,
    /// The message that is written next.
    head: [u8; HEAD_BYTES],
    body: Vec<u8>,
    message_bytes: usize,
    /// What came back of the message that is not whole yet.
    returned: Vec<u8>,
    answered: u64,
    schedule: Periodic,
    next_due_ns: u64,
    window: Window,
    ledger: FrameLedger,
}

impl SessionMachines for Toys {
    type Session = Toy;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> Toy {
        let schedule = Periodic {
            first_ns: plan.first_due_ns,
            period_ns: 2 * NS_PER_MS,
        };
        let first = schedule.due_before(plan.window.start_ns) + 1;
        let end = schedule.due_before(plan.window.end_ns) + 1;
        Toy {
            seen: Arc::default(),
            phase: Phase::Opening,
            control: HELLO,
            begun_ns: None,
            head: 1_u64.to_be_bytes(),
            body: body(1, self.message_bytes),
            message_bytes: self.message_bytes,
            returned: Vec::new(),
            answered: 0,
            schedule,
            next_due_ns: schedule.first_ns,
            window: plan.window,
            ledger: FrameLedger::new(first..end),
        }
    }
}

fn body(number: u64, message_bytes: usize) -> Vec<u8> {
    let first = usize::try_from(number % 251).unwrap();
    let bytes = (0..=250_u8).cycle().skip(first);
    bytes.take(message_bytes - HEAD_BYTES).collect()
}

impl Toy {
    fn answer(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        self.answered += 1;
        let number = self.answered;
        let message = [&number.to_be_bytes()[..], &body(number, self.message_bytes)].concat();
        assert_eq!(self.returned, message, "message {number} came back changed");
        let named = self
            .ledger
            .name(number, number, Naming::Answered, &mut recorder.ledger);
        let place = usize::try_from(number).unwrap() - 1;
        let written_ns = self.seen.lock().unwrap().written_ns[place];
        let ages = Ages {
            from_schedule_ns: now_ns.saturating_sub(self.schedule.due_ns(number - 1)),
            from_write_ns: now_ns.saturating_sub(written_ns),
        };
        recorder.answered(named.measured.then_some(ages), None);
    }
}

impl Session for Toy {
    type Claim = ();

    fn phase(&self) -> Phase {
        self.phase
    }

    fn next_due_ns(&self) -> Option<u64> {
        (self.phase == Phase::Open).then_some(self.next_due_ns)
    }

    fn owed(&self, now_ns: u64) -> u64 {
        self.ledger
            .unsent_measured(self.schedule.due_before(now_ns))
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        if self.begun_ns.is_none() && !self.control.is_empty() {
            return Some(Transmit {
                head: self.control,
                body: &[],
                due_ns: None,
                held_until_ns: None,
                measured: false,
            });
        }
        if self.begun_ns.is_none() && self.phase == Phase::Open && self.next_due_ns <= now_ns {
            self.begun_ns = Some(self.next_due_ns);
        }
        self.begun_ns.map(|due_ns| Transmit {
            head: &self.head,
            body: &self.body,
            due_ns: Some(due_ns),
            held_until_ns: Some(due_ns + 1),
            measured: self.window.contains(due_ns),
        })
    }

    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<()>) {
        let mut seen = self.seen.lock().unwrap();
        seen.sent += 1;
        if self.begun_ns.take().is_none() {
            self.control = &[];
            return;
        }
        self.ledger.send(&mut recorder.ledger);
        seen.written_ns.push(write_ns);
        self.next_due_ns = self.schedule.due_ns(self.ledger.sent());
        if self.next_due_ns >= self.window.end_ns {
            // Nothing is on its way any more when the trial ends.
            self.next_due_ns = u64::MAX;
        }
        let number = self.ledger.sent() + 1;
        self.head = number.to_be_bytes();
        self.body = body(number, self.message_bytes);
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<()>) {
        let mut seen = self.seen.lock().unwrap();
        seen.plain.extend(bytes);
        if seen.leaves {
            self.phase = Phase::Ended;
            return;
        }
        drop(seen);
        for byte in bytes {
            self.returned.push(*byte);
            if self.phase == Phase::Opening && self.returned == HELLO {
                self.returned.clear();
                self.phase = Phase::Open;
                recorder.session_started();
            } else if self.phase == Phase::Open && self.returned.len() == self.message_bytes {
                self.answer(now_ns, recorder);
                self.returned.clear();
            }
        }
    }

    fn disconnected(&mut self, _now_ns: u64, how: Disconnect, recorder: &mut Recorder<()>) {
        self.seen.lock().unwrap().gone.push(how);
        match self.phase {
            Phase::Opening => recorder.session_failed(how.reason()),
            _ => recorder.session_died(how.reason()),
        }
        self.phase = Phase::Ended;
    }

    fn unconnected(&mut self, now_ns: u64) -> Unconnected {
        if !self.seen.lock().unwrap().returns {
            return Unconnected::Over;
        }
        self.phase = Phase::Opening;
        self.control = HELLO;
        self.begun_ns = None;
        self.returned.clear();
        Unconnected::Connects {
            at_ns: now_ns,
            open_by_ns: u64::MAX,
        }
    }

    fn settled(&self) -> bool {
        self.ledger.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        let due = self.schedule.due_before(now_ns + 1);
        self.ledger.finish(due, &mut recorder.ledger, |_| {});
        self.control = BYE;
        self.next_due_ns = u64::MAX;
    }
}
