//! One engine thread: its sessions, their sockets, its calendar. [`connections`] begins and ends the sockets, [`traffic`]
//! handles what goes over them.
//!
//! # Lag and wait
//!
//! A frame's lateness, write minus schedule, has two owners. While the session's socket is full, the target does not
//! take what is sent. The time from then (or from the frame's schedule, if that is later) until the kernel reports room
//! again is **send wait**. The time between the first refused write and the moment when the session has caught up counts
//! as one episode.
//!
//! The target also holds a frame back where the protocol allows no further one before an answer: HTTP/1.1 after each
//! request, a broker after a window of unconfirmed messages. Only the session knows this, and says until when it lasted
//! ([`Transmit::held_until_ns`](plimsoll_core::session::Transmit::held_until_ns)). This time is send wait, too. While it
//! lasts, the session has no entry in the calendar: the answer wakes it.
//!
//! All the rest is **send lag**: the loop was late.
//!
//! # Work for any session
//!
//! If sessions share the trial's work ([`Arrivals`]), the worker hands out what is due before it waits, and after each
//! event, because an answer may free a session. Work that found no free session waits for the target: its session gives
//! the time of that answer as the end of the wait.

mod connections;
mod traffic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use plimsoll_core::latency::{LatencySet, Series};
use plimsoll_core::profile::{NS_PER_S, Window};
use plimsoll_core::recorder::Recorder;
use plimsoll_core::sanity::KernelBytes;
use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::{Arrivals, Disconnect, Phase, Session, SessionMachines};

use crate::calendar::Calendar;
use crate::clock::Clock;
use crate::company::Ending;
use crate::gauge::Gauge;
use crate::held::Held;
use crate::kernel_account::KernelAccount;
use crate::meter::{Meter, WindowCost};
use crate::precedence::settle_in;
use crate::readiness::{Event, Readiness};
use crate::report::{CoreShares, EngineSecond};
use crate::run::{Message, Options};
use crate::slot::{Slot, State};
use crate::socket::{self, Trouble};
use crate::unread::{Unread, UnreadWatch};

const READ_BUFFER_BYTES: usize = 64 * 1024;
/// How often to check for the end of the trial once the window is over.
const END_CHECK_NS: u64 = 5_000_000;
/// How late, beyond a tick, a frame due at the window's end may be before the client owes it: the send lag that is
/// allowed with the usual SLO.
const OWED_AFTER_NS: u64 = 10_000_000;

type Claim<W> = <<W as SessionMachines>::Session as Session>::Claim;

/// Which thread it is, and where it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) thread: usize,
    /// The core that it is bound to.
    pub(crate) cpu: Option<usize>,
}

/// What a thread hands over at its end.
pub(crate) struct Finished<C> {
    pub(crate) cpu: Option<usize>,
    pub(crate) sessions: u64,
    pub(crate) recorder: Recorder<C>,
    pub(crate) latency: LatencySet,
    /// The time before the window, in which sessions open.
    pub(crate) opening: WindowCost,
    pub(crate) window: WindowCost,
    /// Frames due in the window that the client had not written soon after the window's end, although nothing kept it
    /// from writing them; `None` if the trial ended earlier.
    pub(crate) frames_owed: Option<u64>,
    /// Sessions that the client's machine could not open.
    pub(crate) sessions_never_opened: u64,
    /// Bytes as the kernel counts them; `None` if a session's socket is gone or the kernel does not report them.
    pub(crate) kernel_bytes: Option<KernelBytes>,
    pub(crate) unread: Unread,
}

/// The sessions of a thread, and the work that they share.
pub(crate) struct Load<W: SessionMachines> {
    pub(crate) sessions: Vec<(SessionPlan, W::Session)>,
    pub(crate) arrivals: Option<W::Arrivals>,
}

