//! The environments that cases need. Cases with the same setup share one gateway and its mock providers.

use plimsoll_conformance::Setup;
use plimsoll_conformance::Sharing::{Alone, InTurn, Together};

/// What the providers get with each request.
pub(super) const KEY: &str = "load-line-0123456789";

/// Times so short that the cases which wait for them are short.
const SHORT: &[(&str, &str)] = &[
    ("PROVIDER_KEY", KEY),
    ("READY_MS", "1000"),
    ("TTS_FIRST_MS", "900"),
    ("TTS_GAP_MS", "600"),
    ("STT_PONG_MS", "700"),
    ("AUDIO_BUFFER_MS", "1000"),
];

/// A gateway that only has an address: the contract's defaults are assumed.
pub(super) static DEFAULTS: Setup = Setup::new("defaults", Together).lasting();

/// Most cases.
pub(super) static BASE: Setup = Setup::new("base", Together).server(SHORT).lasting();

/// Counters, and answers that are kept: one case at a time, so that they are its own.
pub(super) static COUNTERS: Setup = Setup::new("counters", InTurn).server(SHORT);

/// Ten callers and no more.
pub(super) static SLOTS: Setup = Setup::new("slots", InTurn).server(&[("MAX_SESSIONS", "10")]);

/// Clients may be silent for three seconds.
pub(super) static IDLE: Setup = Setup::new("idle", Together)
    .server(&[("IDLE_MS", "3000")])
    .lasting();

/// Little may wait for a slow reader.
pub(super) static SMALL_OUT_BUFFER: Setup = Setup::new("small-out-buffer", Alone)
    .server(&[("OUT_BUFFER_BYTES", "65536")])
    .lasting();

/// A drain that ends before a long reply does.
pub(super) static DRAIN: Setup = Setup::new("drain", Alone).server(&[("DRAIN_TIMEOUT_MS", "2500")]);
