//! The interface between the load engine and a workload.
//!
//! The engine knows sockets, time and fairness; a workload knows what to say. A [`Session`] is a state machine without
//! I/O: the engine gives it the bytes that came in and asks what to write next. Because the engine is generic over
//! [`SessionMachines`], the interface costs nothing.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::latency::LatencySet;
use crate::ledger::Ledger;
use crate::profile::Profile;
use crate::recorder::Recorder;
use crate::schedule::{SessionPlan, session_plan};
use crate::secret::redacted_url;

/// Where sessions go: what is the same for all of them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Endpoint {
    /// `name` or `name:port`, for the Host field.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Further fields of each request, such as Authorization.
    pub headers: Vec<(String, String)>,
}

/// Without the secrets that path and headers may hold. It is serialized with them, because a client process reads it
/// from a pipe.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("host", &self.host)
            .field("path", &redacted_url(&self.path))
            .field("headers", &names)
            .finish()
    }
}

/// What a session wants to write next: two slices for one vectored write.
///
/// [`Session::transmit`] must return the same slices until [`Session::sent`] reports that the socket took the last byte
/// of both.
#[derive(Debug, Clone, Copy)]
pub struct Transmit<'a> {
    /// The first bytes, usually a frame header.
    pub head: &'a [u8],
    /// The bytes after it, usually a payload that many sessions share.
    pub body: &'a [u8],
    /// When this was scheduled to be written, if it is part of the load; `None` for handshakes and control messages.
    pub due_ns: Option<u64>,
    /// Since when the protocol allows this write, if the session last held a frame back: HTTP/1.1 allows one request at
    /// a time, a broker so many unconfirmed messages. From `due_ns` until then the write waited for the target, so that
    /// time is send wait and not send lag. A time before `due_ns` means that nothing was held back.
    pub held_until_ns: Option<u64>,
    /// Whether its lateness is recorded (it is due in the measured window).
    pub measured: bool,
}

/// The state of a session, as far as the engine needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Connecting, or in the handshake.
    Opening,
    /// Carrying load.
    Open,
    /// Over: the engine closes the socket.
    Ended,
}

/// The most memory of the client that all sessions of a trial together may hold because of the target: parts of
/// unfinished messages, and answers to the target's pings that the target does not read. Each engine thread of each
/// client process has its share. A session that grows beyond what is left is ended with [`Disconnect::HoldsTooMuch`]. A
/// session has at most one message of 1 MiB in progress, so without this limit 19,000 sessions could hold 19 GB.
///
/// Honest targets stay far below it: if a message is split between two reads, the client keeps the first part until the
/// rest comes, usually for microseconds.
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
    /// TLS failed, for this reason: a certificate that is not trusted, an alert, bytes that do not decrypt.
    Tls(&'static str),
    /// Another socket error.
    Failed,
    /// The engine ended it, because with this session all of them held more than [`HELD_MAX_BYTES`].
    HoldsTooMuch,
}

impl Disconnect {
    /// Its name in the ledger's list of reasons.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by the target",
            Self::Closed => "connection closed by the target",
            Self::TimedOut => "not open in time",
            Self::Tls(reason) => reason,
            Self::Failed => "socket error",
            Self::HoldsTooMuch => {
                "unfinished messages of the target, or answers that it does not read, use more than 256 MiB of the client's memory"
            }
        }
    }
}

/// What becomes of a session that has no connection (any more).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconnected {
    /// It is over.
    Over,
    /// It waits for work before it connects.
    Waits,
    /// It connects at `at_ns`, and must be open at `open_by_ns`.
    Connects {
        /// When it begins to connect.
        at_ns: u64,
        /// When the attempt has failed.
        open_by_ns: u64,
    },
}

/// One session of a workload, without I/O. All times are nanoseconds since the trial began.
pub trait Session: Send {
    /// What the session keeps for [`SessionMachines::settle`]. Client processes send it as JSON.
    type Claim: Send + Serialize + DeserializeOwned;

