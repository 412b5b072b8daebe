//! Why the command cannot continue: one line for the user, and an exit code.

use std::fmt;

/// Why the command cannot continue.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user asked for something impossible.
    Usage(String),
    /// The laboratory failed.
    Lab(plimsoll_lab::Error),
    /// Results could not be read or written.
    Report(plimsoll_report::ReportError),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Report(_) => 2,
            Self::Lab(error) => error.exit_code(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => f.write_str(text),
            Self::Lab(error) => error.fmt(f),
            Self::Report(error) => error.fmt(f),
        }
    }
}

impl From<plimsoll_lab::Error> for Failure {
    fn from(error: plimsoll_lab::Error) -> Self {
        Self::Lab(error)
    }
}

impl From<plimsoll_workload::Refusal> for Failure {
    fn from(refusal: plimsoll_workload::Refusal) -> Self {
        Self::Usage(refusal.to_string())
    }
}

impl From<plimsoll_host::Error> for Failure {
    fn from(error: plimsoll_host::Error) -> Self {
        Self::Lab(error.into())
    }
}

impl From<plimsoll_targets::Error> for Failure {
    fn from(error: plimsoll_targets::Error) -> Self {
        Self::Lab(error.into())
    }
}

impl From<plimsoll_report::ReportError> for Failure {
    fn from(error: plimsoll_report::ReportError) -> Self {
        Self::Report(error)
    }
}
