//! The environments that cases need. Cases with the same setup share one gateway and its simulator.

use plimsoll_conformance::{Setup, Sharing};

/// A gateway that only has an address: the contract's defaults are assumed.
pub(super) static DEFAULTS: Setup = Setup {
    name: "defaults",
    sharing: Sharing::Together,
    lasts_long: true,
    server: &[],
    companion: &[("MODEL_DELAY_MS", "75")],
};

/// Most cases: flushes come fast, so that cases are short.
pub(super) static BASE: Setup = Setup {
    name: "base",
    sharing: Sharing::Together,
    lasts_long: true,
    server: &[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "250"),
        ("START_TIMEOUT_MS", "1500"),
        ("MODEL_DELAY_MS", "60"),
    ],
    companion: &[("MODEL_DELAY_MS", "60")],
};

/// The model takes longer than two flush intervals. Passes and delay are not the defaults: they must be passed on.
pub(super) static SLOW_MODEL: Setup = Setup {
    name: "slow-model",
    sharing: Sharing::InTurn,
    lasts_long: true,
    server: &[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("CPU_PASSES", "3"),
        ("MODEL_DELAY_MS", "625"),
    ],
    companion: &[("MODEL_DELAY_MS", "625")],
};

/// A small buffer, a short time-out.
const SMALL_AND_HASTY: &[(&str, &str)] = &[
    ("FLUSH_INTERVAL_MS", "250"),
    ("FLUSH_PHASE_JITTER_MS", "0"),
    ("INFERENCE_TIMEOUT_MS", "500"),
    ("MAX_BUFFER_FRAMES", "20"),
];

/// Faults of the simulator: one case at a time.
pub(super) static FAULTS: Setup = Setup {
    name: "faults",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: SMALL_AND_HASTY,
    companion: &[("MODEL_DELAY_MS", "20")],
};

/// Counters. The same variables, but a gateway of its own, so that its cases need not wait for those of the faults.
pub(super) static COUNTERS: Setup = Setup {
    name: "counters",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: SMALL_AND_HASTY,
    companion: &[("MODEL_DELAY_MS", "20")],
};

/// Overflow that drops the oldest frames, with a model slow enough to overflow behind a request in flight.
pub(super) static DROP_OLDEST: Setup = Setup {
    name: "drop-oldest",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: &[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "drop_oldest"),
    ],
    companion: &[("MODEL_DELAY_MS", "600")],
};

/// Overflow that drops the newest frames.
pub(super) static DROP_NEWEST: Setup = Setup {
    name: "drop-newest",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: &[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "drop_newest"),
    ],
    companion: &[("MODEL_DELAY_MS", "600")],
};

/// Overflow that closes.
pub(super) static CLOSE_ON_OVERFLOW: Setup = Setup {
    name: "close-on-overflow",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: &[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "close"),
    ],
    companion: &[("MODEL_DELAY_MS", "60")],
};

/// One request in flight for the whole gateway.
pub(super) static ONE_JOB: Setup = Setup {
    name: "one-job",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: &[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_INFLIGHT_JOBS", "1"),
    ],
    companion: &[("MODEL_DELAY_MS", "150")],
};

/// A small outbox, and flushes so fast that a client that does not read fills it within seconds.
pub(super) static SMALL_OUTBOX: Setup = Setup {
    name: "small-outbox",
    sharing: Sharing::Alone,
    lasts_long: true,
    server: &[
        ("FLUSH_INTERVAL_MS", "10"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("OUTBOX_MESSAGES", "2"),
        ("MAX_BUFFER_FRAMES", "50"),
    ],
    companion: &[("MODEL_DELAY_MS", "1")],
};

/// Two sessions and no more.
pub(super) static TWO_SESSIONS: Setup = Setup {
    name: "two-sessions",
    sharing: Sharing::InTurn,
    lasts_long: false,
    server: &[("MAX_SESSIONS", "2")],
    companion: &[("MODEL_DELAY_MS", "60")],
};

/// The token of [`WITH_TOKEN`].
pub(super) const TOKEN: &str = "load-line-0123456789";

/// A token is demanded.
pub(super) static WITH_TOKEN: Setup = Setup {
    name: "with-token",
    sharing: Sharing::Together,
    lasts_long: false,
    server: &[("AUTH_TOKEN", TOKEN)],
    companion: &[("MODEL_DELAY_MS", "60")],
};

/// A drain with time enough for what is in flight.
pub(super) static DRAIN: Setup = Setup {
    name: "drain",
    sharing: Sharing::Alone,
    lasts_long: false,
    server: &[
        ("FLUSH_INTERVAL_MS", "200"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("DRAIN_TIMEOUT_MS", "3000"),
    ],
    companion: &[("MODEL_DELAY_MS", "900")],
};

/// A drain that cannot wait for what is in flight.
pub(super) static SHORT_DRAIN: Setup = Setup {
    name: "short-drain",
    sharing: Sharing::Alone,
    lasts_long: false,
    server: &[
        ("FLUSH_INTERVAL_MS", "200"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("DRAIN_TIMEOUT_MS", "700"),
        ("INFERENCE_TIMEOUT_MS", "60000"),
    ],
    companion: &[("MODEL_DELAY_MS", "20000")],
};
