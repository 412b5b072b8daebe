//! The server's side of a connection, as the sink of a calibration plays it.
//!
//! It is the counterpart of a [`Session`](crate::session::Session): a state machine without I/O. The sink gives it the
//! bytes that came in and writes what it answers.

/// What a sink says on one of its connections.
pub trait Speaker {
    /// Takes the received bytes, which it may overwrite, and adds to `out` what is to be written.
    fn heard(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> After;
}

/// What happens to a connection once everything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It stays open.
    GoOn,
    /// The sink closes it.
    Close,
}