pub(crate) struct Worker<W: SessionMachines, R> {
    slots: Vec<Slot<W::Session>>,
    arrivals: Option<W::Arrivals>,
    calendar: Calendar,
    readiness: R,
    recorder: Recorder<Claim<W>>,
    sender: Sender<Message<Claim<W>>>,
    place: Place,
    options: Options,
    window: Window,
    read_buffer: Box<[u8]>,
    total: LatencySet,
    /// Measured frames in this interval that did not wait at all. They are added to the record in one go.
    zero_waits: u64,
    gauge: Gauge,
    held: Held,
    unread: UnreadWatch,
    frames_owed: Option<u64>,
    settled: bool,
}

impl<W: SessionMachines, R: Readiness> Worker<W, R> {
    pub(crate) fn new(
        load: Load<W>,
        options: &Options,
        place: Place,
        sender: Sender<Message<Claim<W>>>,
    ) -> std::io::Result<Self> {
        let Load { sessions, arrivals } = load;
        let mut calendar = Calendar::new(sessions.len(), options.calendar_ns());
        let mut slots = Vec::with_capacity(sessions.len());
        for (index, (plan, session)) in (0..).zip(sessions) {
            if plan.connect_at_ns != SessionPlan::WITH_WORK {
                calendar.schedule(index, plan.connect_at_ns);
            }
            slots.push(Slot::new(&plan, session));
        }
        Ok(Self {
            unread: UnreadWatch::new(&slots, options.profile.window()),
            slots,
            arrivals,
            calendar,
            readiness: R::new()?,
            recorder: Recorder::default(),
            sender,
            place,
            window: options.profile.window(),
            options: options.clone(),
            read_buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            total: LatencySet::new(),
            zero_waits: 0,
            gauge: Gauge::default(),
            held: Held::share_of(options),
            frames_owed: None,
            settled: false,
        })
    }

    /// The loop: writes what is due, reports the second, waits until something is due or ready, reads.
    pub(crate) fn run(
        mut self,
        clock: Clock,
        stop: &AtomicBool,
        ending: &Ending<'_>,
    ) -> std::io::Result<()> {
        settle_in(self.place.cpu);
        clock.wait();
        let mut events = Vec::with_capacity(1024);
        let mut meter = Meter::new(self.window, clock.now_ns());
        let mut next_second = 1;
        let mut next_end_check_ns = self.window.end_ns;
        for id in (0..).take(self.slots.len()) {
            self.looked(id);
        }
        loop {
            let now_ns = clock.now_ns();
            self.gauge.stood(now_ns, self.recorder.unanswered());
            if self.frames_owed.is_none() && now_ns >= self.owed_from_ns() {
                self.frames_owed = Some(self.owed());
            }
            while let Some(id) = self.calendar.pop(now_ns) {
                self.due(id, now_ns, &clock);
                self.looked(id);
            }
            self.hand_out(now_ns, &clock);
            meter.update(now_ns, self.recorder.ledger.frames_sent_in_all);
            while now_ns >= next_second * NS_PER_S {
                self.tell_second(next_second - 1, meter.second_share(now_ns));
                next_second += 1;
            }
            let stopped = stop.load(Ordering::Relaxed) || ending.has_come();
            if stopped || now_ns >= self.window.grace_end_ns {
                break;
            }
            if now_ns >= next_end_check_ns {
                if self.settled(ending) && ending.may_come() {
                    break;
                }
                next_end_check_ns = now_ns + END_CHECK_NS;
            }
            let wake_ns = self
                .calendar
                .next_wake_ns()
                .unwrap_or(u64::MAX)
                .min(self.next_arrival_ns())
                .min(next_second * NS_PER_S)
                .min(next_end_check_ns)
                .min(meter.next_edge_ns());
            let before_wait_ns = clock.now_ns();
            self.gauge.rose(before_wait_ns, self.recorder.unanswered());
            self.unread.look(before_wait_ns, &self.slots);
            self.wait_until(wake_ns, before_wait_ns, &mut events)?;
            if !events.is_empty() {
                let now_ns = clock.now_ns();
                self.gauge.stood(now_ns, self.recorder.unanswered());
                for event in events.drain(..) {
                    self.ready(event, now_ns, &clock);
                    self.looked(event.id);
                    self.hand_out(now_ns, &clock);
                }
            }
        }
        self.finish(&clock, next_second - 1, &mut meter);
        Ok(())
    }

