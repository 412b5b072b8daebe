//! What a lie is, and what a trial must report about it.

/// A verdict and the exit code that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail,
    Invalid,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
        }
    }

    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Invalid => 3,
        }
    }
}

/// Which manifest the target is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manifest {
    /// The target's own.
    Own,
    /// One that claims to be an ordinary gateway: it does not declare that it asks no inference server.
    ThatClaimsToAsk,
}

/// A number in the record, and the range in which it must lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    /// For example `ledger.frames_lost`. In a list of named things, the name is a step:
    /// `sanity.metrics_frames.observed`.
    pub(crate) path: &'static str,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Exactly this number.
pub(crate) const fn exactly(path: &'static str, number: u32) -> Counter {
    within(path, number as f64, number as f64)
}

/// From `low` to `high`, both included.
pub(crate) const fn within(path: &'static str, low: f64, high: f64) -> Counter {
    Counter { path, low, high }
}

/// At least `low`.
pub(crate) const fn at_least(path: &'static str, low: f64) -> Counter {
    within(path, low, f64::INFINITY)
}

/// One fault of the target and everything that the trial must report about it. Nothing else may appear: no other failed
/// gate, no other caveat, no other counter of faults that is not 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lie {
    /// Name of its test and of its row in the table.
    pub(crate) name: &'static str,
    /// The value of `LIE`.
    pub(crate) lie: &'static str,
    /// The lie's parameters: `MS` is `LIE_MS`.
    pub(crate) parameters: &'static [(&'static str, &'static str)],
    /// What the target does, for the table.
    pub(crate) fault: &'static str,
    pub(crate) sessions: u32,
    /// The phases, and any other flags of the command.
    pub(crate) flags: &'static str,
    pub(crate) manifest: Manifest,
    pub(crate) verdict: Verdict,
    /// Gates that must not hold.
    pub(crate) gates: &'static [&'static str],
    /// Gates that may or may not hold, depending on the jitter.
    pub(crate) gates_perhaps: &'static [&'static str],
    /// Caveats that must be there.
    pub(crate) caveats: &'static [&'static str],
    /// Caveats that may be there.
    pub(crate) caveats_perhaps: &'static [&'static str],
    pub(crate) counters: &'static [Counter],
    /// Part of a reason in the ledger; empty if none is required.
    pub(crate) reason: &'static str,
}

/// A window of 3 s, `1.2..4.2`: for lies that are counted.
pub(crate) const SHORT: &str = "--ramp 0.2 --warm-up 1 --measured 3 --grace 2";
/// A window of 4 s, `1.2..5.2`: with 60 sessions it has the 200 answers that a 95th percentile needs.
pub(crate) const TIMED: &str = "--ramp 0.2 --warm-up 1 --measured 4 --grace 2";
/// A window of 5 s, `1.2..6.2`.
pub(crate) const LONGER: &str = "--ramp 0.2 --warm-up 1 --measured 5 --grace 2";
/// A window of 6 s, `1.2..7.2`.
pub(crate) const LONG: &str = "--ramp 0.2 --warm-up 1 --measured 6 --grace 2";
/// A soak of 40 s, `3..43`.
pub(crate) const SOAK: &str = "--profile soak --ramp 1 --warm-up 2 --measured 40 --grace 2";

/// All four latency gates of the contract.
pub(crate) const EVERY_LATENCY: &[&str] = &[
    "newest_p50_ms",
    "newest_p95_ms",
    "oldest_p50_ms",
    "oldest_p95_ms",
];

/// A lie that does no harm to the sessions.
pub(crate) const HARMLESS: Lie = Lie {
    name: "",
    lie: "",
    parameters: &[],
    fault: "",
    sessions: 60,
    flags: TIMED,
    manifest: Manifest::Own,
    verdict: Verdict::Pass,
    gates: &[],
    gates_perhaps: &[],
    caveats: &[],
    // It asks no inference server, and its manifest says so.
    caveats_perhaps: &["back-end-unchecked"],
    counters: &[],
    reason: "",
};

/// A lie that costs answers or time.
pub(crate) const HARMFUL: Lie = Lie {
    sessions: 30,
    flags: SHORT,
    verdict: Verdict::Fail,
    ..HARMLESS
};
