//! Reads from the sessions' sockets and writes to them.

use plimsoll_core::latency::Series;
use plimsoll_core::session::{Disconnect, Phase, Session, SessionMachines};

use super::{READ_BUFFER_BYTES, Worker};
use crate::clock::Clock;
use crate::lateness::{Kept, Lateness};
use crate::readiness::Readiness;
use crate::socket::{self, Trouble};

/// The result of pumping a session.
pub(super) enum Pumped {
    /// Nothing more to write now.
    Drained,
    /// The socket is full.
    Full,
    /// The connection is gone.
    Gone(Disconnect),
}

impl<W: SessionMachines, R: Readiness> Worker<W, R> {
    /// Reads everything available, or as much as the session's pace allows. Returns whether the session is still connected.
    pub(super) fn read(&mut self, id: u32, now_ns: u64, hung_up: bool) -> bool {
        loop {
            let slot = &mut self.slots[id as usize];
            let Some(socket) = &slot.socket else {
                return false;
            };
            let most = slot.pace.as_mut().map(|pace| pace.may_read(now_ns));
            if most == Some(0) {
                return true;
            }
            let most = most.unwrap_or(READ_BUFFER_BYTES).min(READ_BUFFER_BYTES);
            let read = socket::read(socket, &mut self.read_buffer[..most]);
            if let (Some(pace), Ok(count)) = (&mut slot.pace, &read) {
                pace.has_read(now_ns, count.unwrap_or(0));
            }
            match read {
                Ok(None) => return true,
                Ok(Some(count)) => {
                    self.recorder.ledger.bytes_received += count as u64;
                    slot.session
                        .received(now_ns, &self.read_buffer[..count], &mut self.recorder);
                    if slot.session.phase() == Phase::Ended {
                        self.close(id, now_ns);
                        return false;
                    }
                    if self.holds_too_much(id) {
                        self.end_holder(id, now_ns);
                        return false;
                    }
                    if self.slots[id as usize].pace.is_some() {
                        return true;
                    }
                    // A short read on a stream socket has emptied it (epoll(7)), and the next bytes raise a new edge.
                    // But a close that came with these bytes has already had its edge.
                    if count < READ_BUFFER_BYTES && !hung_up {
                        return true;
                    }
                }
                Err(Trouble::Connection(how)) => {
                    self.disconnect(id, now_ns, how);
                    return false;
                }
                Err(Trouble::Client(what)) => {
                    self.recorder.client_fault(what);
                    return true;
                }
            }
        }
    }

    /// Writes everything that a session has, then queues the session for when it will have more.
    pub(super) fn pump_and_schedule(&mut self, id: u32, now_ns: u64, clock: &Clock) {
        match self.pump(id, now_ns, clock) {
            Pumped::Drained => {
                let slot = &mut self.slots[id as usize];
                slot.blocked_since_ns = None;
                let next_ns = match slot.session.phase() {
                    Phase::Opening => Some(slot.open_by_ns),
                    Phase::Open => slot.session.next_due_ns(),
                    Phase::Ended => return self.close(id, now_ns),
                };
                self.wake(id, next_ns);
            }
            // The socket's next edge resumes the session.
            Pumped::Full => self.wake(id, None),
            Pumped::Gone(how) => self.disconnect(id, now_ns, how),
        }
    }

    /// Puts the session into the calendar for then, or for its next slow read.
    fn wake(&mut self, id: u32, next_ns: Option<u64>) {
        let pace = self.slots[id as usize].pace;
        let reads_ns = pace.and_then(|pace| pace.wakes_ns());
        match next_ns.into_iter().chain(reads_ns).min() {
            Some(due_ns) => self.calendar.schedule(id, due_ns),
            None => self.calendar.cancel(id),
        }
    }

    pub(super) fn pump(&mut self, id: u32, now_ns: u64, clock: &Clock) -> Pumped {
        let slot = &mut self.slots[id as usize];
        let Some(socket) = &slot.socket else {
            return Pumped::Drained;
        };
        while let Some(transmit) = slot.session.transmit(now_ns) {
            let length = transmit.head.len() + transmit.body.len();
            let write_ns = clock.now_ns();
            let taken = match socket::write_both(socket, transmit.head, transmit.body, slot.written)
            {
                Ok(taken) => taken.unwrap_or(0),
                Err(Trouble::Connection(how)) => return Pumped::Gone(how),
                Err(Trouble::Client(what)) => {
                    self.recorder.client_fault(what);
                    0
                }
            };
            self.recorder.ledger.bytes_sent += taken as u64;
            slot.written += taken;
            if slot.written < length {
                slot.blocked_since_ns.get_or_insert(write_ns);
                return Pumped::Full;
            }
            slot.written = 0;
            let kept = Kept {
                held_until_ns: transmit.held_until_ns,
                blocked_since_ns: slot.blocked_since_ns,
                unblocked_at_ns: slot.unblocked_at_ns,
            };
            let first = transmit.due_ns.filter(|_| transmit.measured);
            for due_ns in first.iter().chain(slot.session.dues()) {
                let late = Lateness::of(*due_ns, write_ns, &kept);
                let interval = &mut self.recorder.interval;
                interval.record_ns(Series::SendLag, late.lag_ns);
                if late.wait_ns == 0 {
                    self.zero_waits += 1;
                } else {
                    interval.record_ns(Series::SendWait, late.wait_ns);
                }
            }
            slot.session.sent(write_ns, &mut self.recorder);
        }
        Pumped::Drained
    }
}
