//! What the laboratory must know of the targets' contracts (`docs/stt/contract.md`, section 8; `docs/ws/contract.md`, sections 1 and 4).

/// Every variable of the contracts, and those by which common runtimes are turned verbose or tuned. The user's shell must not change what a target does.
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

/// Variables in which the command itself is given secrets. They are for no process that it starts.
pub const SECRET_VARIABLES: [&str; 4] = [
    HEADERS_VARIABLE,
    TOKEN_SECRET_VARIABLE,
    TOKEN_VARIABLE,
    SERVE_TOKEN_VARIABLE,
];

/// Headers of the upgrade request, lines of `Name: value`.
pub const HEADERS_VARIABLE: &str = "PLIMSOLL_HEADERS";
/// What tokens are signed with.
pub const TOKEN_SECRET_VARIABLE: &str = "PLIMSOLL_TOKEN_SECRET";
/// The bearer token of `plimsoll check --url`.
pub const TOKEN_VARIABLE: &str = "PLIMSOLL_TOKEN";
/// The token that the pages of `plimsoll serve` demand.
pub const SERVE_TOKEN_VARIABLE: &str = "PLIMSOLL_SERVE_TOKEN";
