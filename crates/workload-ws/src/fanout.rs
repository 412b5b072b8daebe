//! Fan-out: one connection publishes by a schedule, and every connection receives.
//!
//! A frame of the load is a delivery: a message that is due while the receiver is open. The schedule is known to all from the start, so a receiver knows what
//! it should have had without having had anything. Message `k` is due at `k * period` since the trial began; it carries its number, the time it was due, and
//! the time it was written. What never comes is lost, what comes twice duplicated, what comes late out of order.
//!
//! In dialect `echo` a message is binary and goes to the hub on `/fanout`; in dialect `wse` it is `{"t":"fanout","p":{…}}`, which the server broadcasts.

use std::sync::Arc;

use plimsoll_core::ledger::{FrameLedger, Naming};
use plimsoll_core::profile::Window;
use plimsoll_core::recorder::{Ages, Recorder};
use plimsoll_core::schedule::{Periodic, SessionPlan};
use plimsoll_core::session::{Disconnect, NoArrivals, Phase, Session, SessionMachines, Transmit};

use super::link::{Link, News};
use super::wire::append_message;
use super::wse::messages::Tick;
use super::{Dialect, Peer};
use plimsoll_protocol::paced::Message;
use plimsoll_protocol::websocket::{Opcode, close};

/// Number, time due and time written: three numbers of 8 bytes, the lowest byte first.
const NUMBERS_BYTES: usize = 24;

/// The workload.
#[derive(Debug)]
pub struct Fanout {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    peer: Peer,
    /// When messages are due; slot 0 is message 1.
    schedule: Periodic,
    /// What follows the numbers.
    filler: String,
    /// Deliveries that a message is.
    receivers: u32,
}

impl Fanout {
    /// The least bytes of a message.
    pub const MESSAGE_MIN_BYTES: usize = NUMBERS_BYTES;

    /// `receivers` connections, of which the first publishes a message every `period_ns` (at least 1), of `message_bytes` in dialect `echo`. In dialect
    /// `wse` that many are padding, for the numbers there are digits and differ in length.
    #[must_use]
    pub fn new(peer: Peer, receivers: u32, message_bytes: usize, period_ns: u64) -> Self {
        let filler_bytes = message_bytes.saturating_sub(NUMBERS_BYTES);
        Self {
            shared: Arc::new(Shared {
                peer,
                schedule: Periodic {
                    first_ns: 0,
                    period_ns: period_ns.max(1),
                },
                filler: "x".repeat(filler_bytes),
                receivers,
            }),
        }
    }
}

impl SessionMachines for Fanout {
    type Session = FanoutSession;
    type Arrivals = NoArrivals;

