//! How a speech-to-text gateway talks to its inference server.

/// How a speech-to-text gateway talks to its inference server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InferenceTransport {
    /// HTTP/2 with prior knowledge over cleartext.
    H2c,
    /// HTTP/1.1 with keep-alive.
    Http1,
}

impl InferenceTransport {
    /// The transport of that name in a manifest, if there is one.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "h2c" => Some(Self::H2c),
            "http1" => Some(Self::Http1),
            _ => None,
        }
    }
}
