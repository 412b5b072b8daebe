//! Why frames have no transcript: the rows of the contract's error table.

/// One row of the error table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    Timeout,
    ConnectionReset,
    Http429,
    Http5xx,
    Http4xx,
    ParseError,
    Overflow,
}

use FailureKind::*;

impl FailureKind {
    pub const ALL: [Self; 7] = [Timeout, ConnectionReset, Http429, Http5xx, Http4xx, ParseError, Overflow];

    /// `stage`, `kind` and `retryable` of the contract.
    pub fn row(self) -> (&'static str, &'static str, bool) {
        match self {
            Timeout => ("inference_request", "timeout", true),
            ConnectionReset => ("inference_request", "connection_reset", true),
            Http429 => ("inference_request", "http_429", true),
            Http5xx => ("inference_request", "http_5xx", true),
            Http4xx => ("inference_request", "http_4xx", false),
            ParseError => ("inference_response_parse", "parse_error", false),
            Overflow => ("input_buffer", "overflow", false),
        }
    }

    /// The row of an answer with another status than 200.
    pub fn of_status(status: u16) -> Self {
        match status {
            429 => Http429,
            500..=599 => Http5xx,
            400..=499 => Http4xx,
            // Its body is not the strict JSON, whatever it is.
            _ => ParseError,
        }
    }
}

/// A failure and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// For people.
    pub message: String,
    /// The HTTP status of the answer, if there was one.
    pub status: Option<u16>,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl ToString, status: Option<u16>) -> Self {
        Self { kind, message: message.to_string(), status }
    }
}
