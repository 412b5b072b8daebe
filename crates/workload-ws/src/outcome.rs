//! What becomes of an arrival, one name for each way to fail.

use std::borrow::Cow;

use plimsoll_core::session::Disconnect;

/// Why an arrival did not come to be open. What the client's own machine could not do (`EMFILE`, `EADDRNOTAVAIL`) is none of these: the engine counts that
/// as the client's fault, and the arrival is no part of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalOutcome {
    /// Nobody listens, or the backlog is full.
    TcpRefused,
    /// The connection was closed or reset before an answer to the upgrade.
    ClosedBeforeHttp,
    /// The upgrade was answered with this status.
    HttpStatus(u16),
    /// The answer to the upgrade breaks the handshake's rules.
    BadHandshake,
    /// The token was refused, which a `wse` server does after the upgrade.
    Auth4401,
    /// Upgraded, and the server never said that it is ready.
    NoServerReady,
    /// No answer in time, be it of TCP or of HTTP.
    Timeout,
}

impl ArrivalOutcome {
    /// What it is when the socket ended like that before an answer to the upgrade.
    pub(super) fn before_upgrade(how: Option<Disconnect>) -> Self {
        match how {
            Some(Disconnect::Refused) => Self::TcpRefused,
            Some(Disconnect::TimedOut) => Self::Timeout,
            _ => Self::ClosedBeforeHttp,
        }
    }

    /// Its name in results.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::TcpRefused => "tcp_refused",
            Self::ClosedBeforeHttp => "closed_before_http",
            Self::HttpStatus(status) => return Cow::Owned(format!("http_status {status}")),
            Self::BadHandshake => "bad_handshake",
            Self::Auth4401 => "auth_4401",
            Self::NoServerReady => "no_server_ready",
            Self::Timeout => "timeout",
        })
    }
}
