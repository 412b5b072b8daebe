//! Why a range of frames has no transcript: the rows of the contract's error table.

/// One row of the error table. `stage`, `kind` and `retryable` of an `error` message follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No whole answer within `INFERENCE_TIMEOUT_MS`.
    Timeout,
    /// The connection could not be made, or it or the stream was lost before the answer was whole.
    ConnectionReset,
    /// Status 429.
    Http429,
    /// Status 500 to 599.
    Http5xx,
    /// Status 400 to 499 but 429.
    Http4xx,
    /// An answer that is not the strict JSON object of the contract, or that has any other status than 200.
    ParseError,
    /// Frames that the overflow policy dropped; no request was made for them.
    Overflow,
}

impl FailureKind {
    /// Every row, in the order of their discriminants, so that `kind as usize` indexes an array of this length.
    pub const ALL: [Self; 7] = [
        Self::Timeout,
        Self::ConnectionReset,
        Self::Http429,
        Self::Http5xx,
        Self::Http4xx,
        Self::ParseError,
        Self::Overflow,
    ];

    /// The part of the gateway that failed, as `error.stage` names it.
    pub fn stage(self) -> &'static str {
        match self {
            Self::ParseError => "inference_response_parse",
            Self::Overflow => "input_buffer",
            _ => "inference_request",
        }
    }

    /// The name of the row, as `error.kind` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::ConnectionReset => "connection_reset",
            Self::Http429 => "http_429",
            Self::Http5xx => "http_5xx",
            Self::Http4xx => "http_4xx",
            Self::ParseError => "parse_error",
            Self::Overflow => "overflow",
        }
    }

    /// Whether the same audio could have been answered a moment later.
    pub fn retryable(self) -> bool {
        matches!(self, Self::Timeout | Self::ConnectionReset | Self::Http429 | Self::Http5xx)
    }
}

/// Most characters of a message that quotes from elsewhere.
const MESSAGE_CHARS_MAX: usize = 200;

/// A failure and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The row of the error table.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
    /// The HTTP status of the answer, when there was one.
    pub status: Option<u16>,
}

impl Failure {
    /// No whole answer in time.
    pub fn timeout() -> Self {
        Self { kind: FailureKind::Timeout, message: "no answer from inference in time".to_owned(), status: None }
    }

    /// The transport failed; `cause` says how.
    pub fn connection(cause: impl std::fmt::Display) -> Self {
        Self { kind: FailureKind::ConnectionReset, message: format!("inference connection: {cause}"), status: None }
    }

    /// An answer with a status other than 200.
    pub fn status(status: u16) -> Self {
        let kind = match status {
            429 => FailureKind::Http429,
            500..=599 => FailureKind::Http5xx,
            400..=499 => FailureKind::Http4xx,
            // Neither the promised answer nor an HTTP error: what came is not what the contract lets us parse.
            _ => FailureKind::ParseError,
        };
        Self { kind, message: format!("inference answered with status {status}"), status: Some(status) }
    }

    /// A 200 whose body is not the strict JSON.
    pub fn parse(cause: impl std::fmt::Display) -> Self {
        // serde quotes the answer, which may be long.
        let message = format!("inference answer: {cause}").chars().take(MESSAGE_CHARS_MAX).collect();
        Self { kind: FailureKind::ParseError, message, status: Some(200) }
    }

    /// Frames dropped because the input buffer was full.
    pub fn overflow() -> Self {
        Self { kind: FailureKind::Overflow, message: "input buffer full, frames dropped".to_owned(), status: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminants_index_the_list() {
        for (index, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }

    #[test]
    fn statuses_map_to_their_rows() {
        let kind = |status| Failure::status(status).kind;
        assert_eq!(kind(429), FailureKind::Http429);
        assert_eq!(kind(400), FailureKind::Http4xx);
        assert_eq!(kind(499), FailureKind::Http4xx);
        assert_eq!(kind(500), FailureKind::Http5xx);
        assert_eq!(kind(599), FailureKind::Http5xx);
        assert_eq!(kind(204), FailureKind::ParseError);
        assert_eq!(kind(302), FailureKind::ParseError);
    }
}
