//! Section 8 of the contract: a bad value of a variable ends the gateway with exit code 2 and one line naming it.

use super::registry::Case;

/// Each variable with values that it must not take.
const BAD_VALUES: [(&str, &[&str]); 15] = [
    ("PORT", &["http", "70000"]),
    ("WORKER_THREADS", &["many"]),
    ("INFERENCE_URL", &["not a url"]),
    ("INFERENCE_HTTP_CLIENTS", &["few"]),
    ("INFERENCE_TIMEOUT_MS", &["soon", "-1"]),
    ("FLUSH_INTERVAL_MS", &["1s"]),
    ("FLUSH_PHASE_JITTER_MS", &["some"]),
    ("CPU_PASSES", &["four"]),
    ("MAX_SESSIONS", &["-1"]),
    ("MAX_BUFFER_FRAMES", &["all"]),
    ("OVERFLOW_POLICY", &["drop_everything"]),
    ("MAX_INFLIGHT_JOBS", &["1.5"]),
    ("OUTBOX_MESSAGES", &["four"]),
    ("START_TIMEOUT_MS", &["never"]),
    ("DRAIN_TIMEOUT_MS", &["5s"]),
];

pub(super) fn cases() -> Vec<Case> {
    let capitals = Case {
        id: "bad-value-overflow-policy-capitals".into(),
        ..Case::of_bad_values("OVERFLOW_POLICY", &["Drop_Oldest"])
    };
    let values = BAD_VALUES.into_iter();
    let cases = values.map(|(name, values)| Case::of_bad_values(name, values));
    cases.chain([capitals]).collect()
}
