//! The error type of the laboratory. Each message is one clear line that names what failed and, if there is one, the
//! remedy.

use plimsoll_engine::EngineError;
use plimsoll_workload::{DriveError, Refusal};

/// What can go wrong in the laboratory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user asked for something impossible or made a mistake in the input (exit code 2). One line.
    #[error("{0}")]
    Usage(String),

    /// A target cannot be used: its manifest, its tools or its build (exit code 2).
    #[error(transparent)]
    Target(plimsoll_targets::Error),

    /// A signal asked us to stop.
    #[error("interrupted while {0}")]
    Interrupted(String),

    /// The machine is at fault: a child, a file, a system call, or one of our HTTP requests.
    #[error(transparent)]
    Host(plimsoll_host::Error),

    /// Plimsoll itself is at fault, not the target, the machine or the user (exit code 70). One line.
    #[error(
        "{0}; this is a bug in Plimsoll: please report it with the command and the lines above"
    )]
    Fault(String),
}

/// The exit code for a fault of Plimsoll itself: `EX_SOFTWARE` from sysexits(3).
pub const FAULT: u8 = 70;

/// The result type of the laboratory.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Converts an error of the load engine. Only a panic of the engine is Plimsoll's fault.
    pub(crate) fn of_engine(error: &EngineError) -> Self {
        match error {
            EngineError::Start(_) => Self::Usage(error.to_string()),
            EngineError::Panicked => Self::Fault(error.to_string()),
        }
    }

    /// The command's exit code for this error: 2 for usage and configuration, 130 when interrupted, 70 for a fault of
    /// Plimsoll itself, and 3 for everything else that makes a measurement impossible.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Target(_) => 2,
            Self::Interrupted(_) => 130,
            Self::Fault(_) => FAULT,
            Self::Host(_) => 3,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Usage(refusal.to_string())
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Engine(error) => Self::of_engine(&error),
            DriveError::Claim(_) => Self::Fault(error.to_string()),
        }
    }
}

/// A mistake of the user and a wish to stop are the same errors wherever they were noticed, so each has only one variant.
impl From<plimsoll_host::Error> for Error {
    fn from(error: plimsoll_host::Error) -> Self {
        match error {
            plimsoll_host::Error::Usage(text) => Self::Usage(text),
            plimsoll_host::Error::Interrupted(what) => Self::Interrupted(what),
            error => Self::Host(error),
        }
    }
}

impl From<plimsoll_targets::Error> for Error {
    fn from(error: plimsoll_targets::Error) -> Self {
        match error {
            plimsoll_targets::Error::Host(error) => error.into(),
            error => Self::Target(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_target_is_the_users_to_fix_and_an_interruption_is_not() {
        let missing = plimsoll_targets::Error::MissingTool {
            target: "rust-axum".into(),
            tool: "cargo".into(),
            install: "install Rust with rustup (https://rustup.rs)".into(),
        };
        assert_eq!(Error::from(missing).exit_code(), 2);
        let stopped = plimsoll_host::Error::Interrupted("building".into());
        let stopped = plimsoll_targets::Error::from(stopped);
        assert_eq!(Error::from(stopped).exit_code(), 130);
    }

    #[test]
    fn a_panic_of_the_engine_is_no_mistake_of_the_user() {
        let error = Error::of_engine(&EngineError::Panicked);
        assert_eq!(error.exit_code(), 70);
        let text = error.to_string();
        assert!(
            text.contains("load engine panicked") && text.contains("please report"),
            "{text}"
        );
        let refused = EngineError::Start(std::io::ErrorKind::OutOfMemory.into());
        assert_eq!(Error::of_engine(&refused).exit_code(), 2);
    }
}