    /// The state of the session.
    fn phase(&self) -> Phase;

    /// When [`Session::transmit`] will next have something that it does not have now; `None` if only input can change
    /// that. So a session that holds a due frame back returns `None`: the engine asks it again after the input that may
    /// free it, and does not ask before.
    fn next_due_ns(&self) -> Option<u64>;

    /// Measured frames that were due before `now_ns`, are not written yet and could be, if the session is open. What
    /// the protocol holds back is not owed by the client.
    fn owed(&self, now_ns: u64) -> u64;

    /// Called when the attempt to connect has begun. A workload whose load is the connections themselves treats this as
    /// the time of its write.
    fn connecting(&mut self, _now_ns: u64, _recorder: &mut Recorder<Self::Claim>) {}

    /// Called when the connection is established, before anything is written.
    fn connected(&mut self, _now_ns: u64, _recorder: &mut Recorder<Self::Claim>) {}

    /// Called when the time of [`Session::next_due_ns`] has come, before [`Session::transmit`]. A session that gives an
    /// answer up enters it here.
    fn woke(&mut self, _now_ns: u64, _recorder: &mut Recorder<Self::Claim>) {}

    /// What becomes of the session, asked after its connection ended, and after work was handed to it while it had none.
    /// A session that connects again is [`Phase::Opening`] from then on.
    fn unconnected(&mut self, _now_ns: u64) -> Unconnected {
        Unconnected::Over
    }

    /// What to write now, if anything.
    fn transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>>;

    /// When further measured frames were due that [`Session::transmit`] returned together with the one that it names. A
    /// session whose frames are due closer together than the engine looks at it writes several at once. Their lateness is
    /// recorded with that of the first; they were held back no longer than it. Asked before [`Session::sent`].
    fn dues(&self) -> &[u64] {
        &[]
    }

    /// Called when the socket has taken everything that [`Session::transmit`] returned. `write_ns` is the time just
    /// before the write that took the last byte.
    fn sent(&mut self, write_ns: u64, recorder: &mut Recorder<Self::Claim>);

    /// Called when bytes arrived.
    fn received(&mut self, now_ns: u64, bytes: &[u8], recorder: &mut Recorder<Self::Claim>);

    /// How many bytes of memory the session holds because of what the target sent or does not read. It grows only in
    /// [`Session::received`].
    fn held_bytes(&self) -> usize {
        0
    }

    /// How many bytes it reads in a second, if it reads slowly on purpose; `None`: all that comes, when it comes. It is the
    /// same all through the trial. The engine may call [`Session::woke`] early for it.
    fn reads_bytes_per_s(&self) -> Option<u32> {
        None
    }

    /// How many bytes may lie unread in its socket while the client keeps up with reading; `None` if nobody asks. It is the
    /// same all through the trial.
    fn unread_max_bytes(&self) -> Option<u64> {
        None
    }

    /// Called when the connection ended and the client did not end it. The session releases what it held for the
    /// connection.
    fn disconnected(&mut self, now_ns: u64, how: Disconnect, recorder: &mut Recorder<Self::Claim>);

    /// Whether every measured frame has been answered, so that there is nothing to wait for.
    fn settled(&self) -> bool;

    /// Called when the trial is over: accounts for everything that is still open. Afterwards, [`Session::transmit`] may
    /// return a closing message.
    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<Self::Claim>);
}

/// Work that belongs to no session until it is due: the requests of a trial, which go to whichever connection is free.
///
/// Each engine thread has its own share of the work. The engine asks what is due, and hands it to a session before it
/// asks the session what to write.
pub trait Arrivals<S: Session>: Send {
    /// When the next piece of work is due; `None` if none is left.
    fn next_due_ns(&self) -> Option<u64>;

