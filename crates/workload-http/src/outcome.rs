//! What becomes of a request that is not answered as it should be: one name for each way.

use std::borrow::Cow;

use plimsoll_core::session::Disconnect;

/// Why a request failed. What the client's own machine could not do is none of these: the engine counts that as the
/// client's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// Nobody listens, or the backlog is full.
    TcpRefused,
    /// The connection ended before the first byte of the answer.
    ClosedBeforeAnswer,
    /// The connection ended in the answer.
    ClosedInAnswer,
    /// The answer has this status instead of 200.
    HttpStatus(u16),
    /// The answer breaks the rules of HTTP.
    BadAnswer,
    /// The body is not what it must be.
    WrongBody,
    /// An HTTP/2 stream was reset with this code.
    StreamReset(u32),
    /// The server ended the HTTP/2 connection, and says that it did not process the request.
    Goaway,
    /// No answer in time.
    Timeout,
    /// No connection was free until the trial was over.
    NeverWritten,
    /// Written, and not answered when the trial was over.
    Unanswered,
}

impl RequestOutcome {
    /// What it is when the connection of a request without an answer ended like that.
    #[must_use]
    pub fn of(how: Disconnect, answer_began: bool) -> Self {
        match how {
            Disconnect::Refused => Self::TcpRefused,
            Disconnect::TimedOut => Self::Timeout,
            _ if answer_began => Self::ClosedInAnswer,
            _ => Self::ClosedBeforeAnswer,
        }
    }

    /// Whether nothing came at all. Such a request counts in the percentiles with the time we waited, a lower bound.
    #[must_use]
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Timeout | Self::NeverWritten | Self::Unanswered)
    }

    /// Its name in results.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::TcpRefused => "tcp_refused",
            Self::ClosedBeforeAnswer => "closed_before_answer",
            Self::ClosedInAnswer => "closed_in_answer",
            Self::HttpStatus(status) => return Cow::Owned(format!("http_status {status}")),
            Self::BadAnswer => "bad_answer",
            Self::WrongBody => "wrong_body",
            Self::StreamReset(code) => return Cow::Owned(format!("stream_reset {code}")),
            Self::Goaway => "goaway",
            Self::Timeout => "timeout",
            Self::NeverWritten => "never_written",
            Self::Unanswered => "unanswered",
        })
    }

    /// Whether this is the name of an outcome.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        const NAMES: [&str; 9] = [
            "tcp_refused",
            "closed_before_answer",
            "closed_in_answer",
            "bad_answer",
            "wrong_body",
            "goaway",
            "timeout",
            "never_written",
            "unanswered",
        ];
        NAMES.contains(&name)
            || ["http_status ", "stream_reset "]
                .iter()
                .any(|start| name.starts_with(start))
    }
}

/// A fault of the server that belongs to no request: bytes that nobody asked for.
pub const UNASKED_ANSWER: &str = "unasked_answer";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_again() {
        use RequestOutcome as Of;
        let all = [
            Of::TcpRefused,
            Of::ClosedBeforeAnswer,
            Of::ClosedInAnswer,
            Of::HttpStatus(503),
            Of::BadAnswer,
            Of::WrongBody,
            Of::StreamReset(2),
            Of::Goaway,
            Of::Timeout,
            Of::NeverWritten,
            Of::Unanswered,
        ];
        for outcome in all {
            assert!(RequestOutcome::is_name(&outcome.name()), "{outcome:?}");
        }
        assert!(!RequestOutcome::is_name("connection refused"));
    }
}
