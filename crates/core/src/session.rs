//! The seam between the load engine and a workload.
//!
//! The engine knows sockets, time and fairness; a workload knows what to say. A [`Session`] is a state machine without I/O: the
//! engine hands it the bytes that came in and asks what to write next. Because the engine is generic over [`Workload`], the seam costs nothing.

use crate::ledger::Audit;
use crate::profile::Profile;
use crate::recorder::Recorder;
use crate::schedule::{SessionPlan, session_plan};

/// What a session wants written next: two slices for one vectored write.
///
/// The same slices must come back from [`Session::transmit`] until [`Session::sent`] says that the last byte of both was taken by the socket.
#[derive(Debug, Clone, Copy)]
pub struct Transmit<'a> {
    /// The first bytes, usually a frame header.
    pub head: &'a [u8],
    /// The bytes after it, usually a payload that many sessions share.
    pub body: &'a [u8],
    /// When this was scheduled to be written, if it is part of the load; `None` for handshakes and control messages.
    pub due_ns: Option<u64>,
    /// Whether its lateness belongs in the record (it is due in the measured window).
    pub measured: bool,
}

/// Where a session stands, as far as the engine needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Connecting and shaking hands.
    Opening,
    /// Carrying load.
    Open,
    /// Over: the engine closes the socket.
    Ended,
}

/// The most memory of the client that all sessions of a trial together may hold because of the target: parts of messages that it has not finished, and
/// answers to its pings that it does not read. Each engine thread of each client process has its share. A session that grows beyond what is left is
/// ended, by [`Disconnect::HoldsTooMuch`]. A session has at most a message of 1 MiB under way, so without this 19,000 sessions could hold 19 GB.
///
/// Honest targets stay far below it: of a message that is torn between two reads the client keeps the first part until the rest comes, mostly microseconds.
pub const HELD_MAX_BYTES: usize = 256 << 20;

/// Why a connection ended, as the engine saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disconnect {
    /// The peer refused the connection.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer closed its side.
    Closed,
    /// The session was not open in time.
    TimedOut,
    /// Another socket error.
    Failed,
    /// The engine ended it: with this session all of them held more than [`HELD_MAX_BYTES`].
    HoldsTooMuch,
}

impl Disconnect {
    /// A name for the ledger's list of reasons.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by the target",
            Self::Closed => "connection closed by the target",
            Self::TimedOut => "not open in time",
            Self::Failed => "socket error",
            Self::HoldsTooMuch => {
                "unfinished messages of the target, or answers that it does not read, take more than 256 MiB of the client's memory"
            }
        }
    }
}

/// One session of a workload, without I/O. All times are nanoseconds since the trial began.
pub trait Session: Send {
    /// What the session keeps of an answer for [`Workload::audit`].
    type Claim: Send;

    /// Where the session stands.
    fn phase(&self) -> Phase;

    /// When [`Session::transmit`] will next have something that it has not now; `None` when only input can change that.
    fn next_due_ns(&self) -> Option<u64>;

    /// Measured frames that were due before `now_ns` and are not written yet, if the session is open.
    fn owed(&self, now_ns: u64) -> u64;

    /// The attempt to connect has begun. A workload whose load are the connections themselves takes this as the moment of its write.
    fn connecting(&mut self, _now_ns: u64, _recorder: &mut Recorder<Self::Claim>) {}

    /// What to write now, if anything.
    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>>;

    /// What [`Session::transmit`] gave was wholly taken by the socket; `write_ns` is the time just before the write that took the last byte.
    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Self::Claim>);

    /// Bytes arrived.
    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Self::Claim>);

    /// How much memory the session holds because of what the target sent, or does not read. It grows only in [`Session::received`].
    fn held_bytes(&self) -> usize {
        0
    }

    /// The connection ended, and not by our wish; what the session held for it is let go.
    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Self::Claim>);

    /// Whether every measured frame has been answered, so that nothing more is waited for.
    fn settled(&self) -> bool;

    /// The trial is over: account for everything still open. Afterwards [`Session::transmit`] may give a last farewell.
    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Self::Claim>);
}

/// A workload: it makes sessions, and checks afterwards what they kept.
pub trait Workload: Sync {
    /// Its session machine.
    type Session: Session;

    /// The plan of session `id` of `sessions`: when it connects and when its first frame is due. Unless a workload says otherwise, sessions connect over
    /// the ramp, and what is measured comes after that; one whose load is the connecting itself spreads it over the measured window instead.
    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        session_plan(id, sessions, profile, seed)
    }

    /// A new session with this plan.
    fn session(&self, plan: &SessionPlan) -> Self::Session;

    /// Recomputes the content of the answers that the sessions kept. Called after the trial, off the hot path.
    fn audit(&self, claims: &[<Self::Session as Session>::Claim]) -> Audit;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_limit() {
        let limit = format!("{} MiB", HELD_MAX_BYTES >> 20);
        assert!(Disconnect::HoldsTooMuch.reason().contains(&limit));
    }
}
