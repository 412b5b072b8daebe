//! Begins and ends the connections of sessions.

use std::os::fd::AsFd;

use plimsoll_core::session::{Disconnect, Session, SessionMachines, Unconnected};

use super::Worker;
use crate::readiness::Readiness;
use crate::slot::State;
use crate::socket::{self, Setup, Trouble};

impl<W: SessionMachines, R: Readiness> Worker<W, R> {
    /// Begins to connect a session. `began_ns` is the time just before, as for writes.
    pub(super) fn connect(&mut self, id: u32, began_ns: u64) {
        let setup = self.setup(id);
        match socket::begin_connect(self.options.address, &setup) {
            Ok(socket) => match self.readiness.register(socket.as_fd(), id) {
                Ok(()) => {
                    let slot = &mut self.slots[id as usize];
                    slot.socket = Some(socket);
                    slot.state = State::Connecting;
                    slot.session.connecting(began_ns, &mut self.recorder);
                    self.calendar.schedule(id, slot.open_by_ns);
                }
                Err(_) => self.client_fault(id, began_ns, "epoll registration"),
            },
            Err(Trouble::Client(what)) => self.client_fault(id, began_ns, what),
            Err(Trouble::Connection(how)) => self.disconnect(id, began_ns, how),
        }
    }

    fn setup(&self, id: u32) -> Setup {
        let sources = &self.options.source_addresses;
        let slot = &self.slots[id as usize];
        let number = slot.number as usize;
        Setup {
            source: (!sources.is_empty()).then(|| sources[number % sources.len()]),
            nodelay: self.options.nodelay,
            send_buffer_bytes: self.options.send_buffer_bytes,
            receive_buffer_bytes: slot.pace.map(|pace| pace.receive_buffer_bytes()),
        }
    }

    pub(super) fn still_opening(&mut self, id: u32, now_ns: u64) {
        let open_by_ns = self.slots[id as usize].open_by_ns;
        if now_ns >= open_by_ns {
            self.disconnect(id, now_ns, Disconnect::TimedOut);
        } else {
            self.calendar.schedule(id, open_by_ns);
        }
    }

    /// The client's own machine failed: the session never existed, and the target is not to blame. A session that may
    /// have work loses a connection; what it had counts, and the fault makes the trial invalid.
    pub(super) fn client_fault(&mut self, id: u32, now_ns: u64, what: &'static str) {
        self.recorder.client_fault(what);
        if self.arrivals.is_some() {
            self.disconnect(id, now_ns, Disconnect::Failed);
        } else {
            self.slots[id as usize].state = State::NeverWas;
        }
    }

    pub(super) fn disconnect(&mut self, id: u32, now_ns: u64, how: Disconnect) {
        let slot = &mut self.slots[id as usize];
        slot.session.disconnected(now_ns, how, &mut self.recorder);
        self.close(id, now_ns);
    }

    /// Whether this session has just taken more than the target may make all sessions hold.
    pub(super) fn holds_too_much(&mut self, id: u32) -> bool {
        let slot = &mut self.slots[id as usize];
        let now = slot.session.held_bytes();
        let before = std::mem::replace(&mut slot.held_bytes, now);
        now != before && self.held.changed(before, now)
    }

    /// Ends a session because of what the target made it hold. This is a fault of the target, with its reason in the
    /// record.
    pub(super) fn end_holder(&mut self, id: u32, now_ns: u64) {
        let reason = Disconnect::HoldsTooMuch.reason();
        let ledger = &self.recorder.ledger;
        let counted = ledger.reasons.get(reason).copied();
        self.disconnect(id, now_ns, Disconnect::HoldsTooMuch);
        let ledger = &mut self.recorder.ledger;
        ledger.protocol_faults += 1;
        // A workload may have its own name for how a connection failed.
        if ledger.reasons.get(reason).copied() == counted {
            ledger.because(reason);
        }
    }

    pub(super) fn close(&mut self, id: u32, now_ns: u64) {
        let slot = &mut self.slots[id as usize];
        // What the session still keeps counts, too.
        let kept = slot.session.held_bytes();
        self.held
            .changed(std::mem::replace(&mut slot.held_bytes, kept), kept);
        slot.had_another |= slot.socket.take().is_some();
        slot.written = 0;
        slot.blocked_since_ns = None;
        if let Some(pace) = &mut slot.pace {
            pace.ended();
        }
        self.calendar.cancel(id);
        self.plan_connection(id, now_ns);
    }

    /// Plans the next connection of a session that has none, or begins it, if there is to be one.
    pub(super) fn plan_connection(&mut self, id: u32, now_ns: u64) {
        let slot = &mut self.slots[id as usize];
        slot.state = State::Planned;
        match slot.session.unconnected(now_ns) {
            Unconnected::Over => slot.state = State::Over,
            Unconnected::Waits => {}
            Unconnected::Connects { at_ns, open_by_ns } => {
                slot.open_by_ns = open_by_ns;
                if at_ns <= now_ns {
                    self.connect(id, now_ns);
                } else {
                    self.calendar.schedule(id, at_ns);
                }
            }
        }
    }
}
