//! The contract's table of errors: what keeps a range of frames from having a transcript.

use std::borrow::Cow;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No answer within `INFERENCE_TIMEOUT_MS`.
    Timeout,
    /// No connection, or one that was lost, or a request that the server gave up.
    ConnectionReset,
    /// Answered 429.
    Http429,
    /// Answered 500 to 599.
    Http5xx,
    /// Answered 400 to 499, but for 429.
    Http4xx,
    /// Answered 200 with something else than the strict JSON, or with a status that is neither 200 nor an error.
    ParseError,
    /// Dropped by the overflow policy.
    Overflow,
}

impl Kind {
    /// All rows; `kind as usize` is an index into it.
    pub const ALL: [Self; 7] = [
        Self::Timeout,
        Self::ConnectionReset,
        Self::Http429,
        Self::Http5xx,
        Self::Http4xx,
        Self::ParseError,
        Self::Overflow,
    ];

    /// `stage`, `kind` and `retryable` of the message.
    pub const fn row(self) -> (&'static str, &'static str, bool) {
        match self {
            Self::Timeout => ("inference_request", "timeout", true),
            Self::ConnectionReset => ("inference_request", "connection_reset", true),
            Self::Http429 => ("inference_request", "http_429", true),
            Self::Http5xx => ("inference_request", "http_5xx", true),
            Self::Http4xx => ("inference_request", "http_4xx", false),
            Self::ParseError => ("inference_response_parse", "parse_error", false),
            Self::Overflow => ("input_buffer", "overflow", false),
        }
    }
}

/// A row with its particulars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The row.
    pub kind: Kind,
    /// For people.
    pub message: Cow<'static, str>,
    /// Status of the answer, if there was one.
    pub status: Option<u16>,
}

impl Failure {
    /// No answer in time.
    pub const TIMEOUT: Self = Self::without_status(Kind::Timeout, "no answer from inference in time");

    /// The server ended the request without an answer, or its connection is lost.
    pub const RESET: Self = Self::without_status(Kind::ConnectionReset, "inference gave the request up, or is gone");

    /// Frames dropped since the buffer was full.
    pub const OVERFLOW: Self = Self::without_status(Kind::Overflow, "input buffer full, frames dropped");

    const fn without_status(kind: Kind, message: &'static str) -> Self {
        Self { kind, message: Cow::Borrowed(message), status: None }
    }

    /// An answer with another status than 200.
    pub fn status(status: u16) -> Self {
        let kind = match status {
            429 => Kind::Http429,
            400..500 => Kind::Http4xx,
            500..600 => Kind::Http5xx,
            _ => Kind::ParseError,
        };
        Self { kind, message: format!("inference answered {status}").into(), status: Some(status) }
    }

    /// A 200 with a body that is not the strict JSON.
    pub fn parse(problem: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: Kind::ParseError, message: problem.into(), status: Some(200) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_indexed_by_their_kind() {
        assert!(Kind::ALL.iter().enumerate().all(|(index, kind)| index == *kind as usize));
    }

    #[test]
    fn every_status_has_a_row() {
        for (status, kind) in [
            (429, Kind::Http429),
            (400, Kind::Http4xx),
            (499, Kind::Http4xx),
            (500, Kind::Http5xx),
            (599, Kind::Http5xx),
            (204, Kind::ParseError),
            (302, Kind::ParseError),
        ] {
            assert_eq!(Failure::status(status).kind, kind, "{status}");
        }
    }
}