    /// Waits for sockets until `wake_ns`. A loop that has frames to write within a tick also reads at that pace,
    /// instead of being woken by each answer: on a busy core, waking up costs several times as much as the work done
    /// then. So answers are seen at most one tick late.
    fn wait_until(
        &mut self,
        wake_ns: u64,
        now_ns: u64,
        events: &mut Vec<Event>,
    ) -> std::io::Result<()> {
        let timeout_ns = wake_ns.saturating_sub(now_ns);
        if timeout_ns > self.options.tick_us * 1000 {
            return self.readiness.wait(timeout_ns, events);
        }
        if timeout_ns > 0 {
            std::thread::sleep(std::time::Duration::from_nanos(timeout_ns));
        }
        self.readiness.look(events)
    }

    /// When work has to be handed out next: when it is due, or at the end of that tick.
    fn next_arrival_ns(&self) -> u64 {
        let due_ns = self.arrivals.as_ref().and_then(Arrivals::next_due_ns);
        due_ns.map_or(u64::MAX, |due_ns| match self.options.tick_us * 1000 {
            0 => due_ns,
            tick_ns => due_ns.next_multiple_of(tick_ns),
        })
    }

    /// Hands out the work that was due at `now_ns`, or at the end of the last tick before it, as far as sessions are
    /// free.
    fn hand_out(&mut self, now_ns: u64, clock: &Clock) {
        let late_ns = now_ns.checked_rem(self.options.tick_us * 1000);
        let until_ns = now_ns - late_ns.unwrap_or(0);
        while let Some(arrivals) = &mut self.arrivals
            && let Some(id) = arrivals.next(until_ns, &mut self.recorder)
        {
            let slot = &mut self.slots[id as usize];
            arrivals.hand_out(id, &mut slot.session, &mut self.recorder);
            match slot.state {
                State::Connected => self.pump_and_schedule(id, now_ns, clock),
                State::Planned => self.plan_connection(id, clock.now_ns()),
                State::Connecting | State::Over | State::NeverWas => {}
            }
            self.looked(id);
        }
    }

