//! The server's side of a connection, as the sink of a calibration plays it.
//!
//! It is the counterpart of a [`Session`](crate::session::Session): a state machine without I/O. The sink gives it the
//! bytes that came in and writes what it answers.

use crate::profile::Profile;

/// What a sink says on one of its connections.
pub trait Speaker {
    /// Takes the received bytes, which it may overwrite, and adds to `out` what is to be written.
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After;

    /// Adds to `out` what it says without being asked, such as the messages of a queue. The sink asks at each of its looks
    /// once the client's run has begun. `now_ns` is the time since then, by the run's own clock; `profile` has the phases
    /// of the run. So a message can say when it was due.
    fn unasked(&mut self, _now_ns: u64, _profile: &Profile, _out: &mut Vec<u8>) {}
}

/// What happens to a connection once everything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It stays open.
    GoOn,
    /// The sink closes it.
    Close,
}
