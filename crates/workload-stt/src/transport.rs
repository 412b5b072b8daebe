//! How a speech-to-text gateway talks to its inference server.

use serde::{Deserialize, Serialize};

/// How a speech-to-text gateway talks to its inference server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InferenceTransport {
    /// HTTP/2 with prior knowledge over cleartext.
    H2c,
    /// HTTP/1.1 with keep-alive.
    Http1,
}
