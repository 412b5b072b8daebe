//! The environments that cases need. Cases with the same setup share one gateway and its simulator.

use plimsoll_conformance::{Setup, Sharing};

/// A gateway that only has an address: the contract's defaults are assumed.
pub(super) static DEFAULTS: Setup = Setup::new("defaults", Sharing::Together)
    .companion(&[("MODEL_DELAY_MS", "75")])
    .lasting();

/// Most cases: flushes come fast, so that cases are short.
pub(super) static BASE: Setup = Setup::new("base", Sharing::Together)
    .server(&[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "250"),
        ("START_TIMEOUT_MS", "1500"),
    ])
    .companion(&[("MODEL_DELAY_MS", "60")])
    .lasting();

/// The model takes longer than two flush intervals. The passes are not the default: they must be passed on.
pub(super) static SLOW_MODEL: Setup = Setup::new("slow-model", Sharing::InTurn)
    .server(&[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("CPU_PASSES", "3"),
    ])
    .companion(&[("MODEL_DELAY_MS", "625")])
    .lasting();

/// A small buffer, a short time-out.
const SMALL_AND_HASTY: &[(&str, &str)] = &[
    ("FLUSH_INTERVAL_MS", "250"),
    ("FLUSH_PHASE_JITTER_MS", "0"),
    ("INFERENCE_TIMEOUT_MS", "500"),
    ("MAX_BUFFER_FRAMES", "20"),
];

/// Faults of the simulator: one case at a time.
pub(super) static FAULTS: Setup = Setup::new("faults", Sharing::InTurn)
    .server(SMALL_AND_HASTY)
    .companion(&[("MODEL_DELAY_MS", "20")]);

/// Counters. The same variables, but a gateway of its own, so that its cases need not wait for those of the faults.
pub(super) static COUNTERS: Setup = Setup::new("counters", Sharing::InTurn)
    .server(SMALL_AND_HASTY)
    .companion(&[("MODEL_DELAY_MS", "20")]);

/// Overflow that drops the oldest frames, with a model slow enough to overflow behind a request in flight.
pub(super) static DROP_OLDEST: Setup = Setup::new("drop-oldest", Sharing::InTurn)
    .server(&[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "drop_oldest"),
    ])
    .companion(&[("MODEL_DELAY_MS", "600")]);

/// Overflow that drops the newest frames.
pub(super) static DROP_NEWEST: Setup = Setup::new("drop-newest", Sharing::InTurn)
    .server(&[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "drop_newest"),
    ])
    .companion(&[("MODEL_DELAY_MS", "600")]);

/// Overflow that closes.
pub(super) static CLOSE_ON_OVERFLOW: Setup = Setup::new("close-on-overflow", Sharing::InTurn)
    .server(&[
        ("FLUSH_INTERVAL_MS", "400"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_BUFFER_FRAMES", "20"),
        ("OVERFLOW_POLICY", "close"),
    ])
    .companion(&[("MODEL_DELAY_MS", "60")]);

/// One request in flight for the whole gateway.
pub(super) static ONE_JOB: Setup = Setup::new("one-job", Sharing::InTurn)
    .server(&[
        ("FLUSH_INTERVAL_MS", "250"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("MAX_INFLIGHT_JOBS", "1"),
    ])
    .companion(&[("MODEL_DELAY_MS", "150")]);

/// A small outbox, and flushes so fast that a client that does not read fills it within seconds.
pub(super) static SMALL_OUTBOX: Setup = Setup::new("small-outbox", Sharing::Alone)
    .server(&[
        ("FLUSH_INTERVAL_MS", "10"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("OUTBOX_MESSAGES", "2"),
        ("MAX_BUFFER_FRAMES", "50"),
    ])
    .companion(&[("MODEL_DELAY_MS", "1")])
    .lasting();

/// Two sessions and no more.
pub(super) static TWO_SESSIONS: Setup = Setup::new("two-sessions", Sharing::InTurn)
    .server(&[("MAX_SESSIONS", "2")])
    .companion(&[("MODEL_DELAY_MS", "60")]);

/// The token of [`WITH_TOKEN`] and [`ONE_WITH_TOKEN`].
pub(super) const TOKEN: &str = "load-line-0123456789";

/// A token is demanded.
pub(super) static WITH_TOKEN: Setup = Setup::new("with-token", Sharing::Together)
    .server(&[("AUTH_TOKEN", TOKEN)])
    .companion(&[("MODEL_DELAY_MS", "60")]);

/// One session and no more, and a token is demanded.
pub(super) static ONE_WITH_TOKEN: Setup = Setup::new("one-with-token", Sharing::InTurn)
    .server(&[("MAX_SESSIONS", "1"), ("AUTH_TOKEN", TOKEN)])
    .companion(&[("MODEL_DELAY_MS", "60")]);

/// A drain with time enough for what is in flight.
pub(super) static DRAIN: Setup = Setup::new("drain", Sharing::Alone)
    .server(&[
        ("FLUSH_INTERVAL_MS", "200"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("DRAIN_TIMEOUT_MS", "3000"),
    ])
    .companion(&[("MODEL_DELAY_MS", "900")]);

/// A drain that cannot wait for what is in flight.
pub(super) static SHORT_DRAIN: Setup = Setup::new("short-drain", Sharing::Alone)
    .server(&[
        ("FLUSH_INTERVAL_MS", "200"),
        ("FLUSH_PHASE_JITTER_MS", "0"),
        ("DRAIN_TIMEOUT_MS", "700"),
        ("INFERENCE_TIMEOUT_MS", "60000"),
    ])
    .companion(&[("MODEL_DELAY_MS", "20000")]);
