//! What an engine thread keeps of each of its sessions.

use std::os::fd::OwnedFd;

use plimsoll_core::schedule::SessionPlan;

/// A session with its socket.
pub(crate) struct Slot<S> {
    pub(crate) session: S,
    pub(crate) socket: Option<OwnedFd>,
    /// The session's number in the trial: a thread has some of them only.
    pub(crate) number: u32,
    /// When it must be open; it failed if it is not.
    pub(crate) open_by_ns: u64,
    pub(crate) state: State,
    /// Bytes of the current transmission that the socket has taken.
    pub(crate) written: usize,
    /// When the socket first refused a byte of the backlog that is still there.
    pub(crate) blocked_since_ns: Option<u64>,
    /// When it last said that there is room again.
    pub(crate) unblocked_at_ns: u64,
    /// What the session held when it was looked at last.
    pub(crate) held_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Planned,
    Connecting,
    Connected,
    /// Failed or died; its frames still count.
    Over,
    /// The client's machine could not open it: it is no part of the load.
    NeverWas,
}

impl<S> Slot<S> {
    /// A session whose time has not come.
    pub(crate) fn new(plan: &SessionPlan, session: S) -> Self {
        Self {
            session,
            socket: None,
            number: plan.id,
            open_by_ns: plan.open_by_ns,
            state: State::Planned,
            written: 0,
            blocked_since_ns: None,
            unblocked_at_ns: 0,
            held_bytes: 0,
        }
    }
}
