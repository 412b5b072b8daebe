//! The environments that cases need. Cases with the same setup share one server.

use plimsoll_conformance::{Setup, Sharing};

/// Most cases: the contract's defaults.
pub(super) static BASE: Setup = Setup {
    name: "base",
    sharing: Sharing::Together,
    lasts_long: true,
    server: &[],
    companion: &[],
};

/// Counters: the defaults, but one case after the other, so that what grew is the case's own.
pub(super) static COUNTERS: Setup = Setup {
    name: "counters",
    sharing: Sharing::InTurn,
    lasts_long: true,
    server: &[],
    companion: &[],
};

/// A short longest message.
pub(super) static SHORT_MESSAGES: Setup = Setup {
    name: "short-messages",
    sharing: Sharing::Together,
    lasts_long: false,
    server: &[("MAX_MESSAGE_BYTES", "4096")],
    companion: &[],
};

/// Clients that do not read: one case after the other, for each moves as much as the kernel holds.
pub(super) static DEAF_CLIENTS: Setup = Setup {
    name: "deaf-clients",
    sharing: Sharing::InTurn,
    lasts_long: true,
    server: &[],
    companion: &[],
};

/// One worker, so that a hub reaches everybody. One case after the other, because there is one hub.
pub(super) static ONE_WORKER: Setup = Setup {
    name: "one-worker",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: &[("WORKER_THREADS", "1")],
    companion: &[],
};

/// An end: each case has a server of its own.
pub(super) static DRAIN: Setup = Setup {
    name: "drain",
    sharing: Sharing::Alone,
    lasts_long: false,
    server: &[("DRAIN_TIMEOUT_MS", "1500")],
    companion: &[],
};
