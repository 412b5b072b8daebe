//! What an engine thread keeps about each of its sessions.

use std::os::fd::OwnedFd;

use plimsoll_core::schedule::SessionPlan;
use plimsoll_core::session::Session;

use crate::pace::Pace;

/// A session with its socket.
pub(crate) struct Slot<S> {
    pub(crate) session: S,
    pub(crate) socket: Option<OwnedFd>,
    /// Whether it had a socket before this one. Nobody knows any more what went through that.
    pub(crate) had_another: bool,
    /// The session's number in the trial. A thread has only some of the sessions.
    pub(crate) number: u32,
    /// When the session must be open. If it is not, it has failed.
    pub(crate) open_by_ns: u64,
    pub(crate) state: State,
    /// Bytes of the current transmission that the socket has taken.
    pub(crate) written: usize,
    /// When the socket first refused a byte of the backlog that is still there.
    pub(crate) blocked_since_ns: Option<u64>,
    /// When the socket last reported that there is room again.
    pub(crate) unblocked_at_ns: u64,
    /// What the session held when it was last checked, in bytes.
    pub(crate) held_bytes: usize,
    /// For a session that reads slowly.
    pub(crate) pace: Option<Pace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Planned,
    Connecting,
    Connected,
    /// Failed or died; its frames still count.
    Over,
    /// The client's machine could not open it, so it is not part of the load.
    NeverWas,
}

impl<S: Session> Slot<S> {
    /// A session whose time to connect has not come yet.
    pub(crate) fn new(plan: &SessionPlan, session: S) -> Self {
        Self {
            pace: session.reads_bytes_per_s().map(Pace::of),
            session,
            socket: None,
            had_another: false,
            number: plan.id,
            open_by_ns: plan.open_by_ns,
            state: State::Planned,
            written: 0,
            blocked_since_ns: None,
            unblocked_at_ns: 0,
            held_bytes: 0,
        }
    }

    /// The socket, if all bytes of the session went through it.
    pub(crate) fn only_socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref().filter(|_| !self.had_another)
    }
}
