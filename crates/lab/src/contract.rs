//! What the laboratory must know of the gateways' contract (`docs/stt-contract.md`, section 8).

/// Every variable of the contract, and those by which common runtimes are turned verbose or tuned. The user's shell must not change what a target does.
pub(crate) const CONTRACT_VARIABLES: [&str; 19] = [
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
    "RUST_LOG",
    "NODE_OPTIONS",
];