    /// The session, by its place among the thread's sessions, that gets the oldest piece of work that was due at
    /// `now_ns`; `None` if nothing was due, or if no session is free.
    fn next(&mut self, now_ns: u64, recorder: &mut Recorder<S::Claim>) -> Option<u32>;

    /// Hands that piece of work to that session.
    fn hand_out(&mut self, place: u32, session: &mut S, recorder: &mut Recorder<S::Claim>);

    /// Called after anything happened to a session: it may have become free, or unable to take work.
    fn look(&mut self, place: u32, session: &S);

    /// Measured work that was due before `now_ns`, was not handed out and could be: some session is free.
    fn owed(&self, now_ns: u64) -> u64;

    /// Whether all measured work was handed out.
    fn settled(&self) -> bool;

    /// Called when the trial is over, before the sessions finish: accounts for work that no session got.
    fn finish(&mut self, now_ns: u64, recorder: &mut Recorder<S::Claim>);
}

/// That of session machines in which every session has its own schedule: there is none.
#[derive(Debug)]
pub enum NoArrivals {}

impl<S: Session> Arrivals<S> for NoArrivals {
    fn next_due_ns(&self) -> Option<u64> {
        match *self {}
    }

    fn next(&mut self, _now_ns: u64, _recorder: &mut Recorder<S::Claim>) -> Option<u32> {
        match *self {}
    }

    fn hand_out(&mut self, _place: u32, _session: &mut S, _recorder: &mut Recorder<S::Claim>) {
        match *self {}
    }

    fn look(&mut self, _place: u32, _session: &S) {
        match *self {}
    }

    fn owed(&self, _now_ns: u64) -> u64 {
        match *self {}
    }

    fn settled(&self) -> bool {
        match *self {}
    }

    fn finish(&mut self, _now_ns: u64, _recorder: &mut Recorder<S::Claim>) {
        match *self {}
    }
}

/// Which part of the trial's work a thread has: of all threads in all processes, it is number `index` of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which part, from 0.
    pub index: u32,
    /// How many parts there are; not zero.
    pub of: u32,
}

/// The totals of a trial, all threads and processes together.
#[derive(Debug)]
pub struct Account<'a> {
    /// What became of every frame.
    pub ledger: &'a mut Ledger,
    /// All latencies of measured frames. What is recorded here belongs to no second of the trial.
    pub latency: &'a mut LatencySet,
    /// When the trial began, on `CLOCK_MONOTONIC` in nanoseconds: for what another program of this machine stamped. `None` if
    /// sessions ran on other machines, whose clocks are others.
    pub began_ns: Option<u64>,
}

/// Makes the sessions of a trial, and afterwards settles what they kept.
pub trait SessionMachines: Sync {
    /// Its session state machine.
    type Session: Session;

    /// Work that goes to whichever session is free; [`NoArrivals`] if every session has its own
    /// schedule.
    type Arrivals: Arrivals<Self::Session>;

    /// The plan of session `id` of `sessions`: when it connects and when its first frame is due. By default, sessions
    /// connect over the ramp and are measured after it. A workload whose load is the connecting itself spreads it over
    /// the measured window instead.
    fn plan(&self, id: u32, sessions: u32, profile: &Profile, seed: u64) -> SessionPlan {
        session_plan(id, sessions, profile, seed)
    }

    /// A new session with this plan.
    fn session(&self, plan: &SessionPlan) -> Self::Session;

    /// The work of one thread, which drives `sessions` sessions; `None` if every session has its own schedule.
    fn arrivals(
        &self,
        _share: Share,
        _sessions: u32,
        _profile: &Profile,
        _seed: u64,
    ) -> Option<Self::Arrivals> {
        None
    }

    /// Settles what no session can know alone: it recomputes the content of answers, or compares what one session sent
    /// with what others received. Called once after the trial, off the hot path, with the claims of all sessions,
    /// whichever thread or process drove them. Their order is not that of the trial.
    fn settle(&self, _claims: &[<Self::Session as Session>::Claim], _account: Account<'_>) {}
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
