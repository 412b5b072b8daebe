//! The environments that cases need. Cases with the same setup share one server.

use plimsoll_conformance::{Setup, Sharing};

/// Most cases: the contract's defaults.
pub(super) static BASE: Setup = Setup::new("base", Sharing::Together).lasting();

/// Counters: the defaults, but one case after the other, so that what grew is the case's own.
pub(super) static COUNTERS: Setup = Setup::new("counters", Sharing::InTurn).lasting();

/// A short longest message.
pub(super) static SHORT_MESSAGES: Setup =
    Setup::new("short-messages", Sharing::Together).server(&[("MAX_MESSAGE_BYTES", "4096")]);

/// Clients that do not read: one case after the other, for each moves as much as the kernel holds.
pub(super) static DEAF_CLIENTS: Setup = Setup::new("deaf-clients", Sharing::InTurn).lasting();

/// One worker, so that a hub reaches everybody. One case after the other, because there is one hub.
pub(super) static ONE_WORKER: Setup =
    Setup::new("one-worker", Sharing::InTurn).server(&[("WORKER_THREADS", "1")]);

/// An end: each case has a server of its own.
pub(super) static DRAIN: Setup =
    Setup::new("drain", Sharing::Alone).server(&[("DRAIN_TIMEOUT_MS", "1500")]);
