//! The environments that cases need. Cases with the same setup share one server.

use plimsoll_conformance::{Setup, Sharing};

/// Most cases: the contract's defaults.
pub(super) static BASE: Setup = Setup::new("base", Sharing::Together).lasting();

/// Cases of time, or of thousands of requests: the defaults, but one case after the other.
pub(super) static IN_TURN: Setup = Setup::new("in-turn", Sharing::InTurn).lasting();

/// A case that only waits: its server is its own.
pub(super) static IDLE: Setup = Setup::new("idle", Sharing::Alone).lasting();

/// Requests that nobody finishes: a case that waits for a minute.
pub(super) static UNFINISHED: Setup = Setup::new("unfinished", Sharing::Alone).lasting();

/// Clients that do not read: the memory is that of this case alone.
pub(super) static DEAF: Setup = Setup::new("deaf", Sharing::Alone);

/// An end: each case has a server of its own.
pub(super) static DRAIN: Setup =
    Setup::new("drain", Sharing::Alone).server(&[("DRAIN_TIMEOUT_MS", "2000")]);

/// The longest body is short.
pub(super) static SHORT_BODIES: Setup =
    Setup::new("short-bodies", Sharing::Together).server(&[("MAX_BODY_BYTES", "4096")]);