    /// Tells the arrivals that something happened to a session.
    fn looked(&mut self, id: u32) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.look(id, &self.slots[id as usize].session);
        }
    }

    /// Handles a session whose entry in the calendar has come up.
    fn due(&mut self, id: u32, now_ns: u64, clock: &Clock) {
        match self.slots[id as usize].state {
            State::Planned => self.connect(id, clock.now_ns()),
            State::Connecting => self.still_opening(id, now_ns),
            State::Connected => {
                let slot = &self.slots[id as usize];
                let opening = slot.session.phase() == Phase::Opening;
                let reads_ns = slot.pace.and_then(|pace| pace.wakes_ns());
                if opening && now_ns >= slot.open_by_ns {
                    self.disconnect(id, now_ns, Disconnect::TimedOut);
                } else if reads_ns.is_none_or(|at_ns| at_ns > now_ns)
                    || self.read(id, now_ns, false)
                {
                    let session = &mut self.slots[id as usize].session;
                    session.woke(now_ns, &mut self.recorder);
                    self.pump_and_schedule(id, now_ns, clock);
                }
            }
            State::Over | State::NeverWas => {}
        }
    }

    /// Handles an event on a socket.
    fn ready(&mut self, event: Event, now_ns: u64, clock: &Clock) {
        let id = event.id;
        let slot = &mut self.slots[id as usize];
        let Some(socket) = &slot.socket else { return };
        if slot.state == State::Connecting {
            if !event.writable {
                return;
            }
            match socket::connection_result(socket) {
                Ok(()) => {
                    slot.state = State::Connected;
                    slot.session.connected(now_ns, &mut self.recorder);
                }
                Err(Trouble::Client(what)) => return self.client_fault(id, now_ns, what),
                Err(Trouble::Connection(how)) => return self.disconnect(id, now_ns, how),
            }
        }
        if slot.blocked_since_ns.is_some() {
            // Whatever the event was for, a write is tried now. If the socket is still full, its own next edge updates
            // this time.
            slot.unblocked_at_ns = now_ns;
        }
        if event.readable && !self.read(id, now_ns, event.hung_up) {
            return;
        }
        self.pump_and_schedule(id, now_ns, clock);
    }

    /// The time from which on a frame that was due in the window is owed if it is still unwritten.
    fn owed_from_ns(&self) -> u64 {
        self.window.end_ns + self.options.tick_us * 1000 + OWED_AFTER_NS
    }

    /// Unwritten frames that were due in the window, of sessions whose socket takes bytes. What a full socket, the
    /// protocol or a lost session withheld is the target's doing.
    fn owed(&self) -> u64 {
        let takes = |slot: &&Slot<W::Session>| {
            slot.state == State::Connected && slot.blocked_since_ns.is_none()
        };
        let slots = self.slots.iter().filter(takes);
        let of_sessions = slots.map(|slot| slot.session.owed(self.window.end_ns));
        let of_all = self.arrivals.as_ref();
        of_sessions.sum::<u64>() + of_all.map_or(0, |arrivals| arrivals.owed(self.window.end_ns))
    }

    /// Whether every measured frame is answered. Once this is true, no further one follows.
    fn settled(&mut self, ending: &Ending<'_>) -> bool {
        let done = |slot: &Slot<W::Session>| slot.state >= State::Over || slot.session.settled();
        let handed_out = self.arrivals.as_ref().is_none_or(Arrivals::settled);
        if !self.settled && handed_out && self.slots.iter().all(done) {
            self.settled = true;
            ending.settled();
        }
        self.settled
    }

    fn tell_second(&mut self, index: u64, busy_share: f64) {
        let zero_waits = std::mem::take(&mut self.zero_waits);
        self.recorder
            .interval
            .record_many_ns(Series::SendWait, 0, zero_waits);
        let latency = std::mem::take(&mut self.recorder.interval);
        self.total.merge(&latency);
        // A coordinator that no longer listens is no reason to stop measuring.
        let second = EngineSecond {
            index,
            latency,
            ledger: self.recorder.ledger.clone(),
            sessions_open: self.recorder.sessions_open,
            busy: CoreShares::of(self.place.cpu, busy_share),
        };
        let _ = self
            .sender
            .send(Message::Second(self.place.thread, Box::new(second)));
    }

    /// Accounts for everything still open, says farewell, and hands over the results.
    fn finish(mut self, clock: &Clock, index: u64, meter: &mut Meter) {
        let now_ns = clock.now_ns();
        meter.close(now_ns, self.recorder.ledger.frames_sent_in_all);
        self.gauge.stood(now_ns, self.recorder.unanswered());
        self.recorder.residence.unanswered_frame_ns = self.gauge.area();
        if now_ns >= self.window.end_ns {
            // Everything was answered before frames could be owed, or the loop was away for that long.
            let owed = self.owed();
            self.frames_owed.get_or_insert(owed);
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.finish(now_ns, &mut self.recorder);
        }
        for id in 0..self.slots.len() {
            let slot = &mut self.slots[id];
            if slot.state != State::NeverWas {
                slot.session.finish(now_ns, &mut self.recorder);
            }
        }
        self.tell_second(index, meter.second_share(now_ns));
        for id in (0..).take(self.slots.len()) {
            if self.slots[id as usize].state == State::Connected {
                // What cannot be written at once is left out: the trial is over.
                let _ = self.pump(id, now_ns, clock);
            }
        }
        let (never_was, were): (Vec<_>, Vec<_>) = self
            .slots
            .iter()
            .partition(|slot| slot.state == State::NeverWas);
        let kernel_bytes = KernelAccount::of_all(were.iter().map(|slot| slot.only_socket()));
        let finished = Finished {
            cpu: self.place.cpu,
            sessions: self.slots.len() as u64,
            opening: meter.opening_cost(),
            window: meter.cost(),
            frames_owed: self.frames_owed,
            sessions_never_opened: never_was.len() as u64,
            kernel_bytes,
            unread: self.unread.seen(),
            latency: self.total,
            recorder: self.recorder,
        };
        let _ = self
            .sender
            .send(Message::Finished(self.place.thread, Box::new(finished)));
    }
}
