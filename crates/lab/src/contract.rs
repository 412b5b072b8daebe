//! What the laboratory needs to know about the targets' contracts (`docs/stt/contract.md`, section 8;
//! `docs/ws/contract.md`, sections 1 and 4).

/// All environment variables of the contracts, and those that make common runtimes verbose or tune them. Plimsoll
/// removes them from a target's environment, because the user's shell must not change what a target does.
pub(crate) const CONTRACT_VARIABLES: [&str; 24] = [
    "PORT",
    "WORKER_THREADS",
    "INFERENCE_URL",
    "INFERENCE_HTTP_CLIENTS",
    "INFERENCE_TIMEOUT_MS",
    "FLUSH_INTERVAL_MS",
    "FLUSH_PHASE_JITTER_MS",
    "CPU_PASSES",
    "MODEL_DELAY_MS",
    "MAX_SESSIONS",
    "MAX_BUFFER_FRAMES",
    "OVERFLOW_POLICY",
    "MAX_INFLIGHT_JOBS",
    "OUTBOX_MESSAGES",
    "START_TIMEOUT_MS",
    "DRAIN_TIMEOUT_MS",
    "AUTH_TOKEN",
    "MAX_MESSAGE_BYTES",
    "METRICS_PORT",
    "WSE_SECRET",
    "WSE_ISSUER",
    "WSE_AUDIENCE",
    "RUST_LOG",
    "NODE_OPTIONS",
];
