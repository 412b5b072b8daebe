//! Where a broker could lie. An honest one does not: every answer of [`Honest`] is a constant, which the compiler removes.
//!
//! `lying-broker` is this same broker with another [`Conduct`].

use std::time::Duration;

/// What is about to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The message's number in its channel.
    pub offset: u64,
    /// Which of the channel's readers, by the order in which they came, from 0.
    pub reader: u32,
    /// Whether it may have been delivered before.
    pub again: bool,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It is sent.
    Send,
    /// It is never sent.
    Skip,
    /// It is sent twice.
    Twice,
    /// It is sent behind the next one to the same reader from the same writer.
    Swap,
}

/// What the broker does beside what it should. Times are nanoseconds of the broker's clock.
pub trait Conduct: 'static {
    /// What becomes of this delivery.
    fn act(&mut self, _about: &About) -> Act {
        Act::Send
    }

    /// Whether messages are kept, rather than confirmed and forgotten.
    fn keeps(&self) -> bool {
        true
    }

    /// Whether the disk is asked to keep what is written. Otherwise the broker only says that it was.
    fn syncs(&self) -> bool {
        true
    }

    /// How long a confirmation waits, in nanoseconds, when it is due.
    fn confirm_late_ns(&self) -> u64 {
        0
    }

    /// Whether another message may be delivered, of `published` and when `delivered` were, and when nothing has come
    /// for so long.
    fn goes_on(&self, _published: u64, _delivered: u64, _quiet_ns: u64) -> bool {
        true
    }

    /// How often the broker must look whether it goes on.
    fn tick(&self) -> Option<Duration> {
        None
    }

    /// How long the whole broker stands still now.
    fn pause(&mut self, _now_ns: u64) -> Option<Duration> {
        None
    }

    /// When it wants to be asked for its next pause.
    fn pause_at(&self) -> Option<u64> {
        None
    }
}

/// Does what it should.
#[derive(Debug, Clone, Copy, Default)]
pub struct Honest;

impl Conduct for Honest {}