    fn session(&self, plan: &SessionPlan) -> Self::Session {
        FanoutSession {
            link: Link::new(&self.shared.peer, plan.seed),
            stage: Stage::Opening,
            publisher: (plan.id == 0).then(|| Publisher {
                next: u64::MAX,
                message: Vec::new(),
                writing: false,
            }),
            receiver: Receiver {
                window: plan.window,
                before: 0,
                ledger: FrameLedger::new(0..0),
            },
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Shared {
    fn due_ns(&self, seq: u64) -> u64 {
        self.schedule.due_ns(seq - 1)
    }

    /// Message `seq`, ready to be written.
    fn write(&self, seq: u64, written_ns: u64, out: &mut Vec<u8>) {
        let due_ns = self.due_ns(seq);
        let filler = &self.filler;
        out.clear();
        match self.peer.dialect {
            Dialect::Echo => {
                let mut payload = Vec::with_capacity(NUMBERS_BYTES + filler.len());
                for number in [seq, due_ns, written_ns] {
                    payload.extend_from_slice(&number.to_le_bytes());
                }
                payload.extend_from_slice(filler.as_bytes());
                append_message(out, Opcode::Binary, &payload);
            }
            Dialect::Wse => {
                let text = format!(
                    r#"{{"t":"fanout","p":{{"seq":{seq},"due_ns":{due_ns},"written_ns":{written_ns},"data":"{filler}"}}}}"#
                );
                append_message(out, Opcode::Text, text.as_bytes());
            }
        }
    }

    /// The numbers of a message of dialect `echo`, if it is one and its filler is ours.
    fn read(&self, message: Message<'_>) -> Option<Tick> {
        let Message::Binary(bytes) = message else {
            return None;
        };
        let (numbers, filler) = bytes.split_first_chunk::<NUMBERS_BYTES>()?;
        let (numbers, _) = numbers.as_chunks::<8>();
        let &[seq, due_ns, written_ns] = numbers else {
            return None;
        };
        (filler == self.filler.as_bytes()).then(|| Tick {
            seq: u64::from_le_bytes(seq),
            due_ns: u64::from_le_bytes(due_ns),
            written_ns: u64::from_le_bytes(written_ns),
        })
    }
}

/// What the first connection does beside receiving.
#[derive(Debug)]
struct Publisher {
    /// The message to be written next.
    next: u64,
    /// It, as it goes on the wire; made when it is due.
    message: Vec<u8>,
    /// It was given to be written and is not wholly.
    writing: bool,
}

/// The account of one receiver. Its frames are numbered from the first message that was due when it was open.
#[derive(Debug)]
struct Receiver {
    window: Window,
    /// Messages that were due before it was open.
    before: u64,
    ledger: FrameLedger,
}

impl Receiver {
    fn open(&mut self, now_ns: u64, schedule: &Periodic) {
        self.before = schedule.due_before(now_ns);
        let frame_at = |time_ns| schedule.due_before(time_ns).max(self.before) - self.before + 1;
        self.ledger =
            FrameLedger::new(frame_at(self.window.start_ns)..frame_at(self.window.end_ns));
    }

    /// So many frames were due: the publisher's side of each is done.
    fn advance(&mut self, frames: u64, recorder: &mut Recorder<()>) {
        while self.ledger.sent() < frames {
            self.ledger.send(&mut recorder.ledger);
        }
    }

    /// A message came.
    fn delivered(
        &mut self,
        tick: Tick,
        now_ns: u64,
        schedule: &Periodic,
        recorder: &mut Recorder<()>,
    ) {
        if tick.seq == 0 || tick.seq > schedule.due_before(now_ns + 1) {
            return recorder.protocol_fault("delivery of a message that is not due yet");
        }
        let Some(frame) = tick.seq.checked_sub(self.before).filter(|frame| *frame > 0) else {
            // It was published before this receiver was open: a matter of when the hub took it in.
            return;
        };
        self.advance(frame, recorder);
        let named = self
            .ledger
            .name(frame, frame, Naming::Answered, &mut recorder.ledger);
        let due_ns = schedule.due_ns(tick.seq - 1);
        recorder.ledger.partials_in_all += 1;
        recorder.ledger.content_checked += 1;
        recorder.ledger.content_wrong += u64::from(tick.due_ns != due_ns);
        if named.newest_measured {
            recorder.ledger.partials += 1;
            let ages = Ages {
                from_schedule_ns: now_ns.saturating_sub(due_ns),
                from_write_ns: now_ns.saturating_sub(tick.written_ns),
            };
            recorder.answered(Some(ages), Some(ages));
        }
    }

    /// It receives no more: what was due until now and did not come is lost.
    fn finish(&mut self, now_ns: u64, schedule: &Periodic, recorder: &mut Recorder<()>) {
        let before = self.before;
        let due = schedule.due_before(now_ns + 1).saturating_sub(before);
        self.advance(due, recorder);
        let interval = &mut recorder.interval;
        self.ledger.finish(due, &mut recorder.ledger, |frame| {
            let waited_ns = now_ns.saturating_sub(schedule.due_ns(before + frame - 1));
            interval.record_unanswered(waited_ns, waited_ns);
        });
        self.ledger = FrameLedger::new(0..0);
    }
}

/// The machine of one connection.
#[derive(Debug)]
pub struct FanoutSession {
    link: Link,
    stage: Stage,
    publisher: Option<Publisher>,
    receiver: Receiver,
    shared: Arc<Shared>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    Open,
    /// It failed, or died: what was due after that is not due to it.
    Gone,
    Finished,
}

impl FanoutSession {
    fn over(&mut self, reason: &str, now_ns: u64, recorder: &mut Recorder<()>) {
        match self.stage {
            Stage::Opening => recorder.session_failed(reason),
            Stage::Open => {
                recorder.session_died(reason);
                self.receiver
                    .finish(now_ns, &self.shared.schedule, recorder);
            }
            Stage::Gone | Stage::Finished => return,
        }
        self.stage = Stage::Gone;
    }
}

impl Session for FanoutSession {
    type Claim = ();

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Opening => Phase::Opening,
            Stage::Open => Phase::Open,
            Stage::Gone | Stage::Finished => Phase::Ended,
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        let publisher = self.publisher.as_ref()?;
        (self.stage == Stage::Open).then(|| self.shared.due_ns(publisher.next))
    }

    /// A message that the publisher has not written is owed to every receiver.
    fn owed(&self, now_ns: u64) -> u64 {
        let Some(publisher) = &self.publisher else {
            return 0;
        };
        if self.stage != Stage::Open {
            return 0;
        }
        let first_measured = self
            .shared
            .schedule
            .due_before(self.receiver.window.start_ns);
        let last = self.receiver.window.end_ns.min(now_ns);
        let due = self.shared.schedule.due_before(last);
        let written = (publisher.next - 1).max(first_measured);
        due.saturating_sub(written) * u64::from(self.shared.receivers)
    }

    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let Self {
            link,
            stage,
            publisher,
            receiver,
            shared,
        } = self;
        // What was begun is finished first; after that control messages, and the message that is due.
        if let Some(publisher) = publisher
            && !link.is_writing()
        {
            let open = *stage == Stage::Open;
            let due = open && shared.due_ns(publisher.next) <= now_ns;
            if !publisher.writing && due && link.control().is_none() {
                shared.write(publisher.next, now_ns, &mut publisher.message);
                publisher.writing = true;
            }
            if publisher.writing {
                let due_ns = shared.due_ns(publisher.next);
                return Some(Transmit {
                    head: &publisher.message,
                    body: &[],
                    due_ns: Some(due_ns),
                    held_until_ns: None,
                    measured: receiver.window.contains(due_ns),
                });
            }
        }
        link.control().map(|head| Transmit {
            head,
            body: &[],
            due_ns: None,
            held_until_ns: None,
            measured: false,
        })
    }

    fn sent(&mut self, _write_ns: u64, _recorder: &mut Recorder<()>) {
        match &mut self.publisher {
            Some(publisher) if publisher.writing => {
                publisher.writing = false;
                publisher.next += 1;
            }
            _ => self.link.control_sent(),
        }
    }

    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<()>) {
        let Self {
            link,
            stage,
            publisher,
            receiver,
            shared,
        } = self;
        let mut over = None;
        link.received(bytes, |news| match news {
            News::Open => {
                *stage = Stage::Open;
                recorder.session_started();
                receiver.open(now_ns, &shared.schedule);
                if let Some(publisher) = publisher {
                    publisher.next = receiver.before + 1;
                }
            }
            News::Message(message) => match shared.read(message) {
                Some(tick) => receiver.delivered(tick, now_ns, &shared.schedule, recorder),
                None => recorder.protocol_fault("delivery that is not what was published"),
            },
            News::Tick(tick) => receiver.delivered(tick, now_ns, &shared.schedule, recorder),
            News::Fault(fault) => recorder.protocol_fault(fault),
            News::Over(reason) => over = Some(reason.to_owned()),
            News::Hello | News::Pong(_) => {}
        });
        if let Some(reason) = over {
            self.over(&reason, now_ns, recorder);
        }
    }

    fn held_bytes(&self) -> usize {
        self.link.held_bytes()
    }

    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<()>) {
        self.over(how.reason(), now_ns, recorder);
        self.link.abandon();
    }

    fn settled(&self) -> bool {
        self.stage != Stage::Open || self.receiver.ledger.settled()
    }

    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<()>) {
        match self.stage {
            Stage::Opening if now_ns >= self.receiver.window.start_ns => {
                recorder.session_failed(Disconnect::TimedOut.reason());
            }
            Stage::Open => self
                .receiver
                .finish(now_ns, &self.shared.schedule, recorder),
            Stage::Opening | Stage::Gone | Stage::Finished => {}
        }
        self.link.close(close::NORMAL);
        self.stage = Stage::Finished;
    }
}
